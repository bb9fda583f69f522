"""`sageaudit reconcile`: real recordings in a history, Cost Explorer's answer from a list."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.commands import reconcile as command
from sageaudit.cli.support.recordings.recorded_audits import audit_recording
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Entry, JobKey
from sageaudit.domain.policy.policy import Policy
from sageaudit.ports import History
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes import cost_reports
from tests.fakes.aws_calls import AwsCalls, aws_calls
from tests.fakes.command_line import Result, Run
from tests.fakes.cost_explorer import cost_and_usage
from tests.fakes.cost_reports import Charge
from tests.fakes.documents import document, job, line
from tests.fakes.schemas import wrong

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
ACCOUNT, MONTH = "111122223333", "2023-02"
RECORDED = (
    "processing-051-completed.json",
    "processing-065-completed.json",
    "profiled-059-m5-2xlarge.json",
    "profiled-061-m5-large.json",
    "tuning-017-completed.json",
)
"""Jobs of February 2023 in us-east-1; a tuning job has no bill of its own."""


def entry(audited: AuditDocument) -> Entry:
    """What is recorded of an audit."""
    created_at = datetime.fromisoformat(audited["job"]["created_at"] or "2023-02-01T00:00:00Z")
    arn = audited["job"]["arn"] or ""
    return Entry(JobKey(arn, created_at), created_at, audited, 1, None, None)


@cache
def recorded() -> list[AuditDocument]:
    """The audits of the recordings."""
    return [audit_recording(DATA / name, Policy()) for name in RECORDED]


@dataclass
class Cloud:
    """The history's table, and Cost Explorer as it answers and counts."""

    table: str
    history: History
    calls: AwsCalls
    usage: list[tuple[str, str, Decimal, Decimal]] = field(default_factory=list)

    @property
    def asked(self) -> int:
        """Requests to Cost Explorer."""
        return len(self.calls.of("ce:GetCostAndUsage"))

    def bill(self, audits: list[AuditDocument]) -> None:
        """AWS metered these audits' lines."""
        for audit in audits:
            for one in audit["bill"]["lines"]:
                quantity, usd = one["quantity"] or Decimal(0), one["usd"] or Decimal(0)
                self.usage.append(
                    (one["usage_type"] or "", audit["job"]["region"] or "", quantity, usd)
                )

    def answer(self, _: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """GetCostAndUsage: the usage, and nothing for what is no usage."""
        by_type: dict[tuple[str, str], list[Decimal]] = {}
        for usage_type, region, quantity, usd in self.usage if "Not" not in str(params) else ():
            sums = by_type.setdefault((usage_type, region), [Decimal(0), Decimal(0)])
            sums[0] += quantity
            sums[1] += usd
        return cost_and_usage((keys, sums[0], sums[1]) for keys, sums in by_type.items())


@pytest.fixture(scope="module")
def table_of_recordings() -> Iterator[tuple[str, History]]:
    """A table with the recordings."""
    with dynamodb() as client:
        name = new_table(client)
        history = DynamoHistory(client, name)
        for audit in recorded():
            history.record(entry(audit))
        yield name, history


@pytest.fixture
def cloud(table_of_recordings: tuple[str, History]) -> Iterator[Cloud]:
    """The same, with nothing billed and nothing asked yet."""
    with aws_calls() as calls:
        made = Cloud(*table_of_recordings, calls)
        whose = {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:user/ana", "UserId": "A"}
        calls.answer("sts:GetCallerIdentity", lambda *_: whose)
        calls.answer("ce:GetCostAndUsage", made.answer)
        yield made


@pytest.fixture
def reconcile(run: Run, cloud: Cloud) -> Run:
    """`sageaudit reconcile` of the month and the table, unless others are named."""

    def call(*words: str, month: str = MONTH, table: str = cloud.table) -> Result:
        return run("reconcile", "--month", month, "--table", table, *words)

    return call


def of(done: Result) -> dict[str, Any]:
    """The JSON that was printed."""
    printed: dict[str, Any] = done.document(parse_float=Decimal)
    assert wrong("reconcile", printed) == []
    return printed


def test_a_history_that_agrees_differs_by_nothing(cloud: Cloud, reconcile: Run) -> None:
    """Every usage type is matched, hour by hour; the roll-up is left out and counted."""
    cloud.bill(recorded())
    found = of(reconcile("--yes", "--output", "json"))
    assert {row["place"] for row in found["rows"]} == {"matched"}
    assert {row["quantity_percent"] for row in found["rows"]} == {Decimal(0)}
    assert found["totals"]["aws_usd"] == found["totals"]["history_usd"] > 0
    assert found["left_out"]["rollups"] == 1
    assert (found["requests"], found["requests_usd"]) == (2, Decimal("0.02"))


def test_people_get_tables_and_how_things_are_attributed(cloud: Cloud, reconcile: Run) -> None:
    """Sums, rows, areas, and the sentences that keep the figures honest."""
    cloud.bill(recorded()[:3])
    cloud.usage.append(("USE1-Notebk:ml.t3.medium", "us-east-1", Decimal(9), Decimal("0.45")))
    said = reconcile("--yes").stdout
    for part in (
        "history compared with Cost Explorer",
        "Matched",
        "Only in the history",
        "notebooks",
        "not covered by audits",
        "Compare quantities first",
        "month of the job's end",
        "1 x tuning job, whose training jobs",
    ):
        assert part in said
    assert "Only in AWS" not in said, "the notebook is an area, not a job's usage"


def test_the_price_is_said_before_anything_is_asked(cloud: Cloud, reconcile: Run) -> None:
    """Without a terminal nobody can agree: exit 2, nothing asked, nothing spent."""
    done = reconcile()
    assert done.exit_code == 2
    assert "2 or more Cost Explorer requests at $0.01 each: $0.02 or more" in done.stderr
    assert "--yes" in done.stderr
    assert (done.stdout, cloud.asked) == ("", 0)


@pytest.mark.parametrize(("said", "exit_code", "asked"), [("y", 0, 2), ("n", 130, 0)])
def test_on_a_terminal_it_asks(
    cloud: Cloud,
    reconcile: Run,
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    exit_code: int,
    asked: int,
) -> None:
    """A no ends it before the first request."""
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: said)
    assert reconcile().exit_code == exit_code
    assert cloud.asked == asked


def test_nothing_billed_is_said_and_shown(cloud: Cloud, reconcile: Run) -> None:
    """Everything is in the history only."""
    done = reconcile("--yes")
    assert done.exit_code == 0
    assert f"Cost Explorer has no SageMaker usage of account {ACCOUNT} in {MONTH}" in done.stdout


@pytest.mark.parametrize(
    ("words", "options", "exit_code", "said"),
    [
        (["--yes"], {"table": "absent-table"}, 3, "no table absent-table"),
        (["--yes"], {"month": "2019-01"}, 3, f"no job of account {ACCOUNT} in 2019-01"),
        (["--yes", "--account", "999988887777"], {}, 3, "no job of account 999988887777"),
        (["--cur", "absent.csv"], {}, 2, "absent.csv: cannot be read"),
    ],
)
def test_bad_input_is_one_sentence_and_its_code(
    cloud: Cloud,
    reconcile: Run,
    words: list[str],
    options: dict[str, str],
    exit_code: int,
    said: str,
) -> None:
    """And nothing was paid for it."""
    done = reconcile(*words, **options)
    assert (done.exit_code, cloud.asked) == (exit_code, 0)
    assert said in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("code", "exit_code", "said"),
    [
        ("AccessDeniedException", 4, "ce:GetCostAndUsage"),
        ("DataUnavailableException", 5, "DataUnavailableException"),
    ],
)
def test_a_refusal_of_cost_explorer_has_its_code(
    cloud: Cloud, reconcile: Run, code: str, exit_code: int, said: str
) -> None:
    """The action that is missing is named."""
    cloud.calls.refuse("ce:GetCostAndUsage", code)
    done = reconcile("--yes")
    assert done.exit_code == exit_code
    assert said in done.stderr


def report(path: Path, *rows: dict[str, str]) -> Path:
    """A cost and usage report of the month."""
    start = datetime.fromisoformat(f"{MONTH}-09")
    path.write_text(cost_reports.cur2([Charge(start, changes=row) for row in rows]))
    return path


def metered(audit: AuditDocument) -> Iterator[dict[str, str]]:
    """An audit's lines as a report has them: resource ids in lower case, two hours each."""
    for one in audit["bill"]["lines"]:
        for _ in range(2):
            yield {
                "line_item_resource_id": (audit["job"]["arn"] or "").lower(),
                "line_item_usage_type": one["usage_type"] or "",
                "pricing_unit": "",
                "line_item_usage_amount": str((one["quantity"] or Decimal(0)) / 2),
                "line_item_unblended_cost": str((one["usd"] or Decimal(0)) / 2),
            }


def test_a_report_is_compared_job_by_job_and_costs_nothing(
    cloud: Cloud, reconcile: Run, tmp_path: Path
) -> None:
    """Three jobs are matched, one is in the history only, one in AWS only, and a credit is out."""
    by_hand = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-job/by-hand"
    usage = {
        "line_item_usage_type": "USE1-Train:ml.m5.xlarge",
        "line_item_usage_amount": "2",
        "line_item_unblended_cost": "0.46",
    }
    file = report(
        tmp_path / "cur.csv",
        *(row for audit in recorded()[:3] for row in metered(audit)),
        usage | {"line_item_resource_id": by_hand},
        usage | {"line_item_line_item_type": "Credit", "line_item_unblended_cost": "-5"},
    )
    found = of(reconcile("--cur", str(file), "--output", "json"))
    assert found["jobs"] == {"matched": 3, "only_in_aws": 1, "only_in_history": 1}
    places = {row["place"]: row for row in found["rows"]}
    assert places["only_in_aws"]["job"] == by_hand
    assert [row["quantity_percent"] for row in found["rows"] if row["place"] == "matched"] == [
        Decimal(0)
    ] * 6
    assert found["excluded"] == [{"kind": "Credit", "lines": 1, "usd": Decimal(-5)}]
    assert (found["requests"], cloud.asked) == (0, 0)
    said = reconcile("--cur", str(file)).stdout
    assert "Jobs: 3 matched (60.0%), 1 only in AWS (20.0%)" in said
    assert "by-hand" in said


def ran(name: str, start: str, end: str, **changes: Any) -> AuditDocument:
    """An audit of a job with a compute line, and a volume in each month it touched."""
    started = job(name=name, created_at=start, started_at=start, ended_at=end)
    audit = document(job=started, **changes)
    months = dict.fromkeys((start[:7], end[:7]))
    audit["bill"]["lines"] = [
        line(note="1 x ml.g5.2xlarge"),
        *(line(item="storage", note=f"30 GB x 1, {month}") for month in months),
    ]
    return audit


@pytest.fixture
def history(tmp_path: Path) -> Iterator[SqliteHistory]:
    """An empty history."""
    with SqliteHistory(tmp_path / "history.db") as made:
        yield made


def test_a_whole_month_is_read_and_the_next_one_for_its_volumes(history: SqliteHistory) -> None:
    """Seven jobs; one more ended in November and has a volume of October."""
    for n in range(7):
        history.record(entry(ran(f"j{n}", "2026-10-09T08:00:00Z", "2026-10-09T10:00:00Z")))
    history.record(entry(ran("across", "2026-10-31T20:00:00Z", "2026-11-01T04:00:00Z")))
    history.record(entry(ran("later", "2026-11-01T20:00:00Z", "2026-11-02T04:00:00Z")))
    history.record(entry(ran("year", "2025-12-31T20:00:00Z", "2026-01-01T04:00:00Z")))
    october = command.month_of(history, ACCOUNT, date(2026, 10, 1))
    assert (october.jobs, len(october.lines)) == (7, 15)
    across = [one for one in october.lines if one.name == "across"]
    assert [(one.item, one.crosses) for one in across] == [("storage", True)]
    november = command.month_of(history, ACCOUNT, date(2026, 11, 1))
    assert (november.jobs, len(november.lines)) == (2, 4)
    december = command.month_of(history, ACCOUNT, date(2025, 12, 1))
    assert [one.item for one in december.lines] == ["storage"]


def test_roll_ups_and_what_could_not_be_audited_are_counted_and_left_out(
    history: SqliteHistory,
) -> None:
    """Their lines would count twice, or are not known."""
    when = ("2026-10-09T08:00:00Z", "2026-10-09T10:00:00Z")
    history.record(entry(ran("one", *when)))
    history.record(entry(ran("all", *when, rollup=True)))
    history.record(entry(ran("gone", *when, unauditable="there is no such job")))
    still = ran("still", *when)
    still["job"]["status"] = "InProgress"
    history.record(entry(still))
    month = command.month_of(history, ACCOUNT, date(2026, 10, 1))
    assert (month.jobs, month.rollups, month.unauditable, len(month.lines)) == (1, 1, 1, 2)
    assert month.running == 1


def test_estimates_and_managed_spot_are_said(cloud: Cloud, reconcile: Run) -> None:
    """In the table, in the notes, and in the JSON."""
    guess = line(usage_type="USE1-Train:ml.m6i.2xlarge", price_kind="estimate", usd=Decimal("1.38"))
    audit = document(
        job=job(ended_at="2023-03-17T12:00:00Z", started_at="2023-03-17T09:00:00Z",
                created_at="2023-03-17T09:00:00Z"),
        bill={**document()["bill"], "lines": [guess]},
    )  # fmt: skip
    cloud.history.record(entry(audit))
    cloud.bill([audit])
    spot = "USE1-TrSpt:ml.m5.xlarge"
    cloud.usage.append((spot, "us-east-1", Decimal(3), Decimal("0.2")))
    found = of(reconcile("--yes", "--output", "json", month="2023-03"))
    assert [row["usage"] for row in found["rows"] if row["history_estimated"]] == [
        "USE1-Train:ml.m6i.2xlarge"
    ]
    assert (found["estimated_lines"], found["totals"]["estimated_history_usd"]) == (
        1,
        Decimal("1.38"),
    )
    assert found["managed_spot_usage_types"] == [spot]
    said = " ".join(reconcile("--yes", month="2023-03").stdout.split())
    assert "about $1.38" in said
    assert "1 line of the history at an estimated rate, $1.38 in all" in said
    assert f"sage type {spot} seen: managed-spot rates; not used for any figure here" in said
