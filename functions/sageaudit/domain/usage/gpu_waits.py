"""GPUs that wait: often and shortly for their input, or for half an hour and more in one go.

Standstills are left out: they are counted, and these hours are only shown. In a pause a CPU works,
or the GPUs of another host: an evaluation on one host, for example, while the others wait.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.domain.usage.series import FROM_S, Series, any_of, mean, percentile, runs


class GpuPauses(Struct, frozen=True):
    """`gpu_hours` of all hosts; `hosts` that paused, and the `seconds` of the one that paused most.

    `others_worked`: some GPU of another host worked meanwhile. `cores`: the mean of the host whose
    CPU was busiest in all these minutes; None without points.
    """

    gpu_hours: float
    hosts: int
    seconds: int
    others_worked: bool
    cores: float | None


def gpu_pauses(usage: Measurements) -> GpuPauses | None:
    """None where there are none, without GPUs, and where the type of the hosts is not known."""
    states, period_s = list(usage.gpu_states.values()), usage.period_s or 0
    if not usage.gpus or not period_s or not states:
        return None
    still = {at for stretch in usage.standstills() for at in stretch}
    paused = [_paused(host, still, FROM_S // period_s) for host in states]
    most, union = max(map(len, paused)), sorted({at for host in paused for at in host})
    if not most:
        return None
    together = [any_of(at) for at in zip(*states, strict=True)]
    return GpuPauses(
        gpu_hours=sum(map(len, paused)) * period_s * usage.gpus / 3600,
        hosts=sum(map(bool, paused)),
        seconds=most * period_s,
        others_worked=any(together[at] for at in union),
        cores=_cores(usage, union),
    )


def _paused(states: Sequence[bool | None], still: Collection[int], least: int) -> list[int]:
    """The periods of one host's pauses, each of at least so many that are not a standstill."""
    worked = [at for at, works in enumerate(states) if works] if False in states else []
    if not worked:
        return []
    inside = range(worked[0], worked[-1])
    idle = [at in inside and works is False for at, works in enumerate(states)]
    pieces = runs([one and at not in still for at, one in enumerate(idle)])
    return [at for piece in pieces if len(piece) >= least for at in piece]


def _cores(usage: Measurements, periods: Sequence[int]) -> float | None:
    known = [
        [value for at in periods if (value := line.values[at]) is not None]
        for line in usage.series.get(Metric.CPU, {}).values()
    ]
    means = [mean(points) for points in known if points]
    return max(means) * (usage.vcpu or 0) / 100 if means else None


class GpuWaits(Struct, frozen=True):
    """One host's waits: the share of points (0..100), how often, and the mean CPU meanwhile."""

    p95: float
    percent: float
    times: int
    cpu: float


def gpu_waits(gpu: Series, cpu: Series | None, *, low: float, high: float) -> GpuWaits | None:
    """A wait is under `low`, and is over when the GPU is above `high` again.

    None where the GPU is steadily low or high, or no CPU was recorded while it waited.
    """
    points = gpu.present
    if gpu.highest <= high:
        return None
    p95 = percentile(points, 95)
    if p95 <= high or percentile(points, 5) >= low:
        return None
    waiting = [
        minute for minute, value in enumerate(gpu.values) if value is not None and value < low
    ]
    cpus = [cpu.values[minute] for minute in waiting] if cpu else []
    beside = [value for value in cpus if value is not None]
    if not beside:
        return None
    share = 100 * len(waiting) / len(points)
    return GpuWaits(p95, share, _times(points, low, high), mean(beside))


def _times(points: Sequence[float], low: float, high: float) -> int:
    """How often it went from high to low and back."""
    times, worked, fell = 0, False, False
    for value in points:
        if value > high:
            times += fell
            worked, fell = True, False
        elif value < low:
            fell = worked
    return times
