"""Standstills that are a phase of the program: equal, evenly spaced, with one core at work.

An evaluation or a save on one core comes after each so many steps, and takes as long each time. A
process that hangs does so once, or at no beat. A standstill in which no core is busy is never such
a phase: nothing worked in it.

Two standstills have one distance, which is even with itself, so that three are needed. The grid
cuts up to a period at each end of a standstill. One that CloudWatch lost points of, or that was a
little under half an hour, is missing from the beat: a distance may be two or three times the
shortest. Other standstills in between are left out of a distance, as no steps were done in them.
The last standstill of a run that ends in it may be cut short.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sageaudit.domain.usage.measurements import Measurements, Metric

RECURS_FROM = 3
"""The least number of standstills: of two distances it can be said that they are even."""
_LENGTH_WITHIN = 0.2
"""Of the first one's length. The same evaluation takes about as long each time; our choice."""
_DISTANCE_WITHIN = 0.1
"""Of a distance from start to start: as many steps take about as long each time; our choice."""
_GRID_PERIODS = 2
"""How many periods a length or a distance may be off by the grid alone: one at each end."""
_MOST_BEATS = 3
"""Between two neighbours: more missing ones would make nearly any distance a multiple."""
_AT_WORK_CORES = 0.5
"""The mean of the busiest host in a standstill that one process works in; our choice. It waits for
storage at times, and a host that sleeps uses under 0.2 cores."""


def recurring_standstills(usage: Measurements) -> tuple[range, ...]:
    """The standstills of a run that are one phase of its program, in order; empty without one."""
    stretches = usage.standstills()
    busy = [still for still in stretches if _cores(usage, still) >= _AT_WORK_CORES]
    found: tuple[range, ...] = ()
    for first in busy[: 1 - RECURS_FROM]:
        alike = tuple(still for still in busy if _is_alike(first, still, usage.points))
        if len(alike) > max(len(found), RECURS_FROM - 1) and _is_even(alike, stretches):
            found = alike
    return found


def _cores(usage: Measurements, still: range) -> float:
    """The mean busy cores of the busiest host."""
    lines = (line.cut(still.start, still.stop) for line in usage.series[Metric.CPU].values())
    return max((line.mean for line in lines if line.present), default=0.0) * (usage.vcpu or 0) / 100


def _is_alike(first: range, other: range, points: int) -> bool:
    """Whether it begins no earlier and is as long; the one at the end of the run may be shorter."""
    differs = len(other) - len(first)
    within = max(_LENGTH_WITHIN * len(first), _GRID_PERIODS)
    cut_short = other.stop == points and differs < 0
    return other.start >= first.start and (cut_short or abs(differs) <= within)


def _is_even(alike: Sequence[range], stretches: Sequence[range]) -> bool:
    """Whether all are as far apart, or a small multiple of that, without the stretches between."""
    distances = [
        later.start
        - one.start
        - sum(len(other) for other in stretches if one.stop <= other.start < later.start)
        for one, later in pairwise(alike)
    ]
    beat = min(distances)
    return all(_is_on_beat(distance, beat) for distance in distances)


def _is_on_beat(distance: int, beat: int) -> bool:
    beats = max(round(distance / beat), 1)
    within = max(_DISTANCE_WITHIN * distance, _GRID_PERIODS)
    return beats <= _MOST_BEATS and abs(distance - beats * beat) <= within
