"""One metric of one host at an even period; a missing point is None."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, groupby
from operator import itemgetter
from typing import cast

from msgspec import Struct


class Series(Struct, frozen=True, dict=True):
    """Values in percent (0..100 of one vCPU, one GPU, the memory), one each period.

    Without slots: the present points and what many rules ask of them are worked out once and kept.
    """

    values: tuple[float | None, ...]

    @cached_property
    def present(self) -> Sequence[float]:
        """The points that are not missing."""
        try:
            sum(cast(Sequence[float], self.values))  # looks for None in a quarter of the time
        except TypeError:
            return [value for value in self.values if value is not None]
        return cast(Sequence[float], self.values)

    @cached_property
    def whole(self) -> bool:
        """Whether no point is missing."""
        return len(self.present) == len(self.values)

    @cached_property
    def highest(self) -> float:
        """The highest of its points, of which there is at least one."""
        return max(self.present)

    @cached_property
    def lowest(self) -> float:
        """The lowest of its points, of which there is at least one."""
        return min(self.present)

    @cached_property
    def mean(self) -> float:
        """The mean of its points, of which there is at least one."""
        return mean(self.present)

    @property
    def share(self) -> float:
        """Points present of points expected, 0..1."""
        return len(self.present) / len(self.values) if self.values else 0.0

    def over(self, divisor: int) -> Series:
        """Each point divided, of a line with a point. No quotient is below that of the lowest, or
        above that of the highest: these are known without another look at all of them.
        """
        if divisor == 1:
            return self
        if self.whole:
            made = Series(tuple([value / divisor for value in self.present]))
            vars(made)["present"] = made.values
        else:
            made = Series(
                tuple([None if value is None else value / divisor for value in self.values])
            )
        vars(made).update(lowest=self.lowest / divisor, highest=self.highest / divisor)
        return made

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

    @cached_property
    def longest_gap(self) -> int:
        """The most missing points in a row."""
        if self.whole:
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
    """The points at these indices, which ascend, of each host that has any."""
    if not kept:
        return {}
    in_a_row = kept[-1] - kept[0] + 1 == len(kept)
    if in_a_row and all(len(line.values) == len(kept) for line in hosts.values()):
        return {host: line for host, line in hosts.items() if line.present}
    pick = itemgetter(slice(kept[0], kept[-1] + 1)) if in_a_row else itemgetter(*kept)
    picked = {host: Series(pick(line.values)) for host, line in hosts.items()}
    return {host: line for host, line in picked.items() if line.present}


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean of at least one value."""
    return math.fsum(values) / len(values)


def mean_of_hosts(hosts: Iterable[Series]) -> float:
    """The mean of all points of all hosts, of which there is at least one."""
    lines = [line.present for line in hosts]
    return math.fsum(chain.from_iterable(lines)) / sum(map(len, lines))


def percentile(values: Sequence[float], percent: float) -> float:
    """The linearly interpolated percentile of at least one value (0..100)."""
    ordered = sorted(values)
    low, high, share = _ranks(len(ordered), percent)
    return ordered[low] + (ordered[high] - ordered[low]) * share


def percentile_of_busiest(hosts: Iterable[Series], percent: float) -> float:
    """The highest of the hosts' percentiles; each of at least one host has a value.

    Of all hosts after the first one only the points above the highest percentile so far are sorted:
    where these are too few, the host's own is lower.
    """
    first, *others = hosts
    highest = percentile(first.present, percent)
    for line in others:
        if line.highest <= highest:
            continue
        points = line.present
        low, high, share = _ranks(len(points), percent)
        above = sorted([value for value in points if value > highest])
        below = len(points) - len(above)
        if high >= below:
            least = max(v for v in points if v <= highest) if low < below else above[low - below]
            highest = max(highest, least + (above[high - below] - least) * share)
    return highest


def _ranks(count: int, percent: float) -> tuple[int, int, float]:
    """Between which two of so many ordered values a percentile lies, and how far from the first."""
    rank = (count - 1) * percent / 100
    low = math.floor(rank)
    return low, min(low + 1, count - 1), rank - low


def pairs(
    hosts: Mapping[str, Series], others: Mapping[str, Series]
) -> tuple[list[float], list[float]]:
    """Two metrics of one host in one period, of each host and period that has both: two columns of
    as many points.
    """
    first: list[float] = []
    second: list[float] = []
    for host in hosts:
        if host not in others:
            continue
        one, other = hosts[host], others[host]
        if one.whole and other.whole:
            first += one.present
            second += other.present
            continue
        for a, b in zip(one.values, other.values, strict=True):
            if a is not None and b is not None:
                first.append(a)
                second.append(b)
    return first, second
