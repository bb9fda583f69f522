"""The run certainly fits a cheaper instance type.

What it checks: All types are ranked together: the same GPU in another size, fewer GPUs, another
    GPU, no GPU. One of them has enough of each resource that the run used. The run costs less on it
    even at its longest possible run time.
Why it costs: The run does not use what makes its type more expensive.
Saving: Derived: the run on the type that saves most, at its longest run time. If the run time may
    be shorter, a range is shown.
    - The saving is only possible if the family's runs cost less on a type with a higher hourly
      rate.
    - A family gets one recommended type: the cheapest one for the slowest run, of the types that
      fit most of the newest ten runs. It stays until another type saves a tenth more.
When it is wrong: One-minute means hide short peaks. vCPUs of different instance families count as
    equal. The page cache benefits from memory that no metric shows as used.
What to do: Take the type, first for one run. This rule reports only what no other rule explains,
    such as a well-used GPU on a host that is too large.
Sources: Compute Optimizer: P99.5 with 20% headroom. Bounds of run times:
    functions/sageaudit/domain/resize.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.types.another_type import best_type, type_fixed_reason

COVERED_BY_OLD_GENERATION = api.NotApplicable(
    "its type is of an old generation: see old-generation"
)


@api.rule(
    id="SA306",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(api.HEADROOM,),
    can_pool_runs=True,
    not_applicable=(type_fixed_reason, api.never_started_reason, api.free_reason),
)
def check(case: api.JobCase) -> api.Outcome:
    """Needs no metrics, because a type with at least as much of each resource certainly fits."""
    recommendation = best_type(case)
    if recommendation.resize is None:
        return api.Unknown("not_replayable", recommendation.reason)
    if recommendation.first is None:
        unrecorded_reason = next(
            (reason for _, reason in recommendation.resize.unrecorded_refusals), None
        )
        return api.Unknown("not_recorded", unrecorded_reason) if unrecorded_reason else api.Clear()
    current_type, new_type = recommendation.resize.current_type, recommendation.first.type
    if current_type.is_legacy and not new_type.is_legacy:
        return COVERED_BY_OLD_GENERATION
    minutes = case.active_usage.minutes
    minutes_text = f" in {case.minutes_text(minutes)}" if case.active_usage.series else ""
    summary = (
        f"{new_type.name} is large enough for what the run used{minutes_text}"
        f" on {case.job.instances}."
    )
    if recommendation.first.was_cheaper_per_run:
        summary = f"Runs of its family cost less on {new_type.name} than on {current_type.name}."
    return api.derived_saving(
        summary,
        {
            "instance_type": current_type.name,
            "cheaper_type": new_type.name,
            "vcpu": current_type.vcpu,
            "new_vcpu": new_type.vcpu,
            "memory_gib": current_type.memory_gib,
            "new_memory_gib": new_type.memory_gib,
            "times_as_long": recommendation.first.change.time_factor,
            "active_minutes": round(minutes),
        },
        **recommendation.details(case),
    )
