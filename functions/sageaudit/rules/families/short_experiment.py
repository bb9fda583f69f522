"""A dear type is started again and again for minutes of work.

## What it checks
A completed training run on instances of $3 an hour or more together, with at least 5 runs of its
family on the same instances within 7 days, this one included. Their median Training phase is under
10 minutes, and so is this one's.

## Why it costs
Start, image pull and data copy are paid at the dear rate for minutes of work; most such runs try
out code, which does not need the size that the real run needs.

## Saving
Possible, without a figure: how long the work takes on a small type is not known, and in local mode
it costs what that machine costs. The evidence has what the runs cost together, and how many times
as long the small type may take until it costs the same.

## When it is wrong
A short job that is finished work, such as a nightly update which needs the memory or must be done
in minutes. A fault that shows only on several GPUs or instances.

## What to do
Local mode of the SageMaker Python SDK for client and code errors: the same container on the machine
at hand. Then the smallest type with the same GPU model (a CPU type: of the same family), and the
dear one for the real run.

## Sources
AWS blog "Analyze Amazon SageMaker spend", part 4: test locally, in local mode. The thresholds are
our choice.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from statistics import median

from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.bill.type_rate import SmallType, cluster_usd_per_hour, small_type
from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import FamilyCase, Threshold, rule

WORK_BELOW = Threshold("work_below_s", 600, "seconds", "minutes of work", "our choice")
RATE_FROM = Threshold("rate_from_usd", 3, "USD per hour", "twice the small GPU types", "our choice")
RUNS_FROM = Threshold("runs_from", 5, "runs", "again and again", "our choice")
WITHIN = Threshold("within_days", 7, "days", "a week of trying out", "our choice")
_WORK = "Training"
_PREPAID = frozenset({Purchase.TRAINING_PLAN, Purchase.SERVERLESS})


def _excuse(case: FamilyCase) -> str | None:
    job = case.job
    if job.status != "Completed":
        return "the run did not complete"
    if job.parent is not None:
        return f"its {job.parent.kind.value} starts it"
    if job.purchase in _PREPAID:
        return "it is not billed by the hour"
    return "a mixed cluster has no one type" if len(job.groups) > 1 else None


@rule(
    id="SA704",
    scope=FamilyCase,
    kinds={JobKind.TRAINING},
    thresholds=(WORK_BELOW, RATE_FROM, RUNS_FROM, WITHIN),
    excuse=_excuse,
)
def check(case: FamilyCase) -> Outcome:
    """Judges this run first: most are long, or cheap, and need no history."""
    job = case.job
    work_s = job.phase_s(_WORK) if any(p.name == _WORK for p in job.phases) else None
    if work_s is None:
        return Unknown("phases_missing", "how long Training took is not known")
    if work_s >= case.limit(WORK_BELOW):
        return Clear()
    rate_usd = cluster_usd_per_hour(job, case.market)
    if rate_usd is None:
        return Unknown("price_unknown", "no rate is known for its type")
    if rate_usd < case.limit(RATE_FROM):
        return Clear()
    if case.earlier is None:
        return Unknown("history_unread", "the earlier runs of its family were not read")
    alike = _alike(case, job.groups[0])
    works_s = [work_s, *(seconds for seconds, _ in alike)]
    usual_s = median(works_s)
    if len(works_s) < case.limit(RUNS_FROM) or usual_s >= case.limit(WORK_BELOW):
        return Clear()
    bills = [case.bill.total_usd, *(usd for _, usd in alike)]
    known = [usd for usd in bills if usd is not None]
    small = small_type(job, case.market, Decimal(str(case.limit(RATE_FROM))))
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=(
            f"{len(works_s)} runs in {case.limit(WITHIN):.0f} days trained {usual_s / 60:.1f} "
            f"minutes each (median) on {job.instances}, ${rate_usd:,.2f} an hour."
        ),
        evidence={
            "runs": len(works_s),
            "work_median_s": usual_s,
            "work_s": work_s,
            "rate_usd_per_hour": rate_usd,
            "runs_usd": sum(known, Decimal(0)) if len(known) == len(bills) else None,
            "small_type": small.name if small else None,
            "small_type_break_even": (round(rate_usd / small.hourly_usd, 2) if small else None),
        },
        fix=_fix(job.groups[0], small),
        caution=(
            "No figure: how long the work takes on a small type, or what local mode costs, is not "
            "known. Local mode of the SageMaker Python SDK finds most faults at once."
        ),
    )


def _alike(case: FamilyCase, group: InstanceGroup) -> list[tuple[Decimal, Decimal | None]]:
    """Training seconds and dollars of the earlier runs on the same instances, of these days."""
    ended_at = case.job.ended_at
    if ended_at is None:
        return []
    days = timedelta(days=case.limit(WITHIN))
    return [
        (work_s, run.total_usd)
        for run in case.runs
        if ended_at - run.ended_at <= days
        and run.facts.instance_type == group.instance_type
        and run.facts.instance_count == group.count
        and (work_s := run.facts.phase_s.get(_WORK)) is not None
    ]


def _fix(group: InstanceGroup, small: SmallType | None) -> tuple[Parameter, ...]:
    if small is None:
        return ()
    fix = [Parameter("ResourceConfig.InstanceType", group.instance_type, small.name)]
    if group.count > 1:
        fix.append(Parameter("ResourceConfig.InstanceCount", group.count, 1))
    return tuple(fix)
