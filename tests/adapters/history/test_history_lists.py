"""What History promises of its lists: order, pages and sums."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import TypeVar

import pytest

from sageaudit.domain.audit.record import Page
from sageaudit.ports import History
from tests.adapters.history.entries import (
    ACCOUNT,
    NOON,
    REGION,
    ended,
    entry,
    finding,
    key,
    unsettled,
)

DAY = date(2026, 11, 20)
FAMILY = (ACCOUNT, REGION, "training/resnet")
Row = TypeVar("Row")


def walked(page: Callable[[str | None], Page[Row]]) -> list[Row]:
    """All rows, page by page."""
    rows: list[Row] = []
    cursor: str | None = None
    while True:
        one = page(cursor)
        rows.extend(one.rows)
        cursor = one.cursor
        if cursor is None:
            return rows


def with_twenty(history: History) -> None:
    """Twenty jobs of the day, a minute apart, and one of the day after."""
    for minute in range(20):
        history.record(ended(f"job-{minute:02d}", NOON + timedelta(minutes=minute)))
    history.record(ended("tomorrow", NOON + timedelta(days=1)))


NEWEST_FIRST = [f"job-{minute:02d}" for minute in reversed(range(20))]


def test_a_day_is_listed_newest_first(history: History) -> None:
    """Its shards together are the day, without the day after."""
    with_twenty(history)
    assert [head.name for head in history.by_day(DAY)] == NEWEST_FIRST


@pytest.mark.parametrize("limit", [1, 3, 7, 20, 100])
def test_family_owner_and_account_are_listed_newest_first(history: History, limit: int) -> None:
    """Each list has its jobs, the newest first: one owner's in pages of any size."""
    with_twenty(history)
    history.record(
        entry("elsewhere", job={"family": "x", "owner": "bo", "account": "444455556666"})
    )
    everything = ["tomorrow", *NEWEST_FIRST]

    family = history.by_family(*FAMILY)
    newest = history.by_family(*FAMILY, limit=limit)
    owner = walked(lambda at: history.by_owner("ana", limit=limit, cursor=at))
    account = history.by_account(ACCOUNT, "2026-11")
    assert [head.name for head in family] == everything
    assert [head.name for head in newest] == everything[:limit]
    assert [head.name for head in owner] == everything
    assert [head.name for head in account] == everything
    assert not list(history.by_account(ACCOUNT, "2026-12"))
    assert [head.name for head in history.by_owner("bo", limit=5).rows] == ["elsewhere"]


def test_a_full_last_page_has_no_cursor(history: History) -> None:
    """Who got everything is not sent for an empty page."""
    with_twenty(history)
    assert history.by_owner("ana", limit=21).cursor is None
    assert history.by_owner("ana", limit=20).cursor is not None


def test_an_empty_list_is_an_empty_page(history: History) -> None:
    """Nothing found is no error."""
    assert not list(history.by_day(DAY))
    assert history.by_owner("", limit=5) == Page((), None)
    assert history.due(NOON, limit=5) == Page((), None)


def test_a_rule_lists_what_it_found_in_a_month(history: History) -> None:
    """One row for each job whose newest version has the finding."""
    for day in range(3):
        history.record(ended(f"day-{day}", NOON + timedelta(days=day)))
    history.record(ended("december", NOON + timedelta(days=20)))

    rows = walked(lambda at: history.by_rule("gpu-underused", "2026-11", limit=2, cursor=at))
    assert [row.name for row in rows] == ["day-2", "day-1", "day-0"]
    assert rows[0].key == key("day-2")
    assert rows[0].saving_usd == Decimal("1.5")
    assert rows[0].severity == "medium"
    assert rows[0].summary == "The GPU was busy 8 % of 50 minutes."


def test_findings_are_replaced_with_their_version(history: History) -> None:
    """What the newer version no longer finds is gone from its rule's list."""
    history.record(entry(findings=[finding("a"), finding("b")]))
    history.record(entry(modified_s=60, findings=[finding("b", summary="Newer."), finding("c")]))

    found = {rule: history.by_rule(rule, "2026-11", limit=5).rows for rule in "abc"}
    assert {rule: len(rows) for rule, rows in found.items()} == {"a": 0, "b": 1, "c": 1}
    assert found["b"][0].summary == "Newer."


def test_more_findings_than_a_transaction_holds(history: History) -> None:
    """60 findings replaced by 60 others are stored; 40 of them have rows of their own."""
    history.record(entry(findings=[finding(f"old-{n}") for n in range(60)]))
    history.record(entry(modified_s=60, findings=[finding(f"new-{n}") for n in range(60)]))

    listed = [bool(history.by_rule(f"new-{n}", "2026-11", limit=1).rows) for n in range(60)]
    assert listed == [True] * 40 + [False] * 20
    assert not history.by_rule("old-0", "2026-11", limit=1).rows
    stored = history.audit(key())
    assert stored is not None
    assert len(stored["findings"]) == 60
    said = "Findings that no list shows: 20 (lists have one of each rule, 40 at most)."
    assert stored["audit"]["coverage"]["missing"] == [said]
    head = history.head(key())
    assert head is not None
    assert head.findings_without_row == 20


def test_an_audit_whose_findings_all_have_rows_says_nothing_of_it(history: History) -> None:
    """40 findings are listed whole."""
    history.record(entry(findings=[finding(f"rule-{n}") for n in range(40)]))
    stored, head = history.audit(key()), history.head(key())
    assert stored is not None
    assert stored["audit"]["coverage"]["missing"] == []
    assert head is not None
    assert head.findings_without_row is None


def test_a_roll_up_lists_the_findings_of_its_own(history: History) -> None:
    """Those of its training jobs have rows already, of their own audits."""
    findings = [finding("idle-tail"), finding("trials-fail")]
    history.record(entry(rollup=True, own_rules=["trials-fail"], findings=findings))
    history.record(entry("before", rollup=True, findings=findings))

    found = {
        rule: [row.name for row in history.by_rule(rule, "2026-11", limit=5).rows]
        for rule in ("idle-tail", "trials-fail")
    }
    assert found == {"idle-tail": [], "trials-fail": ["train-1"]}
    head = history.head(key())
    assert head is not None
    assert head.findings_without_row is None


def test_one_rule_has_one_row_of_a_job(history: History) -> None:
    """A second finding of one rule stays in the document and out of the list."""
    history.record(entry(findings=[finding(summary="First."), finding(summary="Second.")]))
    rows = history.by_rule("gpu-underused", "2026-11", limit=5).rows
    assert [row.summary for row in rows] == ["First."]


@pytest.mark.parametrize("limit", [1, 2, 50])
def test_what_is_due_is_listed_oldest_first(history: History, limit: int) -> None:
    """Only unsettled audits with a plan, due at or before the moment."""
    for hour in (3, 1, 2, 4):
        history.record(unsettled(f"h{hour}", due_at=f"2026-11-20T1{2 + hour}:00:00Z"))
    history.record(unsettled("no-plan"))
    history.record(entry("settled", audit={"due_at": "2026-11-20T13:00:00Z"}))

    until = NOON + timedelta(hours=3)
    rows = walked(lambda cursor: history.due(until, limit=limit, cursor=cursor))
    assert [head.name for head in rows] == ["h1", "h2", "h3"]


def test_what_is_settled_is_no_longer_due(history: History) -> None:
    """The second look takes the job off the waiting list."""
    history.record(unsettled(due_at="2026-11-20T13:00:00Z"))
    history.record(entry())
    assert history.due(NOON + timedelta(days=1), limit=5).rows == ()


def test_a_cursor_of_a_later_moment_ends_an_earlier_list(history: History) -> None:
    """Going on after a row that is not due yet gives nothing, and no error."""
    for hour in (3, 4):
        history.record(unsettled(f"h{hour}", due_at=f"2026-11-20T1{2 + hour}:00:00Z"))
    cursor = history.due(NOON + timedelta(hours=9), limit=1).cursor
    assert history.due(NOON, limit=1, cursor=cursor) == Page((), None)


def test_rows_that_come_and_go_do_not_move_a_cursor(history: History) -> None:
    """A cursor says after which row to go on, not how many were given."""
    with_twenty(history)
    first = history.by_owner("ana", limit=6)
    history.record(ended("late", NOON + timedelta(hours=1)))
    history.record(ended("job-14", NOON + timedelta(days=2), modified_s=60))

    second = history.by_owner("ana", limit=5, cursor=first.cursor)
    assert [head.name for head in second.rows] == ["job-13", "job-12", "job-11", "job-10", "job-09"]


@pytest.mark.parametrize("cursor", ["", "x", "é", "!!!!", "e30", "WzEsImR1ZSIsMV0", "W" * 5_000])
def test_a_malformed_cursor_is_one_sentence(history: History, cursor: str) -> None:
    """It is refused before anything is read."""
    sentence = r"^This cursor does not belong to this list: repeat the query"
    with pytest.raises(ValueError, match=sentence):
        history.by_owner("ana", limit=5, cursor=cursor)


def test_a_cursor_holds_for_its_own_list(history: History) -> None:
    """Another list or another owner refuses it."""
    with_twenty(history)
    cursor = history.by_owner("ana", limit=5).cursor
    for asked in (
        lambda: history.by_owner("bo", limit=5, cursor=cursor),
        lambda: history.by_rule("gpu-underused", "2026-11", limit=5, cursor=cursor),
        lambda: history.due(NOON, limit=5, cursor=cursor),
    ):
        with pytest.raises(ValueError, match="does not belong to this list"):
            asked()


def test_cursors_fit_a_url(history: History) -> None:
    """No sign of a cursor needs escaping."""
    with_twenty(history)
    cursor = history.by_owner("ana", limit=5).cursor
    assert cursor is not None
    assert cursor.replace("-", "").replace("_", "").isalnum()


def test_a_page_has_at_least_one_row(history: History) -> None:
    """A limit below 1 is a mistake of the caller."""
    with pytest.raises(ValueError, match="at least one row"):
        history.by_owner("ana", limit=0)


def test_moments_of_one_list_are_strictly_ordered(history: History) -> None:
    """Jobs that ended in the same moment are listed once each, also in pages of one."""
    for name in ("a", "b", "c"):
        history.record(ended(name, NOON))
    paged = walked(lambda cursor: history.by_owner("ana", limit=1, cursor=cursor))
    for rows in (list(history.by_day(DAY)), paged):
        assert sorted(head.name for head in rows) == ["a", "b", "c"]
        assert all(one.ended_at >= other.ended_at for one, other in pairwise(rows))
