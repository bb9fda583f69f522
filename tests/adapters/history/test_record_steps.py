"""By how much a new version changes the daily sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.history.record_steps import changes, sum_row
from sageaudit.adapters.history.rows import head_of
from sageaudit.domain.audit.earlier import RunFacts
from sageaudit.domain.audit.record import Head
from sageaudit.domain.audit.sums import Scope, SumRow, Sums, grouped
from sageaudit.domain.job.job import Purchase
from tests.adapters.history.entries import ACCOUNT, NOON, REGION, entry, finding

DAY = date(2026, 11, 20)


def head(instance_type: str | None = "ml.g5.xlarge", **changes: Any) -> Head:
    """The head of a version."""
    facts = RunFacts(Purchase.ON_DEMAND, instance_type=instance_type)
    given = replace(entry(**changes), facts=facts)
    return head_of(given, 1, digest="d", findings=())


def test_a_first_version_is_added_to_every_scope() -> None:
    """With its own name of each."""
    rows = list(changes(None, head()))
    assert [(row.scope, row.name) for row in rows] == [
        (Scope.ACCOUNT, None),
        (Scope.FAMILY, "training/resnet"),
        (Scope.OWNER, "ana"),
        (Scope.TYPE, "ml.g5.xlarge"),
    ]
    assert {(row.account, row.region, row.day) for row in rows} == {(ACCOUNT, REGION, DAY)}
    assert {row.sums.jobs for row in rows} == {1}


def test_the_same_version_again_changes_nothing() -> None:
    """A repeated audit with the same result."""
    assert list(changes(head(), head())) == []


def test_a_new_version_adds_the_difference() -> None:
    """Not the job: it is counted."""
    rows = list(changes(head(), head(avoidable_usd=Decimal("1.25"))))
    assert [row.scope for row in rows] == list(Scope)
    assert {row.sums.avoidable_usd for row in rows} == {Decimal("-0.25")}
    assert {row.sums.jobs for row in rows} == {0}


@pytest.mark.parametrize(
    ("moved", "scopes"),
    [
        ({"job": {"family": "other"}}, {Scope.FAMILY}),
        ({"job": {"owner": None}}, {Scope.OWNER}),
        ({"instance_type": None}, {Scope.TYPE}),
        ({"job": {"ended_at": "2026-11-21T00:00:00Z"}}, set(Scope)),
        ({"job": {"region": "eu-west-1"}}, set(Scope)),
    ],
)
def test_a_version_that_moves_is_taken_out_where_it_was(
    moved: dict[str, Any], scopes: set[Scope]
) -> None:
    """And added where it is now; other scopes stay as they are."""
    rows = list(changes(head(), head(**moved)))
    assert {row.scope for row in rows} == scopes
    assert len(rows) == 2 * len(scopes)
    assert sorted(row.sums.jobs for row in rows) == [-1] * len(scopes) + [1] * len(scopes)


def test_a_roll_up_without_findings_of_its_own_adds_nothing() -> None:
    """Its children are counted. Nor is it taken out where it was."""
    rollup = head(rollup=True, own_rules=[])
    assert list(changes(None, rollup)) == []
    assert list(changes(rollup, head(rollup=True, own_rules=[], job={"family": "other"}))) == []


def test_a_day_is_a_day_in_utc() -> None:
    """Wherever the job's end was written down."""
    row = sum_row(head(job={"ended_at": "2026-11-21T02:00:00+05:00"}), Scope.ACCOUNT)
    assert row.day == DAY


versions = st.builds(
    lambda days, family, owner, kind, usd, rules: head(
        kind,
        job={
            "ended_at": (NOON + timedelta(days=days)).isoformat(),
            "family": family,
            "owner": owner,
        },
        avoidable_usd=usd,
        findings=[finding(rule, saving_usd=usd) for rule in rules],
    ),
    st.integers(0, 2),
    st.sampled_from(["f", "g"]),
    st.sampled_from(["o", None]),
    st.sampled_from(["ml.g5.xlarge", None]),
    st.one_of(st.none(), st.integers(0, 10**9).map(lambda micros: Decimal(micros).scaleb(-6))),
    st.sets(st.sampled_from("ab")),
)


def added_up(rows: Sequence[SumRow]) -> dict[Any, Sums]:
    """By place; without those that came to nothing."""
    sums = grouped(rows, lambda row: (row.scope, row.name, row.region, row.day))
    return {place: of for place, of in sums.items() if of != Sums()}


@given(st.lists(versions, min_size=1, max_size=6))
def test_the_changes_of_all_versions_add_up_to_the_last(given: list[Head]) -> None:
    """Whatever came between."""
    before: list[Head | None] = [None, *given]
    rows = [row for pair in zip(before, given, strict=False) for row in changes(*pair)]
    assert added_up(rows) == added_up(list(changes(None, given[-1])))
