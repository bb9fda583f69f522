"""How much of the billed time a job's GPUs or vCPUs worked, and where to look when they did not.

The user's program runs in the work phase only. While the data or the image is downloaded and the
output is uploaded, no GPU and no vCPU works for it, yet these phases are billed: they count as not
worked. Within the work phase a device works by its recorded share.

What is not known counts as worked, so that later data can only add idle time: a missing point of a
recorded host, the parts of a period at both ends of the work, and a billed phase in which the
program may still run (Stopping, or a status that AWS adds). Nothing is said where a host has no
points at all, or too few.

"Worked" is GPUUtilization, the share of time in which any kernel ran, or CPUUtilization over all
vCPUs: an upper bound of useful work. A vCPU is half a core: 50% may be every core at work.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from itertools import chain
from typing import Literal

from sageaudit.domain.job.course import DOWNLOADS, is_work
from sageaudit.domain.job.job import Job
from sageaudit.domain.usage.demand import gpu_idle
from sageaudit.domain.usage.measurements import (
    MIN_COVERAGE,
    MIN_POINTS,
    Measurements,
    Metric,
    Missing,
)
from sageaudit.domain.usage.series import mean, pairs

Unit = Literal["gpu_hours", "vcpu_hours"]
"""Accelerators without a metric (Trainium, Inferentia) have no figure, and so no unit."""
_WITHOUT_PROGRAM = DOWNLOADS | {"Uploading"}
_ZERO = Decimal(0)
LookAt = Literal[
    "standstill", "gpu_use", "data_loader", "communication", "batch_size", "parallel_work",
    "profile",
]  # fmt: skip
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
_RECORDED = (Metric.GPU, Metric.CPU, Metric.GPU_MEMORY)
_LOW_P95 = 70.0
"""Percent: Debugger's BatchSize, for GPU, GPU memory and CPU."""


def devices(usage: Measurements) -> tuple[Unit, int] | Missing:
    """What is counted: the GPUs of each host, or its vCPUs where the hosts have no GPU."""
    metric = _metric(usage)
    count = usage.gpus if metric is Metric.GPU else usage.vcpu
    if not count:
        return usage.missing.get(metric) or Missing("type_unknown", "its devices are not known")
    return "gpu_hours" if metric is Metric.GPU else "vcpu_hours", count


def _metric(usage: Measurements) -> Metric:
    """GPUUtilization unless the hosts are known to have no GPU: units never mix."""
    return Metric.CPU if usage.gpus == 0 else Metric.GPU


def worked_share(job: Job, usage: Measurements) -> Decimal | Missing:
    """The share (0..1) of the billed device time that was worked, or why it is not known.

    `usage` must be the whole run's, with its idle start and end. Example by hand: 10 min
    Downloading, 50 min Training at 40% mean use, all in points: (50 x 0.4) / 60 = 1/3 of the hour.
    """
    if 0 < usage.points < MIN_POINTS:
        few = f"{usage.points} points of a host, {MIN_POINTS} needed"
        return Missing("too_few_points", few)
    code = _share_of_code(usage)
    if isinstance(code, Missing):
        return code
    billed = [phase for phase in job.phases if phase.billed]
    if any(phase.seconds is None for phase in billed):
        return Missing("phases_unknown", "how long each phase took is not known")
    whole = work = idle = _ZERO
    for phase in billed:
        seconds = phase.seconds or _ZERO
        whole += seconds
        work += seconds if is_work(phase) else _ZERO
        idle += seconds if phase.name in _WITHOUT_PROGRAM else _ZERO
    if not whole:
        return Missing("phases_unknown", "no billed phase is known")
    seen = min(work, Decimal(usage.seconds))
    return (whole - idle - seen * (1 - code)) / whole


def _share_of_code(usage: Measurements) -> Decimal | Missing:
    """The share (0..1) of its device time that all hosts worked while the program ran."""
    metric = _metric(usage)
    hosts = usage.series.get(metric, {})
    if not hosts:
        return usage.missing.get(metric) or Missing("metric_missing", "no points")
    if missing := usage.without_hosts(metric):
        return missing
    least = min(line.share for line in hosts.values())
    if least < MIN_COVERAGE:
        why = f"only {least:.0%} of the points of a host"
        return Missing("coverage_low", f"{why}, {MIN_COVERAGE:.0%} needed")
    lines = hosts.values()
    points = sum(len(line.values) for line in lines)
    unseen = points - sum(len(line.present) for line in lines)
    # Sums of as many points differ in their last digits only: fsum keeps lower points lower.
    worked = math.fsum(chain.from_iterable([[100.0] * unseen, *(line.present for line in lines)]))
    return min(Decimal(repr(worked)) / (100 * points), Decimal(1))


def idle_causes(job: Job, whole: Measurements) -> tuple[LookAt, ...]:
    """What to look at, the likeliest first and a profile last; `whole`: the whole run's.

    Hosts of a transform job never wait for each other.
    """
    alone = not job.kind.row.hosts_exchange
    if not whole.gpus:
        return ("parallel_work", "profile")
    usage = whole.active()
    still = sum(map(len, whole.standstills()))
    if still < _STANDSTILL_FROM * whole.points:
        return (*_of_gpus(usage, alone=alone), "profile")
    at_work = usage.mean(Metric.GPU) if Metric.GPU in usage.series else 0
    waits = () if at_work >= _WAITS_BELOW else tuple(_of_gpus(usage, alone=alone))
    return ("standstill", *waits, "profile")


def _of_gpus(usage: Measurements, *, alone: bool) -> Iterator[LookAt]:
    gpu, cpu = usage.series.get(Metric.GPU, {}), usage.series.get(Metric.CPU, {})
    if not gpu:
        return
    if gpu_idle(usage):
        yield "gpu_use"
        return
    means = [line.mean for line in gpu.values()]
    waiting = []
    if any(line.highest > _CPU_BUSY_OVER for line in cpu.values()):
        both = zip(*pairs(cpu, gpu), strict=True)
        waiting = [busy for busy, work in both if work < _WAITS_BELOW]
    if waiting and mean(waiting) > _CPU_BUSY_OVER:
        yield "data_loader"
    elif not alone and len(means) > 1 and max(means) - min(means) <= _EVEN_WITHIN:
        yield "communication"
    memory = usage.series.get(Metric.GPU_MEMORY, {})
    metrics = [metric for metric in _RECORDED if usage.series.get(metric)]
    busiest = [usage.busiest(metric, 95) for metric in metrics]
    if cpu and memory and max(busiest) < _LOW_P95:
        yield "batch_size"
