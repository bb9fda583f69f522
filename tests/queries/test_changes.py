"""Changes of families: increased, decreased, new and gone, the largest first."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.queries.answer import iterate_rows
from sageaudit.queries.by import sum_by
from sageaudit.queries.changes import SpendChange, find_changes
from sageaudit.queries.columns import GROUPABLE
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.names import resolve_family
from sageaudit.queries.question import Question
from sageaudit.queries.window import Window
from tests.fakes.entries import entry_ending_at

BEGIN, WEEK = datetime(2026, 11, 9, tzinfo=UTC), timedelta(days=7)
AMOUNTS: dict[str, tuple[tuple[int, ...], tuple[int | None, ...]]] = {
    "increased": ((3, 3), (10,)),
    "decreased": ((9,), (4,)),
    "same": ((2,), (1, 1)),
    "gone": ((20,), ()),
    "new": ((), (1,)),
    "returned": ((), (1,)),
    "arn:aws:sagemaker:us-east-1:111122223333:hyper-parameter-tuning-job/hpo-01": ((6,), ()),
    "arn:aws:sagemaker:us-east-1:111122223333:hyper-parameter-tuning-job/hpo-02": ((), (8,)),
    "unpriced": ((5,), (None,)),
}
"""Each family's bills of the week before, and of the week."""


@pytest.fixture
def history() -> Iterator[SqliteHistory]:
    """Returns these jobs on the Wednesdays."""
    with SqliteHistory() as stored_history:
        for family, both in AMOUNTS.items():
            for week, bills in zip((BEGIN - WEEK, BEGIN), both, strict=True):
                for number, usd in enumerate(bills):
                    _record(stored_history, family, week + timedelta(days=2, hours=number), usd)
        yield stored_history


def _record(history: SqliteHistory, family: str, at: datetime, usd: int | None) -> None:
    bill = {"total_usd": None if usd is None else Decimal(usd)}
    job = {"family": family}
    history.record(entry_ending_at(f"{family}-{at:%d%H}", at, bill=bill, job=job))


def changes_of_week(history: SqliteHistory) -> list[SpendChange]:
    """Returns the changes of the week."""
    window = Window(BEGIN, BEGIN + WEEK)
    return find_changes(
        HistoryLists(history, window),
        Question(window),
        GROUPABLE["family"],
        today=date(2026, 11, 20),
    )


def test_each_family_is_compared_with_the_days_before(history: SqliteHistory) -> None:
    """The largest change is first; a job without a price leaves the change unknown."""
    _record(history, "returned", BEGIN - 2 * WEEK, 1)
    assert [
        (row.name, row.change and row.change.value, row.jobs_before, row.jobs, row.total_change_usd)
        for row in changes_of_week(history)
    ] == [
        ("gone", "gone", 1, 0, -20),
        ("decreased", "decreased", 1, 1, -5),
        ("increased", "increased", 2, 1, 4),
        ("tuning/hpo", "increased", 1, 1, 2),
        ("new", "new", 0, 1, 1),
        ("returned", "returned", 0, 1, 1),
        ("same", "same", 1, 2, 0),
        ("unpriced", None, 1, 1, None),
    ]


@pytest.mark.parametrize("name", [name for name in AMOUNTS if "arn:" not in name] + ["tuning/hpo"])
def test_each_name_in_the_list_is_a_valid_filter(history: SqliteHistory, name: str) -> None:
    """Tuning jobs whose names differ only in numbers have the name that they share."""
    _record(history, "returned", BEGIN - 2 * WEEK, 1)
    [row] = [row for row in changes_of_week(history) if row.name == name]
    for window, jobs in (
        (Window(BEGIN - WEEK, BEGIN), row.jobs_before),
        (Window(BEGIN, BEGIN + WEEK), row.jobs),
    ):
        lists = HistoryLists(history, window)
        question = resolve_family(lists, Question.with_filters(window, family=name))
        assert len([*iterate_rows(lists, question)]) == jobs
        assert (
            sum(
                total.jobs
                for total in sum_by(lists, question, [GROUPABLE["kind"]], today=date(2026, 11, 20))
            )
            == jobs
        )


def test_only_gone_is_known_if_the_history_does_not_reach_back(history: SqliteHistory) -> None:
    """The first audit is of the Wednesday of the week before, so earlier days are unknown.

    A family that ran then and not since is gone.
    """
    rows = changes_of_week(history)
    shared_names = {name for name in AMOUNTS if not name.startswith("arn:")} | {"tuning/hpo"}
    assert {row.name for row in rows} == shared_names
    assert {row.name: row.change for row in rows if row.change} == {"gone": "gone"}
    assert {(row.jobs_before, row.total_before_usd, row.total_change_usd) for row in rows} == {
        (None, None, None)
    }
    assert rows[0].name == "increased"
