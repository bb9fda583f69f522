"""`sageaudit families`, `owners`, `trend` and `rules --counts`: daily sums, added up."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.support.history import asking
from tests.adapters.history.entries import ended, finding
from tests.fakes.asked import FAMILIES, NOW, RULES
from tests.fakes.command_line import Run


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands run on the day of the audits."""
    monkeypatch.setattr(asking, "now", lambda: NOW)


def test_families_are_ranked_and_fit_80_columns(run: Run, file: Path) -> None:
    """The dearest first; more of them with --all."""
    done = run("families", "--history", file, "--limit", 5)
    assert len(done.stdout.splitlines()) == 6
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "5 of 32 rows: --all prints all of them" in done.stderr
    rows = run("families", "--history", file, "--output", "json").document()["rows"]
    usd = [row["waste_usd"] for row in rows]
    assert usd == sorted(usd, reverse=True)
    by_bill = run("families", "--history", file, "--sort", "total", "--output", "json").document()
    totals = [row["total_usd"] for row in by_bill["rows"]]
    assert totals == sorted(totals, reverse=True)


def test_filters_leave_other_rows_out(run: Run, file: Path) -> None:
    """Of families by account and region, of owners by name."""
    account = run(
        *("families", "--history", file, "--account", "111122223333", "--region", "us-east-1"),
        *("--all", "--output", "json"),
    ).document()["rows"]
    assert {(row["account"], row["region"]) for row in account} == {("111122223333", "us-east-1")}
    assert {row["family"].partition("/")[2] for row in account} == set(FAMILIES)
    [ana] = run("owners", "--history", file, "--owner", "ana", "--output", "json").document()[
        "rows"
    ]
    assert ana["owner"] == "ana"


def test_jobs_without_an_owner_are_a_row_of_their_own(run: Run, file: Path) -> None:
    """Null in JSON, words in the table."""
    rows = run("owners", "--history", file, "--output", "json").document()["rows"]
    assert {row["owner"] for row in rows} == {"ana", "bo", None}
    assert "(no owner)" in run("owners", "--history", file).stdout


def test_no_jobs_is_no_error(run: Run, file: Path) -> None:
    """A sentence for people, an empty list for scripts."""
    done = run("owners", "--history", file, "--owner", "nobody", "--output", "json")
    assert done.document()["rows"] == []
    assert "no audited job ended in these days" in done.stderr


def test_rules_are_counted(run: Run, file: Path) -> None:
    """With their dollars, by rule; one of them by name or id."""
    done = run("rules", "--counts", "--history", file)
    assert {line.split()[0] for line in done.stdout.splitlines()[1:]} == set(RULES)
    [row] = run(*("rules", "SA201", "--counts", "--history", file, "--output", "json")).document()[
        "rows"
    ]
    assert row["rule"] == "gpu-idle"
    assert row["findings"] > 10


@pytest.fixture
def weeks(tmp_path: Path) -> Path:
    """$1 avoidable on 26 October and the two Mondays after it, $2 on 16, $4 on 19 November."""
    file = tmp_path / "weeks.db"
    with SqliteHistory(file) as history:
        for day, usd in ((26, 1), (33, 1), (40, 1), (47, 2), (50, 4)):
            at = datetime(2026, 10, 1, 9, tzinfo=UTC).replace(day=1)
            at = at.fromtimestamp(at.timestamp() + (day - 1) * 86_400, UTC)
            amount = Decimal(usd)
            found = [finding("gpu-idle", saving_usd=amount)]
            history.record(ended(f"day-{day}", at, avoidable_usd=amount, findings=found))
    return file


def test_a_trend_compares_each_week_with_the_one_before(run: Run, weeks: Path) -> None:
    """A week that lasts is compared with as many days of the last one: Monday to Friday here."""
    rows = run("trend", "--history", weeks, "--since", "2026-10-28", "--output", "json").document()
    found = [
        (row["period"], row["waste_usd"], row["change_percent"], row["over"])
        for row in rows["rows"]
    ]
    assert found == [
        ("2026-W44", 1.0, None, True),
        ("2026-W45", 1.0, 0.0, True),
        ("2026-W46", 1.0, 0.0, True),
        ("2026-W47", 6.0, 500.0, False),
    ]
    assert rows["rows"][0]["first_day"] == "2026-10-26"


def test_a_trend_draws_its_dollars(run: Run, weeks: Path) -> None:
    """The news, then one mark a period above the table; a period that is not over says so."""
    done = run("trend", "--history", weeks, "--since", "2026-10-28")
    news, first, *rows = done.stdout.splitlines()
    assert news == "2026-W47 so far: $6.00 avoidable or lost, 500% more than the same days before"
    assert first.split()[0] == "Avoidable+lost"
    assert len(first.split()[1]) == 4
    assert first.endswith("0 to $6.00")
    assert "2026-W47 so far" in rows[-1]
    assert "+500.0%" in rows[-1]
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_trend_of_years_fits_a_screen(run: Run, weeks: Path) -> None:
    """One line of marks; weeks without a job are counted, not printed; JSON has the newest."""
    asked = ("trend", "--history", weeks, "--since", "2020-01-01")
    done = run(*asked)
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert len(done.stdout.splitlines()) < 10
    assert "weeks without a job left out of the table" in done.stderr
    assert len(run(*asked, "--output", "json").document()["rows"]) == 26
    assert len(run(*asked, "--output", "json", "--all").document()["rows"]) > 300


def test_a_trend_of_months_and_of_a_rule(run: Run, weeks: Path) -> None:
    """The 20 days of November so far against 20 days of October; other rules have nothing."""
    rows = run("trend", "--by", "month", "--since", "2026-10-01", "--history", weeks,
               "--output", "json").document()["rows"]  # fmt: skip
    assert [(row["period"], row["waste_usd"], row["change_usd"]) for row in rows] == [
        ("2026-10", 1.0, 1.0),
        ("2026-11", 8.0, 8.0),
    ]
    of_rule = run("trend", "--rule", "SA201", "--by", "month", "--history", weeks,
                  "--output", "json").document()["rows"]  # fmt: skip
    assert [row["waste_usd"] for row in of_rule][-2:] == [1.0, 8.0]
    other = run("trend", "--rule", "failed-spend", "--history", weeks, "--output", "json")
    assert {row["waste_usd"] for row in other.document()["rows"]} == {0.0}
