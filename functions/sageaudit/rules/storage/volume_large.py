"""The volumes of the request cost more than its instances.

What it checks: If the job runs until its limit, its volumes cost at least $10, and more than its
    instances.
Why it costs: A volume is billed by its size for as long as the job runs, whether it is used or not.
Saving: None: the space that the job needs is not known before the run. The finding shows the most
    that the volumes can cost.
When it is wrong: The data may fill such volumes while small instances process it.
What to do: Set VolumeSizeInGB to about twice the input, or use FastFile mode, which needs no space
    for it. After a run, volume-oversized shows how much was used.
Sources: SageMaker's price list, ML storage by GB-month. The $10 are our choice.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.rules import api

MIN_COST = api.Threshold("min_cost_usd", 10, "USD for the volumes", "less is not worth a finding")


@api.rule(
    id="SA505",
    scope=api.RequestCase,
    kinds=set(api.VOLUME_PATHS),
    thresholds=(MIN_COST,),
    request_severity=api.Severity.MEDIUM,
    required_parameters=(*api.VOLUME_PATHS.values(), *api.TYPE_PARAMETERS),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Compares the cost of the volumes with that of the instances, both at the request's limit."""
    bill = case.cost.bill_at_limit
    if bill is None or bill.compute_usd is None:
        return api.Unknown("cost_unknown", case.cost.unknown_because or "no rate is known")
    volumes_usd = [
        line.usd for line in bill.lines if line.item == "storage" and line.usd is not None
    ]
    total_usd = sum(volumes_usd, Decimal(0))
    if total_usd < Decimal(str(case.threshold(MIN_COST))) or total_usd <= bill.compute_usd:
        return api.Clear()
    path = api.VOLUME_PATHS[case.job.kind]
    return api.measured_fact(
        f"{case.job.volume_gb} GB per instance cost up to {api.format_usd(total_usd)}, more than "
        f"the instances themselves ({api.format_usd(bill.compute_usd)}).",
        {"volume_gb": case.job.volume_gb, "volumes_usd": round(total_usd, 6)},
        fix=(api.Parameter(path, case.job.volume_gb, "<twice the input>"),),
        caution="How much space the job needs is not known before the run.",
    )
