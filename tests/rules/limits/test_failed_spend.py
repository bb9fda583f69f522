from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Hints, Job, Parent, ParentKind
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Metric
from tests.fakes.jobs import flat, job, market, phases, ran, series, usage
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
    """One sentence with its numbers; the known words of the failure are evidence."""
    what = found(RULE, failed("AlgorithmError: CUDA out of memory"))
    assert what.summary == (
        "The run failed after 1 h on 1 x ml.m5.xlarge (GPU out of memory: its GPU memory was not "
        "recorded)."
    )
    assert what.evidence["reason_class"] == "GPU out of memory"
    assert what.evidence["failure_reason"] == "AlgorithmError: GPU out of memory"


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


def with_checkpoints(**changes: Any) -> Job:
    """Failed after an hour with CheckpointConfig."""
    return failed("InternalServerError: try again", checkpointed=True, **changes)


def test_with_checkpoints_lost_is_up_to_the_whole_bill() -> None:
    """A resume keeps the work: nothing is certain, and all of it may be lost."""
    finding = priced(RULE, with_checkpoints())
    total_usd = bill(failed(), market()).total_usd
    assert finding.found.summary == (
        "The run failed after 1 h on 1 x ml.m5.xlarge (AWS error); its checkpoints may hold a part "
        "of the work."
    )
    assert (finding.found.bucket, finding.found.confidence) == (Bucket.LOST, Confidence.DERIVED)
    assert (finding.saving_usd, finding.range_usd) == (0, (0, total_usd))
    assert "if nobody resumes it, all of it is lost" in (finding.found.caution or "")


@pytest.mark.parametrize(
    "changes",
    [
        {"phases": phases(("Starting", -60), ("Downloading", 3600))},
        {"parent": Parent(ParentKind.TUNING, "arn:t")},
    ],
)
def test_checkpoints_that_cannot_hold_work_change_nothing(changes: dict[str, Any]) -> None:
    """It failed before its training began; or it is a trial, which nobody resumes."""
    what = found(RULE, with_checkpoints(**changes))
    assert (what.confidence, what.best) == (Confidence.MEASURED, None)


def test_a_long_run_that_failed_without_checkpoints_gets_them() -> None:
    """The next failure loses less; an hour is not long, and a sign of its own is enough."""
    long = failed("AlgorithmError: exit code 1", training_s=Decimal(3601))
    assert [fix.path for fix in found(RULE, long).fix] == ["CheckpointConfig.S3Uri"]
    for changes in ({"hints": Hints(own_checkpoints=True)}, {"kind": JobKind.PROCESSING}):
        assert found(RULE, replace(long, **changes)).fix == ()


GPU_RUN = "ml.g4dn.xlarge"


def out_of_memory(reason: str, **metrics: Any) -> Found:
    """Two hours on one T4, at these percents until the end."""
    run = ran(7200, GPU_RUN, status="Failed", secondary_status="Failed", failure=reason)
    return found(RULE, run, flat(run, 120, **metrics))


def test_a_full_gpu_is_named_with_its_last_use() -> None:
    """A larger GPU is the alternative that a setting has: of T4 and A10G the fake prices both."""
    what = out_of_memory("CUDA out of memory", cpu=50, gpu=90, gpu_memory=96)
    assert what.summary == (
        "The run failed after 2 h on 1 x ml.g4dn.xlarge (GPU out of memory: GPU memory was last "
        "recorded at 96%)."
    )
    assert what.evidence["gpu_memory_last_percent"] == 96
    assert what.evidence["gpu_memory_points_per_hour"] is None
    assert (what.caution or "").startswith("Halve the batch and accumulate gradients")


def test_growth_before_the_end_is_named_per_hour() -> None:
    """0.4 points a minute are 24 an hour; the last minute's lower mean is not the last use."""
    run = ran(7200, GPU_RUN, status="Failed", failure="CUDA out of memory")
    line = [50 + 0.4 * minute for minute in range(119)] + [30.0]
    what = found(RULE, run, usage(run, series(Metric.GPU_MEMORY, line)))
    assert "last recorded at 97%, after it grew about 24 points an hour" in what.summary
    assert what.evidence["gpu_memory_points_per_hour"] == pytest.approx(24, abs=0.5)


def test_several_gpus_have_only_their_mean() -> None:
    """CloudWatch has the sum of a host's GPUs."""
    run = ran(7200, "ml.g4dn.12xlarge", status="Failed", failure="CUDA out of memory")
    what = found(RULE, run, flat(run, 120, gpu_memory=60))
    assert "60% on average over 4 GPUs" in what.summary


def test_a_full_host_is_named_and_gets_a_larger_type() -> None:
    """Twice the memory of ml.g4dn.xlarge is the next larger T4 host."""
    what = out_of_memory("AlgorithmError: , exit code: 137", cpu=50, memory=97, gpu=90)
    assert "(host out of memory: host memory was last recorded at 97%)" in what.summary
    assert [[fix.new for fix in way] for way in what.alternatives] == [["ml.g4dn.2xlarge"]]
    assert (what.caution or "").startswith("Use fewer data-loader workers")


def test_a_killed_process_is_no_proof_of_full_memory() -> None:
    """137 is SIGKILL: at 40% the metrics do not say why."""
    what = out_of_memory("AlgorithmError: , exit code: 137", cpu=50, memory=40, gpu=90)
    assert "40%, which does not show that it ran out" in what.summary


def test_a_run_without_known_cost_is_still_said_to_be_lost() -> None:
    """Its dollars are unknown, not 0."""
    finding = priced(RULE, failed(region="xx-west-9"))
    assert finding.saving_usd is None
    assert finding.found.bucket is Bucket.LOST
