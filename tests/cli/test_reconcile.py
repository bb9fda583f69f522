"""`sageaudit reconcile` compares real recordings in a history with a cost report."""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.commands import reconcile as command
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import AuditEntry
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.exits import Exit
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows.recordings.run import audit_recording
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes import cost_reports
from tests.fakes.aws_calls import aws_calls
from tests.fakes.command_line import Result, Run
from tests.fakes.cost_reports import Charge
from tests.fakes.documents import document, job, line
from tests.fakes.entries import entry_of
from tests.fakes.schemas import schema_errors

ROLL_UPS = " or ".join(kind.spec.label for kind in JobKind if kind.spec.rollup)
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


def entry(audited: AuditDocument) -> AuditEntry:
    """Returns the history entry of an audit."""
    created_at = datetime.fromisoformat(audited["job"]["created_at"] or "2023-02-01T00:00:00Z")
    return replace(entry_of(audited), last_modified_at=created_at)


@cache
def recorded_audits() -> list[AuditDocument]:
    """Returns the audits of the recordings."""
    return [audit_recording(DATA / name, Policy()) for name in RECORDED]


@pytest.fixture(scope="module")
def table_of_recordings() -> Iterator[tuple[str, History]]:
    """Yields a table with the recordings."""
    with dynamodb() as client:
        name = new_table(client)
        history = DynamoHistory(client, name)
        for audit in recorded_audits():
            history.record(entry(audit))
        yield name, history


@pytest.fixture
def history_table(table_of_recordings: tuple[str, History]) -> Iterator[History]:
    """Yields the table's history; the credentials are those of its account."""
    with aws_calls() as calls:
        whose = {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:user/ana", "UserId": "A"}
        calls.answer("sts:GetCallerIdentity", lambda *_: whose)
        yield table_of_recordings[1]


@pytest.fixture
def reconcile(run: Run, history_table: History, table_of_recordings: tuple[str, History]) -> Run:
    """Returns a function that runs `sageaudit reconcile` for the month and the table, unless others
    are named.
    """
    del history_table

    def call(*words: str, month: str = MONTH, table: str = table_of_recordings[0]) -> Result:
        return run("reconcile", "--month", month, "--table", table, *words)

    return call


def printed_document(done: Result) -> dict[str, Any]:
    """Returns the JSON that was printed."""
    printed: dict[str, Any] = done.document(parse_float=Decimal)
    assert schema_errors("reconcile", printed) == []
    return printed


@pytest.mark.parametrize(
    ("words", "options", "exit_code", "message"),
    [
        ([], {"table": "absent-table"}, 3, "no table absent-table"),
        ([], {"month": "2019-01"}, 2, "2019-01"),
        (["--account", "999988887777"], {}, 2, "999988887777"),
        (["--cur", "absent.csv"], {}, 2, "absent.csv: cannot be read"),
    ],
)
def test_bad_input_is_one_sentence_and_its_code(
    reconcile: Run,
    tmp_path: Path,
    words: list[str],
    options: dict[str, str],
    exit_code: int,
    message: str,
) -> None:
    """The cases are a bad table and a report of something else."""
    usage = next(metered_lines(recorded_audits()[0]))
    done = reconcile("--cur", str(report(tmp_path / "cur.csv", usage)), *words, **options)
    assert done.exit_code == exit_code
    assert message in done.stderr
    assert done.stdout == ""


def report(path: Path, *rows: dict[str, str], month: str = MONTH) -> Path:
    """Returns a cost and usage report of the month."""
    start = datetime.fromisoformat(f"{month}-09")
    path.write_text(cost_reports.cur2([Charge(start, changes=row) for row in rows]))
    return path


def metered_lines(audit: AuditDocument) -> Iterator[dict[str, str]]:
    """Returns an audit's lines as a report has them: lower-case resource ids, two hours each."""
    for bill_line in audit["bill"]["lines"]:
        for _ in range(2):
            yield {
                "line_item_resource_id": (audit["job"]["arn"] or "").lower(),
                "line_item_usage_type": bill_line["usage_type"] or "",
                "pricing_unit": "",
                "line_item_usage_amount": str((bill_line["quantity"] or Decimal(0)) / 2),
                "line_item_unblended_cost": str((bill_line["usd"] or Decimal(0)) / 2),
            }


def test_a_report_is_compared_job_by_job(reconcile: Run, tmp_path: Path) -> None:
    """Three jobs match, one is only in the history, one only in AWS; a credit is left out."""
    by_hand = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-job/by-hand"
    usage = {
        "line_item_usage_type": "USE1-Train:ml.m5.xlarge",
        "line_item_usage_amount": "2",
        "line_item_unblended_cost": "0.46",
    }
    file = report(
        tmp_path / "cur.csv",
        *(row for audit in recorded_audits()[:3] for row in metered_lines(audit)),
        usage | {"line_item_resource_id": by_hand},
        usage | {"line_item_line_item_type": "Credit", "line_item_unblended_cost": "-5"},
    )
    result = printed_document(reconcile("--cur", str(file), "--output", "json"))
    assert result["jobs"] == {"matched": 3, "only_in_aws": 1, "only_in_history": 1}
    places = {row["place"]: row for row in result["rows"]}
    assert places["only_in_aws"]["job"] == by_hand
    assert [row["quantity_percent"] for row in result["rows"] if row["place"] == "matched"] == [
        Decimal(0)
    ] * 6
    assert result["excluded"] == [{"kind": "Credit", "lines": 1, "usd": Decimal(-5)}]
    assert result["excluded_audits"]["rollups"] == 1
    message = reconcile("--cur", str(file)).stdout
    assert "Jobs: 3 matched (60.0%), 1 only in AWS (20.0%)" in message
    for part in (
        "history compared with cur.csv",
        "by-hand",
        "Only in the history",
        "Only in AWS",
        "Compare quantities first",
        "month of the job's end",
    ):
        assert part in message
    assert f"1 x {ROLL_UPS}, whose jobs" in " ".join(message.split())


def test_usage_of_jobs_that_names_no_job_is_told(reconcile: Run, tmp_path: Path) -> None:
    """It counts as missing in the history, though a job there may have it."""
    named = list(metered_lines(recorded_audits()[0]))
    unnamed = named[0] | {"line_item_resource_id": "", "line_item_unblended_cost": "0.46"}
    shown = reconcile("--cur", str(report(tmp_path / "cur.csv", *named, unnamed))).stdout
    sentence = "$0.46 of AWS's usage of jobs names no job: it is compared with none, and counts as"
    assert sentence in " ".join(shown.split())
    shown = reconcile("--cur", str(report(tmp_path / "cur.csv", *named))).stdout
    assert "names no job" not in " ".join(shown.split())


def month_audit(name: str, start: str, end: str, **changes: Any) -> AuditDocument:
    """Returns an audit of a job with a compute line, and a volume in each month of its run."""
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
    """Yields an empty history."""
    with SqliteHistory(tmp_path / "history.db") as empty_history:
        yield empty_history


def test_a_whole_month_is_read_and_the_next_one_for_its_volumes(history: SqliteHistory) -> None:
    """It has seven jobs; one more ended in November and has a volume in October."""
    for n in range(7):
        history.record(entry(month_audit(f"j{n}", "2026-10-09T08:00:00Z", "2026-10-09T10:00:00Z")))
    history.record(entry(month_audit("across", "2026-10-31T20:00:00Z", "2026-11-01T04:00:00Z")))
    history.record(entry(month_audit("later", "2026-11-01T20:00:00Z", "2026-11-02T04:00:00Z")))
    history.record(entry(month_audit("year", "2025-12-31T20:00:00Z", "2026-01-01T04:00:00Z")))
    october = command.read_month(history, ACCOUNT, date(2026, 10, 1))
    assert (october.jobs, len(october.lines)) == (7, 15)
    across = [bill_line for bill_line in october.lines if bill_line.name == "across"]
    assert [(bill_line.item, bill_line.crosses_month) for bill_line in across] == [
        ("storage", True)
    ]
    november = command.read_month(history, ACCOUNT, date(2026, 11, 1))
    assert (november.jobs, len(november.lines)) == (2, 4)
    december = command.read_month(history, ACCOUNT, date(2025, 12, 1))
    assert [bill_line.item for bill_line in december.lines] == ["storage"]


def test_a_month_without_an_audited_job_is_not_found(
    run: Run, history: SqliteHistory, tmp_path: Path
) -> None:
    """If only the volume of a job that ended in the next month was audited, it is compared."""
    usage = {
        "line_item_resource_id": f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-job/across",
        "line_item_usage_type": "USE1-Train:VolumeUsage.gp2",
    }
    file = report(tmp_path / "cur.csv", usage, month="2026-10")
    words = ("reconcile", "--month", "2026-10", "--account", ACCOUNT)
    files = ("--cur", file, "--history", tmp_path / "history.db")
    empty = run(*words, *files)
    assert (empty.exit_code, empty.stdout) == (Exit.NOT_FOUND, "")
    assert f"has no job of account {ACCOUNT} in 2026-10" in empty.stderr
    history.record(entry(month_audit("across", "2026-10-31T20:00:00Z", "2026-11-01T04:00:00Z")))
    compared = printed_document(run(*words, *files, "--output", "json"))
    assert compared["jobs"]["matched"] == 1


def test_roll_ups_and_unauditable_jobs_are_counted_and_left_out(
    history: SqliteHistory,
) -> None:
    """Their lines would count twice, or are not known."""
    when = ("2026-10-09T08:00:00Z", "2026-10-09T10:00:00Z")
    history.record(entry(month_audit("one", *when)))
    history.record(entry(month_audit("all", *when, rollup=True)))
    history.record(entry(month_audit("gone", *when, unauditable="there is no such job")))
    still = month_audit("still", *when)
    still["job"]["status"] = "InProgress"
    history.record(entry(still))
    month = command.read_month(history, ACCOUNT, date(2026, 10, 1))
    assert (month.jobs, month.rollups, month.unauditable_jobs, len(month.lines)) == (1, 1, 1, 2)
    assert month.running_jobs == 1


def test_estimates_and_managed_spot_are_reported(
    history_table: History, reconcile: Run, tmp_path: Path
) -> None:
    """They are in the table, the notes and the JSON."""
    guess = line(usage_type="USE1-Train:ml.m6i.2xlarge", price_kind="estimate", usd=Decimal("1.38"))
    audit = document(
        job=job(
            ended_at="2023-03-17T12:00:00Z",
            started_at="2023-03-17T09:00:00Z",
            created_at="2023-03-17T09:00:00Z",
        ),
        bill={"lines": [guess]},
    )
    history_table.record(entry(audit))
    spot = "USE1-TrSpt:ml.m5.xlarge"
    usage = [*metered_lines(audit), next(metered_lines(audit)) | {"line_item_usage_type": spot}]
    words = ("--cur", str(report(tmp_path / "cur.csv", *usage, month="2023-03")))
    result = printed_document(reconcile(*words, "--output", "json", month="2023-03"))
    assert [row["usage"] for row in result["rows"] if row["history_estimated"]] == [
        "USE1-Train:ml.m6i.2xlarge"
    ]
    assert (result["estimated_lines"], result["totals"]["estimated_history_usd"]) == (
        1,
        Decimal("1.38"),
    )
    assert result["managed_spot_usage_types"] == [spot]
    message = " ".join(reconcile(*words, month="2023-03").stdout.split())
    assert "about $1.38" in message
    assert "1 line of the history at an estimated rate, $1.38 in all" in message
    assert f"sage type {spot} seen: managed-spot rates; not used for any figure here" in message
