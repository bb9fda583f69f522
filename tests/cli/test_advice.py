"""`sageaudit advice` and `sageaudit savings`, on a file and on a table."""

import getpass
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
from sageaudit.domain.moments import LAST_DAY
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
    """Returns a run that ended `day` days ago.

    A `new` one has the recommended type and costs less.
    """
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
def ask(tmp_path: Path, run: Run) -> Asked:
    """Returns a function that runs a command on a file with three runs and a recommendation."""
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
    """Returns the rows of a JSON list."""
    assert result.exit_code == 0, result.stderr
    list_rows: list[dict[str, Any]] = json.loads(result.stdout)["rows"]
    return list_rows


def test_a_decision_about_an_open_recommendation_is_stored(ask: Asked) -> None:
    """It is stored with who, until when and why; the message names the recommendation."""
    [row] = rows(ask("advice", "--output", "json"))
    assert (row["state"], row["rule"], row["runs"]) == ("open", "gpu-underused", 3)
    assert (row["month"], row["new"], row["owner"]) == (4.59, "ml.g4dn.xlarge", "anna")
    message = ask("advice", "snooze", row["id"], "--by", "ana", "--reason", "release week")
    assert message.exit_code == 0
    assert f"{row['id']}: snooze until" in message.stderr
    assert re.search(r"; written to .*history\.db\n$", message.stderr)
    assert rows(ask("advice", "--output", "json")) == []
    [stored_row] = rows(ask("advice", "list", "--state", "silenced", "--output", "json"))
    assert (stored_row["silenced"], stored_row["by"], stored_row["reason"]) == (
        "snoozed",
        "ana",
        "release week",
    )
    ask("advice", "reopen", row["id"], "--by", "ana")
    assert [listed_row["state"] for listed_row in rows(ask("advice", "--output", "json"))] == [
        "open"
    ]


def test_the_last_day_that_is_accepted_can_be_reopened(ask: Asked) -> None:
    """Every command reads the recommendation with its exemption."""
    [row] = rows(ask("advice", "--output", "json"))
    words = ("--until", str(LAST_DAY), "--reason", "two GPUs", "--by", "ana")
    assert f"exempt until {LAST_DAY}: " in ask("advice", "exempt", row["id"], *words).stderr
    [stored_row] = rows(ask("advice", "list", "--state", "all", "--output", "json"))
    assert (stored_row["silenced"], stored_row["until"]) == ("exempt", str(LAST_DAY))
    for command in (("savings",), ("report", "-o", "-"), ("history",)):
        assert ask(*command).exit_code == 0
    assert ask("advice", "reopen", row["id"], "--by", "ana").exit_code == 0
    assert [row["state"] for row in rows(ask("advice", "--output", "json"))] == ["open"]


@pytest.mark.parametrize("text", ["20270131", "2027-W04-7", "2027-1-31", "31.1.2027", "30d"])
def test_other_forms_of_a_day_are_refused_with_the_accepted_one(ask: Asked, text: str) -> None:
    """A day has one form, which is also that of lists."""
    done = ask("advice", "snooze", "abcdefgh", "--until", text)
    sentence = (
        f"--until {text} is not a day: write YYYY-MM-DD, such as 2027-01-31, up to {LAST_DAY}"
    )
    assert (done.exit_code, done.stderr) == (2, f"sageaudit: {sentence}\n")


@pytest.mark.parametrize("error", [KeyError, OSError, ImportError])
def test_a_user_without_a_name_is_asked_for_one(
    ask: Asked, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """A container may have a bare user id; Python's error depends on its version."""

    def no_name() -> str:
        raise error("uid not found: 1234")

    monkeypatch.setattr(getpass, "getuser", no_name)
    [row] = rows(ask("advice", "--output", "json"))
    done = ask("advice", "accept", row["id"])
    sentence = "your user has no name on this computer: say who decides with --by NAME"
    assert (done.exit_code, done.stderr) == (2, f"sageaudit: {sentence}\n")
    assert ask("advice", "accept", row["id"], "--by", "ana").exit_code == 0


def test_the_page_leaves_out_silenced_recommendations(ask: Asked) -> None:
    """Its first part, what to change first, has the open recommendations of the list."""
    report = ("report", "--since", "30d", "-o", "-")
    assert "What to change first" in ask(*report).stdout
    [row] = rows(ask("advice", "--output", "json"))
    ask("advice", "snooze", row["id"], "--by", "ana")
    assert "What to change first" not in ask(*report).stdout
    ask("advice", "reopen", row["id"], "--by", "ana")
    assert "What to change first" in ask(*report).stdout


def test_the_page_leaves_out_followed_recommendations(ask: Asked) -> None:
    """It has them again after the change is undone."""
    report = ("report", "--since", "30d", "-o", "-")
    assert "What to change first" not in ask(*report, taken=True).stdout
    assert "What to change first" in ask(*report, undone=True).stdout


def test_the_page_of_a_past_period_has_what_was_recommended_then(run: Run, tmp_path: Path) -> None:
    """Its families stopped running, so their recommendations are closed. A followed one is not."""
    path = tmp_path / "past.db"
    report = ("report", "--since", "200d", "-o", "-", "--history", str(path))
    with SqliteHistory(path) as history:
        for day in (122, 121, 120):
            history.record(entry(day, new=False))
    assert "What to change first" in run(*report).stdout
    with SqliteHistory(path) as history:
        history.record(entry(1, new=True))
    assert "What to change first" not in run(*report).stdout


@pytest.mark.parametrize(
    ("savings", "month", "words"),
    [
        ((None, None, None), None, "unknown"),
        (("1.53", None, None), 1.53, "$1.53 or more"),
        (("1.53", "2", "1"), 4.53, "$4.53"),
    ],
)
def test_a_recommendation_without_dollars_is_unknown_and_not_0(
    run: Run, tmp_path: Path, savings: tuple[str | None, ...], month: float | None, words: str
) -> None:
    """If only some runs have a known amount, the sum is "or more"."""
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


def test_a_decision_is_stored_in_a_table(table: History, run: Run) -> None:
    """The command is the same as for a file."""
    for day in (12, 11, 10):
        table.record(entry(day, new=False))
    [row] = rows(run("advice", "--output", "json", "--table", "history"))
    assert run("advice", "accept", row["id"], "--by", "ana", "--table", "history").exit_code == 0
    [stored_row] = rows(
        run("advice", "list", "--state", "all", "--output", "json", "--table", "history")
    )
    assert (stored_row["id"], stored_row["silenced"], stored_row["by"]) == (
        row["id"],
        "accepted",
        "ana",
    )
    assert stored_row["until"] == (NOW + timedelta(days=30)).date().isoformat()


def test_savings_show_what_the_deployment_itself_cost(
    table: History, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of docs/before-you-deploy.md gives the cost of 13 days and three jobs."""
    used = {item.name: (item.month(1), item.month(2) - item.month(1)) for item in month_items()}
    job = sum(of_job for _, of_job in used.values())
    assert round(sum(month for month, _ in used.values()) - job, 2) == totals.SAGEAUDIT_MONTH_USD
    assert round(job, 5) == totals.SAGEAUDIT_JOB_USD
    watched = [of_job for name, (_, of_job) in used.items() if "running jobs" in name]
    assert round(job - sum(watched), 5) == totals.SAGEAUDIT_AUDIT_USD
    stored = [of_job for name, (_, of_job) in used.items() if "DynamoDB" in name]
    assert round(sum(stored), 5) == totals.SAGEAUDIT_WRITE_USD
    opened = object(), table, MemoryDecisions()
    monkeypatch.setattr(histories, "_open_table", lambda *_: opened)
    for day in (12, 11, 10):
        table.record(entry(day, new=False))
    result = run("savings", "--output", "json", "--table", "history")
    cost = 13 * totals.SAGEAUDIT_MONTH_USD / 30 + 3 * totals.SAGEAUDIT_JOB_USD
    assert json.loads(result.stdout)["own_cost_usd"] == pytest.approx(float(cost), abs=0.01)
    assert "sageaudit itself cost about $4.40 at list prices" in result.stderr


def test_predicted_and_measured_savings_are_separate(ask: Asked) -> None:
    """Three runs cost $5 before the change, three cost $3 after it."""
    result = ask("savings", "--output", "json", taken=True)
    [row] = rows(result)
    assert (row["outcome"], row["before_usd"], row["after_usd"]) == ("measured", 5, 3)
    assert (row["predicted_usd"], row["measured_usd"]) == (4.59, 6)
    assert json.loads(result.stdout)["own_cost_usd"] is None
    sums = json.loads(result.stdout)["sums"]
    assert sums["measured"] == {"recommendations": 1, "predicted_usd": 4.59, "measured_usd": 6}
    assert sums["followed"]["recommendations"] == 0


def test_savings_are_kept_after_the_change_is_undone(ask: Asked) -> None:
    """They are listed as ended, also on the page and in the sums.

    The recommendation is open again.
    """
    result = ask("savings", "--output", "json", taken=True, undone=True)
    [row] = rows(result)
    assert (row["outcome"], row["runs_since"], row["measured_usd"]) == ("undone", 3, 6)
    assert json.loads(result.stdout)["sums"]["undone"] == {
        "recommendations": 1,
        "predicted_usd": 4.59,
        "measured_usd": 6,
    }
    assert (
        "1 recommendation undone: $4.59 predicted, $6.00 saved until then" in ask("savings").stderr
    )
    assert {row["state"] for row in rows(ask("advice", "--output", "json"))} == {"open"}
    page = " ".join(re.sub(r"<[^>]+>", " ", ask("report", "-o", "-").stdout).split())
    assert "Undone 1 - $4.59 $6.00" in page


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("advice", "snooze", "abcdefgh"), "there is no recommendation abcdefgh"),
        (("advice", "exempt", "abcdefgh", "--until", "2099-01-01"), "needs a reason"),
        (("advice", "exempt", "abcdefgh", "--reason", "x"), "needs an end"),
        (("advice", "snooze", "abcdefgh", "--until", "2025-01-01"), "is in the past"),
        (("advice", "reopen", "abcdefgh", "--until", "2099-01-01"), "takes no --until"),
    ],
)
def test_a_decision_that_makes_no_sense_is_refused(
    ask: Asked, words: tuple[str, ...], expected: str
) -> None:
    """The exit code is 2, and nothing is stored."""
    result = ask(*words)
    assert (result.exit_code, expected in result.stderr) == (2, True), result.stderr


def test_changes_show_the_state_of_recommendations(ask: Asked) -> None:
    """`changes --advice` and the page show them; the page has the savings in a row of its own."""
    days = ("--since", "7d", "--until", "0d")
    assert [row["recommendations"] for row in rows(ask("changes", "--output", "json"))] == [None]
    [changed] = rows(ask("changes", *days, "--advice", "--output", "json", taken=True))
    assert changed["recommendations"] == "1 measured"
    page = " ".join(re.sub(r"<[^>]+>", " ", ask("report", "-o", "-").stdout).split())
    assert "Results of recommendations" in page
    assert "Measured 1 - $4.59 $6.00" in page


def test_long_lists_are_cut_and_say_so(ask: Asked) -> None:
    """The sums of savings are of all rows; advice in other states is only with --state all."""
    ask("history", taken=True, undone=True)
    whole = ask("savings", "--output", "json").document()
    some = ask("savings", "--limit", "1", "--output", "json").document()
    assert (len(some["rows"]), some["more"]) == (1, len(whole["rows"]) > 1)
    assert some["sums"] == whole["sums"]
    every = ask("savings", "--limit", "1", "--all", "--output", "json").document()
    assert (every["rows"], every["more"]) == (whole["rows"], False)
    assert "more" in ask("advice", "--output", "json").document()


def test_the_rows_of_advice_have_a_limit(company: Path, run: Run) -> None:
    """The largest amounts come first; --all prints the rest, in the same state."""
    words = ("advice", "--history", company)
    document = run(*words, "--limit", "3", "--output", "json").document()
    every = run(*words, "--all", "--output", "json").document()
    assert {row["state"] for row in every["rows"]} == {"open"}
    assert (document["more"], every["more"]) == (True, False)
    assert document["rows"] == every["rows"][:3]
    count = len(every["rows"])
    shown = run(*words, "--limit", "3")
    assert shown.stdout.startswith(f"{count} open recommendations: $")
    assert "Possible savings, not included: maybe $" in shown.stdout
    assert f"3 of {count} rows: --all prints all of them" in shown.stderr


def test_a_table_shows_the_change_without_its_path(
    company: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole instance type fits in 80 columns; JSON has the path."""
    monkeypatch.setenv("COLUMNS", "80")
    for command in (("advice", "--limit", "5"), ("savings",)):
        table = run(*command, "--history", company).stdout
        assert re.search(r" InstanceType = ml\.[\w.]+\s", table)
        assert "ResourceConfig" not in table
    changes = run("advice", "--history", company, "--output", "json").document()["rows"]
    assert any(row["change"].startswith("ResourceConfig.InstanceType = ml.") for row in changes)
