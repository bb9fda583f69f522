from __future__ import annotations

from typing import Any

import pytest

from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Job, Parent, ParentKind
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.jobs import job, market, phases, ran
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown, usd

RULE = "failed-spend"


def failed(reason: str | None = None, **changes: Any) -> Job:
    """An hour on ml.m5.xlarge that failed."""
    return ran(3600, status="Failed", secondary_status="Failed", failure=reason, **changes)


def test_a_failed_run_is_lost_whole() -> None:
    """Compute and volume: $0.23 + 30 GB x 1 h / 744 h x $0.14."""
    finding = priced(RULE, failed("AlgorithmError: exit code 1"))
    assert usd(finding.saving_usd) == "0.235645"
    assert finding.saving_usd == bill(failed(), market()).total_usd
    assert (finding.found.bucket, finding.found.confidence) == (Bucket.LOST, Confidence.MEASURED)
    assert "failed after 1 h on 1 x ml.m5.xlarge" in finding.found.summary


def test_a_completed_run_is_clear() -> None:
    """It gave its results."""
    assert outcome(RULE, job()) == Clear()


@pytest.mark.parametrize("status", ["Failed", "Stopped"])
def test_a_job_that_never_started_cost_nothing(status: str) -> None:
    """Nothing was lost."""
    never = job(status=status, started_at=None, ended_at=None, training_s=None,
                billable_s=None, phases=phases(("Starting", -600)))  # fmt: skip
    assert outcome(RULE, never) == Clear()


def test_a_stopped_run_that_left_nothing_is_lost() -> None:
    """Neither artifact nor checkpoints."""
    what = found(RULE, ran(3600, status="Stopped", left_artifact=False))
    assert "left no artifact" in what.summary
    assert what.bucket is Bucket.LOST


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"left_artifact": True}, "artifact"),
        ({"left_artifact": False, "checkpointed": True}, "checkpoints"),
        (
            {"left_artifact": False, "parent": Parent(ParentKind.TUNING, "arn:t")},
            "tuning job",
        ),
    ],
)
def test_a_stopped_run_that_kept_something_is_not_judged(changes: dict[str, Any], why: str) -> None:
    """An artifact, a run that can be resumed, an early-stopped trial."""
    assert why in not_applicable(RULE, ran(3600, status="Stopped", **changes))


def test_a_failed_trial_is_lost_all_the_same() -> None:
    """Failed is not early-stopped."""
    trial = failed(parent=Parent(ParentKind.TUNING, "arn:t"))
    assert isinstance(outcome(RULE, trial), Found)


def test_whether_a_stopped_job_left_anything_may_not_be_known() -> None:
    """Processing and transform jobs write their outputs themselves."""
    stopped = ran(3600, status="Stopped", kind=JobKind.PROCESSING, left_artifact=None)
    assert unknown(RULE, stopped) == "artifact_unknown"


def test_a_free_job_lost_nothing() -> None:
    """A built-in Debugger rule."""
    free = failed(kind=JobKind.PROCESSING, free="built-in Debugger rule")
    assert "Debugger" in not_applicable(RULE, free)


def test_the_sentence_says_how_long_on_what_and_why() -> None:
    """One sentence with its numbers; the text of the failure is evidence."""
    what = found(RULE, failed("AlgorithmError: CUDA out of memory"))
    assert what.summary == ("The run failed after 1 h on 1 x ml.m5.xlarge (memory error).")
    assert what.evidence["reason_class"] == "memory error"
    assert what.evidence["failure_reason"] == "AlgorithmError: CUDA out of memory"


def test_a_time_box_is_not_lost() -> None:
    """MaxRuntimeExceeded with checkpoints; with nothing it is lost, as limit-hit says too."""
    cut: dict[str, Any] = {
        "status": "Stopped",
        "secondary_status": "MaxRuntimeExceeded",
        "left_artifact": False,
    }
    assert "checkpoints" in not_applicable(RULE, ran(3600, checkpointed=True, **cut))
    assert found(RULE, ran(3600, **cut)).evidence["reason_class"] == "limit reached"


def test_an_error_of_aws_advises_retries() -> None:
    """RetryStrategy covers InternalServerError only, and training jobs only."""
    what = found(RULE, failed("InternalServerError: try again"))
    assert [fix.path for fix in what.fix] == ["RetryStrategy.MaximumRetryAttempts"]
    assert found(RULE, failed("AlgorithmError: exit code 1")).fix == ()
    processing = failed("InternalServerError: try again", kind=JobKind.PROCESSING)
    assert found(RULE, processing).fix == ()


def test_a_run_without_known_cost_is_still_said_to_be_lost() -> None:
    """Its dollars are unknown, not 0."""
    finding = priced(RULE, failed(region="xx-west-9"))
    assert finding.saving_usd is None
    assert finding.found.bucket is Bucket.LOST
