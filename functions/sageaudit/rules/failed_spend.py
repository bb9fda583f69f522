"""The run was paid for and gave nothing.

## What it checks
The job failed after it had started, or was stopped and left neither artifact nor checkpoints.

## Why it costs
Failed and stopped jobs are billed from TrainingStartTime to TrainingEndTime like any other.

## Saving
The whole bill of the run, as lost: it cannot be had back, only not repeated.

## When it is wrong
A job that writes its results itself (to S3, a database, a tracker) may have left something. A job
that its tuning job stopped early did its work, and one stopped at its limit with an artifact is a
time box: neither is judged lost.

## What to do
Read the reason below. A short run on one small instance, or local mode, finds most client and code
errors for cents.

## Sources
botocore, DescribeTrainingJob.TrainingEndTime: billed between start and end, failed jobs included.
"""

from __future__ import annotations

import re

from sageaudit.domain.change import DropRun
from sageaudit.domain.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    NotApplicable,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job import Job, ParentKind
from sageaudit.domain.ref import JobKind
from sageaudit.rules.card import JobCase, rule

_CLASSES = (
    ("memory", (r"out ?of ?memory", r"\boom\b", r"exit code:? 137\b", r"more memory")),
    ("capacity", (r"capacityerror", r"insufficient capacity")),
    ("data", (r"data download failed", r"matched no files", r"nosuchkey", r"no such file")),
    ("permission", (r"access ?denied", r"not authorized", r"forbidden")),
    ("limit", (r"maxruntime", r"maxwaittime")),
    ("AWS", (r"internal ?server ?error",)),
    ("code", (r"algorithmerror", r"executeuserscripterror", r"traceback", r"exit code")),
    ("request", (r"clienterror", r"validationexception")),
)
"""First match wins; a hint for the reader, since AWS documents neither words nor order."""
_RUNS = {JobKind.TRAINING, JobKind.PROCESSING, JobKind.TRANSFORM}


def _excuse(case: JobCase) -> str | None:
    return case.job.free


@rule(id="SA602", scope=JobCase, kinds=_RUNS, excuse=_excuse)
def check(case: JobCase) -> Outcome:
    """Failed: always. Stopped: only when it left nothing."""
    job = case.job
    if job.status == "Completed" or job.never_started:
        return Clear()
    if job.status == "Stopped" and (kept := _kept(job)) is not None:
        return kept
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
        fix=_fix(job, why),
        change=DropRun(),
        caution="Paid and gone: the figure is what the same failure costs again.",
    )


def _kept(job: Job) -> Outcome | None:
    """Why a stopped job is not judged lost, or None."""
    if job.parent is not None and job.parent.kind is ParentKind.TUNING:
        return NotApplicable("stopped by or with its tuning job")
    if job.left_artifact:
        return NotApplicable("stopped, but it left an artifact")
    if job.checkpointed:
        return NotApplicable("stopped, but CheckpointConfig kept its progress")
    if job.left_artifact is None:
        return Unknown("artifact_unknown", "whether the stopped job left anything is not recorded")
    return None


def reason_class(job: Job) -> str:
    """A word for the reason, from the statuses and the failure's text."""
    text = f"{job.secondary_status or ''} {job.failure or ''}".lower()
    for word, marks in _CLASSES:
        if any(re.search(mark, text) for mark in marks):
            return f"{word} error" if word != "limit" else "limit reached"
    return "stopped" if job.status == "Stopped" else "reason unknown"


def _fix(job: Job, why: str) -> tuple[Parameter, ...]:
    if why == "limit reached" and job.max_runtime_s is not None and not job.checkpointed:
        return (Parameter("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>"),)
    if why == "AWS error" and job.kind is JobKind.TRAINING:
        return (Parameter("RetryStrategy.MaximumRetryAttempts", None, 2),)
    return ()
