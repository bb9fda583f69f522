from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from sageaudit.rules.purchase.commitment_candidate import RunCost, hourly_spend, spend_reached

NOON = datetime(2026, 5, 20, 12, 0, tzinfo=UTC)
HALF = timedelta(minutes=30)


def spent(until: datetime, hours: str, usd: int) -> RunCost:
    """One run."""
    return RunCost(until, Decimal(hours) * 3600, Decimal(usd))


def test_a_run_is_spread_over_the_hours_that_it_ran() -> None:
    """9:30 to 11:30 for $8: a quarter, a half, a quarter."""
    assert hourly_spend([spent(NOON - HALF, "2", 8)], NOON, 4) == (0, 2, 4, 2)


def test_the_hour_that_is_not_over_is_left_out() -> None:
    """At 12:30 the last whole hour is the one from 11 to 12."""
    assert hourly_spend([spent(NOON + HALF, "2", 8)], NOON + HALF, 3) == (0, 2, 4)


def test_runs_beside_each_other_add_up() -> None:
    """$4 an hour and $1 an hour."""
    runs = [spent(NOON, "2", 8), spent(NOON, "1", 1)]
    assert hourly_spend(runs, NOON, 3) == (0, 4, 5)


def test_what_was_spent_before_the_window_is_left_out() -> None:
    """100 hours for $100, of which two lie inside; one that ended before it has none."""
    runs = [spent(NOON, "100", 100), spent(NOON - timedelta(days=9), "1", 7)]
    assert hourly_spend(runs, NOON, 2) == (1, 1)


def test_hours_are_those_of_utc() -> None:
    """An offset of half an hour moves no dollar."""
    india = timezone(timedelta(hours=5, minutes=30))
    local = NOON.astimezone(india)
    assert hourly_spend([spent(local - HALF, "2", 8)], local, 3) == (2, 4, 2)


@pytest.mark.parametrize(
    ("percent", "usd"), [(100, 1), (80, 2), (79, 2), (61, 2), (60, 3), (40, 4), (20, 5), (0, 5)]
)
def test_the_spend_that_so_many_hours_reach(percent: int, usd: int) -> None:
    """Of five hours: all reach $1, four of them $2; three are not yet 61%."""
    hours = [Decimal(n) for n in (3, 1, 5, 2, 4)]
    assert spend_reached(hours, Decimal(percent)) == usd


def test_no_hours_reach_nothing() -> None:
    """An account that never ran."""
    assert spend_reached([], Decimal(80)) == 0
