"""Whether a host's GPU memory rose steadily until it ran out: a leak, or a batch that grows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import median

from msgspec import Struct

from sageaudit.domain.usage.series import Series
from sageaudit.rules import api

GROWS_BY = api.Threshold(
    "gpu_memory_grows_by",
    10,
    "percent of a host's GPU memory",
    "twice the increase at which Debugger's rule fires",
    "SageMaker Debugger, GPUMemoryIncrease",
)
FULL_FROM = api.Threshold(
    "gpu_memory_full_from",
    80,
    "percent of a host's GPU memory",
    "below it something else than the growth filled it",
)
POINTS_FROM = api.Threshold(
    "gpu_memory_points_from", 25, "points", "five in each fifth of the run: fewer make no trend"
)
GROWTH_THRESHOLDS = (GROWS_BY, FULL_FROM, POINTS_FROM)
LAST_POINTS = 3
"""The minute in which a process dies has a lower mean: the highest of the last points counts."""
_PARTS = 5
_MOST_AT_ONCE = 0.75
"""If more of the rise comes within two neighbouring fifths, it is a step: our choice."""
_DEEPEST_FALL = 0.5
"""A fall of more of the rise is a sawtooth: our choice."""


class MemoryGrowth(Struct, frozen=True):
    """A steady rise on one host; `host` is None for the only one of a job."""

    host: str | None
    from_percent: float
    to_percent: float
    minutes: float

    @property
    def text(self) -> str:
        """The rise, as the end of a sentence about the memory."""
        where = f" on {self.host.rpartition('/')[2]}" if self.host else ""
        rise = f"from about {self.from_percent:.0f}% to {self.to_percent:.0f}%"
        return f"rose steadily over {api.duration_min(self.minutes)}{where}, {rise}"

    @property
    def evidence(self) -> dict[str, api.Scalar]:
        """The numbers of the rise."""
        return {
            "gpu_memory_rose_from_percent": round(self.from_percent, 1),
            "gpu_memory_rose_to_percent": round(self.to_percent, 1),
            "gpu_memory_rose_minutes": round(self.minutes),
        }


def memory_growth(case: api.JobCase) -> MemoryGrowth | None:
    """The rise on the host that was fullest at its end; None without one, and where points lack.

    Only active minutes are compared: before the work the memory is empty.
    """
    usage = case.usage
    hosts = usage.series.get(api.Metric.GPU_MEMORY)
    if not hosts or not usage.period_s or usage.gap(api.Metric.GPU_MEMORY):
        return None
    grown = []
    for host, line in hosts.items():
        stretch = _until_death(line)
        if (start := _rise_from(case, stretch.present)) is not None:
            minutes = len(stretch.values) * usage.period_s / 60
            name = host if len(hosts) > 1 else None
            grown.append(MemoryGrowth(name, start, stretch.present[-1], minutes))
    return max(grown, key=lambda growth: growth.to_percent, default=None)


def _until_death(line: Series) -> Series:
    """From the first point to the highest of the last ones."""
    known = [at for at, value in enumerate(line.values) if value is not None]
    end = max(known[-LAST_POINTS:], key=lambda at: (line.values[at] or 0.0, at))
    return line.cut(known[0], end + 1)


def _rise_from(case: api.JobCase, points: Sequence[float]) -> float | None:
    """The median of the first fifth, where the memory rose steadily from there to its end.

    Steadily: the median of each fifth is above the one before, two fifths further on it is at most
    three quarters of the rise higher, and no point is half of the rise below an earlier one.
    """
    if len(points) < case.limit(POINTS_FROM) or points[-1] < case.limit(FULL_FROM):
        return None
    ends = [round(len(points) * part / _PARTS) for part in range(_PARTS + 1)]
    medians = [median(points[start:end]) for start, end in pairwise(ends)]
    rise = medians[-1] - medians[0]
    at_once = max(later - before for before, later in zip(medians, medians[2:], strict=False))
    fall = max(high - point for high, point in zip(accumulate(points, max), points, strict=True))
    rises = all(later > before for before, later in pairwise(medians))
    steady = rises and at_once <= _MOST_AT_ONCE * rise and fall < _DEEPEST_FALL * rise
    return medians[0] if steady and rise >= case.limit(GROWS_BY) else None
