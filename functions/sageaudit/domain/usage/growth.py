"""Whether a memory grows steadily, how fast, and when it would be full.

A run is cut into windows, and each window is its median: an evaluation or one long batch is not
seen. A leak keeps a little of every step, so it rises in most windows, evenly, until the end.
What only looks like one does not:

| what happened | why it is no steady growth |
|---|---|
| an allocator's cache fills up | it rose early; the last third adds little |
| longer and longer batches come by chance | new records get rarer; most windows do not rise |
| a plan: twice the sequence length, twice | a few steps, and flat between them |
| memory is given back each epoch | it falls far below its highest |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from sageaudit.domain.usage.series import Series

FULL_PERCENT = 100.0
_WINDOWS = 12
_LEAST_WINDOWS = 4
_FROM_FULL = 95.0
"""A memory that ran out stays near full until the process dies: growth ends there. Our choice."""
_LAST_THIRD_FROM = 1 / 6
"""Share of the rise in the last third of the run: even growth has a third. Records of a chance
that does not change have a tenth after some hours, a filling cache less. Our choice."""
_RISING_FROM = 2 / 3
"""Share of the windows that rise: a few steps up are no leak. Our choice."""
_RISES_OVER = 1 / 4
"""Of even growth, what counts as a rise from a window to the next: more than noise. Our choice."""
_BACK_AT_MOST = 1 / 10
"""Share of the rise that it may be below its highest at the end. Our choice."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A steady growth in percent of the memory, from the first window's median to the last's."""

    first: float
    last: float
    per_hour: float

    @property
    def hours_left(self) -> float:
        """Hours from the last window until it is full, if it goes on like this."""
        return max(FULL_PERCENT - self.last, 0.0) / self.per_hour


def steady_growth(
    line: Series, *, period_s: int | None, skipped_min: float, window_min: float, ran_out: bool
) -> Growth | None:
    """The growth of one host, or None where it does not grow steadily.

    `skipped_min`: minutes of the start that are left out. `window_min`: the shortest window.
    `ran_out`: the run failed for lack of this memory, so that it may have been full for a while.
    """
    period_min = (period_s or 60) / 60
    levels = _levels(line.values[round(skipped_min / period_min) :], round(window_min / period_min))
    if ran_out:
        full = (n for n, (_, level) in enumerate(levels, start=1) if level >= _FROM_FULL)
        levels = levels[: next(full, None)]
    if len(levels) < _LEAST_WINDOWS:
        return None
    (begin, first), (end, last) = levels[0], levels[-1]
    rise = last - first
    if rise <= 0 or not _steady(levels, rise):
        return None
    return Growth(first, last, 60 * rise / ((end - begin) * period_min))


def _levels(values: Sequence[float | None], least: int) -> list[tuple[float, float]]:
    """The middle (in points) and the median of each window that has half of its points."""
    count = min(_WINDOWS, len(values) // max(least, 1))
    levels = []
    for number in range(count):
        start, stop = len(values) * number // count, len(values) * (number + 1) // count
        known = [value for value in values[start:stop] if value is not None]
        if 2 * len(known) >= stop - start:
            levels.append(((start + stop) / 2, median(known)))
    return levels


def _steady(levels: Sequence[tuple[float, float]], rise: float) -> bool:
    """Whether the rise is spread over the run, and kept."""
    (begin, _), (end, last) = levels[0], levels[-1]
    highest = max(level for _, level in levels)
    if highest - last > _BACK_AT_MOST * rise:
        return False
    before = [level for at, level in levels if at <= begin + 2 / 3 * (end - begin)]
    if last - before[-1] < _LAST_THIRD_FROM * rise:
        return False
    risen = [
        after - level > _RISES_OVER * rise * (later - at) / (end - begin)
        for (at, level), (later, after) in pairwise(levels)
    ]
    return sum(risen) >= math.ceil(_RISING_FROM * len(risen))
