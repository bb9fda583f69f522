"""The active minutes of a family's last runs together, for a run too short to be judged alone.

Minutes of several runs stand one after the other, as if one run had done all of them. That holds
for how much was used (means, percentiles, peaks), and not for when: nothing that looks at the order
of minutes, at a run's start or at its end may read a pool.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from msgspec import Struct

from sageaudit.domain.usage.measurements import MIN_ACTIVE_MINUTES, Measurements, Metric
from sageaudit.domain.usage.series import Series, pick_all
from sageaudit.structs import replace

ENOUGH_MINUTES = 3 * MIN_ACTIVE_MINUTES
"""Runs differ more from each other than the minutes of one run do, so a pool goes on to three times
what one run needs: our choice."""


class PooledRuns(Struct, frozen=True):
    """`names`: the earlier runs, newest first. `usage`: their active minutes, then the run's own.

    `own`: the active minutes of the run itself; `parts`: those of each run. Minutes before the
    first point of CPU and GPU are in none of these: points come late, and of a short run a third
    may lack them. `for_peaks` are all minutes, and the run's own again: it needs what any of them
    used, and no less than it used itself.
    `newest`: the pool of only as many of the newest runs as are enough, None where that is all of
    them: after a change of the code the newest runs are alike, and the older ones are not.
    """

    names: tuple[str, ...]
    usage: Measurements
    own: Measurements
    for_peaks: tuple[Measurements, ...]
    parts: tuple[Measurements, ...]
    newest: PooledRuns | None = None

    @property
    def runs(self) -> int:
        """How many runs it has, this one included."""
        return len(self.names) + 1

    @property
    def enough(self) -> bool:
        """Whether its minutes are as many as a run that is judged alone has."""
        return self.usage.minutes >= MIN_ACTIVE_MINUTES


def short_use(usage: Measurements) -> Measurements | None:
    """The active minutes of a run that has some, but too few to be judged alone; else None."""
    grid = range(usage.points)
    first = next(filter(usage.worked, grid), None)
    if first is None:
        return None
    last = next(filter(usage.worked, reversed(grid)))
    if (last + 1 - first) * (usage.period_s or 0) >= MIN_ACTIVE_MINUTES * 60:
        return None  # known without looking at each minute: most runs are long
    active = usage.active()
    short = active.minutes < MIN_ACTIVE_MINUTES
    return active if short and _seen(active) is not None else None


def _seen(active: Measurements) -> Measurements | None:
    """From the first minute with points of CPU and GPU to the last one; None without any."""
    starts, stops = [0], [active.points]
    for metric in (Metric.CPU, Metric.GPU):
        if lines := active.series.get(metric):
            known = [
                minute
                for minute in range(active.points)
                if any(line.values[minute] is not None for line in lines.values())
            ]
            starts.append(known[0])
            stops.append(known[-1] + 1)
    start, stop = max(starts), min(stops)
    series = {
        metric: pick_all(hosts, range(start, stop)) for metric, hosts in active.series.items()
    }
    series = {metric: hosts for metric, hosts in series.items() if hosts}
    return replace(active, points=stop - start, series=series) if start < stop else None


def use_digest(usage: Measurements) -> str | None:
    """Changes with the minutes that a run adds to pools; None for a run that adds none."""
    active = short_use(usage)
    if active is None:
        return None
    lines = sorted(
        (metric.value, host.rpartition("/")[2], line.tenths)
        for metric, hosts in active.series.items()
        for host, line in hosts.items()
    )
    return f"{zlib.crc32(repr((active.period_s, lines)).encode()):08x}"


def pooled(active: Measurements, earlier: Iterable[tuple[str, Measurements]]) -> PooledRuns:
    """Adds the active minutes of earlier runs, newest first, until there are enough.

    `active` is what `short_use` gives of the run. A run with other hosts, metrics or periods is
    left out, and so is one with too few points. `earlier` is read only as far as it is needed.
    """
    own = _seen(active) or active
    names: list[str] = []
    whole, seen = [active], [own]
    minutes = own.minutes
    newest = None
    runs = iter(earlier)
    while minutes < ENOUGH_MINUTES and (run := next(runs, None)) is not None:
        part = short_use(run[1])
        points = None if part is None else _seen(part)
        if part is not None and points is not None and _alike(points, own):
            names.append(run[0])
            whole.insert(0, part)
            seen.insert(0, points)
            minutes += points.minutes
            if newest is None and minutes >= MIN_ACTIVE_MINUTES:
                newest = _pool(names, whole, seen)
    if newest is not None and newest.names == tuple(names):
        newest = None
    return _pool(names, whole, seen, newest)


def _pool(
    names: list[str],
    whole: list[Measurements],
    seen: list[Measurements],
    newest: PooledRuns | None = None,
) -> PooledRuns:
    """Of the runs in their order, the oldest first; the last one is judged."""
    peaks = (_joined(whole), whole[-1])
    return PooledRuns(tuple(names), _joined(seen), seen[-1], peaks, tuple(seen), newest)


def _alike(part: Measurements, own: Measurements) -> bool:
    """Whether all that was recorded of the one was recorded of the other, by the same hosts."""
    same = part.period_s == own.period_s and part.series.keys() >= own.series.keys()
    return same and all(
        len(part.series[metric]) == len(hosts) and part.gap(metric) is None
        for metric, hosts in own.series.items()
    )


def _joined(parts: list[Measurements]) -> Measurements:
    """The minutes of all parts in their order; the last one names the hosts."""
    own = parts[-1]
    series = {metric: _lines(parts, metric) for metric in own.series}
    return replace(own, points=sum(part.points for part in parts), series=series, begins_at=None)


def _lines(parts: list[Measurements], metric: Metric) -> dict[str, Series]:
    """By the place of a host in its run: the first of each run one after the other, and so on."""
    hosts = [[host for host in part.hosts if host in part.series[metric]] for part in parts]
    return {
        names[-1]: Series(
            tuple(
                value
                for part, name in zip(parts, names, strict=True)
                for value in part.series[metric][name].values
            )
        )
        for names in zip(*hosts, strict=True)
    }
