"""`sageaudit budgets`: what was spent of each budget of the policy."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from sageaudit.adapters.history.opened import HistorySource
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli import clock
from tests.fakes.command_line import Run
from tests.fakes.entries import record_run
from tests.fakes.schemas import schema_errors

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
POLICY = """
[tags]
show = ["team"]
[[budget]]
usd_per_month = 1000
[[budget]]
tag = "team=vision"
usd_per_month = 100
[[budget]]
name = "mistyped"
family = "training/no-such-family"
usd_per_month = 5
"""


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the commands run on the day of the audits."""
    monkeypatch.setattr(clock, "utc_now", lambda: NOW)


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    """The options of a history of 20 days with $10 each, half of them of the team vision."""
    path, policy = tmp_path / "history.db", tmp_path / "policy.toml"
    policy.write_text(POLICY, encoding="utf-8")
    with SqliteHistory(path) as history:
        for days in range(1, 41):
            tags = {"team": "vision" if days % 2 else None}
            record_run(history, "r", NOW - timedelta(days=days), cost_usd=10, tags=tags)
    return ("budgets", "--history", str(path), "--policy", str(policy))


def test_a_table_of_80_columns_says_what_is_left(run: Run, words: tuple[str, ...]) -> None:
    """With a hint for a budget that no job matches."""
    done = run(*words)
    assert done.exit_code == 0
    header, *rows = done.stdout.splitlines()
    assert header == "Jobs that ended from 2026-11-01 to 2026-11-18 (UTC)"
    assert [" ".join(row.split()) for row in rows[1:]] == [
        "all jobs all jobs $1,000.00 $170.00 17% about $300.00 within",
        "team=vision tag team=vision $100.00 $90.00 90% about $158.82 projected",
        "mistyped family …-family $5.00 $0.00 0% $0.00 no jobs",
    ]
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stderr == "sageaudit: no job of family no-such-family ended in 2026-11\n"


def test_json_is_exact_and_valid(run: Run, words: tuple[str, ...]) -> None:
    """By docs/schema."""
    printed = run(*words, "--output", "json").document(parse_float=Decimal)
    assert schema_errors("rows", printed) == []
    rows = {row["budget"]: row for row in printed["rows"]}
    assert rows["team=vision"]["spent_usd"] == Decimal(90)
    assert rows["team=vision"]["spent_percent"] == Decimal(90)
    assert rows["all jobs"]["selector"] is None
    assert printed["read"]["sums"] == 26


def test_a_finished_month_has_no_projection(run: Run, words: tuple[str, ...]) -> None:
    """And says what the history does not cover."""
    done = run(*words, "--month", "last-month", "--output", "csv")
    assert done.stdout.splitlines()[1].split(",")[2:] == [
        *("2026-10", "1000.000000", "230.000000", "at_least", "23.000000", ""),
        *("unknown", "23", "2026-10-09", "2026-10-31"),
    ]
    shown = run(*words, "--month", "2026-10")
    assert "the history has no audits before 2026-10-09" in shown.stderr
    assert "$230.00 or more" in shown.stdout


def test_early_in_a_month_nothing_is_projected(
    run: Run, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command says why."""
    monkeypatch.setattr(clock, "utc_now", lambda: NOW.replace(day=3))
    done = run(*words)
    assert "a projection needs 5 whole days of the month" in done.stderr
    projected = [
        row.split(",")[7] for row in run(*words, "--output", "csv").stdout.splitlines()[1:]
    ]
    assert projected == [""] * len(projected)


@pytest.mark.parametrize(
    ("month", "error"),
    [
        ("2026-13", "--month 2026-13 is not a month: write 2026-08 or last-month"),
        ("november", "--month november is not a month: write 2026-08 or last-month"),
        ("2026-12", "--month 2026-12 is in the future: this computer's date is 2026-11-18"),
        ("2017-10", "--month 2017-10 is before the first SageMaker job, of 2017-11"),
        ("0000-01", "--month 0000-01 is not a month: write 2026-08 or last-month"),
    ],
)
def test_another_text_is_no_month(run: Run, words: tuple[str, ...], month: str, error: str) -> None:
    """Exit code 2."""
    done = run(*words, "--month", month)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.strip().endswith(error)


def test_a_policy_without_budgets_is_a_usage_error(run: Run, words: tuple[str, ...]) -> None:
    """It says where budgets come from, also for a table, which does not store the policy."""
    done = run(*words[:3])
    assert done.exit_code == 2
    assert done.stderr == (
        "sageaudit: the policy has no budget: name its file with --policy policy.toml (also with"
        " --table, since a table does not store the policy), and add a [[budget]] with"
        " usd_per_month\n"
    )


def test_late_in_a_month_nothing_is_said_about_five_days(
    run: Run, words: tuple[str, ...], tmp_path: Path
) -> None:
    """A budget without jobs is projected at $0.00, and one without known bills not at all."""
    policy = tmp_path / "policy.toml"
    policy.write_text('[[budget]]\nowner = "nobody"\nusd_per_month = 5\n', encoding="utf-8")
    assert run(*words).stderr == "sageaudit: no job of owner nobody ended in 2026-11\n"


@pytest.mark.parametrize(
    ("now", "month", "expected"),
    [
        (NOW + timedelta(days=1), "2026-11", True),
        (NOW + timedelta(days=60), "2026-11", True),
        (NOW, "2026-11", False),
        (NOW + timedelta(days=1), "last-month", False),
    ],
)
def test_a_file_has_the_jobs_up_to_the_last_scan(
    run: Run,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    now: datetime,
    month: str,
    *,
    expected: bool,
) -> None:
    """The spend of the days after it is not 0."""
    monkeypatch.setattr(clock, "utc_now", lambda: now)
    text = "the newest audited job ended on 2026-11-17: `sageaudit scan` audits later jobs"
    assert (text in run(*words, "--month", month).stderr) is expected


def test_a_file_says_in_every_format_until_when_it_has_the_jobs(
    run: Run, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The days after it are not days of $0, and the spend is a lower bound."""
    fields = "spent_usd,spend_qualifier,projected_usd,state,covered_since,covered_until"
    csv = ("--fields", fields, "--output", "csv")
    expected = {
        NOW + timedelta(days=8): "170.000000,at_least,300.000000,unknown,2026-11-01,2026-11-17",
        NOW + timedelta(days=20): ",unknown,,unknown,,",
        NOW: "170.000000,exact,300.000000,within,2026-11-01,2026-11-18",
    }
    for now, row in expected.items():
        monkeypatch.setattr(clock, "utc_now", lambda now=now: now)
        assert run(*words, *csv).stdout.splitlines()[1] == row


def test_a_month_before_the_history_is_unknown(run: Run, words: tuple[str, ...]) -> None:
    """It is not a month without jobs."""
    done = run(*words, "--month", "2020-03")
    assert done.stderr == "sageaudit: the history has no audits of 2020-03\n"
    assert {row.split()[-1] for row in done.stdout.splitlines()[3:]} == {"unknown"}


def test_a_month_without_any_job_is_named_once(
    run: Run, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The budget for all jobs selects nothing that could be mistyped."""
    policy = tmp_path / "policy.toml"
    policy.write_text("[[budget]]\nusd_per_month = 5\n", encoding="utf-8")
    monkeypatch.setattr(HistorySource, "installed_at", lambda _: NOW.replace(month=1))
    monkeypatch.setattr(clock, "utc_now", lambda: NOW.replace(month=6))
    assert run(*words).stderr == "sageaudit: no job ended in 2026-06\n"


def test_a_terminal_of_40_columns_shows_what_is_used(
    run: Run, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The amount of each budget is left out, and no share or state is cut."""
    monkeypatch.setenv("COLUMNS", "40")
    rows = run(*words).stdout.splitlines()[2:]
    assert [" ".join(row.split()) for row in rows] == [
        "Budget Spent Used State",
        "all jobs $170.00 17% within",
        "team=vision $90.00 90% projected",
        "mistyped $0.00 0% no jobs",
    ]


def test_a_deployment_covers_the_months_after_its_installation(
    run: Run, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if no job ended for a long time before the first one of the month."""
    june = NOW.replace(month=6)
    monkeypatch.setattr(HistorySource, "installed_at", lambda _: NOW.replace(month=1))
    monkeypatch.setattr(clock, "utc_now", lambda: june)
    done = run(*words, "--fields", "budget,spent_usd,covered_since", "--output", "csv")
    assert done.stdout.splitlines()[1] == "all jobs,0.000000,2026-06-01"
