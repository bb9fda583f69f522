"""What of a run's use no rule can judge, in plain sentences that name the resource and the reason.

One sentence for each reason, whatever the number of rules that it silences.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import groupby
from math import ceil

from sageaudit.domain.job.job import duration
from sageaudit.domain.usage.judged_use import PooledRuns
from sageaudit.domain.usage.measurements import (
    MIN_ACTIVE_MINUTES,
    MIN_COVERAGE,
    Measurements,
    Metric,
    Missing,
)
from sageaudit.domain.usage.series import Series

_RESOURCES = {
    Metric.CPU: "the CPUs",
    Metric.MEMORY: "memory",
    Metric.GPU: "the GPUs",
    Metric.GPU_MEMORY: "GPU memory",
}
_UNSEEN = "accelerator_unseen"
_HIDDEN_POINTS = 2
"""One point may be late, however long its period."""


def unjudged_use(
    usage: Measurements, codes: Collection[str], pool: PooledRuns | None = None
) -> Iterator[str]:
    """`codes` are those of the rules' unknown outcomes: what they could not judge is named too.

    `pool`: what a short run's family has, where its history was read.
    """
    yield from _without_metrics(usage)
    yield from _without_hosts(usage)
    gaps = list(_gaps(usage))
    yield from gaps
    if "coverage_low" in codes and not gaps:
        yield from _thin(usage)
    if "too_short" in codes:
        yield f"{_too_short(usage)} {_together(pool)}"
    if "too_few_points" in codes:
        yield f"Its use was not judged: {usage.points} points of each host are too few."
    if "period_too_coarse" in codes and usage.period_s:
        every = duration(Decimal(usage.period_s))
        yield f"Its metrics have one point every {every}: idle time in between was not judged."
    if "hosts_unmapped" in codes and Metric.CPU not in usage.missing:
        yield "Its hosts were not compared: CloudWatch does not say in which group each host is."


def _without_metrics(usage: Measurements) -> Iterator[str]:
    """Metrics that are absent, grouped by reason; "machines" stands for all that there could be."""
    groups: dict[Missing, list[Metric]] = {}
    for metric in _RESOURCES:
        missing = usage.missing.get(metric)
        if missing is not None and missing.code != "no_gpu":
            groups.setdefault(missing, []).append(metric)
    for missing, metrics in groups.items():
        what = _named(metrics)
        if missing.code == _UNSEEN:
            what = "the accelerators"
        elif len(groups) == 1 and not usage.series.keys() & _RESOURCES.keys():
            what = "its machines"
        advice = f" {missing.advice}" if missing.advice else ""
        yield f"The use of {what} was not judged: {missing.reason}.{advice}"


def _without_hosts(usage: Measurements) -> Iterator[str]:
    absent = {
        metric: (usage.hosts_expected or 0) - len(hosts)
        for metric, hosts in usage.series.items()
        if metric in _RESOURCES
    }
    for hosts, metrics in _by_value({m: n for m, n in absent.items() if n > 0}):
        of = "" if len(metrics) == len(absent) else f" of {_named(metrics)}"
        have, they = ("has", "it") if hosts == 1 else ("have", "they")
        yield (
            f"{hosts} of {usage.hosts_expected} hosts {have} no metrics{of}: "
            f"what {they} did was not judged."
        )


def _gaps(usage: Measurements) -> Iterator[str]:
    """Stretches without points that are long enough for rules to judge them, had they points."""
    period_s = usage.period_s or 0
    least = max(ceil(MIN_ACTIVE_MINUTES * 60 / period_s), _HIDDEN_POINTS) if period_s else 0
    if least and all(line.whole for hosts in usage.series.values() for line in hosts.values()):
        return
    ends: dict[Metric, int] = {}
    inside: dict[Metric, int] = {}
    for metric, hosts in usage.series.items():
        if metric not in _RESOURCES:
            continue
        runs = [_missing_runs(line) for line in hosts.values()]
        ends[metric] = max((end for _, end in runs), default=0)
        inside[metric] = max((longest for longest, _ in runs), default=0)
    for missing, words in (
        (ends, "end {} before the job does: what came then"),
        (inside, "have no points for {}: what happened then"),
    ):
        for points, metrics in _by_value({m: n for m, n in missing.items() if n >= least}):
            gap = words.format(duration(Decimal(points * period_s)))
            yield f"The metrics of {_named(metrics)} {gap} was not judged."


def _missing_runs(line: Series) -> tuple[int, int]:
    """The longest run of missing points before the last point, and the number after it."""
    if line.whole:
        return 0, 0
    runs = [(gone, len(list(points))) for gone, points in groupby(v is None for v in line.values)]
    end = runs[-1][1] if runs and runs[-1][0] else 0
    before = runs[:-1] if end else runs
    return max((length for gone, length in before if gone), default=0), end


def _thin(usage: Measurements) -> Iterator[str]:
    shares = {metric: usage.share(metric) for metric in _RESOURCES}
    low = [metric for metric, share in shares.items() if share and share < MIN_COVERAGE]
    if low:
        least = f"{min(share for share in shares.values() if share):.0%}"
        yield f"The metrics of {_named(low)} have {least} of their points: too few to judge."


def _too_short(usage: Measurements) -> str:
    least = f"at least {MIN_ACTIVE_MINUTES} min are needed to judge its use"
    if usage.minutes < MIN_ACTIVE_MINUTES:
        return f"Its own code ran for only {duration(Decimal(usage.seconds))}: {least}."
    return f"It was at work for only {duration(Decimal(usage.active().seconds))}: {least}."


def _together(pool: PooledRuns | None) -> str:
    """When a run as short as this one will be judged."""
    if pool is None or not pool.names:
        return (
            "Shorter runs are judged together with the last runs of their family on the same "
            "instances, where these have that much in all."
        )
    earlier = len(pool.names)
    runs = "run" if earlier == 1 else f"{earlier} runs"
    have = duration(Decimal(pool.usage.seconds))
    return (
        f"With the last {runs} of its family on the same instances it has {have}; from "
        f"{MIN_ACTIVE_MINUTES} min on they are judged together."
    )


def _by_value(counts: Mapping[Metric, int]) -> Iterator[tuple[int, list[Metric]]]:
    """The metrics of each count, the largest count first."""
    for count in sorted(set(counts.values()), reverse=True):
        yield count, [metric for metric in _RESOURCES if counts.get(metric) == count]


def _named(metrics: Iterable[Metric]) -> str:
    """`the CPUs, memory and the GPUs`."""
    words = [_RESOURCES[metric] for metric in metrics]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
