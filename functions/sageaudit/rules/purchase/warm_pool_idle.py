"""A warm pool was kept, paid and never reused.

## What it checks
The job's warm pool is Terminated, and was retained for longer than the next job needs to download
its image and data.

## Why it costs
A retained pool is billed for every second and instance at the rate of the job, until another job
takes it over or it ends.

## Saving
Measured: the retained seconds less the Downloading phase of this run, at most what the next job
pays again for its image pull without a pool (SageMaker does not tell image pull and data copy
apart).

## When it is wrong
The last job of a chain always leaves a pool that nobody takes. Where the runs before it did reuse
their pools, shorten the period rather than drop it.

## What to do
Remove KeepAlivePeriodInSeconds, or set it only on jobs that another one follows within it. A pool
is reused only by a job with the same role, type, count, volume, network and encryption settings.

## Sources
API reference, WarmPoolStatus: Available, Terminated, Reused, InUse; billed seconds x InstanceCount.
SageMaker guide, managed warm pools. A published bill of 2023-12: 44 h of training, 167 h of pool.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.change import ShortenPool
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.ref import JobKind
from sageaudit.rules.card import JobCase, rule


def _excuse(case: JobCase) -> str | None:
    if case.job.warm_pool is None:
        return "it keeps no warm pool"
    if case.job.purchase is Purchase.TRAINING_PLAN:
        return "its training plan is prepaid"
    return None


@rule(id="SA404", scope=JobCase, kinds={JobKind.TRAINING}, excuse=_excuse)
def check(case: JobCase) -> Outcome:
    """Judges a final pool only."""
    job, pool = case.job, case.job.warm_pool
    if pool is None or pool.status == "Reused":
        return Clear()
    if pool.status is None:
        return Unknown("pool_status_missing", "whether a warm pool was kept is not known")
    if not pool.final:
        return Unknown("pool_not_settled", f"the warm pool is {pool.status}: its seconds grow")
    if pool.retained_s is None:
        return Unknown("retained_missing", "how long the warm pool was retained is not known")
    pull_s = _download_s(job)
    if pull_s is None:
        return Unknown("phases_missing", "the answer does not split the run into phases")
    if pool.retained_s <= pull_s:
        return Clear()
    return Found(
        confidence=Confidence.MEASURED,
        bucket=Bucket.AVOIDABLE,
        summary=(
            f"The warm pool was retained for {pool.retained_s / 60:.1f} minutes on "
            f"{job.instances or 'unknown instances'} "
            f"and never reused; the next job downloads again in {pull_s / 60:.1f}."
        ),
        evidence={
            "retained_s": pool.retained_s,
            "keep_alive_s": pool.keep_alive_s,
            "downloading_s": pull_s,
        },
        fix=_fix(pool.keep_alive_s),
        change=ShortenPool(pull_s),
        caution="The last job of a chain always leaves its pool: then shorten it instead.",
    )


def _fix(keep_alive_s: int | None) -> tuple[Parameter, ...]:
    """None where the answer does not say what was asked for."""
    path = "ResourceConfig.KeepAlivePeriodInSeconds"
    return () if keep_alive_s is None else (Parameter(path, keep_alive_s, None),)


def _download_s(job: Job) -> Decimal | None:
    """Seconds before the code starts that are billed; None where the run is not split."""
    names = {phase.name for phase in job.phases}
    return job.phase_s("Downloading") if "Training" in names or "Downloading" in names else None
