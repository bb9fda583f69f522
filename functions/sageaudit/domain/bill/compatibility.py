"""Which fixes are not possible for a job or not together, and what estimated rates do to a fix.

Which type a run cannot move to: `type_vetoes`.

| fix | not with | because |
|---|---|---|
| managed spot | warm pool, instance groups, training plan, serverless | SageMaker refuses it |
| managed spot | several p4, p5 or p6 instances | all must be had, and kept, at once |
| managed spot | a Savings Plan | spot takes usage from a commitment that is paid anyway |
| early stopping of a tuning job | Hyperband | it stops early itself, and takes no `Auto` |
| another type | a higher hourly rate: `resize` offers none | no later advice reverses it |

Sources: SageMaker guide on warm pools and managed spot; automatic model tuning, early stopping;
EC2 user guide, Capacity Blocks for ML, which reserve "highly sought-after GPU instances" (p4d, p5
and later).
"""

from __future__ import annotations

import re

from sageaudit.domain.bill.change import Change, SetPurchase, SetType
from sageaudit.domain.bill.finding import Bucket, Confidence, Found
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.prices.market import Market
from sageaudit.structs import replace

_SCARCE = re.compile(r"ml\.p[4-9]")
HYPERBAND = "Hyperband"
_MAY_NOT_SELL = "a possible saving, as SageMaker may not sell the type here"
_ESTIMATED_DOLLARS = "Its dollars rest on an estimated rate."


def spot_refused(job: Job) -> str | None:
    """Why a job cannot run on managed spot, or None."""
    reasons = (
        (job.purchase is Purchase.SPOT, "it ran on managed spot"),
        (job.purchase is Purchase.TRAINING_PLAN, "its training plan is prepaid"),
        (job.purchase is Purchase.SERVERLESS, "it is serverless"),
        (
            len(job.groups) > 1 or any(group.name for group in job.groups),
            "managed spot does not take instance groups",
        ),
        (job.warm_pool is not None, "managed spot does not keep a warm pool"),
    )
    return next((why for applies, why in reasons if applies), None)


def spot_scarce(job: Job) -> str | None:
    """Why there is no hope of spot capacity on which dollars could rest, or None."""
    several = (job.instance_count or 0) > 1
    scarce = [g.instance_type for g in job.groups if _SCARCE.match(g.instance_type)]
    if not several or not scarce:
        return None
    return f"spot capacity for several {scarce[0]} at once cannot be counted on"


def early_stopping_refused(strategy: str | None) -> str | None:
    """Why a tuning job cannot take TrainingJobEarlyStoppingType Auto, or None."""
    return "Hyperband stops trials early itself" if strategy == HYPERBAND else None


def type_fixed(job: Job) -> str | None:
    """Why no other type is searched for (several types, or a prepaid one), or None."""
    if len({group.instance_type for group in job.groups}) > 1:
        return "its instances are of several types"
    plan = job.purchase is Purchase.TRAINING_PLAN
    return "its training plan is prepaid, for this type" if plan else None


def refused(change: Change, job: Job, *, savings_plan: bool) -> str | None:
    """Why a change's dollars are not counted for this job, or None."""
    if not isinstance(change, SetPurchase) or change.purchase is not Purchase.SPOT:
        return None
    if savings_plan:
        return "spot takes usage from a Savings Plan that is paid used or not"
    return spot_refused(job)


def possible_at_most(found: Found, job: Job, market: Market) -> Found:
    """The same advice; possible at most where the rate of its new type is an estimate, or only a
    trial says how long it takes.
    """
    how = estimate_of(found, job, market)
    trial = isinstance(found.change, SetType) and found.change.trial
    if how is None and not trial:
        return found
    estimate = f"{how}: {_MAY_NOT_SELL}." if how else None
    caution = " ".join(filter(None, (found.caution, estimate)))
    if not found.bucket.counted:
        return replace(found, caution=caution)
    return replace(found, confidence=Confidence.HEURISTIC, bucket=Bucket.POSSIBLE, caution=caution)


def estimate_of(found: Found, job: Job, market: Market) -> str | None:
    """How the rate of a finding's new type was estimated; None for a known one, and without."""
    if not isinstance(found.change, SetType):
        return None
    rate = market.hourly(job.region, job.kind, found.change.instance_type)
    return None if rate is None else rate.estimated


def marked(found: Found) -> Found:
    """The same finding, which says that the dollars in its text and evidence, if any, are about."""
    if "$" in found.summary or any("usd" in key.split("_") for key in found.evidence):
        return replace(found, caution=" ".join(filter(None, (found.caution, _ESTIMATED_DOLLARS))))
    return found
