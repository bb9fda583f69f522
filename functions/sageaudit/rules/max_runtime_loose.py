"""The run-time limit would let a hung job cost a lot.

## What it checks
MaxRuntimeInSeconds x rate is above $200, and the limit is at least ten times what the run took.

## Why it costs
Nothing yet. A job that hangs is billed until its limit; the default is one day, the maximum 28.

## Saving
None: a guard-rail. It is stored and shown, and never posted to chat.

## When it is wrong
The next run of the same job is known to be much longer.

## What to do
Set the limit to three times the run, in whole hours.

## Sources
Jobstats: time efficiency of 10% or less is red. The $200 are our choice: a missed night.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job import Purchase
from sageaudit.domain.market import Component
from sageaudit.domain.ref import JobKind
from sageaudit.rules.card import JobCase, Threshold, rule

EXPOSED_FROM = Threshold(
    "exposed_from_usd", 200, "USD at the limit", "a sum that would hurt", "our choice"
)
TIMES_THE_RUN = Threshold(
    "times_the_run", 10, "limit / run", "time efficiency of 10% or less is red", "Jobstats"
)
_SUGGESTED_TIMES = 3


def _excuse(case: JobCase) -> str | None:
    job = case.job
    if job.max_runtime_s is None:
        return "no MaxRuntimeInSeconds is recorded"
    if job.free or job.purchase in {Purchase.SERVERLESS, Purchase.TRAINING_PLAN}:
        return "its hours are not billed at an hourly rate"
    return "the run did not complete" if job.status != "Completed" else None


@rule(
    id="SA601",
    scope=JobCase,
    kinds={JobKind.TRAINING, JobKind.PROCESSING},
    thresholds=(EXPOSED_FROM, TIMES_THE_RUN),
    excuse=_excuse,
    in_chat=False,
)
def check(case: JobCase) -> Outcome:
    """Compares the limit with the run and prices it."""
    job, limit_s = case.job, case.job.max_runtime_s or 0
    if not job.elapsed_s:
        return Unknown("times_missing", "how long the run took is not known")
    if limit_s < case.limit(TIMES_THE_RUN) * float(job.elapsed_s):
        return Clear()
    rates = [
        case.market.prices.hourly(job.region, Component.of(job.kind), group.instance_type)
        for group in job.groups
        if job.region
    ]
    if not rates or any(rate is None for rate in rates):
        return Unknown("price_unknown", "no rate is known to price the limit")
    hourly = sum(
        (rate.usd * group.count for rate, group in zip(rates, job.groups, strict=True) if rate),
        Decimal(0),
    )
    exposed_usd = hourly * limit_s / 3600
    if exposed_usd <= case.limit(EXPOSED_FROM):
        return Clear()
    hours = -(-_SUGGESTED_TIMES * int(job.elapsed_s) // 3600)
    return Found(
        confidence=Confidence.MEASURED,
        bucket=Bucket.NONE,
        summary=(
            f"A hung run would be billed up to ${exposed_usd:,.0f}: the limit is "
            f"{limit_s / 3600:.1f} h, this run took {job.elapsed_s / 3600:.1f} h."
        ),
        evidence={
            "max_runtime_s": limit_s,
            "elapsed_s": job.elapsed_s,
            "exposed_usd": round(exposed_usd, 2),
        },
        fix=(Parameter("StoppingCondition.MaxRuntimeInSeconds", limit_s, hours * 3600),),
        caution="A guard-rail: nothing was spent for it, so it has no saving.",
    )
