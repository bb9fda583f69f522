"""Standstills: half an hour and more without GPU work, and with no more than a core of a host busy.

That is what a hung process leaves in the metrics: it sleeps, or one thread of it waits in a loop.
Shorter stretches are ordinary: a checkpoint, an evaluation, a download between epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby

from sageaudit.domain.usage.activity import (
    IDLE_TO_GPU_PERCENT,
    ONE_PROCESS_TO_CORES,
    gpu_works,
    state_at,
)
from sageaudit.domain.usage.series import Series

FROM_S = 1800
"""Half an hour: ordinary pauses are over by then. Our choice, as gpu-pruner's 30 minutes."""
COARSEST_PERIOD_S = 300
"""The mean of a longer period may hide minutes of work."""
_BLIP_S = 60
_AROUND_S = 600
"""One busy minute (a scheduled task of the host) between 10 still minutes on each side is no work.
It is at most one minute of 21, so that a standstill is never more than 5% too long."""

States = list[bool | None]


def may_pause(host: Series, gpus: int, period_s: int) -> bool:
    """A quick look: whether the GPUs of a host may have done nothing for so long."""
    most = IDLE_TO_GPU_PERCENT / gpus
    idle = [value is None or value <= most for value in host.values]
    return any(len(run) * period_s >= FROM_S for run in runs(idle))


def gpus_at_work(hosts: Sequence[Series], gpus: int, period_s: int) -> list[States]:
    """For each host and period: GPU work (True), known to have none (False), or unknown (None)."""
    works = partial(gpu_works, gpus=gpus)
    return [_states(line.values, works, period_s) for line in hosts]


def standstills(
    on_gpu: Sequence[States], cpus: Sequence[Series], vcpu: int, period_s: int
) -> tuple[range, ...]:
    """The standstills after the first GPU work, in order. What comes before may prepare that work.

    `on_gpu` as `gpus_at_work` gives it. A period of which anything is not known is no standstill.
    """
    together = [any_of(at) for at in zip(*on_gpu, strict=True)]
    first = next((at for at, works in enumerate(together) if works), len(together))
    calm = _calm(cpus, vcpu, period_s)
    still = [
        at > first and works is False and calm[at] is True for at, works in enumerate(together)
    ]
    if period_s <= _BLIP_S:
        for at in _blips(still, _AROUND_S // period_s):
            still[at] = together[at] is False and calm[at] is False
    return tuple(run for run in runs(still) if len(run) * period_s >= FROM_S)


def any_of(states: Sequence[bool | None]) -> bool | None:
    """True where any host works, False where each is known not to, else None."""
    return True if any(states) else None if None in states or not states else False


def runs(flags: Sequence[bool]) -> Iterator[range]:
    """The stretches that are true."""
    at = 0
    for value, group in groupby(flags):
        length = len(list(group))
        if value:
            yield range(at, at + length)
        at += length


def _calm(cpus: Sequence[Series], vcpu: int, period_s: int) -> States:
    """Whether each host kept at most one process's core busy."""
    limit = ONE_PROCESS_TO_CORES * 100 / vcpu

    def works(percent: float) -> bool:
        return percent > limit

    hosts = [_states(line.values, works, period_s) for line in cpus]
    at_work = [any_of(states) for states in zip(*hosts, strict=True)]
    return [None if busy is None else not busy for busy in at_work]


def _states(
    values: Sequence[float | None], works: Callable[[float], bool | None], period_s: int
) -> States:
    """Of each period of one host. `state_at` is asked only for a missing point: it is slow."""
    return [
        state_at(values, at, works, period_s) if value is None else works(value)
        for at, value in enumerate(values)
    ]


def _blips(still: Sequence[bool], around: int) -> list[int]:
    """Single periods that are not still, between at least `around` that are on each side."""
    return [
        at
        for at in range(around, len(still) - around)
        if not still[at] and all(still[at - around : at]) and all(still[at + 1 : at + 1 + around])
    ]
