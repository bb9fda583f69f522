from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, NotApplicable, Unknown
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.families import earlier_run
from tests.fakes.jobs import ran
from tests.fakes.judging import found, not_applicable, outcome, priced, usd

RULE = "duplicate-run"
RUN = ran(3600, fingerprint="f1", data_pinned=True)


def same(days_ago: int = 3, **facts: Any) -> EarlierRun:
    """A success of $0.23 with the run's fingerprint on pinned data."""
    return earlier_run(days_ago, **{"fingerprint": "f1", "data_pinned": True} | facts)


def code(job: Job, earlier: list[EarlierRun] | None) -> str:
    """Of the rule's Unknown."""
    answer = outcome(RULE, job, earlier=earlier)
    assert isinstance(answer, Unknown), answer
    return answer.code


def test_a_run_that_completed_before_is_found() -> None:
    """The newest of those that are the same."""
    what = found(RULE, RUN, earlier=[earlier_run(1, fingerprint="f2"), same(3), same(9)])
    assert what.summary == (
        "train-3 had completed for $0.23 with the same image, data, entry point and "
        "hyperparameters."
    )
    assert (what.confidence, what.bucket) == (Confidence.HEURISTIC, Bucket.POSSIBLE)
    assert what.evidence["same_runs"] == 2
    assert what.caution is not None
    assert "code archive" in what.caution


def test_the_saving_is_the_whole_run() -> None:
    """An hour of $0.23 and 30 GB of a May of 744 hours: 30 x 0.14 / 744 = $0.005645."""
    finding = priced(RULE, RUN, earlier=[same()])
    assert usd(finding.saving_usd) == usd(Decimal("0.23") + Decimal(30) * Decimal("0.14") / 744)


def test_other_settings_are_another_run() -> None:
    """And the first run of a family is its first."""
    assert outcome(RULE, RUN, earlier=[earlier_run(1, fingerprint="f2")]) == Clear()
    assert outcome(RULE, RUN, earlier=[]) == Clear()


@pytest.mark.parametrize("changes", [{"status": "Failed"}, {"left_artifact": False}])
def test_a_run_that_gave_nothing_is_repeated_for_a_reason(changes: dict[str, Any]) -> None:
    """It failed, or left no model."""
    assert outcome(RULE, RUN, earlier=[same(**changes)]) == Clear()


def test_exactly_thirty_days_are_near() -> None:
    """31 are not; nor is a run that ended after this one began."""
    assert isinstance(outcome(RULE, RUN, earlier=[same(30)]), Found)
    assert outcome(RULE, RUN, earlier=[same(31)]) == Clear()
    assert outcome(RULE, RUN, earlier=[same(-1)]) == Clear()


@pytest.mark.parametrize("pinned", [False, None])
def test_data_at_a_moving_prefix_is_not_the_same(pinned: bool | None) -> None:
    """A daily job reads other objects under the same name."""
    moving = replace(RUN, data_pinned=pinned)
    assert code(moving, [same(data_pinned=pinned)]) == "data_may_have_changed"
    assert code(RUN, [same(data_pinned=pinned)]) == "data_may_have_changed"


def test_without_a_fingerprint_or_history_it_is_unknown() -> None:
    """Runs are not compared then."""
    assert code(replace(RUN, fingerprint=None), [same()]) == "fingerprint_missing"
    assert code(RUN, None) == "history_unread"
    assert code(replace(RUN, started_at=None, created_at=None), [same()]) == "times_missing"


def test_an_unpriced_run_is_named_without_dollars() -> None:
    """Its cost is not known."""
    assert found(RULE, RUN, earlier=[same(total_usd=None)]).summary.startswith(
        "train-3 had completed with"
    )


def test_a_run_that_failed_itself_is_not_its_concern() -> None:
    """It is lost as a whole; a built-in Debugger rule is free."""
    assert "did not complete" in not_applicable(RULE, replace(RUN, status="Failed"))
    free = replace(RUN, kind=JobKind.PROCESSING, free="built-in Debugger rule")
    assert outcome(RULE, free, earlier=[same()]) == NotApplicable("built-in Debugger rule")
