"""Short runs of a family wait for their instances almost as long as they work.

## What it checks
A completed on-demand run under 30 minutes, with at least 4 earlier completed runs of its family on
the same instances. Its Starting and Pending, and the median of all of them, are at least 50% of the
billed time and over a minute, and at least half of the runs were asked for within an hour after the
one before had ended.

## Why it costs
Nothing on the bill: Starting and Pending are not billed. It costs people's time.

## Saving
None, and never positive dollars: a warm pool is billed at the full rate while it waits. The finding
sets the minutes that it would have saved beside the dollars that it would have retained between
these runs, billed by the same function as the run.

## When it is wrong
Nobody waits for the runs (a pipeline at night). The runs of tomorrow come further apart: then the
pool waits for nothing, which warm-pool-idle will show. A family that kept a pool once gets no such
advice again.

## What to do
KeepAlivePeriodInSeconds just above the usual gap; the runs must agree in role, type, count, volume
and network. The account's quota for warm pools is 0 until it is raised. For tests: local mode.

## Sources
AWS blog "Analyze Amazon SageMaker spend", part 4: charged phases and keep-alive. SageMaker guide,
warm pools: at most 3,600 s. Recorded jobs wait 39 to 239 s in Starting.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from statistics import median

from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.compatibility import warm_pool_refused
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.job import WarmPool
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import FamilyCase, Threshold, rule
from sageaudit.rules.phases.warm_pool_model import (
    Pool,
    Span,
    model_warm_pool,
    span_of,
    span_of_earlier,
)

SHARE_FROM = Threshold(
    "share_from_percent",
    50,
    "percent of billed seconds",
    "a third of the time to a result",
    "our choice",
)
OVER = Threshold("over_s", 60, "seconds", "shorter waits are nobody's problem", "our choice")
SHORT_BELOW = Threshold(
    "short_below_s", 1800, "seconds", "from there managed spot is advised", "spot-not-used"
)
GAP_AT_MOST = Threshold(
    "gap_at_most_s", 3600, "seconds", "the longest keep-alive", "SageMaker guide, warm pools"
)
SERVED_FROM = Threshold(
    "served_from_percent", 50, "percent of runs", "else the pool mostly waits in vain", "our choice"
)
_MIN_EARLIER = 4


def _excuse(case: FamilyCase) -> str | None:
    job = case.job
    if job.status != "Completed":
        return "the run did not complete"
    if job.parent is not None:
        return f"its {job.parent.kind.value} starts it"
    if why := warm_pool_refused(job):
        return why
    if any(run.facts.retained_s is not None for run in case.runs):
        return "an earlier run of its family kept a warm pool"
    long = job.elapsed_s is not None and job.elapsed_s >= case.limit(SHORT_BELOW)
    return "it is no short run" if long else None


@rule(
    id="SA104",
    scope=FamilyCase,
    kinds={JobKind.TRAINING},
    thresholds=(SHARE_FROM, OVER, SHORT_BELOW, GAP_AT_MOST, SERVED_FROM),
    min_earlier=_MIN_EARLIER,
    excuse=_excuse,
)
def check(case: FamilyCase) -> Outcome:
    """Compares waiting with work over the family's runs on the same instances."""
    this = span_of(case.job)
    if this is None:
        return Unknown("times_missing", "when the run was asked for, or how long it waited")
    spans = [this, *_like(case)]
    if len(spans) <= _MIN_EARLIER:
        have = len(spans) - 1
        return Unknown("too_few_runs", f"{have} earlier runs like it, {_MIN_EARLIER} needed")
    waited_s = median(span.waited_s for span in spans)
    worked_s = median(span.worked_s for span in spans)
    usual = replace(this, waited_s=waited_s, worked_s=worked_s)
    pool = model_warm_pool(spans, Decimal(str(case.limit(GAP_AT_MOST))))
    if not (_slow(case, this) and _slow(case, usual)) or pool is None:
        return Clear()
    if pool.served_percent < case.limit(SERVED_FROM):
        return Clear()
    retained_usd = _retained_usd(case, pool)
    cost = "an unknown sum" if retained_usd is None else f"about ${retained_usd:.2f}"
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.NONE,
        summary=(
            f"{len(spans)} runs waited {waited_s / 60:.1f} minutes each for {worked_s / 60:.1f} "
            f"billed ones: a warm pool would have saved at most that wait, for {cost} a run."
        ),
        evidence={
            "runs": len(spans),
            "waited_s": waited_s,
            "worked_s": worked_s,
            "minutes_saved_a_run": round(waited_s / 60, 1),
            "served_percent": round(pool.served_percent),
            "retained_s_a_run": round(pool.retained_s),
            "retained_usd_a_run": None if retained_usd is None else round(retained_usd, 4),
        },
        fix=(Parameter("ResourceConfig.KeepAlivePeriodInSeconds", None, pool.keep_s),),
        caution=(
            "No figure: Starting is not billed and a waiting pool is, so it buys time, not money. "
            "The quota for warm pools is 0 until it is raised."
        ),
    )


def _slow(case: FamilyCase, span: Span) -> bool:
    percent = 100 * span.waited_s / span.worked_s
    return span.waited_s > case.limit(OVER) and percent >= case.limit(SHARE_FROM)


def _like(case: FamilyCase) -> list[Span]:
    """The completed earlier runs on the same instances whose times are known."""
    instances = {(group.instance_type, group.count) for group in case.job.groups}
    spans = [
        span_of_earlier(run)
        for run in case.runs
        if run.status == "Completed"
        and (run.facts.instance_type, run.facts.instance_count) in instances
    ]
    return [span for span in spans if span is not None]


def _retained_usd(case: FamilyCase, pool: Pool) -> Decimal | None:
    """The run billed again with a pool that was retained so long, less the run's bill."""
    kept = WarmPool("Terminated", pool.keep_s, pool.retained_s)
    after = bill(replace(case.job, warm_pool=kept), case.market).total_usd
    before = case.bill.total_usd
    return None if after is None or before is None else after - before
