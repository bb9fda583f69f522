"""The use that rules judge: of one run, or of a pool with the family's last runs.

A run that is too short to be judged alone is judged by a pool, which joins the active minutes of
several runs. A pool shows how much was used (means, percentiles, peaks). It must not be used for
anything that depends on the order of minutes, or on a run's start or end.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from math import ceil

from msgspec import Struct

from sageaudit.domain.job.job import duration_text
from sageaudit.domain.usage.measurements import (
    MIN_ACTIVE_MINUTES,
    MIN_COVERAGE,
    Measurements,
    Metric,
    MissingMetrics,
)
from sageaudit.domain.usage.series import ACTIVE, Series, longest_run, select_points
from sageaudit.structs import replace

ENOUGH_MINUTES = 3 * MIN_ACTIVE_MINUTES
"""A pool grows until it has this many active minutes, three times what one run needs. Our choice:
runs differ more than the minutes of one run."""

_RESOURCES = {
    Metric.CPU: "the CPUs",
    Metric.MEMORY: "memory",
    Metric.GPU: "the GPUs",
    Metric.GPU_MEMORY: "GPU memory",
}
_UNSEEN_CODE = "accelerator_unseen"
_MIN_GAP_POINTS = 2
"""The fewest missing points of a reported gap: one point may be late."""


class PooledRuns(Struct, frozen=True):
    """The active minutes of a short run (the judged run) and of earlier runs of its family.

    `names`: the earlier runs, newest first. `own_usage`: the judged run's minutes. `usage`: the
    minutes of all runs, the judged run's last. `usage_by_run`: the minutes of each run, in the same
    order. `own_usage`, `usage` and `usage_by_run` omit the minutes before the first point of CPU
    and GPU, because points come late.

    `usage_for_peaks`: all active minutes of all runs, then those of the judged run alone. The
    demand of each must be met. `newest_pool`: a smaller pool, of the newest runs that have enough
    minutes to be judged; None if no smaller pool has enough.
    """

    names: tuple[str, ...]
    usage: Measurements
    own_usage: Measurements
    usage_for_peaks: tuple[Measurements, ...]
    usage_by_run: tuple[Measurements, ...]
    newest_pool: PooledRuns | None = None

    @property
    def runs(self) -> int:
        """The number of pooled runs, including the judged run."""
        return len(self.names) + 1

    @property
    def has_enough_minutes(self) -> bool:
        """Whether the pool has enough minutes to be judged like a single run."""
        return self.usage.minutes >= MIN_ACTIVE_MINUTES


def short_run_usage(usage: Measurements) -> Measurements | None:
    """Returns the active minutes of a run that has too few to be judged alone.

    None for any other run.
    """
    first_active, last_active = usage.states.find(ACTIVE), usage.states.rfind(ACTIVE)
    if first_active < 0:
        return None
    if (last_active + 1 - first_active) * (usage.period_s or 0) >= MIN_ACTIVE_MINUTES * 60:
        return None  # the common case, which needs no look at each minute
    active = usage.active_part()
    is_short = active.minutes < MIN_ACTIVE_MINUTES
    return active if is_short and _recorded_part(active) is not None else None


def _recorded_part(active: Measurements) -> Measurements | None:
    """Returns None if no minute has points of both CPU and GPU."""
    starts, stops = [0], [active.points]
    for metric in (Metric.CPU, Metric.GPU):
        if lines := active.series.get(metric):
            recorded = [line.recorded_periods for line in lines.values()]
            starts.append(min(periods.start for periods in recorded))
            stops.append(max(periods.stop for periods in recorded))
    start, stop = max(starts), min(stops)
    periods = [range(start, stop)]
    series = {metric: select_points(hosts, periods) for metric, hosts in active.series.items()}
    series = {metric: hosts for metric, hosts in series.items() if hosts}
    return replace(active, points=stop - start, series=series) if start < stop else None


def usage_digest(usage: Measurements) -> str | None:
    """Returns a checksum of the minutes that a run adds to pools; None if the run adds none."""
    active = short_run_usage(usage)
    if active is None:
        return None
    lines = sorted(
        (metric.value, host.rpartition("/")[2], line.tenths)
        for metric, hosts in active.series.items()
        for host, line in hosts.items()
    )
    return f"{zlib.crc32(repr((active.period_s, lines)).encode()):08x}"


def pool_runs(active: Measurements, earlier_runs: Iterable[tuple[str, Measurements]]) -> PooledRuns:
    """Returns a pool of a short run and earlier runs, which grows to `ENOUGH_MINUTES`.

    `active`: the result of `short_run_usage`. `earlier_runs`: the name and measurements of each
    earlier run, newest first. Runs with other hosts, metrics or periods, or with gaps, are skipped.
    """
    own = _recorded_part(active) or active
    names: list[str] = []
    parts, recorded_parts = [active], [own]
    minutes = own.minutes
    newest = None
    runs = iter(earlier_runs)
    while minutes < ENOUGH_MINUTES and (run := next(runs, None)) is not None:
        part = short_run_usage(run[1])
        recorded = None if part is None else _recorded_part(part)
        if part is not None and recorded is not None and _is_comparable(recorded, own):
            names.append(run[0])
            parts.insert(0, part)
            recorded_parts.insert(0, recorded)
            minutes += recorded.minutes
            if newest is None and minutes >= MIN_ACTIVE_MINUTES:
                newest = _pool(names, parts, recorded_parts)
    if newest is not None and newest.names == tuple(names):
        newest = None
    return _pool(names, parts, recorded_parts, newest)


def _pool(
    names: list[str],
    parts: list[Measurements],
    recorded_parts: list[Measurements],
    newest_pool: PooledRuns | None = None,
) -> PooledRuns:
    """Returns the pool of these runs.

    `names`: the earlier runs, newest first. `parts` and `recorded_parts`: one item for each run,
    the oldest first and the judged run last. `newest_pool`: the smaller pool of the newest runs.
    """
    peaks = (_join_usage(parts), parts[-1])
    return PooledRuns(
        tuple(names),
        _join_usage(recorded_parts),
        recorded_parts[-1],
        peaks,
        tuple(recorded_parts),
        newest_pool,
    )


def _is_comparable(part: Measurements, own_usage: Measurements) -> bool:
    is_alike = part.period_s == own_usage.period_s and part.series.keys() >= own_usage.series.keys()
    return is_alike and all(
        len(part.series[metric]) == len(hosts) and part.find_gap(metric) is None
        for metric, hosts in own_usage.series.items()
    )


def _join_usage(parts: list[Measurements]) -> Measurements:
    own = parts[-1]
    series = {metric: _join_series(parts, metric) for metric in own.series}
    return replace(own, points=sum(part.points for part in parts), series=series, begins_at=None)


def _join_series(parts: list[Measurements], metric: Metric) -> dict[str, Series]:
    """Returns one series for the first hosts of all runs, one for the second hosts, and so on."""
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


def unjudged_usage_sentences(
    usage: Measurements, codes: Collection[str], pool: PooledRuns | None = None
) -> Iterator[str]:
    """Yields sentences on what could not be judged.

    `codes`: why rules could not judge, such as `too_short`. `pool`: the pool of a short run; None
    if its family's history was not read.
    """
    yield from _missing_metric_sentences(usage)
    yield from _missing_host_sentences(usage)
    gaps = list(_gap_sentences(usage))
    yield from gaps
    if "coverage_low" in codes and not gaps:
        yield from _sparse_sentences(usage)
    if "too_short" in codes:
        yield f"{_too_short_sentence(usage)} {_pool_outlook_sentence(pool)}"
    if "too_few_points" in codes:
        yield f"Its use was not judged: {usage.points} points of each host are too few."
    if "period_too_coarse" in codes and usage.period_s:
        period = duration_text(Decimal(usage.period_s))
        yield (f"Its metrics have one point every {period}: idle time in between was not judged.")
    if "hosts_unmapped" in codes and Metric.CPU not in usage.missing:
        yield "Its hosts were not compared: CloudWatch does not say in which group each host is."


def _missing_metric_sentences(usage: Measurements) -> Iterator[str]:
    groups: dict[MissingMetrics, list[Metric]] = {}
    for metric in _RESOURCES:
        missing = usage.missing.get(metric)
        if missing is not None and missing.code != "no_gpu":
            groups.setdefault(missing, []).append(metric)
    for missing, metrics in groups.items():
        resources = _metric_names_text(metrics)
        if missing.code == _UNSEEN_CODE:
            resources = "the accelerators"
        elif len(groups) == 1 and not usage.series.keys() & _RESOURCES.keys():
            resources = "its machines"
        remedy = f" {missing.remedy}" if missing.remedy else ""
        yield f"The use of {resources} was not judged: {missing.reason}.{remedy}"


def _missing_host_sentences(usage: Measurements) -> Iterator[str]:
    missing_hosts = {
        metric: (usage.hosts_expected or 0) - len(hosts)
        for metric, hosts in usage.series.items()
        if metric in _RESOURCES
    }
    for hosts, metrics in _by_value({m: n for m, n in missing_hosts.items() if n > 0}):
        text = "" if len(metrics) == len(missing_hosts) else f" of {_metric_names_text(metrics)}"
        verb, pronoun = ("has", "it") if hosts == 1 else ("have", "they")
        yield (
            f"{hosts} of {usage.hosts_expected} hosts {verb} no metrics{text}: "
            f"what {pronoun} did was not judged."
        )


def _gap_sentences(usage: Measurements) -> Iterator[str]:
    period_s = usage.period_s or 0
    min_points = max(ceil(MIN_ACTIVE_MINUTES * 60 / period_s), _MIN_GAP_POINTS) if period_s else 0
    if min_points and all(
        line.is_complete for hosts in usage.series.values() for line in hosts.values()
    ):
        return
    end_gaps: dict[Metric, int] = {}
    inner_gaps: dict[Metric, int] = {}
    for metric, hosts in usage.series.items():
        if metric not in _RESOURCES:
            continue
        runs = [_gap_lengths(line) for line in hosts.values()]
        end_gaps[metric] = max((end for _, end in runs), default=0)
        inner_gaps[metric] = max((longest for longest, _ in runs), default=0)
    for missing, template in (
        (end_gaps, "end {} before the job does: what came then"),
        (inner_gaps, "have no points for {}: what happened then"),
    ):
        for points, metrics in _by_value({m: n for m, n in missing.items() if n >= min_points}):
            gap = template.format(duration_text(Decimal(points * period_s)))
            yield f"The metrics of {_metric_names_text(metrics)} {gap} was not judged."


def _gap_lengths(line: Series) -> tuple[int, int]:
    """Returns the numbers of missing points in the longest gap and in the gap at the end."""
    stop = line.recorded_periods.stop
    return longest_run(line.missing[:stop]), len(line.missing) - stop


def _sparse_sentences(usage: Measurements) -> Iterator[str]:
    shares = {metric: usage.share(metric) for metric in _RESOURCES}
    low = [metric for metric, share in shares.items() if share and share < MIN_COVERAGE]
    if low:
        lowest = f"{min(share for share in shares.values() if share):.0%}"
        yield (
            f"The metrics of {_metric_names_text(low)} have {lowest} of their points: too few to"
            " judge."
        )


def _too_short_sentence(usage: Measurements) -> str:
    requirement = f"at least {MIN_ACTIVE_MINUTES} min are needed to judge its use"
    if usage.minutes < MIN_ACTIVE_MINUTES:
        return f"Its own code ran for only {duration_text(Decimal(usage.seconds))}: {requirement}."
    active_text = duration_text(Decimal(usage.active_part().seconds))
    return f"It was at work for only {active_text}: {requirement}."


def _pool_outlook_sentence(pool: PooledRuns | None) -> str:
    if pool is None or not pool.names:
        return (
            "Shorter runs are judged together with the last runs of their family on the same "
            "instances, if these have that much in total."
        )
    earlier = len(pool.names)
    runs = "run" if earlier == 1 else f"{earlier} runs"
    total = duration_text(Decimal(pool.usage.seconds))
    return (
        f"With the last {runs} of its family on the same instances it has {total}; from "
        f"{MIN_ACTIVE_MINUTES} min on they are judged together."
    )


def _by_value(counts: Mapping[Metric, int]) -> Iterator[tuple[int, list[Metric]]]:
    for count in sorted(set(counts.values()), reverse=True):
        yield count, [metric for metric in _RESOURCES if counts.get(metric) == count]


def _metric_names_text(metrics: Iterable[Metric]) -> str:
    words = [_RESOURCES[metric] for metric in metrics]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
