"""One metric of one host at an even period, and whether the host is active in each period.

A missing point is None. A standstill may be a hung process, which sleeps, or waits in a loop with
one thread. Shorter stretches are ordinary: a checkpoint, an evaluation, a download.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial, reduce
from itertools import chain, groupby
from operator import itemgetter
from typing import cast

from msgspec import Struct

IDLE_BELOW_CORES = 0.2
"""A minute without GPU work is idle below this many busy cores. One busy core of 64 still counts as
work. Idle hosts in the recordings use 0 to 0.19 cores."""
ONE_PROCESS_MAX_CORES = 1.2
"""A host with one process that keeps one core busy uses at most this many cores: 1.01 for the
process (Jobstats), and up to 0.19 for the system."""
IDLE_MAX_GPU_PERCENT = 1.0
"""A host's GPUs are idle if together they show at most this percentage of one GPU."""
MAX_FIRST_POINT_DELAY_S = 360
"""The longest delay of a host's first points: 3 to 6 minutes in real recordings."""
MAX_IDLE_GAP_S = 180
"""A gap between idle points is idle, too, up to this length: CloudWatch loses a minute now and
then."""
MIN_STANDSTILL_S = 1800
"""The shortest standstill: half an hour, since ordinary pauses are shorter. Our choice, like
gpu-pruner's 30 minutes."""
COARSEST_PERIOD_S = 300
"""The longest period in which standstills are found: a longer mean may hide minutes of work."""
_BLIP_S = 60
"""The length of a blip: one busy minute that is not work, such as a scheduled task of the host."""
_BLIP_MARGIN_S = 600
"""A blip is part of a standstill only if this many still seconds come before it, and after it. A
standstill is then at most 5% too long."""

States = list[bool | None]
"""For each period: active (True), known to be idle (False), or unknown (None)."""


class Series(Struct, frozen=True, dict=True):
    """The percentages (0..100) of one metric of one host by period.

    100 means all vCPUs, all GPUs or the whole memory. The class has no slots, so that figures for
    many rules are cached.
    """

    values: tuple[float | None, ...]

    @cached_property
    def present(self) -> Sequence[float]:
        """The points that are not missing."""
        try:
            sum(cast(Sequence[float], self.values))  # finds None in a quarter of the time
        except TypeError:
            return [value for value in self.values if value is not None]
        return cast(Sequence[float], self.values)

    @cached_property
    def is_complete(self) -> bool:
        """Whether no point is missing."""
        return len(self.present) == len(self.values)

    @cached_property
    def highest(self) -> float:
        """The highest point; the series must have one."""
        return max(self.present)

    @cached_property
    def lowest(self) -> float:
        """The lowest point; the series must have one."""
        return min(self.present)

    @cached_property
    def mean(self) -> float:
        """The mean of the points; the series must have one."""
        return mean(self.present)

    @property
    def share(self) -> float:
        """The share (0..1) of the periods that have a point."""
        return len(self.present) / len(self.values) if self.values else 0.0

    def divide_by(self, divisor: int) -> Series:
        """Returns the series with each point divided by `divisor`. The series must have a point."""
        if divisor == 1:
            return self
        if self.is_complete:
            line = Series(tuple([value / divisor for value in self.present]))
            vars(line)["present"] = line.values
        else:
            line = Series(
                tuple([None if value is None else value / divisor for value in self.values])
            )
        vars(line).update(lowest=self.lowest / divisor, highest=self.highest / divisor)
        return line

    def merged_where_equal(self, other: Series | None) -> Series:
        """Returns the points of two series of one host on one grid.

        A point that differs between the two becomes unknown. A point that only one series has is
        kept.
        """
        if other is None:
            return self
        pairs = zip(self.values, other.values, strict=True)
        return Series(
            tuple(
                value
                if other_value is None or value == other_value
                else other_value
                if value is None
                else None
                for value, other_value in pairs
            )
        )

    @cached_property
    def longest_gap(self) -> int:
        """The largest number of missing points in a row."""
        if self.is_complete:
            return 0
        runs = groupby(value is None for value in self.values)
        return max(len(list(run)) for is_missing, run in runs if is_missing)

    @property
    def tenths(self) -> list[int | None]:
        """The points in tenths of a percent, as they are stored."""
        return [None if value is None else round(value * 10) for value in self.values]

    def slice(self, start: int, stop: int) -> Series:
        """Returns the points from `start` up to but not including `stop`."""
        return Series(self.values[start:stop])


def select_points(hosts: Mapping[str, Series], indices: Sequence[int]) -> dict[str, Series]:
    """Returns the points at these ascending indices, for each host that has any."""
    if not indices:
        return {}
    in_a_row = indices[-1] - indices[0] + 1 == len(indices)
    if in_a_row and all(len(line.values) == len(indices) for line in hosts.values()):
        return {host: line for host, line in hosts.items() if line.present}
    select = itemgetter(slice(indices[0], indices[-1] + 1)) if in_a_row else itemgetter(*indices)
    selected = {host: Series(select(line.values)) for host, line in hosts.items()}
    return {host: line for host, line in selected.items() if line.present}


def mean(values: Sequence[float]) -> float:
    """Returns the arithmetic mean of at least one value."""
    return math.fsum(values) / len(values)


def mean_of_hosts(hosts: Iterable[Series]) -> float:
    """Returns the mean of all points of all hosts; at least one host must have a point."""
    lines = [line.present for line in hosts]
    return math.fsum(chain.from_iterable(lines)) / sum(map(len, lines))


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns the linearly interpolated percentile (0..100) of at least one value."""
    ordered = sorted(values)
    low, high, share = _ranks(len(ordered), percent)
    return ordered[low] + (ordered[high] - ordered[low]) * share


def percentile_of_busiest(hosts: Iterable[Series], percent: float) -> float:
    """Returns the highest of the hosts' percentiles; at least one host must have a value."""
    first, *others = hosts
    highest = percentile(first.present, percent)
    for line in others:
        if line.highest <= highest:
            continue
        points = line.present
        low, high, share = _ranks(len(points), percent)
        values_above = sorted([value for value in points if value > highest])
        count_below = len(points) - len(values_above)
        if high >= count_below:
            low_value = (
                max(v for v in points if v <= highest)
                if low < count_below
                else values_above[low - count_below]
            )
            highest = max(
                highest, low_value + (values_above[high - count_below] - low_value) * share
            )
    return highest


def _ranks(count: int, percent: float) -> tuple[int, int, float]:
    rank = (count - 1) * percent / 100
    low = math.floor(rank)
    return low, min(low + 1, count - 1), rank - low


def pairs(
    hosts: Mapping[str, Series], other_hosts: Mapping[str, Series]
) -> tuple[list[float], list[float]]:
    """Returns the points of two metrics as two lists of the same length.

    Only hosts and periods with a point of both metrics count.
    """
    first: list[float] = []
    second: list[float] = []
    for host in hosts:
        if host not in other_hosts:
            continue
        line, other = hosts[host], other_hosts[host]
        if line.is_complete and other.is_complete:
            first += line.present
            second += other.present
            continue
        for value, other_value in zip(line.values, other.values, strict=True):
            if value is not None and other_value is not None:
                first.append(value)
                second.append(other_value)
    return first, second


def cpu_states(percents: Sequence[float], vcpu: int | None) -> States:
    """Returns whether a host with `vcpu` vCPUs is active at each CPU utilisation (0..100).

    None for each if `vcpu` is unknown.
    """
    if vcpu is None:
        return [None] * len(percents)
    return [percent * vcpu / 100 >= IDLE_BELOW_CORES for percent in percents]


def gpu_states(percents: Sequence[float], gpus: int | None) -> States:
    """Returns whether a host with `gpus` GPUs is active at each mean utilisation (0..100)."""
    gpu_count = gpus or 1
    return [percent * gpu_count > IDLE_MAX_GPU_PERCENT for percent in percents]


def states_above(percents: Sequence[float], limit: float) -> States:
    """Returns whether each value is above a limit."""
    return [percent > limit for percent in percents]


def states(
    line: Series, find_states: Callable[[Sequence[float]], States], period_s: int | None
) -> States:
    """Returns whether a host is active in each period.

    `find_states`: returns the states of points. A short gap (MAX_IDLE_GAP_S) between two idle
    points, or between an idle point and the end, is idle too. One lost point would otherwise make
    hours of idleness look like work.
    """
    if line.present:
        lowest, highest = find_states([line.lowest, line.highest])
        judged = [lowest] * len(line.present) if lowest is highest else find_states(line.present)
    else:
        judged = []
    if line.is_complete:
        return judged
    longest, values = MAX_IDLE_GAP_S // (period_s or MAX_IDLE_GAP_S + 1), iter(judged)
    points = [None if value is None else next(values) for value in line.values]
    return [
        _state_in_gap(points, index, longest) if value is None else points[index]
        for index, value in enumerate(line.values)
    ]


def _state_in_gap(points: States, index: int, longest: int) -> bool | None:
    before = points[max(index - longest, 0) : index]
    after = points[index + 1 : index + 1 + longest]
    previous = next((state for state in reversed(before) if state is not None), None)
    following = next((state for state in after if state is not None), None)
    if previous is not False or following:
        return None
    is_at_end = longest and index + 1 + len(after) == len(points)
    return False if following is False or is_at_end else None


def any_active(hosts: Sequence[bool | None]) -> bool | None:
    """Returns True if any host is active, False if all are known to be idle, else None."""
    return True if any(hosts) else None if None in hosts or not hosts else False


def combine_two(states: States, other_states: States) -> States:
    """Returns the result of `any_active` for two hosts in each period."""
    return [
        True if state or other_state else None if state is None or other_state is None else False
        for state, other_state in zip(states, other_states, strict=True)
    ]


def combine_states(hosts: Sequence[States]) -> States:
    """Returns the result of `any_active` for all hosts in each period."""
    always = next((host for host in hosts if False not in host and None not in host), None)
    if always is not None:
        return list(always)
    if len(hosts) <= 2:  # noqa: PLR2004 - for more hosts, zip is faster
        return reduce(combine_two, hosts) if hosts else []
    return [any_active(states) for states in zip(*hosts, strict=True)]


def true_ranges(flags: Sequence[bool]) -> Iterator[range]:
    """Yields the ranges of true flags."""
    start = 0
    for value, group in groupby(flags):
        length = len(list(group))
        if value:
            yield range(start, start + length)
        start += length


def standstills(
    gpu_states_of_hosts: Sequence[States], cpus: Sequence[Series], vcpu: int, period_s: int
) -> tuple[range, ...]:
    """Returns the standstills after the first GPU work; earlier stretches may be preparation.

    `gpu_states_of_hosts`: the states of each host's GPUs. Periods with an unknown state are not in
    a standstill.
    """
    gpus = combine_states(gpu_states_of_hosts)
    if False not in gpus:
        return ()
    first_work = next((period for period, state in enumerate(gpus) if state), len(gpus))
    limit = ONE_PROCESS_MAX_CORES * 100 / vcpu
    hosts = [states(line, partial(states_above, limit=limit), period_s) for line in cpus]
    cpu_states_joined = combine_states(hosts)
    still_flags = [
        period > first_work and state is False and cpu_states_joined[period] is False
        for period, state in enumerate(gpus)
    ]
    if period_s <= _BLIP_S:
        for period in _blips(still_flags, _BLIP_MARGIN_S // period_s):
            still_flags[period] = gpus[period] is False and cpu_states_joined[period] is True
    return tuple(run for run in true_ranges(still_flags) if len(run) * period_s >= MIN_STANDSTILL_S)


def _blips(flags: Sequence[bool], neighbours: int) -> list[int]:
    return [
        index
        for index in range(neighbours, len(flags) - neighbours)
        if not flags[index]
        and all(flags[index - neighbours : index])
        and all(flags[index + 1 : index + 1 + neighbours])
    ]
