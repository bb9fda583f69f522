"""One metric of one host at an even period, and whether the host is active in each period.

A missing point is None. A standstill may be a hung process, which sleeps, or waits in a loop with
one thread. Shorter stretches are ordinary: a checkpoint, an evaluation, a download.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial, reduce
from itertools import chain, compress
from operator import or_
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

IDLE = 0
"""The state of a host that is known to be idle."""
ACTIVE = 1
"""The state of a host that is active."""
UNKNOWN = 2
"""The state of a host without a point."""
States = bytes
"""The state of each period. Bytes are joined, searched and cut without a look at each period."""
_UNKNOWN_WINS = bytes.maketrans(bytes([ACTIVE | UNKNOWN]), bytes([UNKNOWN]))
# A pattern that begins with a literal is found in a tenth of the time.
_GAPS = re.compile(rb"\x02\x02*")
_GAP_AFTER_IDLE = re.compile(rb"\x00(\x02\x02*)(?=(\x00)|\Z)")
_IS_PRESENT = bytes.maketrans(bytes([0, UNKNOWN]), bytes([1, 0]))
_ACTIVE_WINS = bytes.maketrans(bytes([ACTIVE | UNKNOWN]), bytes([ACTIVE]))


class Series(Struct, frozen=True, dict=True):
    """The percentages (0..100) of one metric of one host by period.

    100 means all vCPUs, all GPUs or the whole memory. The class has no slots, so that figures for
    many rules are cached.
    """

    values: tuple[float | None, ...]

    @cached_property
    def missing(self) -> States:
        """UNKNOWN for each missing point, 0 for the others."""
        missing = bytearray(len(self.values))
        try:
            sum(cast(Sequence[float], self.values))  # finds None in a quarter of the time
        except TypeError:
            with suppress(ValueError):  # `index` finds no more
                place = -1
                while True:
                    place = self.values.index(None, place + 1)
                    missing[place] = UNKNOWN
        return bytes(missing)

    @cached_property
    def present(self) -> Sequence[float]:
        """The points that are not missing."""
        if self.is_complete:
            return cast(Sequence[float], self.values)
        return [value for value in self.values if value is not None]

    @cached_property
    def is_complete(self) -> bool:
        """Whether no point is missing."""
        return UNKNOWN not in self.missing

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
        else:
            line = Series(
                tuple([None if value is None else value / divisor for value in self.values])
            )
        vars(line).update(
            missing=self.missing, lowest=self.lowest / divisor, highest=self.highest / divisor
        )
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
        return longest_run(self.missing)

    @property
    def recorded_periods(self) -> range:
        """The periods from the first point to the last."""
        stop = len(self.missing.rstrip(bytes([UNKNOWN])))
        return range(leading_periods(self.missing, UNKNOWN), stop)

    @property
    def tenths(self) -> list[int | None]:
        """The points in tenths of a percent."""
        return [None if value is None else round(value * 10) for value in self.values]

    def slice(self, start: int, stop: int) -> Series:
        """Returns the points from `start` up to but not including `stop`."""
        return self.select([range(start, stop)])

    def select(self, periods: Sequence[range]) -> Series:
        """Returns the points in these stretches, which ascend."""
        if len(periods) == 1:
            line = Series(self.values[periods[0].start : periods[0].stop])
        else:
            parts = [self.values[stretch.start : stretch.stop] for stretch in periods]
            line = Series(tuple(chain.from_iterable(parts)))
        vars(line)["missing"] = b"".join(
            [self.missing[stretch.start : stretch.stop] for stretch in periods]
        )
        return line


def leading_periods(states: States | bytearray, state: int) -> int:
    """Returns how many periods at the start have this state."""
    return len(states) - len(states.lstrip(bytes([state])))


def longest_run(missing: States) -> int:
    """Returns the largest number of missing points in a row."""
    return max(map(len, _GAPS.findall(missing)), default=0)


def select_points(hosts: Mapping[str, Series], periods: Sequence[range]) -> dict[str, Series]:
    """Returns the points in these ascending stretches, for each host that has any."""
    count = sum(map(len, periods))
    if count and all(len(line.values) == count for line in hosts.values()):
        return {host: line for host, line in hosts.items() if line.present}
    selected = {host: line.select(periods) for host, line in hosts.items()}
    return {host: line for host, line in selected.items() if line.present}


def shared_periods(lines: Collection[Series], periods: range) -> list[range]:
    """Returns the stretches of `periods` in which every series has a point."""
    missing = combine_states([line.missing for line in lines])
    return list(state_ranges(missing, 0, periods))


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
        missing = combine_states((line.missing, other.missing))
        has_both = missing.translate(_IS_PRESENT)
        first += cast(Iterable[float], compress(line.values, has_both))
        second += cast(Iterable[float], compress(other.values, has_both))
    return first, second


def cpu_states(percents: Sequence[float], vcpu: int | None) -> States:
    """Returns whether a host with `vcpu` vCPUs is active at each CPU utilisation (0..100).

    UNKNOWN for each if `vcpu` is unknown.
    """
    if vcpu is None:
        return bytes([UNKNOWN]) * len(percents)
    return bytes([percent * vcpu / 100 >= IDLE_BELOW_CORES for percent in percents])


def gpu_states(percents: Sequence[float], gpus: int | None) -> States:
    """Returns whether a host with `gpus` GPUs is active at each mean utilisation (0..100)."""
    gpu_count = gpus or 1
    return bytes([percent * gpu_count > IDLE_MAX_GPU_PERCENT for percent in percents])


def states_above(percents: Sequence[float], limit: float) -> States:
    """Returns whether each value is above a limit."""
    return bytes([percent > limit for percent in percents])


def states(
    line: Series, find_states: Callable[[Sequence[float]], States], period_s: int | None
) -> States:
    """Returns whether a host is active in each period.

    `find_states`: returns the states of points. A short gap (MAX_IDLE_GAP_S) between two idle
    points, or between an idle point and the end, is idle too. One lost point would otherwise make
    hours of idleness look like work.
    """
    if not line.present:
        return line.missing
    judged = find_states([line.lowest, line.highest])
    if judged[0] == judged[1]:
        judged = judged[:1] * len(line.values)
    elif line.is_complete:
        judged = find_states(line.present)
    else:
        judged = find_states([value or 0.0 for value in line.values])
    if line.is_complete:
        return judged
    judged = _join((judged, line.missing)).translate(_UNKNOWN_WINS)
    longest = MAX_IDLE_GAP_S // (period_s or MAX_IDLE_GAP_S + 1)
    return _GAP_AFTER_IDLE.sub(partial(_gap_states, longest=longest), judged)


def _gap_states(gap: re.Match[bytes], longest: int) -> States:
    """Returns the states of an idle point and the missing ones after it.

    An idle point or the end follows. `longest`: a missing point is idle only if its neighbours are
    at most this many periods away.
    """
    length, is_at_end = len(gap[1]), gap[2] is None
    idle = range(max(length - longest - is_at_end, 0), min(longest, length))
    if not idle:
        return gap[0]
    idle_points = bytes([IDLE]) * len(idle)
    return gap[0][: 1 + idle.start] + idle_points + gap[0][1 + idle.stop :]


def _join(states: Iterable[States]) -> States:
    """Returns the states with the bits of all, which are of equal length."""
    [count] = {len(each) for each in states}
    bits = reduce(or_, [int.from_bytes(each, "little") for each in states])
    return bits.to_bytes(count, "little")


def combine_states(hosts: Collection[States]) -> States:
    """Returns the state of all hosts together in each period.

    It is active if any host is active, idle if all are known to be idle, else unknown.
    """
    if not hosts:
        return b""
    return _join(hosts).translate(_ACTIVE_WINS)


def state_ranges(states: States | bytearray, state: int, periods: range) -> Iterator[range]:
    """Yields the stretches of a state in `periods`, in order."""
    literal = re.escape(bytes([state]))
    pattern = re.compile(literal + literal + b"*")
    for match in pattern.finditer(states, periods.start, periods.stop):
        yield range(*match.span())


def true_ranges(flags: Sequence[bool]) -> Iterator[range]:
    """Yields the ranges of true flags."""
    return state_ranges(bytes(flags), 1, range(len(flags)))


def standstills(
    gpu_states_of_hosts: Sequence[States], cpus: Sequence[Series], vcpu: int, period_s: int
) -> tuple[range, ...]:
    """Returns the standstills after the first GPU work; earlier stretches may be preparation.

    `gpu_states_of_hosts`: the states of each host's GPUs. Periods with an unknown state are not in
    a standstill.
    """
    gpus = combine_states(gpu_states_of_hosts)
    after_work = range(max(gpus.find(ACTIVE), 0), len(gpus))
    if ACTIVE not in gpus or all(
        len(pause) * period_s < MIN_STANDSTILL_S for pause in state_ranges(gpus, IDLE, after_work)
    ):
        return ()  # without a look at the CPUs
    limit = ONE_PROCESS_MAX_CORES * 100 / vcpu
    cpu_states_joined = combine_states(
        [states(line, partial(states_above, limit=limit), period_s) for line in cpus]
    )
    still = bytearray(combine_states((gpus, cpu_states_joined)))
    still[: after_work.start] = bytes([ACTIVE]) * after_work.start
    if period_s <= _BLIP_S:
        for period in _blips(still, _BLIP_MARGIN_S // period_s):
            if gpus[period] == IDLE and cpu_states_joined[period] == ACTIVE:
                still[period] = IDLE
    return tuple(
        run
        for run in state_ranges(still, IDLE, after_work)
        if len(run) * period_s >= MIN_STANDSTILL_S
    )


def _blips(still: bytearray, neighbours: int) -> list[int]:
    idle = re.escape(bytes([IDLE]))
    margin = idle * neighbours
    pattern = re.compile(b"(?<=%b)[^%b](?=%b)" % (margin, idle, margin))
    return [match.start() for match in pattern.finditer(still)]
