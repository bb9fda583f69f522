"""`sageaudit by` with its short names, and `sageaudit changes`."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli import clock
from tests.fakes.command_line import Run
from tests.fakes.entries import entry_ending_at, finding
from tests.fakes.random_history import FAMILIES, NOW, RULES


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the commands run on the day of the audits."""
    monkeypatch.setattr(clock, "utc_now", lambda: NOW)


def test_a_family_is_one_row_and_a_table_fits_80_columns(run: Run, file: Path) -> None:
    """With the column region it is several rows. The most waste is first; --all prints all rows."""
    rows = run("by", "family", "--history", file, "--output", "json").document()["rows"]
    families = [row["family"] for row in rows]
    assert len(families) == len({*families})
    assert {family.partition("/")[2] for family in families} == set(FAMILIES)
    usd = [row["waste_usd"] for row in rows]
    assert usd == sorted(usd, reverse=True)
    done = run("by", "family,region", "--history", file, "--limit", 5)
    period, every, judged, *lines = done.stdout.splitlines()
    assert period == "Jobs that ended from 2026-10-21 to 2026-11-20 (UTC)"
    assert every.startswith(
        f"all 17 rows: {sum(row['jobs'] for row in rows)} jobs, $789.91 or more"
    )
    assert judged.endswith("were judged ($668.65 of $789.91 or more)")
    assert len(lines) == 6
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "5 of 17 rows: --all prints all of them" in done.stderr


SORTS = {
    **{name: f"{name}_usd" for name in ("waste", "total", "avoidable", "lost", "possible", "idle")},
    **{name: name for name in ("jobs", "failed", "waste_percent", "failed_percent")},
}


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("columns", ["family", "owner,month", "week"])
def test_the_amount_that_orders_the_rows_is_in_the_table(
    run: Run, file: Path, columns: str, sort: str
) -> None:
    """It is there at 80 columns and for weeks too."""
    headings = {"waste": "Avoidable+lost", "total": "Spend", "idle": "Idle capacity"}
    headings |= {"waste_percent": "Waste %", "failed_percent": "Failed %"}
    words = ("by", columns, "--history", file, "--sort", sort)
    assert headings.get(sort, sort.title()) in run(*words).stdout
    rows = run(*words, "--output", "json").document()["rows"]
    amounts = [row[SORTS[sort]] or 0 for row in rows]
    assert amounts == sorted(amounts, reverse=True)


@pytest.mark.parametrize(
    ("short", "words"), [("families", "by family"), ("owners", "by owner"), ("trend", "by week")]
)
def test_short_names_give_the_same_rows(run: Run, file: Path, short: str, words: str) -> None:
    """They take the same options."""
    options = ("--history", file, "--account", "111122223333", "--output", "csv")
    assert run(short, *options).stdout == run(*words.split(), *options).stdout
    assert "COLUMN" in run(short, "--help").stdout


def test_jobs_without_a_value_have_a_row(run: Run, file: Path) -> None:
    """The value is null in JSON and a label in the table."""
    rows = run("by", "owner", "--history", file, "--output", "json").document()["rows"]
    assert {row["owner"] for row in rows} == {"ana", "bo", None}
    assert "(no owner)" in run("by", "owner", "--history", file).stdout
    assert "unknown" in run("by", "type", "--history", file).stdout
    rules = run("by", "rule", "--history", file).stdout
    assert {line.split()[0] for line in rules.splitlines()[2:]} == set(RULES)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("owner", "--owner", "nobody"), "--owner nobody matches nothing"),
        (("week", "--rule", "gpu-idel"), "did you mean gpu-idle?"),
    ],
)
def test_no_jobs_is_no_error(run: Run, file: Path, words: tuple[str, ...], hint: str) -> None:
    """A message says what may be wrong; no row has $0.00."""
    done = run("by", *words, "--history", file, "--output", "json")
    assert {row["waste_usd"] for row in done.document()["rows"]} <= {None}
    assert hint in done.stderr


@pytest.fixture
def weeks(tmp_path: Path) -> Path:
    """Returns a history with $1 avoidable on 26 October and the next two Mondays, $2 on 16 and $4
    on 19 November.
    """
    file = tmp_path / "weeks.db"
    with SqliteHistory(file) as history:
        for day, usd in ((25, 1), (32, 1), (39, 1), (46, 2), (49, 4)):
            at = datetime(2026, 10, 1, 9, tzinfo=UTC) + timedelta(days=day)
            amount = Decimal(usd)
            result = [finding("gpu-idle", saving_usd=amount)]
            bill = {"total_usd": 2 * amount}
            history.record(entry_ending_at(f"day-{day}", at, findings=result, bill=bill))
    return file


def test_weeks_have_a_headline_and_bars(run: Run, weeks: Path) -> None:
    """The headline and one bar a week are above the table; the current week is marked."""
    done = run("trend", "--history", weeks, "--since", "2026-10-28")
    spent, wasted, rate, drawn, period, judged, *rows = done.stdout.splitlines()
    assert spent == "2026-W47 so far: $12.00 spent, 500% more than the same days of the week before"
    assert wasted == "$6.00 avoidable or lost, 500% more than the same days of the week before"
    assert rate == "at this rate $21.00 will be spent by 2026-11-22"
    assert len(drawn.split()[1]) == 4
    assert period == "Jobs that ended from 2026-10-26 to 2026-11-20 (UTC)"
    assert drawn.endswith("0 to $6.00")
    assert judged == "All 5 jobs were judged ($18.00)"
    assert rows[0].split() == [
        "Period",
        "Jobs",
        "Spend",
        "Change",
        "Avoidable",
        "Avoidable+lost",
        "Waste",
        "change",
    ]
    assert rows[-1].split() == [
        "2026-W47",
        "so",
        "far",
        "2",
        "$12.00",
        "+500.0%",
        "$6.00",
        "$6.00",
        "+500.0%",
    ]
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_on_a_monday_the_headline_is_the_last_whole_week(
    run: Run, weeks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is on a Tuesday. The current week is in the table."""
    for day, told, progress in (
        (16, "2026-W46:", "2026-W47 today only"),
        (17, "2026-W46:", "2026-W47 so far"),
        (18, "2026-W47 so far:", "2026-W47 so far"),
    ):
        now = datetime(2026, 11, day, 8, tzinfo=UTC)
        monkeypatch.setattr(clock, "utc_now", lambda now=now: now)
        printed = run("by", "week", "--history", weeks).stdout
        assert printed.startswith(told)
        assert progress in printed.splitlines()[-1]


def test_weeks_of_years_fit_a_screen(run: Run, weeks: Path) -> None:
    """There is one line of bars. Empty weeks are counted, not printed; JSON has the newest ones."""
    arguments = ("by", "week", "--history", weeks, "--since", "2020-01-01")
    done = run(*arguments)
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert len(done.stdout.splitlines()) < 12
    assert "the history has no audits of 2019-12-30" in done.stderr
    assert len(run(*arguments, "--output", "json").document()["rows"]) == 4


def test_changes_end_with_yesterday_and_fit_80_columns(run: Run, file: Path, weeks: Path) -> None:
    """Seven whole days are compared with seven.

    A message says if there is nothing to compare with.
    """
    done = run("changes", "--history", file)
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert {"Family", "Change", "Difference"} <= {*done.stdout.splitlines()[1].split()}
    assert (
        "Ended 2026-11-13 to 2026-11-19 (UTC), compared with 2026-11-06 to 2026-11-12"
        in done.stdout
    )
    rows = run("changes", "--history", file, "--output", "json").document()["rows"]
    jobs = run(
        "by", "family", "--history", file, "--since", "7d", "--until", "1d", "--output", "json"
    ).document()["rows"]
    assert {row["family"]: row["jobs"] for row in rows if row["jobs"]} == {
        row["family"]: row["jobs"] for row in jobs if row["jobs"]
    }
    alone = run("changes", "--history", weeks, "--since", "2026-11-01")
    warning = "does not cover 2026-10-13 to 2026-10-31, so new and changed families are not marked"
    assert warning in alone.stderr
    assert " - " in alone.stdout.splitlines()[2]
