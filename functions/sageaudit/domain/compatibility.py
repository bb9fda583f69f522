"""Which fixes do not go together with a job, or with each other: one table.

| fix | not with | because |
|---|---|---|
| managed spot | warm pool, instance groups, training plan, serverless | SageMaker refuses it |
| managed spot | a Savings Plan | spot takes usage from a commitment that is paid anyway |
| early stopping of a tuning job | Hyperband | it stops early itself, and takes no `Auto` |
| another type | a higher hourly rate: `replay` offers none | no advice is ever turned back |

Sources: SageMaker guide on warm pools and managed spot; automatic model tuning, early stopping.
"""

from __future__ import annotations

from sageaudit.domain.change import Change, SetPurchase
from sageaudit.domain.job import Job, Purchase

HYPERBAND = "Hyperband"


def spot_refused(job: Job) -> str | None:
    """Why a job cannot run on managed spot, or None."""
    reasons = (
        (job.purchase is Purchase.SPOT, "it ran on managed spot"),
        (job.purchase is Purchase.TRAINING_PLAN, "its training plan is prepaid"),
        (job.purchase is Purchase.SERVERLESS, "it is serverless"),
        (len(job.groups) > 1, "managed spot does not take instance groups"),
        (job.warm_pool is not None, "managed spot does not keep a warm pool"),
    )
    return next((why for applies, why in reasons if applies), None)


def early_stopping_refused(strategy: str | None) -> str | None:
    """Why a tuning job cannot take TrainingJobEarlyStoppingType Auto, or None."""
    return "Hyperband stops trials early itself" if strategy == HYPERBAND else None


def refused(change: Change, job: Job, *, savings_plan: bool) -> str | None:
    """Why a change's dollars are not counted for this job, or None."""
    if not isinstance(change, SetPurchase):
        return None
    if savings_plan:
        return "spot takes usage from a Savings Plan that is paid used or not"
    return spot_refused(job)
