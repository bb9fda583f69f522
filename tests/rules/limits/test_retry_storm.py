from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Job, Parent, ParentKind
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, phases, ran
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown

RULE = "retry-storm"


def failed(reason: str | None = "AlgorithmError: exit code 1", **changes: Any) -> Job:
    """An hour from START on ml.m5.xlarge without storage for $0.23, that failed."""
    plain: dict[str, Any] = {"status": "Failed", "secondary_status": "Failed", "volume_gb": 0}
    return ran(3600, failure=reason, **plain | changes)


def before(hours: int, **changes: Any) -> EarlierRun:
    """A run for $0.23 that failed with a code error so many hours before START."""
    plain: dict[str, Any] = {
        "status": "Failed",
        "reason_class": "code error",
        "ended_at": START - timedelta(hours=hours),
        "lost_usd": Decimal("0.23"),
    }
    return earlier_run(**plain | changes)


STORM = [before(1), before(2)]


def test_three_failures_in_a_row_are_a_storm() -> None:
    """$0.23 + 2 x $0.23; since the end of the first of them."""
    what = found(RULE, failed(), earlier=STORM)
    assert what.summary == (
        "3 runs in a row failed since 2026-05-20 08:00 UTC (code error), for $0.69 so far."
    )
    assert what.evidence["so_far_usd"] == Decimal("0.69")
    assert what.evidence["first_ended_at"] == "2026-05-20T08:00:00+00:00"
    assert what.evidence["last_ended_at"] == "2026-05-20T11:00:00+00:00"


def test_it_takes_no_dollars_from_the_runs_own_audits() -> None:
    """They are lost there; here they are only stated."""
    finding = priced(RULE, failed(), earlier=STORM)
    assert (finding.found.bucket, finding.found.confidence) == (Bucket.NONE, Confidence.MEASURED)
    assert (finding.saving_usd, finding.severity.value) == (None, "info")
    assert "own audit" in (finding.found.caution or "")


def test_two_failures_are_no_storm() -> None:
    """One try and one retry; the policy may say that they are."""
    assert outcome(RULE, failed(), earlier=STORM[:1]) == Clear()
    assert outcome(RULE, failed(), earlier=[]) == Clear()
    assert isinstance(outcome(RULE, failed(), earlier=STORM[:1], limits={"runs_from": 2}), Found)


def test_exactly_seven_days_ago_still_counts() -> None:
    """This run ended an hour after START."""
    week = 7 * 24 - 1
    assert isinstance(outcome(RULE, failed(), earlier=[before(1), before(week)]), Found)
    late = before(1, ended_at=START - timedelta(hours=week, seconds=1))
    assert outcome(RULE, failed(), earlier=[before(1), late]) == Clear()


@pytest.mark.parametrize(
    "between",
    [
        before(2, status="Completed", reason_class=None),
        before(2, reason_class="memory error"),
        before(2, reason_class=None),
    ],
)
def test_a_success_or_another_reason_ends_the_row(between: EarlierRun) -> None:
    """What failed before it does not count."""
    assert outcome(RULE, failed(), earlier=[before(1), between, before(3)]) == Clear()


def test_a_run_that_somebody_stopped_is_passed_over() -> None:
    """It is neither a failure nor a success."""
    stopped = before(2, status="Stopped", reason_class="stopped")
    what = found(RULE, failed(), earlier=[before(1), stopped, before(3)])
    assert what.evidence["failed_in_a_row"] == 3


def test_a_run_that_did_not_fail_is_clear() -> None:
    """Also without a history: it breaks the row."""
    assert outcome(RULE, ran(3600), earlier=STORM) == Clear()
    assert outcome(RULE, ran(3600, status="Stopped")) == Clear()


def test_without_history_or_time_it_does_not_know() -> None:
    """A failed run's row is then not known."""
    assert unknown(RULE, failed()) == "history_unread"
    timeless = failed(ended_at=None, last_modified_at=None)
    answer = outcome(RULE, timeless, earlier=STORM)
    assert getattr(answer, "code", None) == "times_missing"


def test_failures_that_were_never_billed_are_no_matter_of_cost() -> None:
    """Capacity that never came: $0 so far."""
    waiting = failed("CapacityError: none", started_at=None, training_s=None, billable_s=None,
                     phases=phases(("Starting", -600)))  # fmt: skip
    free = [before(n, reason_class="capacity error", total_usd=Decimal(0)) for n in (1, 2)]
    assert outcome(RULE, waiting, earlier=free) == Clear()
    billed = [*free, before(3, reason_class="capacity error")]
    assert found(RULE, waiting, earlier=billed).evidence["so_far_usd"] == Decimal("0.23")


def test_an_unknown_cost_makes_the_sum_a_lower_bound() -> None:
    """It is never 0."""
    what = found(RULE, failed(), earlier=[before(1), before(2, total_usd=None)])
    assert what.summary.endswith("for at least $0.46 so far.")
    assert what.evidence["runs_of_unknown_cost"] == 1


def test_errors_of_aws_belong_into_a_retry_strategy() -> None:
    """SageMaker retries inside the job; other reasons have no parameter."""
    storm = [before(n, reason_class="AWS error") for n in (1, 2)]
    [fix] = found(RULE, failed("InternalServerError"), earlier=storm).fix
    assert (fix.path, fix.old, fix.new) == ("RetryStrategy.MaximumRetryAttempts", None, 2)
    assert found(RULE, failed(), earlier=STORM).fix == ()


@pytest.mark.parametrize(
    ("prints", "same"), [("aa", True), ("ab", False), (("a", None), None)]
)  # fmt: skip
def test_the_evidence_says_whether_the_settings_were_the_same(prints: Any, same: object) -> None:
    """Unknown where one run has no fingerprint."""
    storm = [before(1, fingerprint="a"), before(2, fingerprint=prints[1])]
    what = found(RULE, failed(fingerprint=prints[0]), earlier=storm)
    assert what.evidence["same_settings"] is same


def test_trials_and_free_jobs_are_not_its_concern() -> None:
    """Trials are one family and fail in parallel; a free job costs nothing."""
    assert "trial" in not_applicable(RULE, failed(parent=Parent(ParentKind.TUNING, "arn:t")))
    free = failed(kind=JobKind.PROCESSING, free="built-in Debugger rule")
    assert "Debugger" in not_applicable(RULE, free)
