"""What a warm pool may cost when no other job takes it.

What it checks: KeepAlivePeriodInSeconds, times the rate of the instances, is above $5.
Why it costs: The instances are kept and billed after the job, at the rate of the job, until
    another job takes them or the period ends. The last job of a chain always pays all of it.
Saving: None is counted: whether another job follows is not known. The most that it can cost is
    shown.
When it is wrong: Where jobs follow within minutes, the pool saves each of them its start.
What to do: The shortest period that covers the pause between two jobs. With the family's history,
    warm-pool-idle gives a number after the run.
Sources: SageMaker guide, managed warm pools: billed for the time that resources are retained. The
    $5 are our choice.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.rules import api

_KEEP = "ResourceConfig.KeepAlivePeriodInSeconds"
MIN_COST = api.Threshold("min_cost_usd", 5, "USD for the whole period", "worth a look")


@api.rule(
    id="SA408",
    scope=api.RequestCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_COST,),
    request_severity=api.Severity.LOW,
    required_parameters=(_KEEP, *api.TYPE_PARAMETERS),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Period x rate."""
    keep_s = case.request.value(_KEEP)
    if not isinstance(keep_s, int) or keep_s <= 0 or case.job.purchase is api.Purchase.SPOT:
        return api.Clear()
    if case.cost.hourly_usd is None:
        return api.Unknown("price_unknown", "no rate is known to price the warm pool")
    usd = case.cost.hourly_usd * keep_s / 3600
    if usd <= Decimal(str(case.threshold(MIN_COST))):
        return api.Clear()
    return api.measured_fact(
        f"The warm pool is kept for {api.duration_text(Decimal(keep_s))} after the job: up to "
        f"${usd:,.2f} where no other job takes it.",
        {"keep_alive_s": keep_s, "exposed_usd": round(usd, 2)},
        fix=(api.Parameter(_KEEP, keep_s, "<the pause before the next job>"),),
        caution="Only a following job with the same instances, role and network takes it.",
    )
