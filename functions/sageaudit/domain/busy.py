"""When a host works: told from one point of its CPU or GPU. No point says nothing (None)."""

from __future__ import annotations

IDLE_BELOW_CORES = 0.2
"""Busy cores under which a minute without GPU work is idle. Counted in cores, so that one busy core
of 64 is work; idle hosts in the recordings read 0 to 0.19 cores."""
IDLE_TO_GPU_PERCENT = 1.0
LATE_S = 360
"""The first points of a host come 3 to 6 minutes late in real recordings."""


def cpu_works(percent: float | None, vcpu: int | None) -> bool | None:
    """Does a host with so many vCPUs work at this CPU utilisation (0..100)?"""
    if percent is None or vcpu is None:
        return None
    return percent * vcpu / 100 >= IDLE_BELOW_CORES


def gpu_works(percent: float | None) -> bool | None:
    """Does a host work at this GPU utilisation (0..100)?"""
    return None if percent is None else percent > IDLE_TO_GPU_PERCENT
