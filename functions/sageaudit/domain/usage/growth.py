"""How a series grew, by the moving average of its points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from sageaudit.domain.usage.series import Series

_DIGITS = 6
"""Sums of many points are right to more than that."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How often the moving average rose, and its values in the first, last and highest window.

    `last_rise`: how far into the run (0..1) the last rise ended; 0 without one. `periods`: from the
    first window to the last.
    """

    rises: int
    last_rise: float
    first: float
    last: float
    highest: float
    periods: int


def growth(line: Series, *, skipped: int, window: int, over: float) -> Growth | None:
    """A rise is more than `over` from a window to the next.

    The first `skipped` points are left out. None where no window has half of its points.
    """
    averages = _moving(line.values[skipped:], window)
    known = [(start, value) for start, value in enumerate(averages) if value is not None]
    if not known:
        return None
    ends = _rises(averages, window, over)
    (begin, first), (end, last) = known[0], known[-1]
    return Growth(
        rises=len(ends),
        last_rise=(skipped + ends[-1]) / len(line.values) if ends else 0.0,
        first=first,
        last=last,
        highest=max(value for _, value in known),
        periods=end - begin,
    )


def _moving(values: Sequence[float | None], window: int) -> list[float | None]:
    """The mean of each `window` points on end; None where fewer than half are there."""
    sums = list(accumulate((value or 0.0 for value in values), initial=0.0))
    counts = list(accumulate((value is not None for value in values), initial=0))
    means: list[float | None] = []
    for start in range(len(values) - window + 1):
        count = counts[start + window] - counts[start]
        total = sums[start + window] - sums[start]
        means.append(total / count if 2 * count >= window else None)
    return means


def _rises(averages: Sequence[float | None], window: int, over: float) -> list[int]:
    """Where each rise from a window to the next ends. One step up is one rise."""
    grown = [
        0.0 if before is None or after is None else round(after - before, _DIGITS)
        for before, after in zip(averages, averages[window:], strict=False)
    ]
    ends, start = [], 0
    while start < len(grown):
        if grown[start] <= over:
            start += 1
            continue
        while start + 1 < len(grown) and grown[start + 1] > grown[start]:
            start += 1
        ends.append(start + 2 * window)
        start += window
    return ends
