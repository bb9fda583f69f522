"""What holds for any order and number of deliveries, and that the histories never differ."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import Entry, Head, Position, RunQuery, Verdict
from sageaudit.domain.audit.sums import Scope, Sums, grouped
from sageaudit.ports import History
from tests.adapters.history.entries import ACCOUNT, NOON, REGION, entry, finding, key, unsettled
from tests.adapters.history.tables import dynamodb, new_table

NAMES = ("a", "b", "c")
RULES = ("r1", "r2")


def state(second: int, content: int, *, settled: bool) -> Entry:
    """What an audit says of one state of the job: same content, same document."""
    make = entry if settled else unsettled
    rules = RULES[: content % 3]
    return make(
        modified_s=second,
        avoidable_usd=Decimal(content),
        findings=[finding(rule) for rule in rules],
    )


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[list[Entry], list[Entry]]:
    """Two orders of one set, with repetitions; a state has one first look and one settled one."""
    states = st.dictionaries(
        st.integers(0, 3),
        st.sets(st.booleans(), min_size=1),
        min_size=1,
    )
    entries = [
        state(second, draw(st.integers(0, 2)), settled=settled)
        for second, looks in draw(states).items()
        for settled in looks
    ]
    repeated = entries + draw(st.lists(st.sampled_from(entries), max_size=5))
    return draw(st.permutations(entries)), draw(st.permutations(repeated))


def ended_at(history: History, order: list[Entry]) -> tuple[Head | None, list[bool], int]:
    """Where deliveries end: the head without its number, whose findings, how many versions."""
    versions = [history.record(one).verdict for one in order].count(Verdict.RECORDED)
    head = history.head(key())
    found = [bool(list(history.runs(RunQuery.of_rule(rule, "2026-11")))) for rule in RULES]
    assert head is not None
    assert head.version == versions
    assert history.audit(key(), versions) is not None
    assert history.audit(key(), versions + 1) is None
    return replace(head, version=0), found, versions


@pytest.mark.parametrize("kind", ["sqlite", "dynamo"])
def test_order_and_number_of_deliveries_do_not_matter(kind: str) -> None:
    """Any order with any repetition ends with the same head, and no more versions than audits."""
    with dynamodb() as client:

        def empty() -> History:
            if kind == "sqlite":
                return SqliteHistory()
            return DynamoHistory(client, new_table(client))

        @settings(max_examples=100 if kind == "sqlite" else 15, deadline=None)
        @given(deliveries())
        def holds(orders: tuple[list[Entry], list[Entry]]) -> None:
            once, often = orders
            one, other = ended_at(empty(), once), ended_at(empty(), often)
            assert one[:2] == other[:2]
            assert max(one[2], other[2]) <= len(once)

        holds()


entries = st.builds(
    lambda name, second, content, settled, due, again: entry(
        name,
        modified_s=second,
        again=again,
        avoidable_usd=Decimal(content),
        findings=[finding(rule) for rule in RULES[:content]],
        job={"ended_at": f"2026-11-20T0{content}:00:00Z", "owner": RULES[content % 2]},
        audit={"settled": settled, "due_at": f"2026-11-20T1{due}:00:00Z"},
    ),
    st.sampled_from(NAMES),
    st.integers(0, 2),
    st.integers(0, 2),
    st.booleans(),
    st.integers(0, 9),
    st.booleans(),
)


def daily_sums(history: History, scope: Scope) -> dict[Any, Sums]:
    """By name and day: how many rows there are is the history's own business."""
    rows = history.sums(scope, date(2026, 11, 1), date(2026, 11, 30))
    return grouped(rows, lambda row: (row.account, row.region, row.name, row.day))


def everything(history: History) -> list[Any]:
    """Everything that can be asked of a history of these entries."""
    first = next(history.runs(RunQuery.of_owner(RULES[0])), None)
    after = Position(first.ended_at, first.key) if first else None
    queries: list[RunQuery[Any]] = [
        RunQuery.of_day(date(2026, 11, 20)),
        RunQuery.of_family(ACCOUNT, REGION, "training/resnet"),
        RunQuery.of_account(ACCOUNT, "2026-11"),
        *(RunQuery.of_owner(owner) for owner in RULES),
        *(RunQuery.of_rule(rule, "2026-11") for rule in RULES),
    ]
    return [
        [list(history.runs(query, before=before)) for query in queries for before in (None, after)],
        list(history.runs(RunQuery.due(NOON + timedelta(hours=3)))),
        [daily_sums(history, scope) for scope in Scope],
        [(history.head(key(name)), history.audit(key(name))) for name in NAMES],
    ]


def test_the_histories_never_differ() -> None:
    """The same operations get the same answers from both."""
    with dynamodb() as client:

        @settings(max_examples=15, deadline=None)
        @given(st.lists(entries, max_size=8))
        def holds(given_entries: list[Entry]) -> None:
            sqlite, dynamo = SqliteHistory(), DynamoHistory(client, new_table(client))
            for one in given_entries:
                assert dynamo.record(one) == sqlite.record(one)
            assert everything(dynamo) == everything(sqlite)

        holds()
