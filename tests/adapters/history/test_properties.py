"""What holds for any order and number of deliveries, and that the twins never differ."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.in_memory import MemoryHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import Entry, Head, Verdict
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
    found = [bool(history.by_rule(rule, "2026-11", limit=1).rows) for rule in RULES]
    assert head is not None
    assert head.version == versions
    assert history.audit(key(), versions) is not None
    assert history.audit(key(), versions + 1) is None
    return replace(head, version=0), found, versions


@pytest.fixture
def new_file(tmp_path: Path) -> Iterator[Callable[[], SqliteHistory]]:
    """Makes an empty history in a file of its own; those before are closed."""
    numbers, opened = itertools.count(), ExitStack()

    def make() -> SqliteHistory:
        return opened.enter_context(SqliteHistory(tmp_path / f"{next(numbers)}.db"))

    with opened:
        yield make


@pytest.mark.parametrize("twin", ["memory", "sqlite", "dynamo"])
def test_order_and_number_of_deliveries_do_not_matter(
    twin: str, new_file: Callable[[], SqliteHistory]
) -> None:
    """Any order with any repetition ends with the same head, and no more versions than audits."""
    with dynamodb() as client:
        twins: dict[str, Callable[[], History]] = {
            "memory": MemoryHistory,
            "sqlite": new_file,
            "dynamo": lambda: DynamoHistory(client, new_table(client)),
        }
        empty = twins[twin]

        @settings(max_examples={"memory": 200, "sqlite": 40}.get(twin, 15), deadline=None)
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


def seen(history: History) -> list[Any]:
    """Everything that can be asked of a history of these entries."""
    day = date(2026, 11, 20)
    family = (ACCOUNT, REGION, "training/resnet")
    first = history.by_owner(RULES[0], limit=1)
    return [
        first,
        history.by_owner(RULES[0], limit=2, cursor=first.cursor),
        list(history.by_day(day)),
        list(history.by_family(*family)),
        list(history.by_family(*family, limit=2)),
        list(history.by_account(ACCOUNT, "2026-11")),
        [history.by_owner(owner, limit=2) for owner in RULES],
        [history.by_rule(rule, "2026-11", limit=2) for rule in RULES],
        history.due(NOON + timedelta(hours=3), limit=2),
        [daily_sums(history, scope) for scope in Scope],
        [(history.head(key(name)), history.audit(key(name))) for name in NAMES],
    ]


def test_the_histories_never_differ(new_file: Callable[[], SqliteHistory]) -> None:
    """The same operations get the same answers from all three histories, cursors included."""
    with dynamodb() as client:

        @settings(max_examples=15, deadline=None)
        @given(st.lists(entries, max_size=8))
        def holds(given_entries: list[Entry]) -> None:
            memory, of_file = MemoryHistory(), new_file()
            dynamo = DynamoHistory(client, new_table(client))
            for one in given_entries:
                recorded = memory.record(one)
                assert (dynamo.record(one), of_file.record(one)) == (recorded, recorded)
            answers = seen(memory)
            assert seen(dynamo) == answers
            assert seen(of_file) == answers

        holds()
