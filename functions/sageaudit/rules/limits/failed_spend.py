"""The run was paid for and gave nothing.

## What it checks
The job failed after it had started, or was stopped and left neither artifact nor checkpoints.

## Why it costs
Failed and stopped jobs are billed from TrainingStartTime to TrainingEndTime like any other.

## Saving
The whole bill of the run, as lost: it cannot be had back, only not repeated.

## When it is wrong
A job that writes its results itself (to S3, a database, a tracker) may have left something. A job
that its tuning job stopped early did its work, and one that a time limit ended with an artifact or
checkpoints is a time box: neither is judged lost. One that a limit ended with nothing is
limit-hit's to count.

## What to do
Read the reason below. A short run on one small instance, or local mode, finds most client and code
errors for cents.

## Sources
botocore, DescribeTrainingJob.TrainingEndTime: billed between start and end, failed jobs included;
RetryStrategy: for InternalServerError only.
"""

from __future__ import annotations

from sageaudit.domain.bill.change import DropRun
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome, Parameter
from sageaudit.domain.job.failure import AWS_ERROR, reason_class
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import JobCase, rule
from sageaudit.rules.limits.not_lost import not_lost

RUNS = frozenset({JobKind.TRAINING, JobKind.PROCESSING, JobKind.TRANSFORM})


def _excuse(case: JobCase) -> str | None:
    return case.job.free


@rule(id="SA602", scope=JobCase, kinds=set(RUNS), excuse=_excuse)
def check(case: JobCase) -> Outcome:
    """Failed: lost, unless a time box. Stopped: only when it left nothing."""
    job = case.job
    if job.status == "Completed" or job.never_started:
        return Clear()
    if (why_not := not_lost(job)) is not None:
        return why_not
    why = reason_class(job)
    minutes = f"{job.elapsed_s / 60:.1f} minutes" if job.elapsed_s is not None else "some time"
    ended = "failed" if job.status == "Failed" else "was stopped and left no artifact"
    return Found(
        confidence=Confidence.MEASURED,
        bucket=Bucket.LOST,
        summary=f"The run {ended} after {minutes} on {job.instances or 'an unknown type'} ({why}).",
        evidence={
            "status": job.status,
            "secondary_status": job.secondary_status,
            "reason_class": why,
            "failure_reason": job.failure,
            "elapsed_s": job.elapsed_s,
        },
        fix=retries(job),
        change=DropRun(),
        caution="Paid and gone: the figure is what the same failure costs again.",
    )


def retries(job: Job) -> tuple[Parameter, ...]:
    """Errors of AWS's own are worth a second try; SageMaker makes it for training jobs only."""
    if reason_class(job) != AWS_ERROR or job.kind is not JobKind.TRAINING:
        return ()
    return (Parameter("RetryStrategy.MaximumRetryAttempts", None, 2),)
