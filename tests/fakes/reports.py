"""Sample reports: of thousands of jobs, and with hostile text in every field."""

import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from sageaudit.adapters.files import recording
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.prices import packaged
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FixDocument
from sageaudit.domain.audit.record import AuditEntry, Detail
from sageaudit.domain.sweep import Period
from sageaudit.output.html.account import account_body, account_title
from sageaudit.output.html.contents import AccountReport, JobReport
from sageaudit.output.html.job import job_body, job_title
from sageaudit.output.html.markup import Child
from sageaudit.output.html.page import page
from sageaudit.structs import replace
from sageaudit.workflows import report as report_contents
from sageaudit.workflows.audit.stored import make_detail
from sageaudit.workflows.recordings.jobs import measure_recording
from tests.fakes import documents
from tests.fakes.entries import entry_of
from tests.fakes.families import run_summary

RECORDINGS = Path(__file__).parents[2] / "local" / "recordings"
MADE_AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
FIRST = datetime(2026, 10, 24, 6, 0, tzinfo=UTC)
HOSTILE = (
    '<script>document.title="owned"</script>',
    "<img src=x onerror=\"document.title='owned'\">",
    "\"><svg onload=document.title='owned'>",
    "' autofocus onfocus=document.title='owned' x='",
    "javascript:document.title='owned'",
    "</title></style></script><h1>owned</h1>",
    "\u202egnp.exe\u2066 \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "x" * 3000,
    "A" * 40 + " " + "\u0351" * 30 + "&lt;b&gt; ${1+1} {{7*7}} =HYPERLINK(1)",
)


def page_of(contents: AccountReport | JobReport) -> str:
    """Returns the HTML page as the command writes it, with a fixed time."""
    body: Child
    if isinstance(contents, JobReport):
        title, body = job_title(contents.document), job_body(contents)
    else:
        title, body = account_title(contents), account_body(contents)
    return "".join(page(title, body, generated_at=MADE_AT, version="0"))


def report_of(entries: Iterable[AuditEntry], days: int) -> AccountReport:
    """Returns the report of an account with these audits, for `days` days from FIRST on."""
    history = SqliteHistory()
    for entry in entries:
        history.record(entry)
    period = Period(FIRST.date(), (FIRST + timedelta(days=days - 1)).date())
    source = report_contents.ReportSource(history, packaged.instance_types())
    heads, left_out = report_contents.read_report_summaries(source, period, None)
    return report_contents.assemble_account_report(
        source, period, None, heads, left_out, period.created_before
    )


def large_account_report(jobs: int, before: int = 0, seed: int = 11) -> AccountReport:
    """Returns the report of an account with `jobs` random jobs in 30 days.

    `before`: jobs in the 30 days before; if there are enough, each of these days but the last has
    one.
    """
    rng = random.Random(seed)
    entries = [_entry(number, rng) for number in range(jobs)]
    entries += [
        _entry(jobs + number, rng, FIRST - timedelta(days=30 - number % 29))
        for number in range(before)
    ]
    return report_of(entries, 30)


def family_report(runs: list[list[tuple[str, str, int]]]) -> AccountReport:
    """Returns the report of one family with one run a day.

    Each run lists rule, bucket and USD of its findings.
    """
    entries = []
    for day, rows in enumerate(runs):
        findings = [
            documents.finding(rule, bucket=bucket, saving_usd=Decimal(usd))
            for rule, bucket, usd in rows
        ]
        has_failed = any(finding["bucket"] == "lost" for finding in findings)
        audit = documents.document(
            job={
                "name": f"bert-{day}",
                "family": "training/bert",
                "status": "Failed" if has_failed else "Completed",
                "created_at": FIRST + timedelta(days=day, hours=-2),
                "ended_at": FIRST + timedelta(days=day),
            },
            findings=findings,
        )
        entries.append(entry_of(audit, run_summary(instance_type=_TYPES[0], instance_count=1)))
    return report_of(entries, len(runs) + 1)


_TYPES = ("ml.g5.2xlarge", "ml.g5.12xlarge", "ml.m5.4xlarge", "ml.p4d.24xlarge", "ml.c5.9xlarge")
_RULES = ("gpu-underused", "idle-tail", "spot-not-used", "download-dominates", "volume-oversized")


@cache
def _detail() -> Detail:
    """Returns the series of a three-hour run on four GPUs, as a history stores them."""
    recorded = recording.read(RECORDINGS / "composed-g4dn-12xlarge.json")
    assert isinstance(recorded, recording.Recording)
    return make_detail(recorded.describe, recorded.tags, measure_recording(recorded).usage)


def _entry(number: int, rng: random.Random, ended_at: datetime | None = None) -> AuditEntry:
    ended_at = ended_at or FIRST + timedelta(minutes=rng.randrange(29 * 1440))
    begun = ended_at - timedelta(minutes=rng.randrange(20, 900))
    family = f"training/pytorch/train.py/model-{rng.randrange(60):02d}"
    cost = Decimal(rng.randrange(1_000, 90_000_000)) / 1_000_000
    is_judged = rng.random() > 0.15
    findings = [_finding(rule, cost, rng) for rule in rng.sample(_RULES, rng.randrange(4))]
    kind = rng.choice(_TYPES)
    audit = documents.document(
        job={
            "name": f"model-{family[-2:]}-{ended_at:%Y-%m-%d-%H-%M-%S}-{number:04d}",
            "family": family,
            "owner": rng.choice(("anna", "bob", "mara", None)),
            "created_at": begun,
            "started_at": begun,
            "ended_at": ended_at,
            "instances": f"1 x {kind}",
        },
        bill={"total_usd": cost},
        findings=findings,
        **{} if is_judged else {"judged": "no", "avoidable_usd": None},
    )
    run = run_summary(instance_type=kind, instance_count=1)
    return replace(entry_of(audit, run), detail=_detail())


def _finding(rule: str, cost: Decimal, rng: random.Random) -> Any:
    share = (cost * Decimal(rng.randrange(1, 20)) / 100).quantize(Decimal("0.000001"))
    severity = rng.choice(("high", "medium", "low"))
    smaller = documents.fix("ResourceConfig.InstanceType", "ml.g5.2xlarge", "ml.g4dn.xlarge")
    return documents.finding(rule, severity=severity, saving_usd=share, fix=[smaller])


def hostile_account() -> AccountReport:
    """Returns the report of an account with an attack in every text field."""
    rng = random.Random(3)
    entries = [_entry(number, rng) for number in range(len(HOSTILE))]
    attacked = [
        replace(entry, document=_attacked(entry.document, text, number))
        for number, (entry, text) in enumerate(zip(entries, HOSTILE, strict=True))
    ]
    return report_of(attacked, 30)


def hostile_job() -> JobReport:
    """Returns the report of one job with all attacks in every text field."""
    entry = _entry(0, random.Random(3))
    return JobReport(_attacked(entry.document, " ".join(HOSTILE), 0), None)


def _attacked(document: AuditDocument, text: str, number: int) -> AuditDocument:
    attacked = cast("AuditDocument", _with(document, text))
    job = attacked["job"]
    job["name"] = job["family"] = job["owner"] = f"{number} {text}"
    job["status"] = text
    job["kind"], job["purchase"] = "training", "on_demand"
    for key in ("created_at", "started_at", "ended_at", "arn", "account", "region"):
        cast("dict[str, Any]", job)[key] = cast("dict[str, Any]", document["job"])[key]
    attacked["judged"] = document["judged"]
    attacked["bill"]["basis"] = document["bill"]["basis"]
    attacked["not_judged"] = [text, text]
    attacked["unknown"] = [{"rule": text, "code": "x", "reason": text}]
    attacked["not_applicable"] = [{"rule": text, "reason": text}]
    attacked["clear"] = [text]
    attacked["idle_capacity"] = None
    kept_keys = (
        "severity",
        "confidence",
        "bucket",
        "superseded_by",
        "subsumed_by",
        "reported_for_run",
        "exempt",
    )
    for finding, before in zip(attacked["findings"], document["findings"], strict=True):
        for key in kept_keys:
            cast("dict[str, Any]", finding)[key] = cast("dict[str, Any]", before)[key]
        finding["fix"] = [{"parameter": f"Environment.{text}", "old": text, "new": text}]
        finding["evidence"] = {text: text, "plain": text}
        finding["caution"] = text
        finding["alternatives"] = [finding["fix"], finding["fix"]]
    for line in attacked["bill"]["lines"]:
        line["price_kind"] = "list"
    for part, original in zip(attacked["waterfall"], document["waterfall"], strict=True):
        part["slice"] = text if original["slice"] != "rest" else "rest"
    return attacked


def _with(value: object, text: str) -> object:
    """Returns the value with every text replaced."""
    if isinstance(value, dict):
        return {key: _with(inner, text) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with(inner, text) for inner in value]
    return text if isinstance(value, str) else value


class FamilyRuns(Struct, frozen=True):
    """A family with `runs` runs a day apart, each with one equal finding of `usd` USD.

    `fix`: the parameters that change. `changes`: other keys of the finding.
    """

    family: str
    rule: str
    usd: Decimal | None
    fix: Sequence[FixDocument] = ()
    runs: int = 1
    changes: Mapping[str, Any] = {}


def families_report(families: Sequence[FamilyRuns], days: int = 30) -> AccountReport:
    """Returns the report of these families."""
    entries = []
    runs = [(row, day) for row in families for day in range(row.runs)]
    for row, day in runs:
        finding = documents.finding(
            row.rule, saving_usd=row.usd, fix=[*row.fix], alternatives=[], **row.changes
        )
        ended_at = FIRST + timedelta(days=day)
        job = {
            "name": f"{row.family.rpartition('/')[2]}-{day}",
            "family": row.family,
            "created_at": ended_at - timedelta(hours=2),
            "started_at": ended_at - timedelta(hours=2),
            "ended_at": ended_at,
        }
        audit = documents.document(job=job, findings=[finding])
        entries.append(entry_of(audit, run_summary(instance_type=_TYPES[0], instance_count=1)))
    return report_of(entries, days)


def grouped_report() -> AccountReport:
    """Returns the report of 14 families with one change, and of more possible dollars."""
    smaller = documents.fix("ResourceConfig.InstanceType", "ml.p3.2xlarge", "ml.g4dn.4xlarge")
    spot = documents.fix("EnableManagedSpotTraining", old=False, new=True)
    training = "training/pytorch-training/train.py"
    names = [f"{training}/model-with-a-long-name-{number:02d}" for number in range(14)]
    return families_report(
        [
            *(FamilyRuns(name, "old-generation", Decimal("1.21"), (smaller,)) for name in names),
            FamilyRuns(f"{training}/large", "spot-not-used", Decimal(900), (spot,), runs=3),
        ]
    )
