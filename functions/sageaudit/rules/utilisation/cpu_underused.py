"""CPU and memory use stay low on a CPU type: a smaller instance is enough.

What it checks: On a type without GPU, the P95 of CPU and of memory over the active minutes are
    under 40%. The run fits a cheaper type.
Why it costs: A vCPU-hour costs the same whether it is used or not.
Saving: Derived: the run on the type that saves most.
    - Its memory has room for the busiest host's P99.5 plus 20%.
    - A minute counts as longer if more cores were busy than 80% of the new type's. A type on which
      the run takes over 1.25 times as long is excluded.
When it is wrong: One-minute means hide short peaks. Reads through the page cache benefit from
    memory that no metric shows as used.
What to do: Take the smaller type. If several hosts each do little, fewer hosts may be enough
    instead. Do one of the two at a time: each leaves less room for the other.
Sources: Flexera: underused below 40%. Compute Optimizer: P99.5 with 20% headroom.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.types.another_type import best_type

CPU_BELOW = api.Threshold("max_cpu_p95_percent", 40, "percent of all vCPUs", "underused", "Flexera")
MEMORY_BELOW = api.Threshold(
    "max_memory_p95_percent", 40, "percent of memory", "underused", "Flexera"
)


@api.rule(
    id="SA205",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(CPU_BELOW, MEMORY_BELOW, api.HEADROOM),
    required_metrics=(api.Metric.CPU, api.Metric.MEMORY),
    can_pool_runs=True,
    finds_waste=True,
    not_applicable=(api.accelerated_reason, api.mixed_types_reason),
    subsumes={"cheaper-type", "memory-oversized"},
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the busiest host, because the type must fit every host."""
    cpu, memory = (
        case.active_usage.busiest_percentile(metric, 95)
        for metric in (api.Metric.CPU, api.Metric.MEMORY)
    )
    if cpu >= case.threshold(CPU_BELOW) or memory >= case.threshold(MEMORY_BELOW):
        return api.Clear()
    current_type = case.current_type
    recommendation = best_type(case)
    if recommendation.first is None:
        return api.Clear()
    return api.derived_saving(
        f"CPU stayed under {cpu:.0f}% and memory under {memory:.0f}% for 95% of "
        f"{case.minutes_text(case.active_usage.minutes)} on {case.job.instances}.",
        {
            "cpu_p95_percent": round(cpu, 1),
            "memory_p95_percent": round(memory, 1),
            "active_minutes": round(case.active_usage.minutes),
            "vcpu": current_type.vcpu,
            "memory_gib": current_type.memory_gib,
        },
        **recommendation.details(case),
    )
