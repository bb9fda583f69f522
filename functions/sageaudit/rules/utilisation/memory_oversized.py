"""Most of the memory of an m or r type stays unused: a type with less memory per vCPU is enough.

What it checks: On a general-purpose or memory-optimized type, the P95 of memory over the active
    minutes is under 35%. The type that saves most has less memory per vCPU: a c type, or an m type
    instead of an r type.
Why it costs: A vCPU with 4 or 8 GiB costs more than one with 2.
Saving: Derived: the run on that type, whose vCPUs and memory have room for the busiest host's P99.5
    plus 20%.
When it is wrong: One-minute means hide short peaks, above all of memory at the end of an epoch or
    of a join. The page cache benefits from memory that no metric shows as used. vCPUs of different
    instance families count as equal.
What to do: Take the c type (or m type). If a smaller type of the same family saves more, another
    rule names that type instead.
Sources: Job Defense Shield: alerts if at most 35% of the memory is used. Compute Optimizer: P99.5
    with 20% headroom.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.types.another_type import best_type

MEMORY_BELOW = api.Threshold(
    "max_memory_p95_percent",
    35,
    "percent of memory",
    "far more than needed",
    "Job Defense Shield, ratio 0.35",
)
_CATEGORIES_JUDGED = frozenset({"general", "memory"})
_CATEGORIES_RECOMMENDED = frozenset({"general", "compute"})


def _other_category_reason(case: api.JobCase) -> str | None:
    if all(
        instance_type is None or instance_type.category in _CATEGORIES_JUDGED
        for instance_type in case.instance_types
    ):
        return None
    return "its type is neither general-purpose nor memory-optimized"


@api.rule(
    id="SA206",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MEMORY_BELOW, api.HEADROOM),
    required_metrics=(api.Metric.MEMORY, api.Metric.CPU),
    can_pool_runs=True,
    finds_waste=True,
    not_applicable=(api.accelerated_reason, api.mixed_types_reason, _other_category_reason),
    subsumes={"cheaper-type"},
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the busiest host, because the type must fit every host."""
    memory = case.active_usage.busiest_percentile(api.Metric.MEMORY, 95)
    if memory >= case.threshold(MEMORY_BELOW):
        return api.Clear()
    current_type = case.current_type
    recommendation = best_type(case)
    new_type = recommendation.first
    if (
        recommendation.resize is None
        or new_type is None
        or new_type.type.category not in _CATEGORIES_RECOMMENDED
    ):
        return api.Clear()
    if new_type.type.memory_gib * current_type.vcpu >= current_type.memory_gib * new_type.type.vcpu:
        return api.Clear()
    needed_gib = recommendation.resize.demand.memory_gib.needed
    return api.derived_saving(
        f"Memory stayed under {memory:.0f}% of {current_type.memory_gib:g} GiB for 95% of "
        f"{case.minutes_text(case.active_usage.minutes)} on {case.job.instances}.",
        {
            "memory_p95_percent": round(memory, 1),
            "memory_needed_gib": None if needed_gib is None else round(needed_gib, 1),
            "memory_gib": current_type.memory_gib,
            "new_memory_gib": new_type.type.memory_gib,
            "active_minutes": round(case.active_usage.minutes),
            "vcpu": current_type.vcpu,
        },
        **recommendation.details(case),
    )
