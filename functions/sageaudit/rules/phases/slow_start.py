"""Short runs of a family wait for their instances almost as long as they work.

What it checks: A completed on-demand run under 30 minutes, with at least 4 earlier completed runs
    of its family on the same instances. Its Starting and Pending, and the median over all these
    runs, are at least 50% of the billed time and over a minute. At least half of the runs were
    requested within an hour after the run before had ended.
Why it costs: Starting and Pending are not billed. The wait costs people's time.
Saving: None: a warm pool is billed at the full rate while it waits, so it saves no dollars. The
    finding compares the minutes that a pool would have saved with its bill between these runs.
When it is wrong: Nobody waits for the runs (a pipeline at night). If later runs come further apart,
    the pool waits in vain, which warm-pool-idle reports. A family that had a pool before does not
    get this advice.
What to do: KeepAlivePeriodInSeconds just above the usual gap; the runs must have the same role,
    type, count, volume and network. The account's quota for warm pools is 0 until it is raised. For
    tests: local mode.
Sources: AWS blog "Analyze Amazon SageMaker spend", part 4: charged phases and keep-alive. SageMaker
    guide, warm pools: at most 3,600 s. Recorded jobs wait 39 to 239 s in Starting.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from statistics import median

from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.compatibility import warm_pool_refused
from sageaudit.domain.job.parts import WarmPool
from sageaudit.rules import api
from sageaudit.rules.phases.warm_pool_model import (
    PoolUse,
    RunTimes,
    model_warm_pool,
    times_of,
    times_of_earlier,
)

SHARE_FROM = api.Threshold(
    "share_from_percent", 50, "percent of billed seconds", "a third of the time to a result"
)
OVER = api.Threshold("over_s", 60, "seconds", "a shorter wait disturbs nobody")
SHORT_BELOW = api.Threshold(
    "short_below_s", 1800, "seconds", "from there managed spot is advised", "spot-not-used"
)
GAP_AT_MOST = api.Threshold(
    "gap_at_most_s", 3600, "seconds", "the longest keep-alive", "SageMaker guide, warm pools"
)
SERVED_FROM = api.Threshold(
    "served_from_percent", 50, "percent of runs", "else the pool mostly waits in vain"
)
_MIN_EARLIER = 4


def _pool_refused(case: api.FamilyCase) -> str | None:
    return warm_pool_refused(case.job)


def _kept_pool(case: api.FamilyCase) -> str | None:
    kept = any(run.facts.retained_s is not None for run in case.runs)
    return "an earlier run of its family kept a warm pool" if kept else None


def _long(case: api.FamilyCase) -> str | None:
    elapsed_s = case.job.elapsed_s
    long = elapsed_s is not None and elapsed_s >= case.limit(SHORT_BELOW)
    return f"it ran {case.limit(SHORT_BELOW) / 60:.0f} minutes or longer" if long else None


@api.rule(
    id="SA104",
    scope=api.FamilyCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(SHARE_FROM, OVER, SHORT_BELOW, GAP_AT_MOST, SERVED_FROM),
    min_earlier=_MIN_EARLIER,
    not_applicable=(api.not_completed, api.has_parent, _pool_refused, _kept_pool, _long),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Compares waiting with work over the family's runs on the same instances."""
    this = times_of(case.job)
    if this is None:
        reason = "when the run was requested, or how long it waited, is not known"
        return api.Unknown("times_missing", reason)
    runs = [this, *_alike(case)]
    if len(runs) <= _MIN_EARLIER:
        have = len(runs) - 1
        reason = f"{have} earlier runs on the same instances, {_MIN_EARLIER} needed"
        return api.Unknown("too_few_runs", reason)
    waited_s = median(run.waited_s for run in runs)
    worked_s = median(run.worked_s for run in runs)
    pool = model_warm_pool(runs, Decimal(str(case.limit(GAP_AT_MOST))))
    slow = _slow(case, this.waited_s, this.worked_s) and _slow(case, waited_s, worked_s)
    if not slow or pool is None or pool.served_percent < case.limit(SERVED_FROM):
        return api.Clear()
    retained_usd = _retained_usd(case, pool)
    cost = "an unknown sum" if retained_usd is None else f"about ${retained_usd:.2f}"
    return api.advice(
        f"{len(runs)} runs each waited {api.duration(waited_s)} (median) for "
        f"{api.duration(worked_s)} of billed time: a warm pool saves at most that wait and costs "
        f"{cost} a run.",
        {
            "runs": len(runs),
            "waited_s": waited_s,
            "worked_s": worked_s,
            "minutes_saved_a_run": round(waited_s / 60, 1),
            "served_percent": round(pool.served_percent),
            "retained_s_a_run": round(pool.retained_s),
            "retained_usd_a_run": None if retained_usd is None else round(retained_usd, 4),
        },
        fix=(api.Parameter("ResourceConfig.KeepAlivePeriodInSeconds", None, pool.keep_s),),
        caution=(
            "Starting is not billed and a waiting pool is, so a pool buys time, not money. "
            "The quota for warm pools is 0 until it is raised."
        ),
    )


def _slow(case: api.FamilyCase, waited_s: Decimal, worked_s: Decimal) -> bool:
    percent = 100 * waited_s / worked_s
    return waited_s > case.limit(OVER) and percent >= case.limit(SHARE_FROM)


def _alike(case: api.FamilyCase) -> list[RunTimes]:
    """The completed earlier runs on the same instances whose times are known."""
    completed = (run for run in case.runs_alike if run.status == "Completed")
    return [times for times in map(times_of_earlier, completed) if times is not None]


def _retained_usd(case: api.FamilyCase, pool: PoolUse) -> Decimal | None:
    """The run billed again with a pool that was retained this long, less the run's bill."""
    kept = WarmPool("Terminated", pool.keep_s, pool.retained_s)
    after = bill(replace(case.job, warm_pool=kept), case.market).total_usd
    before = case.bill.total_usd
    return None if after is None or before is None else after - before
