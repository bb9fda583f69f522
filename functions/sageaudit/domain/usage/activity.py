"""Whether a host is active, judged from one point of its CPU or GPU; None where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def cpu_works(percent: float | None, vcpu: int | None) -> bool | None:
    """Whether a host with `vcpu` vCPUs is active at this CPU utilisation (0..100)."""
    if percent is None or vcpu is None:
        return None
    return percent * vcpu / 100 >= IDLE_BELOW_CORES


def gpu_works(percent: float | None, gpus: int | None) -> bool | None:
    """Whether a host with `gpus` GPUs is active at this mean utilisation of them (0..100)."""
    return None if percent is None else percent * (gpus or 1) > IDLE_TO_GPU_PERCENT


def state_at(
    values: Sequence[float | None],
    index: int,
    works: Callable[[float], bool | None],
    period_s: int | None,
) -> bool | None:
    """Whether the host is active in the period at `index`; None where nobody can say.

    A gap of at most GAP_S seconds between two idle points, or between an idle point and the end,
    is idle too: otherwise one lost point would make hours of idleness look like work.
    """
    value = values[index]
    if value is not None:
        return works(value)
    most = GAP_S // (period_s or GAP_S + 1)
    before = values[max(index - most, 0) : index]
    after = values[index + 1 : index + 1 + most]
    last = next((v for v in reversed(before) if v is not None), None)
    following = next((v for v in after if v is not None), None)
    if last is None or works(last) is not False:
        return None
    if following is not None:
        return False if works(following) is False else None
    return False if most and index + 1 + len(after) == len(values) else None
