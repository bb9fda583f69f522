"""Why a run ended without success, and whether it left any output.

The reason class is only a hint: AWS documents neither the words of a failure message nor their
order. SecondaryStatus is an enum, so it is checked before the text.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.job.course import is_work
from sageaudit.domain.job.failure_words import MAX_RUNTIME, MAX_WAIT
from sageaudit.domain.job.job import Job, seconds_between

LIMIT_REACHED = "limit reached"
_CONTINUOUS = "Continuous"
"""The mode of an output that is uploaded while the job runs."""
_LIMITS = {"MaxRuntimeExceeded": MAX_RUNTIME, "MaxWaitTimeExceeded": MAX_WAIT}


def limit_hit(job: Job) -> str | None:
    """The request parameter of the limit that ended the run, or None.

    A processing job has no secondary status: if it was stopped after its limit, the limit stopped
    it, because SageMaker stops jobs late and never early.
    """
    if job.status == "Completed":
        return None
    if job.secondary_status in _LIMITS:
        return _LIMITS[job.secondary_status]
    reading = job.failure.reading if job.failure else None
    if reading in {MAX_RUNTIME, MAX_WAIT}:
        return reading
    out_of_time = (
        not job.kind.row.in_steps
        and job.status == "Stopped"
        and job.max_runtime_s is not None
        and job.elapsed_s is not None
        and job.elapsed_s >= job.max_runtime_s
    )
    return MAX_RUNTIME if out_of_time else None


def seconds_until_limit(job: Job, limit: str) -> Decimal | None:
    """The seconds that a limit counted until it ended the run, over all attempts; None if unknown.

    MaxWait counts from the request on, waiting and work together, MaxRuntime the work alone. AWS
    does not say whether the training seconds count every attempt, so phases decide after one.
    """
    if limit == MAX_WAIT:
        if job.created_at is None or job.ended_at is None:
            return None
        return seconds_between(job.created_at, job.ended_at)
    return job.ran_s if job.began_again else job.elapsed_s


def reason_class(job: Job) -> str:
    """One or two words for the reason, from the statuses and the failure message."""
    if limit_hit(job):
        return LIMIT_REACHED
    if job.failure and job.failure.reading:
        return job.failure.reading
    return "stopped" if job.status == "Stopped" else "reason unknown"


def kept(job: Job) -> str | None:
    """What a run that ended early left in S3: "an artifact", "checkpoints", or None."""
    if job.left_artifact:
        return "an artifact"
    return "checkpoints" if job.checkpointed and may_have_worked(job) else None


def may_have_worked(job: Job) -> bool:
    """Whether its own code ran, as far as the phases say: before that, nothing can be kept."""
    return not job.phases or any(is_work(phase) for phase in job.phases)


def may_resume_from(job: Job) -> str | None:
    """What may hold a part of the work of a run that ended early, or None."""
    if not may_have_worked(job):
        return None
    if job.checkpointed:
        return "its checkpoints"
    if job.hints.own_checkpoints:
        return "checkpoints or outputs of its script's own"
    if any(upload.mode == _CONTINUOUS for upload in job.uploads):
        return "outputs that were uploaded while it ran"
    return None


def is_trial(job: Job) -> bool:
    """Whether a search started it: then its metric is a result even without a model."""
    rollup = job.parent.rollup if job.parent else None
    return rollup is not None and rollup.is_search
