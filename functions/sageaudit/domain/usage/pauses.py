"""How a run pauses between its start and its end: standstills that recur, and GPUs that wait.

Standstills of similar length with one core at work may be a phase of the program. An evaluation or
a save on one core comes again and again, and takes about as long each time. A process that hangs
does so once, or for any length of time. A standstill in which no core is busy is never such a
phase: nothing worked in it. Whether the minutes were needed cannot be told from the metrics, so
what recurs is worth a look and no certain saving.

GPUs wait often and shortly for their input, or for half an hour and more in one go. Standstills are
left out: they are counted, and these hours are only shown. In a pause a CPU works, or the GPUs of
another host: an evaluation on one host, for example, while the others wait.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import median

from msgspec import Struct

from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.domain.usage.series import FROM_S, Series, any_of, mean, percentile, runs

RECURS_FROM = 2
"""The least number of standstills of similar length. Our choice: one is a hang as far as metrics
tell, and a short training has two epochs."""
_LENGTH_TIMES = 1.5
"""How many times as long, or as short, as the middle one another may be: an evaluation varies with
its data and with other jobs on the storage, and a first one also loads. Our choice."""
_AT_WORK_CORES = 0.5
"""The mean of the busiest host in a standstill that one process works in; our choice. It waits for
storage at times, and a host that sleeps uses under 0.2 cores."""


def recurring_standstills(usage: Measurements) -> tuple[range, ...]:
    """The standstills of a run that may be one phase of its program, in order; empty without one.

    The last one may be cut short by the end of the run.
    """
    busy = [still for still in usage.standstills() if _cores(usage, still) >= _AT_WORK_CORES]
    if len(busy) < RECURS_FROM:
        return ()
    middle = median(map(len, busy))
    alike = [still for still in busy if _is_alike(len(still), middle)]
    if len(alike) < RECURS_FROM:
        return ()
    last = busy[-1]
    is_cut = last not in alike and last.stop == usage.points and len(last) < middle
    return (*alike, last) if is_cut else tuple(alike)


def _is_alike(periods: int, middle: float) -> bool:
    return middle <= _LENGTH_TIMES * periods and periods <= _LENGTH_TIMES * middle


def _cores(usage: Measurements, still: range) -> float:
    """The mean busy cores of the busiest host."""
    lines = (line.cut(still.start, still.stop) for line in usage.series[Metric.CPU].values())
    return max((line.mean for line in lines if line.present), default=0.0) * (usage.vcpu or 0) / 100


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
        cores=_busiest_cores(usage, union),
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


def _busiest_cores(usage: Measurements, periods: Sequence[int]) -> float | None:
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
