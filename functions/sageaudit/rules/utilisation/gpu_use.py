"""What a run used of its GPUs, and of what feeds them."""

from __future__ import annotations

from dataclasses import dataclass

from sageaudit.domain.usage.demand import gpu_idle
from sageaudit.rules import api
from sageaudit.rules.utilisation.data_loader import CPU_FROM, cpu_at_limit

_GPU_IDLE = "gpu-idle"
_WAITS_FROM = 50
"""Percent of the minutes with the CPU at its limit: cpu-bottleneck speaks from there."""
FROM = api.Threshold(
    "from_minutes", 15, "minutes", "late points and start-up are behind it", "our choice"
)
LITTLE_BELOW = api.Threshold(
    "little_below", 5, "percent of one GPU, mean", "a third of Jobstats' red", "our choice"
)
LITTLE_P95_TO = api.Threshold(
    "little_p95_to", 10, "percent of one GPU, P95", "no hour of real work", "our choice"
)
LEFT_TO_GPU_IDLE = api.NotApplicable("the GPU did nothing: see gpu-idle")
"""The answer of other GPU rules where the GPU never worked."""
_HARDLY_WORKED = api.NotApplicable("the GPU did almost nothing: see gpu-idle")


def left_to_gpu_idle(case: api.JobCase) -> api.NotApplicable | None:
    """The answer of other GPU rules where gpu-idle speaks of this run; else None."""
    if gpu_idle(case.whole):
        return LEFT_TO_GPU_IDLE
    return _HARDLY_WORKED if almost_nothing(case) else None


def almost_nothing(case: api.JobCase) -> bool:
    """Whether all GPUs of a host together hardly worked in the active minutes, on each host.

    By the limits of gpu-idle. Not where the CPUs were at their limit: those GPUs wait for them.
    """
    usage = case.usage
    hosts = usage.series.get(api.Metric.GPU, {}).values()
    short = usage.minutes < _limit(case, FROM) and not case.pooled
    if not hosts or not usage.gpus or short:
        return False
    mean = max(api.mean(line.present) for line in hosts) * usage.gpus
    p95 = api.percentile_of_busiest(hosts, 95) * usage.gpus
    little = mean < _limit(case, LITTLE_BELOW) and p95 <= _limit(case, LITTLE_P95_TO)
    return little and cpu_at_limit(usage, CPU_FROM.value) < _WAITS_FROM


def _limit(case: api.JobCase, threshold: api.Threshold) -> float:
    """Its value for gpu-idle, whichever rule asks."""
    return case.policy.thresholds.get(_GPU_IDLE, {}).get(threshold.key, threshold.value)


@dataclass(frozen=True, slots=True)
class GpuUse:
    """In percent: the mean over all hosts, and the P95 of the busiest host; None: not recorded."""

    mean: float
    p95: float
    most: float
    cpu_p95: float
    cpu_cores: float
    memory_p95: float | None


def gpu_use(usage: api.Measurements) -> GpuUse:
    """Of the active minutes of a run whose GPU and CPU were recorded."""
    gpu, cpu = usage.series[api.Metric.GPU].values(), usage.series[api.Metric.CPU].values()
    memory = usage.series.get(api.Metric.GPU_MEMORY)
    return GpuUse(
        mean=api.mean_of_hosts(gpu),
        p95=api.percentile_of_busiest(gpu, 95),
        most=api.percentile_of_busiest(gpu, 100),
        cpu_p95=api.percentile_of_busiest(cpu, 95),
        cpu_cores=api.mean_of_hosts(cpu) * (usage.vcpu or 0) / 100,
        memory_p95=api.percentile_of_busiest(memory.values(), 95) if memory else None,
    )
