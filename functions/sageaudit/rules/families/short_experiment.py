"""An expensive type is started again and again for minutes of work.

What it checks: A completed training run on instances of $3 an hour or more together, with at least
    5 runs of its family on the same instances within 7 days, this one included. Their median
    Training phase is under 10 minutes, and so is that of this run.
Why it costs: Start, image pull and data copy are paid at the high rate for minutes of work. Most
    such runs test code, which does not need the size that the real run needs.
Saving: Possible, without a figure: how long the work takes on a small type is not known, and local
    mode costs what its machine costs. The evidence has what the runs cost together, and how many
    times as long the small type may take until it costs the same.
When it is wrong: A short job that is not a test, such as a nightly update that needs the memory or
    must end in minutes. A fault that appears only on several GPUs or instances.
What to do: Local mode of the SageMaker Python SDK for client and code errors: the same container on
    your own machine. Then the cheapest type of a known price with the same GPU model (a CPU
    type: of the same family), and the expensive type for the real run.
Sources: AWS blog "Analyze Amazon SageMaker spend", part 4: test locally, in local mode. The
    thresholds are our choice.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from statistics import median

from sageaudit.domain.bill.type_rate import PricedType, cluster_usd_per_hour, small_type
from sageaudit.domain.job.job import InstanceGroup
from sageaudit.rules import api

WORK_BELOW = api.Threshold("work_below_s", 600, "seconds", "minutes of work")
RATE_FROM = api.Threshold("rate_from_usd", 3, "USD per hour", "twice the small GPU types")
RUNS_FROM = api.Threshold("runs_from", 5, "runs", "again and again")
WITHIN = api.Threshold("within_days", 7, "days", "a week of tests")
_WORK = "Training"


def _not_hourly(case: api.FamilyCase) -> str | None:
    other = {api.Purchase.TRAINING_PLAN, api.Purchase.SERVERLESS}
    return "it is not billed by the hour" if case.job.purchase in other else None


@api.rule(
    id="SA704",
    scope=api.FamilyCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(WORK_BELOW, RATE_FROM, RUNS_FROM, WITHIN),
    not_applicable=(api.not_completed, api.has_parent, _not_hourly, api.mixed_types),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Judges this run first: most are long, or cheap, and need no history."""
    job = case.job
    has_work = any(phase.name == _WORK for phase in job.phases)
    work_s = job.phase_s(_WORK) if has_work else None
    if work_s is None:
        return api.Unknown("phases_missing", "how long Training took is not known")
    if work_s >= case.limit(WORK_BELOW):
        return api.Clear()
    usd_per_hour = cluster_usd_per_hour(job, case.market)
    if usd_per_hour is None:
        return api.Unknown("price_unknown", "no rate is known for its type")
    if usd_per_hour < case.limit(RATE_FROM):
        return api.Clear()
    if case.earlier is None:
        return api.HISTORY_UNREAD
    alike = _alike(case)
    works_s = [work_s, *(run.facts.phase_s[_WORK] for run in alike)]
    usual_s = median(works_s)
    if len(works_s) < case.limit(RUNS_FROM) or usual_s >= case.limit(WORK_BELOW):
        return api.Clear()
    small = small_type(job, case.market, Decimal(str(case.limit(RATE_FROM))))
    return api.possible(
        f"{len(works_s)} runs in {case.limit(WITHIN):.0f} days trained {api.duration(usual_s)} "
        f"each (median) on {job.instances}, ${usd_per_hour:,.2f} an hour.",
        {
            "runs": len(works_s),
            "work_median_s": usual_s,
            "work_s": work_s,
            "rate_usd_per_hour": usd_per_hour,
            "runs_usd": api.total([case.bill.total_usd, *(run.total_usd for run in alike)]),
            "small_type": small.name if small else None,
            "small_type_break_even": round(usd_per_hour / small.hourly_usd, 2) if small else None,
        },
        fix=_fix(job.groups[0], small),
        caution=(
            "How long the work takes on a small type, or what local mode costs, is not "
            "known. Local mode of the SageMaker Python SDK finds most faults at once."
        ),
    )


def _alike(case: api.FamilyCase) -> list[api.EarlierRun]:
    """The earlier runs of these days on the same instances whose Training is known."""
    ended_at = case.job.ended_at
    if ended_at is None:
        return []
    days = timedelta(days=case.limit(WITHIN))
    return [
        run
        for run in case.runs_alike
        if ended_at - run.ended_at <= days and run.facts.phase_s.get(_WORK) is not None
    ]


def _fix(group: InstanceGroup, small: PricedType | None) -> tuple[api.Parameter, ...]:
    if small is None:
        return ()
    fix = [api.Parameter("ResourceConfig.InstanceType", group.instance_type, small.name)]
    if group.count > 1:
        fix.append(api.Parameter("ResourceConfig.InstanceCount", group.count, 1))
    return tuple(fix)
