"""Most of the memory of an m or r type stays unused: a type with less memory a vCPU is enough.

What it checks: On a general-purpose or memory-optimized type, P95 of memory over the active minutes
    is under 35% of the instance. The cheapest type that holds the run has less memory per vCPU: a c
    type, or an m type in place of an r type.
Why it costs: A vCPU with 4 or 8 GiB costs more than one with 2.
Saving: Derived: the same run time on that type, whose vCPUs and memory hold P99.5 of what the
    busiest host used plus 20%.
When it is wrong: One-minute means hide short peaks, above all of memory at the end of an epoch or
    of a join; reading data through the page cache gains from memory that no metric shows as used.
    vCPUs of different families count as equal.
What to do: Take the c type (or m type). If a smaller type of the same family is cheaper still,
    another rule names that instead.
Sources: Job Defense Shield: alert at 35% of the memory used. Compute Optimizer: P99.5 with 20%
    headroom.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.types.another_type import best_type

MEMORY_BELOW = api.Threshold(
    "max_memory_p95_percent",
    35,
    "percent of memory",
    "far above need",
    "Job Defense Shield, ratio 0.35",
)
_MUCH_MEMORY = frozenset({"general", "memory"})
_LESS_MEMORY = frozenset({"general", "compute"})


def _other_category(case: api.JobCase) -> str | None:
    if all(known is None or known.category in _MUCH_MEMORY for known in case.instance_types):
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
    not_applicable=(api.accelerated, api.mixed_types, _other_category),
    subsumes={"cheaper-type"},
)
def check(case: api.JobCase) -> api.Outcome:
    """Looks at the busiest host: every host must fit."""
    memory = case.active_usage.busiest_percentile(api.Metric.MEMORY, 95)
    if memory >= case.threshold(MEMORY_BELOW):
        return api.Clear()
    today = case.current_type
    best = best_type(case)
    leaner = best.first
    if best.resize is None or leaner is None or leaner.type.category not in _LESS_MEMORY:
        return api.Clear()
    if leaner.type.memory_gib * today.vcpu >= today.memory_gib * leaner.type.vcpu:
        return api.Clear()
    needed = best.resize.demand.memory_gib.needed
    return api.derived_saving(
        f"Memory stayed under {memory:.0f}% of {today.memory_gib:g} GiB for 95% of "
        f"{case.minutes_text(case.active_usage.minutes)} on {case.job.instances}.",
        {
            "memory_p95_percent": round(memory, 1),
            "memory_needed_gib": None if needed is None else round(needed, 1),
            "memory_gib": today.memory_gib,
            "new_memory_gib": leaner.type.memory_gib,
            "active_minutes": round(case.active_usage.minutes),
            "vcpu": today.vcpu,
        },
        **best.details(case),
    )
