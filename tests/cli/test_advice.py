"""`sageaudit advice` and `sageaudit savings`, on the file of a scan and on a table."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.advice import totals
from sageaudit.domain.audit.record import AuditEntry
from sageaudit.ports import History
from tests.fakes.command_line import Result, Run
from tests.fakes.documents import document, finding
from tests.fakes.entries import entry_of
from tests.fakes.families import run_summary
from tests.fakes.memory_ledger import MemoryDecisions
from tools.bench.deployed import month_items

NOW = datetime.now(UTC).replace(microsecond=0)
Asked = Callable[..., Result]


def entry(day: int, *, new: bool, **changes: Any) -> AuditEntry:
    """A run of `day` days ago that is advised another type, or has it; it then costs less."""
    ended_at = NOW - timedelta(days=day)
    audit = document(
        job={
            "name": f"run-{day}",
            "created_at": ended_at - timedelta(hours=2),
            "ended_at": ended_at,
        },
        bill={"total_usd": Decimal(3 if new else 5)},
        findings=[] if new else [finding("gpu-underused", **changes)],
    )
    kind = "ml.g4dn.xlarge" if new else "ml.g5.2xlarge"
    return entry_of(audit, run_summary(instance_type=kind, instance_count=1))


@pytest.fixture
def asked(tmp_path: Path, run: Run) -> Asked:
    """Asks a file with three runs that were advised."""
    path = tmp_path / "history.db"
    with SqliteHistory(path) as history:
        for day in (12, 11, 10):
            history.record(entry(day, new=False))

    def ask(*words: str, taken: bool = False, undone: bool = False) -> Result:
        with SqliteHistory(path) as history:
            for day in (3, 2, 1) if taken else ():
                history.record(entry(day, new=True))
            if undone:
                history.record(entry(0, new=False))
        return run(*words, "--history", str(path))

    return ask


def rows(result: Result) -> list[dict[str, Any]]:
    """The rows of a JSON list."""
    assert result.exit_code == 0, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)["rows"]
    return found


def test_an_open_advice_is_listed_and_answered(asked: Asked) -> None:
    """The answer is kept, with who, until when and why; what it names is said."""
    [row] = rows(asked("advice", "--output", "json"))
    assert (row["state"], row["rule"], row["runs"]) == ("open", "gpu-underused", 3)
    assert (row["month"], row["new"], row["owner"]) == (4.59, "ml.g4dn.xlarge", "anna")
    said = asked("advice", "snooze", row["id"], "--by", "ana", "--reason", "release week")
    assert said.exit_code == 0
    assert f"{row['id']}: snooze until" in said.stderr
    assert re.search(r"; written to .*history\.db\n$", said.stderr)
    assert rows(asked("advice", "--output", "json")) == []
    [kept] = rows(asked("advice", "list", "--state", "silenced", "--output", "json"))
    assert (kept["silenced"], kept["by"], kept["reason"]) == ("snoozed", "ana", "release week")
    asked("advice", "reopen", row["id"], "--by", "ana")
    assert [one["state"] for one in rows(asked("advice", "--output", "json"))] == ["open"]


def test_the_page_no_longer_asks_for_what_was_answered(asked: Asked) -> None:
    """What to change first is what is open in the list."""
    report = ("report", "--since", "30d", "-o", "-")
    assert "What to change first" in asked(*report).stdout
    [row] = rows(asked("advice", "--output", "json"))
    asked("advice", "snooze", row["id"], "--by", "ana")
    assert "What to change first" not in asked(*report).stdout
    asked("advice", "reopen", row["id"], "--by", "ana")
    assert "What to change first" in asked(*report).stdout


def test_the_page_no_longer_asks_for_what_was_done(asked: Asked) -> None:
    """Runs with the advised value; and it does again after the change is undone."""
    report = ("report", "--since", "30d", "-o", "-")
    assert "What to change first" not in asked(*report, taken=True).stdout
    assert "What to change first" in asked(*report, undone=True).stdout


@pytest.mark.parametrize(
    ("savings", "month", "words"),
    [
        ((None, None, None), None, "unknown"),
        (("1.53", None, None), 1.53, "$1.53 or more"),
        (("1.53", "2", "1"), 4.53, "$4.53"),
    ],
)
def test_an_advice_without_dollars_is_not_worth_0(
    run: Run, tmp_path: Path, savings: tuple[str | None, ...], month: float | None, words: str
) -> None:
    """What is not known of its runs is unknown, or "or more" beside what is."""
    path = tmp_path / "history.db"
    with SqliteHistory(path) as history:
        for day, usd in enumerate(savings, 10):
            saving = usd and Decimal(usd)
            history.record(entry(day, new=False, saving_usd=saving))
    [row] = rows(run("advice", "--output", "json", "--history", str(path)))
    assert (row["month"], row["total"], row["runs"]) == (month, month, 3)
    table = run("advice", "--fields", "month,total", "--output", "markdown", "--history", str(path))
    cells = table.stdout.splitlines()[-1].replace("\\", "")
    assert [cell.strip() for cell in cells.strip("|").split("|")] == [words, words]


def test_an_answer_is_kept_in_a_table(table: History, run: Run) -> None:
    """By the same words."""
    for day in (12, 11, 10):
        table.record(entry(day, new=False))
    [row] = rows(run("advice", "--output", "json", "--table", "history"))
    assert run("advice", "accept", row["id"], "--by", "ana", "--table", "history").exit_code == 0
    [kept] = rows(run("advice", "list", "--all", "--output", "json", "--table", "history"))
    assert (kept["id"], kept["silenced"], kept["by"]) == (row["id"], "accepted", "ana")
    assert kept["until"] == (NOW + timedelta(days=30)).date().isoformat()


def test_what_a_deployment_itself_cost_stands_beside_the_savings(
    table: History, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the table of docs/before-you-deploy.md: 13 days of it, and three jobs."""
    used = {item.name: (item.month(1), item.month(2) - item.month(1)) for item in month_items()}
    job = sum(of_job for _, of_job in used.values())
    assert round(sum(month for month, _ in used.values()) - job, 2) == totals.SAGEAUDIT_MONTH_USD
    assert round(job, 5) == totals.SAGEAUDIT_JOB_USD
    [watched] = [of_job for name, (_, of_job) in used.items() if "running jobs" in name]
    assert round(job - watched, 5) == totals.SAGEAUDIT_AUDIT_USD
    stored = [of_job for name, (_, of_job) in used.items() if "DynamoDB" in name]
    assert round(sum(stored), 5) == totals.SAGEAUDIT_WRITE_USD
    opened = object(), table, MemoryDecisions()
    monkeypatch.setattr(histories, "_open_table", lambda *_: opened)
    for day in (12, 11, 10):
        table.record(entry(day, new=False))
    result = run("savings", "--output", "json", "--table", "history")
    cost = 13 * totals.SAGEAUDIT_MONTH_USD / 30 + 3 * totals.SAGEAUDIT_JOB_USD
    assert json.loads(result.stdout)["own_cost_usd"] == pytest.approx(float(cost), abs=0.01)
    assert "sageaudit itself cost about $2.80 at list prices" in result.stderr


def test_savings_are_predicted_and_measured_apart(asked: Asked) -> None:
    """Of the runs since it was taken: three of $5 before, three of $3 after."""
    result = asked("savings", "--output", "json", taken=True)
    [row] = rows(result)
    assert (row["outcome"], row["before_usd"], row["after_usd"]) == ("measured", 5, 3)
    assert (row["predicted_usd"], row["measured_usd"]) == (4.59, 6)
    assert json.loads(result.stdout)["own_cost_usd"] is None
    sums = json.loads(result.stdout)["sums"]
    assert sums["measured"] == {"recommendations": 1, "predicted_usd": 4.59, "measured_usd": 6}
    assert sums["followed"]["recommendations"] == 0


def test_what_was_saved_stays_after_the_change_is_undone(asked: Asked) -> None:
    """As ended, beside the recommendation that is open again; the page and the sums have it too."""
    result = asked("savings", "--output", "json", taken=True, undone=True)
    [row] = rows(result)
    assert (row["outcome"], row["runs_since"], row["measured_usd"]) == ("ended", 3, 6)
    assert json.loads(result.stdout)["sums"]["ended"] == {
        "recommendations": 1,
        "predicted_usd": 4.59,
        "measured_usd": 6,
    }
    assert "ended: 1 recommendation, predicted $4.59, measured $6.00" in asked("savings").stderr
    assert {row["state"] for row in rows(asked("advice", "--output", "json"))} == {"open"}
    page = " ".join(re.sub(r"<[^>]+>", " ", asked("report", "-o", "-").stdout).split())
    assert "Ended 1 - $4.59 $6.00" in page


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("advice", "snooze", "abcdefgh"), "there is no advice abcdefgh"),
        (("advice", "exempt", "abcdefgh", "--until", "2999-01-01"), "needs its reason"),
        (("advice", "exempt", "abcdefgh", "--reason", "x"), "needs its end"),
        (("advice", "snooze", "abcdefgh", "--until", "2025-01-01"), "is over"),
        (("advice", "reopen", "abcdefgh", "--until", "2999-01-01"), "has no end"),
    ],
)
def test_an_answer_that_means_nothing_is_refused(
    asked: Asked, words: tuple[str, ...], says: str
) -> None:
    """With exit code 2, and nothing is kept."""
    result = asked(*words)
    assert (result.exit_code, says in result.stderr) == (2, True), result.stderr


def test_what_changed_says_what_became_of_advice(asked: Asked) -> None:
    """In `changes` where it is asked, and on the page, with what was saved in a row of its own."""
    days = ("--since", "7d", "--until", "0d")
    assert [row["advice"] for row in rows(asked("changes", "--output", "json"))] == [None]
    [changed] = rows(asked("changes", *days, "--advice", "--output", "json", taken=True))
    assert changed["advice"] == "1 measured"
    page = " ".join(re.sub(r"<[^>]+>", " ", asked("report", "-o", "-").stdout).split())
    assert "What came of advice" in page
    assert "Measured 1 - $4.59 $6.00" in page
