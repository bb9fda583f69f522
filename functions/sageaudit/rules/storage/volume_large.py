"""The volumes of the request cost more than its instances.

What it checks: If the job runs to its limit, its volumes cost at least $10 and more than its
    instances.
Why it costs: A volume is billed by its size for as long as the job runs, used or not.
Saving: None is counted: how much the job needs is not known before the run. The most that the
    volumes can cost is shown.
When it is wrong: Data that fills such volumes, worked through by small instances.
What to do: VolumeSizeInGB of about twice the input; FastFile mode needs no room for it. After a
    run, volume-oversized says how much was used.
Sources: price list of SageMaker, ML storage by GB-month. The $10 are our choice.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.rules import api

MIN_COST = api.Threshold("min_cost_usd", 10, "USD for the volumes", "worth a look")


@api.rule(
    id="SA505",
    scope=api.RequestCase,
    kinds=set(api.VOLUME_PATHS),
    thresholds=(MIN_COST,),
    request_severity=api.Severity.MEDIUM,
    required_parameters=(*api.VOLUME_PATHS.values(), *api.TYPE_PARAMETERS),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Compares two lines of the bill at the limit."""
    billed = case.cost.bill_at_limit
    if billed is None or billed.compute_usd is None:
        return api.Unknown("cost_unknown", case.cost.unknown_because or "no rate is known")
    volumes = [line.usd for line in billed.lines if line.item == "storage" and line.usd is not None]
    usd = sum(volumes, Decimal(0))
    if usd < Decimal(str(case.threshold(MIN_COST))) or usd <= billed.compute_usd:
        return api.Clear()
    path = api.VOLUME_PATHS[case.job.kind]
    return api.measured_fact(
        f"{case.job.volume_gb} GB an instance cost up to ${usd:,.2f}, more than the instances "
        f"themselves (${billed.compute_usd:,.2f}).",
        {"volume_gb": case.job.volume_gb, "volumes_usd": round(usd, 2)},
        fix=(api.Parameter(path, case.job.volume_gb, "<twice the input>"),),
        caution="How much room the job needs is not known before the run.",
    )
