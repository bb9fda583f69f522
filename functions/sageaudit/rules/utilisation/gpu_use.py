"""What a run used of its GPUs, and of what feeds them."""

from __future__ import annotations

from dataclasses import dataclass

from sageaudit.rules import api

LEFT_TO_GPU_IDLE = api.NotApplicable("the GPU did nothing: see gpu-idle")
"""The answer of other GPU rules where the GPU never worked."""


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
