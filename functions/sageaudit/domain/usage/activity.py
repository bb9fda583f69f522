"""Whether a host is active in each period, judged from the points of its CPU or GPU.

A standstill is half an hour and more without GPU work, and with no more than a core of a host busy.
That is what a hung process leaves in the metrics: it sleeps, or one thread of it waits in a loop.
Shorter stretches are ordinary: a checkpoint, an evaluation, a download between epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from sageaudit.domain.usage.series import Series

IDLE_BELOW_CORES = 0.2
"""A minute without GPU work is idle below this many busy cores. Counted in cores, so that one busy
core of 64 still counts as work; idle hosts in the recordings use 0 to 0.19 cores."""
ONE_PROCESS_TO_CORES = 1.2
"""A host where one process keeps one core busy, at work or waiting in a loop: the core itself (1.01
by Jobstats), and up to 0.19 more for the system, as idle hosts in the recordings."""
IDLE_TO_GPU_PERCENT = 1.0
"""GPUs that together show up to this much of one GPU are idle."""
LATE_S = 360
"""The first points of a host come 3 to 6 minutes late in real recordings."""
GAP_S = 180
"""A gap of missing points up to this length between idle points counts as idle: CloudWatch loses a
minute now and then."""
FROM_S = 1800
"""Half an hour: ordinary pauses are over by then. Our choice, as gpu-pruner's 30 minutes."""
COARSEST_PERIOD_S = 300
"""The mean of a longer period may hide minutes of work."""
_BLIP_S = 60
_AROUND_S = 600
"""One busy minute (a scheduled task of the host) between 10 still minutes on each side is no work.
It is at most one minute of 21, so that a standstill is never more than 5% too long."""

States = list[bool | None]
"""Of each period: active (True), known to be idle (False), or unknown (None)."""


def cpu_works(percent: float | None, vcpu: int | None) -> bool | None:
    """Whether a host with `vcpu` vCPUs is active at this CPU utilisation (0..100)."""
    if percent is None or vcpu is None:
        return None
    return percent * vcpu / 100 >= IDLE_BELOW_CORES


def gpu_works(percent: float | None, gpus: int | None) -> bool | None:
    """Whether a host with `gpus` GPUs is active at this mean utilisation of them (0..100)."""
    return None if percent is None else percent * (gpus or 1) > IDLE_TO_GPU_PERCENT


def states(
    values: Sequence[float | None], works: Callable[[float], bool | None], period_s: int | None
) -> States:
    """Whether a host is active in each period; `works` judges a point.

    A gap of at most GAP_S seconds between two idle points, or between an idle point and the end,
    is idle too: otherwise one lost point would make hours of idleness look like work.
    """
    longest = GAP_S // (period_s or GAP_S + 1)
    return [
        _in_gap(values, index, works, longest) if value is None else works(value)
        for index, value in enumerate(values)
    ]


def _in_gap(
    values: Sequence[float | None], index: int, works: Callable[[float], bool | None], longest: int
) -> bool | None:
    before = values[max(index - longest, 0) : index]
    after = values[index + 1 : index + 1 + longest]
    last = next((v for v in reversed(before) if v is not None), None)
    following = next((v for v in after if v is not None), None)
    if last is None or works(last) is not False:
        return None
    if following is not None:
        return False if works(following) is False else None
    return False if longest and index + 1 + len(after) == len(values) else None


def any_of(hosts: Sequence[bool | None]) -> bool | None:
    """True where any host works, False where each is known not to, else None."""
    return True if any(hosts) else None if None in hosts or not hosts else False


def runs(flags: Sequence[bool]) -> Iterator[range]:
    """The stretches that are true."""
    at = 0
    for value, group in groupby(flags):
        length = len(list(group))
        if value:
            yield range(at, at + length)
        at += length


def standstills(
    on_gpu: Sequence[States], cpus: Sequence[Series], vcpu: int, period_s: int
) -> tuple[range, ...]:
    """The standstills after the first GPU work, in order. What comes before may prepare that work.

    `on_gpu`: the GPUs of each host. A period of which anything is not known is no standstill.
    """
    together = [any_of(at) for at in zip(*on_gpu, strict=True)]
    first = next((at for at, works in enumerate(together) if works), len(together))
    limit = ONE_PROCESS_TO_CORES * 100 / vcpu
    hosts = [states(line.values, lambda percent: percent > limit, period_s) for line in cpus]
    on_cpu = [any_of(at) for at in zip(*hosts, strict=True)]
    still = [
        at > first and works is False and on_cpu[at] is False for at, works in enumerate(together)
    ]
    if period_s <= _BLIP_S:
        for at in _blips(still, _AROUND_S // period_s):
            still[at] = together[at] is False and on_cpu[at] is True
    return tuple(run for run in runs(still) if len(run) * period_s >= FROM_S)


def _blips(still: Sequence[bool], around: int) -> list[int]:
    """Single periods that are not still, between at least `around` that are on each side."""
    return [
        at
        for at in range(around, len(still) - around)
        if not still[at] and all(still[at - around : at]) and all(still[at + 1 : at + 1 + around])
    ]
