"""One metric of one host at an even period; a missing point is None."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby


@dataclass(frozen=True)
class Series:
    """Values in percent (0..100 of one vCPU, one GPU, the memory), one each period.

    Without slots: the present points, which many rules ask for, are picked once and kept.
    """

    values: tuple[float | None, ...]

    @cached_property
    def present(self) -> Sequence[float]:
        """The points that are not missing."""
        return [value for value in self.values if value is not None]

    @property
    def share(self) -> float:
        """Points present of points expected, 0..1."""
        return len(self.present) / len(self.values) if self.values else 0.0

    def agreeing(self, other: Series | None) -> Series:
        """The points of two series of one host on one grid; where they differ nothing is known."""
        if other is None:
            return self
        pairs = zip(self.values, other.values, strict=True)
        return Series(
            tuple(
                one if two is None or one == two else two if one is None else None
                for one, two in pairs
            )
        )

    @property
    def longest_gap(self) -> int:
        """The most missing points in a row."""
        if None not in self.values:
            return 0
        runs = groupby(value is None for value in self.values)
        return max(len(list(run)) for missing, run in runs if missing)

    @property
    def tenths(self) -> list[int | None]:
        """The points as they are stored: in tenths of a percent."""
        return [None if value is None else round(value * 10) for value in self.values]

    def cut(self, start: int, stop: int) -> Series:
        """The points from `start` up to but not including `stop`."""
        return Series(self.values[start:stop])


def pick_all(hosts: Mapping[str, Series], kept: Sequence[int]) -> dict[str, Series]:
    """The points at these indices, of each host that has any."""
    picked = {host: Series(tuple(line.values[at] for at in kept)) for host, line in hosts.items()}
    return {host: line for host, line in picked.items() if line.present}


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean of at least one value."""
    return math.fsum(values) / len(values)


def mean_of_hosts(hosts: Iterable[Series]) -> float:
    """The mean of all points of all hosts, of which there is at least one."""
    return mean([value for line in hosts for value in line.present])


def percentile(values: Sequence[float], percent: float) -> float:
    """The linearly interpolated percentile of at least one value (0..100)."""
    ordered = sorted(values)
    rank = (len(ordered) - 1) * percent / 100
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (rank - low)


def percentile_of_busiest(hosts: Iterable[Series], percent: float) -> float:
    """The highest of the hosts' percentiles; each of at least one host has a value."""
    return max(percentile(line.present, percent) for line in hosts)


def pairs(
    hosts: Mapping[str, Series], others: Mapping[str, Series]
) -> Iterator[tuple[float, float]]:
    """Two metrics of one host in one period, of each host and period that has both."""
    for host in (name for name in hosts if name in others):
        for value, other in zip(hosts[host].values, others[host].values, strict=True):
            if value is not None and other is not None:
                yield value, other
