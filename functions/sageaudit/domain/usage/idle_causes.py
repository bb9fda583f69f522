"""Where to look when devices were paid for and did not work, from the evidence at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from sageaudit.domain.usage.demand import gpu_idle
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.domain.usage.series import Series, mean, mean_of_hosts, pairs, percentile_of_busiest

LookAt = Literal[
    "standstill",
    "gpu_use",
    "data_loader",
    "communication",
    "batch_size",
    "parallel_work",
    "profile",
]
"""The GPUs stood still for half an hour or more; the GPU did nothing; it waits for data; all hosts
wait alike; its memory is free; vCPUs are free. A profile shows what metrics of a minute cannot."""

_WAITS_BELOW = 50.0
"""Percent of all GPUs below which a host's GPUs wait: Jobstats' target of a job's mean."""
_STANDSTILL_FROM = 0.1
"""Share of the run from which standstills are a cause. Our choice."""
_CPU_BUSY_OVER = 60.0
"""Percent of all vCPUs, the milder limit of cpu-bottleneck (cloud-finops-skills)."""
_EVEN_WITHIN = 20.0
"""Points between the means of the hosts; as uneven-hosts, which finds those further apart."""
_LOW_P95 = 70.0
"""Percent: Debugger's BatchSize, for GPU, GPU memory and CPU."""


def idle_causes(whole: Measurements) -> tuple[LookAt, ...]:
    """What to look at, the likeliest first and a profile last; `whole`: the whole run's."""
    if not whole.gpus:
        return ("parallel_work", "profile")
    usage = whole.active()
    still = sum(map(len, whole.standstills()))
    if still < _STANDSTILL_FROM * whole.points:
        return (*_of_gpus(usage), "profile")
    at_work = mean_of_hosts(usage.series[Metric.GPU].values()) if Metric.GPU in usage.series else 0
    waits = () if at_work >= _WAITS_BELOW else tuple(_of_gpus(usage))
    return ("standstill", *waits, "profile")


def _of_gpus(usage: Measurements) -> Iterator[LookAt]:
    gpu, cpu = usage.series.get(Metric.GPU, {}), usage.series.get(Metric.CPU, {})
    if not gpu:
        return
    if gpu_idle(usage):
        yield "gpu_use"
        return
    waiting = [busy for busy, work in pairs(cpu, gpu) if work < _WAITS_BELOW]
    if waiting and mean(waiting) > _CPU_BUSY_OVER:
        yield "data_loader"
    elif _even(list(gpu.values())):
        yield "communication"
    memory = usage.series.get(Metric.GPU_MEMORY, {})
    if cpu and memory and all(_low(metric.values()) for metric in (gpu, cpu, memory)):
        yield "batch_size"


def _even(hosts: list[Series]) -> bool:
    means = [mean(line.present) for line in hosts]
    return len(means) > 1 and max(means) - min(means) <= _EVEN_WITHIN


def _low(hosts: Iterable[Series]) -> bool:
    return percentile_of_busiest(hosts, 95) < _LOW_P95
