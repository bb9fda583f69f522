"""Every list by end continues at a moment, or after a run that may be gone meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta

import pytest

from sageaudit.domain.audit.record import FindingRow, Head, Position
from sageaudit.ports import History
from tests.adapters.history.entries import ACCOUNT, NOON, REGION, ended, key

List = Callable[[History, datetime | Position | None], Iterable[Head | FindingRow]]
LISTS: dict[str, List] = {
    "day": lambda history, before: history.by_day(date(2026, 11, 20), before=before, page_size=3),
    "family": lambda history, before: history.by_family(
        ACCOUNT, REGION, "training/resnet", before=before, page_size=3
    ),
    "owner": lambda history, before: history.by_owner("ana", limit=50, before=before).rows,
    "account": lambda history, before: history.by_account(
        ACCOUNT, "2026-11", before=before, page_size=3
    ),
    "rule": lambda history, before: (
        history.by_rule("gpu-underused", "2026-11", limit=50, before=before).rows
    ),
}


def with_twelve(history: History) -> None:
    """Twelve jobs: two end at each minute from 12:00 to 12:05."""
    for number in range(12):
        history.record(ended(f"job-{number:02d}", NOON + timedelta(minutes=number // 2)))


def names(rows: Iterable[Head | FindingRow]) -> list[str]:
    """The names of the jobs, in the list's order."""
    return [row.name for row in rows]


NEWEST_FIRST = [f"job-{number:02d}" for number in reversed(range(12))]


@pytest.mark.parametrize("of", LISTS)
def test_a_list_begins_before_a_moment(history: History, of: str) -> None:
    """What ended at the moment itself is left out."""
    with_twelve(history)
    assert names(LISTS[of](history, None)) == NEWEST_FIRST
    assert names(LISTS[of](history, NOON + timedelta(minutes=2))) == NEWEST_FIRST[8:]
    assert names(LISTS[of](history, NOON)) == []


@pytest.mark.parametrize("of", LISTS)
def test_a_list_continues_after_each_of_its_runs(history: History, of: str) -> None:
    """Also between two runs that ended at the same moment."""
    with_twelve(history)
    for place, row in enumerate(LISTS[of](history, None), start=1):
        after = Position(row.ended_at, row.key)
        assert names(LISTS[of](history, after)) == NEWEST_FIRST[place:]


@pytest.mark.parametrize("of", LISTS)
def test_a_position_of_a_run_that_is_not_there_is_a_position(history: History, of: str) -> None:
    """Rows come and go between two pages."""
    with_twelve(history)
    gone = Position(NOON + timedelta(minutes=3), key("job-06b"))
    history.record(ended("later", NOON + timedelta(hours=1)))
    assert names(LISTS[of](history, gone)) == NEWEST_FIRST[5:]


def test_of_a_cursor_and_a_position_the_later_in_the_list_holds(history: History) -> None:
    """So that the pages after the first need the cursor alone."""
    with_twelve(history)
    first = history.by_owner("ana", limit=2, before=NOON + timedelta(minutes=5))
    second = history.by_owner(
        "ana", limit=2, cursor=first.cursor, before=NOON + timedelta(minutes=5)
    )
    assert names([*first.rows, *second.rows]) == NEWEST_FIRST[2:6]
