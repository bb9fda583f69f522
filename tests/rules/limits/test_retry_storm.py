from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Job, Parent
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, phases, ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "retry-storm"


def failed(reason: str | None = "AlgorithmError: exit code 1", **changes: Any) -> Job:
    """An hour from START on ml.m5.xlarge without storage for $0.23, that failed."""
    plain: dict[str, Any] = {"status": "Failed", "secondary_status": "Failed", "volume_gb": 0}
    return ran(3600, failure=reason, **plain | changes)


def before(hours: int, **changes: Any) -> AuditSummary:
    """A run for $0.23 that failed with a code error this many hours before START."""
    plain: dict[str, Any] = {
        "status": "Failed",
        "reason": "code error",
        "ended_at": START - timedelta(hours=hours),
        "lost_usd": Decimal("0.23"),
    }
    return earlier_run(**plain | changes)


STORM = [before(hours=1), before(hours=2)]


verdict = partial(answer, RULE)


def test_3_failures_in_a_row_are_a_storm() -> None:
    """$0.23 + 2 x $0.23; since the end of the first of them."""
    assert verdict(failed(), earlier=STORM) == finds(
        "3 runs in a row have failed since 2026-05-20 08:00 UTC (code error). They have cost "
        "$0.69 so far.",
        evidence={
            "so_far_usd": Decimal("0.69"),
            "first_ended_at": "2026-05-20T08:00:00+00:00",
            "last_ended_at": "2026-05-20T11:00:00+00:00",
        },
    )


def test_it_takes_no_dollars_from_the_runs_own_audits() -> None:
    # They are lost there; here they are only stated.
    assert verdict(failed(), earlier=STORM) == finds(
        builder="fact", usd=None, severity="info", caution="…own audit…"
    )


def test_2_failures_in_a_row_are_no_storm() -> None:
    """One try and one retry; the policy may say that they are."""
    assert verdict(failed(), earlier=STORM[:1]) == CLEAR
    assert verdict(failed(), earlier=[]) == CLEAR
    assert verdict(failed(), earlier=STORM[:1], limits={"min_failed_runs": 2}) == FOUND


def test_a_failure_7_days_ago_still_counts_and_a_second_earlier_it_does_not() -> None:
    """This run ended an hour after START."""
    assert verdict(failed(), earlier=[before(hours=1), before(hours=7 * 24 - 1)]) == FOUND
    result = verdict(
        failed(),
        earlier=[
            before(hours=1),
            before(hours=1, ended_at=START - timedelta(hours=(7 * 24 - 1), seconds=1)),
        ],
    )
    assert result == CLEAR


def test_a_success_or_another_reason_ends_the_row() -> None:
    """What failed before it does not count."""
    result = verdict(
        failed(),
        earlier=[
            before(hours=1),
            before(hours=2, status="Completed", reason=None),
            before(hours=3),
        ],
    )
    assert result == CLEAR
    result = verdict(
        failed(), earlier=[before(hours=1), before(hours=2, reason="memory error"), before(hours=3)]
    )
    assert result == CLEAR
    assert (
        verdict(failed(), earlier=[before(hours=1), before(hours=2, reason=None), before(hours=3)])
        == CLEAR
    )


def test_a_run_that_somebody_stopped_is_passed_over() -> None:
    """It is neither a failure nor a success."""
    result = verdict(
        failed(),
        earlier=[
            before(hours=1),
            before(hours=2, status="Stopped", reason="stopped"),
            before(hours=3),
        ],
    )
    assert result == finds(evidence={"failed_in_a_row": 3})


def test_a_run_that_did_not_fail_is_clear() -> None:
    """Also without a history: a success ends the row."""
    assert verdict(ran(3600), earlier=STORM) == CLEAR
    assert verdict(ran(3600, status="Stopped")) == CLEAR


def test_without_history_or_time_it_does_not_know() -> None:
    """A failed run's row is then not known."""
    assert verdict(failed()) == cannot_judge("history_unread")
    result = verdict(failed(ended_at=None, last_modified_at=None), earlier=STORM)
    assert result == cannot_judge("times_missing")


def test_failures_that_were_never_billed_are_no_matter_of_cost() -> None:
    """Capacity that never came: $0 so far."""
    unbilled = failed(
        "CapacityError: none",
        started_at=None,
        training_s=None,
        billable_s=None,
        phases=phases(("Starting", -600)),
    )
    free = [before(hours=hours, reason="capacity error", total_usd=Decimal(0)) for hours in (1, 2)]
    assert verdict(unbilled, earlier=free) == CLEAR
    result = verdict(unbilled, earlier=[*free, before(hours=3, reason="capacity error")])
    assert result == finds(evidence={"so_far_usd": Decimal("0.23")})


def test_an_unknown_cost_makes_the_sum_a_lower_bound() -> None:
    """It is never 0."""
    result = verdict(failed(), earlier=[before(hours=1), before(hours=2, total_usd=None)])
    assert result == finds(
        "…They have cost at least $0.46 so far.", evidence={"runs_of_unknown_cost": 1}
    )


def test_errors_of_aws_belong_into_a_retry_strategy() -> None:
    # SageMaker retries inside the job; other reasons have no parameter.
    result = verdict(
        failed("InternalServerError"), earlier=[before(hours=n, reason="AWS error") for n in (1, 2)]
    )
    assert result == finds(fix=[("RetryStrategy.MaximumRetryAttempts", None, 2)])
    assert verdict(failed(), earlier=STORM) == finds(fix=[])


def test_the_evidence_says_whether_the_settings_were_the_same() -> None:
    for second, is_same in (("a", True), ("b", False), (None, None)):
        runs = [before(hours=1, fingerprint="a"), before(hours=2, fingerprint=second)]
        result = verdict(failed(fingerprint="a"), earlier=runs)
        assert result == finds(evidence={"same_settings": is_same})


def test_trials_and_free_jobs_are_not_judged() -> None:
    # Trials are one family and fail in parallel; a free job costs nothing.
    result = verdict(failed(parent=Parent(JobKind.TUNING.spec.rollup, "arn:t")))
    assert result == does_not_apply("…trial…")
    result = verdict(failed(kind=JobKind.PROCESSING, free="built-in Debugger rule"))
    assert result == does_not_apply("…Debugger…")
