"""Functions on whole series give the same as functions on single points."""

import math
from collections.abc import Sequence
from itertools import groupby

from hypothesis import example, given
from hypothesis import strategies as st

from sageaudit.domain.usage.measure import _normalise, _normalise_all
from sageaudit.domain.usage.series import (
    MAX_IDLE_GAP_S,
    UNKNOWN,
    Series,
    States,
    combine_states,
    gpu_states,
    mean_of_hosts,
    pairs,
    percentile,
    percentile_of_busiest,
    select_points,
    shared_periods,
    states,
)

PERCENT = st.floats(0, 100) | st.sampled_from((0.0, 50.0, 100.0))
POINT = PERCENT | st.none()
LINES = st.lists(st.lists(POINT, min_size=1, max_size=30), min_size=1, max_size=6)


@given(
    hosts=st.lists(st.lists(PERCENT, min_size=1, max_size=40), min_size=1, max_size=8),
    percent=st.sampled_from((0, 5, 50, 95, 99.5, 100)),
)
def test_the_busiest_hosts_percentile(hosts: list[list[float]], percent: float) -> None:
    """In any order of the hosts, and with equal points."""
    result = percentile_of_busiest((Series(tuple(points)) for points in hosts), percent)
    assert result == max(percentile(points, percent) for points in hosts)


@given(
    raw=st.lists(
        st.floats(-1, 500) | st.none() | st.sampled_from((math.nan, math.inf, 400.0)), max_size=20
    ),
    divisor=st.sampled_from((1, 3, 4)),
)
@example(raw=[], divisor=1)
@example(raw=[None, None], divisor=4)
def test_points_that_are_normalised_at_once(raw: list[float | None], divisor: int) -> None:
    """Points that are not a utilisation are dropped."""
    each = tuple(_normalise(value, divisor) for value in raw)
    line = _normalise_all(tuple(raw), divisor)
    assert line.values == each
    if known := Series(each).present:
        assert (line.lowest, line.highest) == (min(known), max(known))
    assert list(line.present) == list(known)


def by_points(values: list[float | None], longest: int) -> list[bool | None]:
    """Returns whether a host of two GPUs works, point by point: the rule of `states`."""
    judged = [None if value is None else value * 2 > 1 for value in values]
    at = 0
    result: list[bool | None] = []
    for gap, run in groupby(value is None for value in values):
        length = len(list(run))
        before, after = judged[at - 1] if at else None, next(iter(judged[at + length :]), None)
        for place in range(length):
            if not gap:
                result.append(judged[at + place])
                continue
            near = place < longest and before is False
            reached = after is False and length - 1 - place < longest
            ends = at + length == len(values) and length - 1 - place <= longest and longest > 0
            result.append(False if near and (reached or ends) else None)
        at += length
    return result


@given(
    values=st.lists(st.sampled_from((0.0, 0.4, 0.6, 90.0, None)), min_size=1, max_size=14),
    period_s=st.sampled_from((60, 300)),
)
def test_states_of_a_whole_line(values: list[float | None], period_s: int) -> None:
    """With and without missing points."""
    result = states(Series(tuple(values)), lambda points: gpu_states(points, 2), period_s)
    assert result == packed(by_points(values, MAX_IDLE_GAP_S // period_s))


def packed(flags: list[bool | None]) -> States:
    """Returns the states of hosts that are active, idle or neither."""
    return bytes(UNKNOWN if flag is None else flag for flag in flags)


def any_active(hosts: Sequence[bool | None]) -> bool | None:
    """Returns whether any host is active, if that is known."""
    return True if any(hosts) else None if None in hosts else False


@given(lines=LINES)
def test_states_of_several_hosts(lines: list[list[float | None]]) -> None:
    """Active if any host is, idle if all are, in each period."""
    one = [None if value is None else value > 50 for value in lines[0]]
    for hosts in ([one], [one, one[::-1]], [one, one[::-1], one]):
        joined = [any_active(at) for at in zip(*hosts, strict=True)]
        assert combine_states([packed(host) for host in hosts]) == packed(joined)


@given(values=st.lists(POINT, max_size=40), start=st.integers(0, 40), length=st.integers(0, 40))
def test_missing_points_of_a_line(values: list[float | None], start: int, length: int) -> None:
    """Of a whole line, and of a part."""
    whole = Series(tuple(values))
    for line in (whole, whole.slice(start, start + length)):
        present = [at for at, value in enumerate(line.values) if value is not None]
        assert [at for at, state in enumerate(line.missing) if state != UNKNOWN] == present
        assert list(line.present) == [value for value in line.values if value is not None]
        assert line.is_complete is (len(present) == len(line.values))
        gaps = [len(list(gap)) for value, gap in groupby(line.values) if value is None]
        assert line.longest_gap == max(gaps, default=0)
        if present:
            assert line.recorded_periods == range(present[0], present[-1] + 1)


@given(lines=LINES, data=st.data())
def test_pairs_means_and_picked_points(
    lines: list[list[float | None]], data: st.DataObject
) -> None:
    """With and without missing points."""
    hosts = {f"algo-{at}": Series(tuple(values)) for at, values in enumerate(lines)}
    others = {host: Series(line.values[::-1]) for host, line in hosts.items()}
    assert list(zip(*pairs(hosts, others), strict=True)) == [
        (a, b)
        for host, line in hosts.items()
        for a, b in zip(line.values, others[host].values, strict=True)
        if a is not None and b is not None
    ]
    points = [value for line in lines for value in line if value is not None]
    if points:
        assert mean_of_hosts(hosts.values()) == math.fsum(points) / len(points)
    shortest = min(map(len, lines))
    kept = sorted(data.draw(st.sets(st.integers(0, shortest - 1))))
    picked = {host: tuple(line.values[at] for at in kept) for host, line in hosts.items()}
    some = {host: values for host, values in picked.items() if set(values) - {None}}
    periods = [range(at, at + 1) for at in kept]
    assert {host: line.values for host, line in select_points(hosts, periods).items()} == some
    cut = [line.slice(0, shortest) for line in hosts.values()]
    shared = shared_periods(cut, range(shortest))
    assert [at for part in shared for at in part] == [
        at for at in range(shortest) if all(line.values[at] is not None for line in hosts.values())
    ]
