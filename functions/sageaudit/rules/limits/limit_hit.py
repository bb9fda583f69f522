"""A time limit ended the run.

## What it checks
MaxRuntimeInSeconds or MaxWaitTimeInSeconds ended the job: its secondary status or its failure text
says so, or it is a processing job that was stopped after its limit.

## Why it costs
A run that its limit cut off is billed up to the limit. Where it left neither artifact nor
checkpoints, all of it is lost.

## Saving
With an artifact or checkpoints: none, the limit did what limits are for. With nothing left: the
whole bill of the run, as lost. It is the same loss that failed-spend sees, counted once, here.

## When it is wrong
A job that writes its results itself (to S3, a database, a tracker) may have left something. A trial
that ended with its tuning job did its work: it is not judged.

## What to do
Keep checkpoints, so that the next run goes on where this one stopped; a script that catches SIGTERM
has 120 s to save its model. Raise the limit where the work needs it: it covers all attempts of a
RetryStrategy together.

## Sources
botocore: SecondaryStatus; StoppingCondition: at most 28 days (processing jobs 9), and SIGTERM comes
120 s before the end.
"""

from __future__ import annotations

from sageaudit.domain.bill.change import DropRun
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome, Parameter
from sageaudit.domain.job.failure import MAX_RUNTIME, MAX_WAIT, is_trial, kept, limit_hit
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import JobCase, rule
from sageaudit.rules.limits.not_lost import not_lost

_TIMES = 2
_AT_MOST_S = {JobKind.TRAINING: 2_419_200, JobKind.PROCESSING: 777_600}


def _excuse(case: JobCase) -> str | None:
    return "a trial: its metric is its result" if is_trial(case.job) else case.job.free


@rule(
    id="SA603",
    scope=JobCase,
    kinds=set(_AT_MOST_S),
    excuse=_excuse,
    subsumes={"failed-spend"},
)
def check(case: JobCase) -> Outcome:
    """A time box where something is left, else lost."""
    job = case.job
    limit = limit_hit(job)
    if limit is None or job.never_started:
        return Clear()
    left = kept(job)
    if left is None and (why_not := not_lost(job)) is not None:
        return why_not
    limit_s = job.max_runtime_s if limit == MAX_RUNTIME else job.max_wait_s
    after = "" if job.elapsed_s is None else f" after {job.elapsed_s / 3600:.1f} h"
    ways = () if left else _ways(job, limit, limit_s)
    time_box = "No figure: a limit may be meant as a time box, and what it left can be used."
    return Found(
        confidence=Confidence.MEASURED,
        bucket=Bucket.NONE if left else Bucket.LOST,
        summary=(
            f"{limit} ended the run{after} on {job.instances or 'an unknown type'}; "
            f"it left {left or 'neither artifact nor checkpoints'}."
        ),
        evidence={
            "limit": limit,
            "limit_s": limit_s,
            "elapsed_s": job.elapsed_s,
            "status": job.status,
            "secondary_status": job.secondary_status,
            "failure_reason": job.failure,
            "left": left,
        },
        fix=ways[0] if ways else (),
        alternatives=ways[1:],
        change=None if left else DropRun(),
        caution=time_box if left else "Paid and gone: the next run under this limit ends like it.",
    )


def _ways(job: Job, limit: str, limit_s: int | None) -> tuple[tuple[Parameter, ...], ...]:
    """Checkpoints where there are none, then a higher limit; the first is the better one."""
    ways: list[tuple[Parameter, ...]] = []
    if job.kind is JobKind.TRAINING and not job.checkpointed:
        ways.append((Parameter("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>"),))
    if not limit_s or limit_s >= _AT_MOST_S[job.kind]:
        return tuple(ways)
    path, higher_s = f"StoppingCondition.{limit}", min(_TIMES * limit_s, _AT_MOST_S[job.kind])
    higher = [Parameter(path, limit_s, higher_s)]
    if limit == MAX_RUNTIME and job.max_wait_s is not None and job.max_wait_s < higher_s:
        wait_s = job.max_wait_s + higher_s - limit_s
        higher.append(Parameter(f"StoppingCondition.{MAX_WAIT}", job.max_wait_s, wait_s))
    ways.append(tuple(higher))
    return tuple(ways)
