"""The request's warm pool may cost much if no other job uses it.

What it checks: KeepAlivePeriodInSeconds times the rate of the instances is above $5.
Why it costs: After the job, its instances are kept and billed at the job's rate until another job
    uses them or the period ends. The last job of a chain always pays for the whole period.
Saving: None: it is not known whether another job follows. The finding shows the most that the pool
    can cost.
When it is wrong: If jobs follow one another within minutes, the pool saves each of them its start.
What to do: Set the shortest period that covers the pause between two jobs. After a run,
    warm-pool-idle computes it from the family's history.
Sources: SageMaker guide, managed warm pools: billed for the time that resources are retained. The
    $5 are our choice.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.rules import api

_KEEP = "ResourceConfig.KeepAlivePeriodInSeconds"
MIN_COST = api.Threshold(
    "min_cost_usd", 5, "USD for the whole period", "less is not worth a finding"
)


@api.rule(
    id="SA408",
    scope=api.RequestCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_COST,),
    request_severity=api.Severity.LOW,
    required_parameters=(_KEEP, "EnableManagedSpotTraining", *api.TYPE_PARAMETERS),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Multiplies the keep-alive period by the rate of the instances."""
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
        f"${usd:,.2f} if no other job uses it.",
        {"keep_alive_s": keep_s, "exposed_usd": round(usd, 2)},
        fix=(api.Parameter(_KEEP, keep_s, "<the pause before the next job>"),),
        caution="Only a job with the same instances, role and network can use it.",
    )
