from typing import Any

import pytest

from sageaudit.domain.bill.finding import NotApplicable, Unknown
from sageaudit.domain.job.course import failure_class, kept_results, reached_limit
from sageaudit.domain.job.job import Job, Parent
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.limits.failures import why_not_lost
from tests.fakes.jobs import ran

TRIAL = Parent(JobKind.TUNING.spec.rollup, "arn:t")


def failed(reason: str | None = None, **changes: Any) -> Job:
    """Returns an hour on ml.m5.xlarge that failed."""
    plain: dict[str, Any] = {"status": "Failed", "secondary_status": "Failed"}
    return ran(3600, failure=reason, **plain | changes)


def stopped(**changes: Any) -> Job:
    """Returns an hour on ml.m5.xlarge that was stopped and left nothing."""
    plain: dict[str, Any] = dict.fromkeys(("status", "secondary_status"), "Stopped")
    return ran(3600, **plain | {"has_artifact": False} | changes)


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("AlgorithmError: CUDA out of memory", "GPU out of memory"),
        ("AlgorithmError: CUDA error: out of memory", "GPU out of memory"),
        ("AlgorithmError: torch.cuda.OutOfMemoryError", "GPU out of memory"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED", "GPU out of memory"),
        ("ResourceExhaustedError: OOM when allocating tensor on device:GPU:0", "GPU out of memory"),
        ("CUDA out of memory; a worker ended with exit code 137", "GPU out of memory"),
        ("AlgorithmError: , exit code: 137", "host out of memory"),
        ("ExecuteUserScriptError: ExitCode 137", "host out of memory"),
        ("ChildFailedError: exitcode  : -9 (pid: 71)", "host out of memory"),
        ("AlgorithmError: killed by the OOM killer", "host out of memory"),
        ("ClientError: Please use an instance type with more memory", "host out of memory"),
        ("MemoryError: Unable to allocate 9.1 GiB for an array", "host out of memory"),
        ("java.lang.OutOfMemoryError: Java heap space", "host out of memory"),
        ("AlgorithmError: ran out of memory", "memory error"),
        ("AlgorithmError: exit code 13, 1370 rows", "code error"),
        ("AlgorithmError: OSError: [Errno 28] No space left on device", "disk error"),
        ("CapacityError: Unable to provision requested ML compute capacity", "capacity error"),
        ("ClientError: Data download failed:S3 key matched no files on s3", "data error"),
        ("ClientError: AccessDenied on s3://b", "permission error"),
        ("InternalServerError: We encountered an internal error", "AWS error"),
        ("AlgorithmError: ExecuteUserScriptError: ExitCode 1", "code error"),
        ("AlgorithmError: RecursionError: maximum recursion depth exceeded", "code error"),
        ("AlgorithmError: cannot load bigscience/bloom-7b1, exit code 1", "code error"),
        ("ClientError: ValidationException", "request error"),
        ("MaxRuntimeInSeconds exceeded", "limit reached"),
        ("the job exceeded MaxWaitTimeInSeconds", "limit reached"),
        ("AlgorithmError: unknown argument max_runtime", "code error"),
        (None, "reason unknown"),
        ("", "reason unknown"),
        ("something else", "reason unknown"),
    ],
)
def test_a_failure_has_a_class(reason: str | None, word: str) -> None:
    """It is only a hint, because AWS documents neither words nor their order."""
    assert failure_class(failed(reason)) == word


@pytest.mark.parametrize(
    ("status", "limit"),
    [
        ("MaxRuntimeExceeded", "MaxRuntimeInSeconds"),
        ("MaxWaitTimeExceeded", "MaxWaitTimeInSeconds"),
        ("Stopped", None),
        (None, None),
    ],
)
def test_the_secondary_status_names_the_limit(status: str | None, limit: str | None) -> None:
    """Whatever the failure message says. If a person stopped the job, no limit is named."""
    job = stopped(secondary_status=status)
    assert reached_limit(job) == limit
    assert failure_class(job) == ("limit reached" if limit else "stopped")


def test_a_processing_job_stopped_after_its_limit_was_stopped_by_it() -> None:
    """It has no secondary status. A training job has one; and a second before the limit is too
    early.
    """
    processing: dict[str, Any] = {"kind": JobKind.PROCESSING, "secondary_status": None}
    assert reached_limit(stopped(max_runtime_s=3600, **processing)) == "MaxRuntimeInSeconds"
    assert reached_limit(stopped(max_runtime_s=3601, **processing)) is None
    assert reached_limit(stopped(max_runtime_s=3600)) is None


def test_a_completed_run_hit_no_limit() -> None:
    """However long it took, and whatever else the answer says."""
    assert reached_limit(ran(3600, max_runtime_s=3600, kind=JobKind.PROCESSING)) is None
    assert reached_limit(ran(3600, secondary_status="MaxRuntimeExceeded")) is None
    assert reached_limit(ran(3600, failure="MaxRuntimeInSeconds exceeded")) is None


def test_an_artifact_is_named_before_checkpoints() -> None:
    """What is left is named in a word."""
    assert kept_results(stopped(has_artifact=True, checkpointed=True)) == "an artifact"
    assert kept_results(stopped(checkpointed=True)) == "checkpoints"
    assert kept_results(stopped()) is None


def test_a_failure_is_lost_unless_a_limit_ended_work_that_is_kept() -> None:
    """Half an artifact after a crash is not a result. Checkpoints before a limit are."""
    assert why_not_lost(failed("exit code 1", has_artifact=True)) is None
    cut = failed("MaxRuntimeExceeded", has_artifact=False, checkpointed=True)
    assert why_not_lost(cut) == NotApplicable("it ended early, but it left checkpoints")
    assert why_not_lost(failed("MaxRuntimeExceeded", has_artifact=None)) is None


def test_a_stopped_run_is_lost_only_if_nothing_can_be_left() -> None:
    """A trial's metric is its result. An unknown artifact stays unknown."""
    assert why_not_lost(stopped()) is None
    assert isinstance(why_not_lost(stopped(parent=TRIAL)), NotApplicable)
    unsure = why_not_lost(stopped(has_artifact=None))
    assert isinstance(unsure, Unknown)
    assert unsure.code == "artifact_unknown"
