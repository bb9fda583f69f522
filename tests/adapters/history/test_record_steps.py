"""By how much a new version changes the daily sums."""

from datetime import date
from typing import Any

import pytest

from sageaudit.adapters.history.record_steps import audit_sum_rows, family_row, sum_differences
from sageaudit.adapters.history.rows import make_summary
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.job.job import Purchase
from sageaudit.structs import replace
from tests.fakes.documents import ACCOUNT, REGION
from tests.fakes.entries import entry
from tests.fakes.families import run_summary

DAY = date(2026, 11, 20)
UNTAGGED = set(Scope) - {Scope.TAG}


def head(instance_type: str | None = "ml.g5.xlarge", **changes: Any) -> AuditSummary:
    """The head of a version."""
    facts = run_summary(Purchase.ON_DEMAND, instance_type=instance_type)
    given = replace(entry(**changes), run_summary=facts)
    return make_summary(given, 1, "d")


def test_a_first_version_is_added_to_every_scope() -> None:
    """With its own name of each."""
    rows = list(sum_differences(None, head()))
    assert [(row.scope, row.name) for row in rows] == [
        (Scope.ACCOUNT, None),
        (Scope.FAMILY, "training/resnet"),
        (Scope.OWNER, "ana"),
        (Scope.TYPE, "ml.g5.xlarge"),
    ]
    assert {(row.account, row.region, row.day) for row in rows} == {(ACCOUNT, REGION, DAY)}
    assert {row.sums.jobs for row in rows} == {1}


@pytest.mark.parametrize(
    ("moved", "scopes"),
    [
        ({"job": {"family": "other"}}, {Scope.FAMILY}),
        ({"job": {"owner": None}}, {Scope.OWNER}),
        ({"instance_type": None}, {Scope.TYPE}),
        ({"job": {"ended_at": "2026-11-21T00:00:00Z"}}, UNTAGGED),
        ({"job": {"region": "eu-west-1"}}, UNTAGGED),
    ],
)
def test_a_version_that_moves_is_taken_out_where_it_was(
    moved: dict[str, Any], scopes: set[Scope]
) -> None:
    """And added where it is now; other scopes stay as they are."""
    rows = list(sum_differences(head(), head(**moved)))
    assert {row.scope for row in rows} == scopes
    assert len(rows) == 2 * len(scopes)
    assert sorted(row.sums.jobs for row in rows) == [-1] * len(scopes) + [1] * len(scopes)


def test_a_roll_up_without_findings_of_its_own_adds_nothing() -> None:
    """Its children are counted. Nor is it taken out where it was."""
    rollup = head(rollup=True, rollup_rules=[])
    assert list(sum_differences(None, rollup)) == []
    assert (
        list(sum_differences(rollup, head(rollup=True, rollup_rules=[], job={"family": "other"})))
        == []
    )


def test_a_run_that_none_is_compared_with_has_no_row_in_its_family() -> None:
    """A job that could not be audited; its stamp would be none."""
    given = entry()
    summary = make_summary(given, 1, "d")
    assert family_row(given, replace(summary, stamp="s")) is not None
    assert family_row(given, replace(summary, stamp=None)) is None


def test_a_day_is_a_day_in_utc() -> None:
    """Wherever the job's end was written down."""
    row = next(audit_sum_rows(head(job={"ended_at": "2026-11-21T02:00:00+05:00"})))
    assert row.day == DAY
