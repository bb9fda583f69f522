"""When a host works: told from one point of its CPU or GPU. No point says nothing (None)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

IDLE_BELOW_CORES = 0.2
"""Busy cores under which a minute without GPU work is idle. Counted in cores, so that one busy core
of 64 is work; idle hosts in the recordings read 0 to 0.19 cores."""
IDLE_TO_GPU_PERCENT = 1.0
LATE_S = 360
"""The first points of a host come 3 to 6 minutes late in real recordings."""
GAP_S = 180
"""CloudWatch loses a minute now and then; three minutes more would be a stretch of their own."""
"""How many points in a row may be lost in idleness."""


def cpu_works(percent: float | None, vcpu: int | None) -> bool | None:
    """Does a host with so many vCPUs work at this CPU utilisation (0..100)?"""
    if percent is None or vcpu is None:
        return None
    return percent * vcpu / 100 >= IDLE_BELOW_CORES


def gpu_works(percent: float | None) -> bool | None:
    """Does a host work at this GPU utilisation (0..100)?"""
    return None if percent is None else percent > IDLE_TO_GPU_PERCENT


def state_at(
    values: Sequence[float | None],
    place: int,
    works: Callable[[float], bool | None],
    period_s: int | None,
) -> bool | None:
    """Does the host work in this period? A short gap in idleness, or after it, is idle too.

    A lost point between two idle ones, or between an idle one and the end, would else make hours of
    idleness look like work; a gap is short up to GAP_S seconds.
    """
    value = values[place]
    if value is not None:
        return works(value)
    most = GAP_S // (period_s or GAP_S + 1)
    before = values[max(place - most, 0) : place]
    after = values[place + 1 : place + 1 + most]
    last = next((v for v in reversed(before) if v is not None), None)
    following = next((v for v in after if v is not None), None)
    if last is None or works(last) is not False:
        return None
    if following is not None:
        return False if works(following) is False else None
    return False if most and place + 1 + len(after) == len(values) else None
