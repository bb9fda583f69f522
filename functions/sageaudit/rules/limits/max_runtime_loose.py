"""The run-time limit would let a hung job cost a lot.

## What it checks
MaxRuntimeInSeconds x rate is above $200, and the limit is at least ten times what the run took, or,
once 5 runs of its family are known with this one, ten times what the longest of them took.

## Why it costs
Nothing yet. A job that hangs is billed until its limit; the default is one day, the maximum 28.

## Saving
None: a guard-rail. It is stored and shown, and never posted to chat.

## When it is wrong
The next run of the same job is known to be much longer. Runs that a limit cut off count as long as
they lasted.

## What to do
Set the limit to three times the longest known run, in whole hours. With a RetryStrategy it covers
all attempts together.

## Sources
Jobstats: time efficiency of 10% or less is red. The $200 are our choice: a missed night.
"""

from __future__ import annotations

import math
from decimal import Decimal

from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.bill.type_rate import cluster_usd_per_hour
from sageaudit.domain.job.failure import LIMIT_REACHED
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import FamilyCase, Threshold, rule

EXPOSED_FROM = Threshold(
    "exposed_from_usd", 200, "USD at the limit", "a sum that would hurt", "our choice"
)
TIMES_THE_RUN = Threshold(
    "times_the_run", 10, "limit / run", "time efficiency of 10% or less is red", "Jobstats"
)
RUNS_FROM = Threshold("runs_from", 5, "runs", "fewer teach no longest run", "our choice")
_SUGGESTED_TIMES = 3


def _excuse(case: FamilyCase) -> str | None:
    job = case.job
    if job.max_runtime_s is None:
        return "no MaxRuntimeInSeconds is recorded"
    if job.free or job.purchase in {Purchase.SERVERLESS, Purchase.TRAINING_PLAN}:
        return "its hours are not billed at an hourly rate"
    return "the run did not complete" if job.status != "Completed" else None


@rule(
    id="SA601",
    scope=FamilyCase,
    kinds={JobKind.TRAINING, JobKind.PROCESSING},
    thresholds=(EXPOSED_FROM, TIMES_THE_RUN, RUNS_FROM),
    excuse=_excuse,
    in_chat=False,
)
def check(case: FamilyCase) -> Outcome:
    """Compares the limit with the run, or with the family's longest, and prices it."""
    job, limit_s = case.job, case.job.max_runtime_s or 0
    if not job.elapsed_s:
        return Unknown("times_missing", "how long the run took is not known")
    lasted_s = [job.elapsed_s, *_lasted_s(case)]
    learnt = len(lasted_s) >= case.limit(RUNS_FROM)
    longest_s = max(lasted_s) if learnt else job.elapsed_s
    suggested_s = math.ceil(_SUGGESTED_TIMES * longest_s / 3600) * 3600
    loose = limit_s >= case.limit(TIMES_THE_RUN) * float(longest_s)
    if not loose or suggested_s >= limit_s:
        return Clear()
    hourly_usd = cluster_usd_per_hour(job, case.market)
    if hourly_usd is None:
        return Unknown("price_unknown", "no rate is known to price the limit")
    exposed_usd = hourly_usd * limit_s / 3600
    if exposed_usd <= case.limit(EXPOSED_FROM):
        return Clear()
    whose = f"the longest of {len(lasted_s)} runs" if learnt else "this run"
    return Found(
        confidence=Confidence.MEASURED,
        bucket=Bucket.NONE,
        summary=(
            f"A hung run would be billed up to ${exposed_usd:,.0f}: the limit is "
            f"{limit_s / 3600:.1f} h, {whose} took {longest_s / 3600:.1f} h."
        ),
        evidence={
            "max_runtime_s": limit_s,
            "elapsed_s": job.elapsed_s,
            "longest_s": longest_s,
            "runs": len(lasted_s) if learnt else 1,
            "exposed_usd": round(exposed_usd, 2),
        },
        fix=(Parameter("StoppingCondition.MaxRuntimeInSeconds", limit_s, suggested_s),),
        caution="A guard-rail: nothing was spent for it, so it has no saving.",
    )


def _lasted_s(case: FamilyCase) -> list[Decimal]:
    """Of the earlier runs that needed their time: completed ones, and those that a limit cut."""
    return [
        run.facts.elapsed_s
        for run in case.runs
        if run.facts.elapsed_s
        and (run.status == "Completed" or run.facts.reason_class == LIMIT_REACHED)
    ]
