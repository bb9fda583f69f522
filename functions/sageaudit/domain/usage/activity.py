"""Whether a host is active in each period, judged from the points of its CPU or GPU.

A standstill is half an hour and more without GPU work, and with no more than a core of a host busy.
That is what a hung process leaves in the metrics: it sleeps, or one thread of it waits in a loop.
Shorter stretches are ordinary: a checkpoint, an evaluation, a download between epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
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


def cpu_works(percents: Sequence[float], vcpu: int | None) -> States:
    """Whether a host with `vcpu` vCPUs is active at each CPU utilisation (0..100)."""
    if vcpu is None:
        return [None] * len(percents)
    return [percent * vcpu / 100 >= IDLE_BELOW_CORES for percent in percents]


def gpu_works(percents: Sequence[float], gpus: int | None) -> States:
    """Whether a host with `gpus` GPUs is active at each mean utilisation of them (0..100)."""
    each = gpus or 1
    return [percent * each > IDLE_TO_GPU_PERCENT for percent in percents]


def above(percents: Sequence[float], limit: float) -> States:
    """Whether each is above a limit."""
    return [percent > limit for percent in percents]


def states(
    line: Series, works: Callable[[Sequence[float]], States], period_s: int | None
) -> States:
    """Whether a host is active in each period; `works` judges points, all of them at once. What it
    says of the lowest and of the highest alike, it says of all: more use is never less active.

    A gap of at most GAP_S seconds between two idle points, or between an idle point and the end,
    is idle too: otherwise one lost point would make hours of idleness look like work.
    """
    if line.present:
        least, most = works([line.lowest, line.highest])
        judged = [least] * len(line.present) if least is most else works(line.present)
    else:
        judged = []
    if line.whole:
        return judged
    longest, known = GAP_S // (period_s or GAP_S + 1), iter(judged)
    points = [None if value is None else next(known) for value in line.values]
    return [
        _in_gap(points, index, longest) if value is None else points[index]
        for index, value in enumerate(line.values)
    ]


def _in_gap(points: States, index: int, longest: int) -> bool | None:
    before = points[max(index - longest, 0) : index]
    after = points[index + 1 : index + 1 + longest]
    last = next((state for state in reversed(before) if state is not None), None)
    following = next((state for state in after if state is not None), None)
    if last is not False or following:
        return None
    at_end = longest and index + 1 + len(after) == len(points)
    return False if following is False or at_end else None


def any_of(hosts: Sequence[bool | None]) -> bool | None:
    """True where any host works, False where each is known not to, else None."""
    return True if any(hosts) else None if None in hosts or not hosts else False


def either(one: States, other: States) -> States:
    """`any_of` of two hosts, period by period."""
    return [
        True if a or b else None if a is None or b is None else False
        for a, b in zip(one, other, strict=True)
    ]


def together(hosts: Sequence[States]) -> States:
    """`any_of` of all hosts, period by period; most jobs have one or two lines. Where one host is
    active all the time, no other is looked at.
    """
    always = next((host for host in hosts if False not in host and None not in host), None)
    if always is not None:
        return list(always)
    if len(hosts) <= 2:  # noqa: PLR2004 - of more, tuples are the faster form
        return reduce(either, hosts) if hosts else []
    return [any_of(at) for at in zip(*hosts, strict=True)]


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
    gpus = together(on_gpu)
    if False not in gpus:
        return ()
    first = next((at for at, works in enumerate(gpus) if works), len(gpus))
    limit = ONE_PROCESS_TO_CORES * 100 / vcpu
    hosts = [states(line, partial(above, limit=limit), period_s) for line in cpus]
    on_cpu = together(hosts)
    still = [at > first and works is False and on_cpu[at] is False for at, works in enumerate(gpus)]
    if period_s <= _BLIP_S:
        for at in _blips(still, _AROUND_S // period_s):
            still[at] = gpus[at] is False and on_cpu[at] is True
    return tuple(run for run in runs(still) if len(run) * period_s >= FROM_S)


def _blips(still: Sequence[bool], around: int) -> list[int]:
    """Single periods that are not still, between at least `around` that are on each side."""
    return [
        at
        for at in range(around, len(still) - around)
        if not still[at] and all(still[at - around : at]) and all(still[at + 1 : at + 1 + around])
    ]
