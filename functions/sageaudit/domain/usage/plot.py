"""A small series for a plot: the basis of a finding after CloudWatch has deleted its points."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from itertools import chain

from sageaudit.domain.usage.measurements import Curve, Measurements, Metric
from sageaudit.domain.usage.series import Series, mean

MOST_POINTS = 48
"""A line on a phone; 5 metrics of them are under 2 KB."""


def plot(usage: Measurements, metrics: Iterable[Metric]) -> list[dict[str, object]]:
    """For each metric the mean over hosts, at most 48 points of even width; None: no data."""
    width = max(-(-usage.points // MOST_POINTS), 1)
    return [
        {
            "metric": metric.value,
            "unit": "percent",
            "hosts": len(usage.series[metric]),
            "period_s": (usage.period_s or 0) * width,
            "values": _means(list(usage.series[metric].values()), usage.points, width),
        }
        for metric in metrics
        if metric in usage.series
    ]


def plot_curve(metric: str, curve: Curve) -> list[dict[str, object]]:
    """An algorithm metric in its own unit, as `plot` gives a host's; a curve has at least a point.

    A point comes when the code prints it: each goes to its slot of even width.
    """
    begun = curve.points[0][0]
    seconds = (curve.points[-1][0] - begun).total_seconds()
    slots = min(len(curve.points), MOST_POINTS)
    width_s = max(math.ceil(seconds / slots), 1)
    by_slot: list[list[float]] = [[] for _ in range(slots)]
    for moment, value in curve.points:
        slot = int((moment - begun).total_seconds() // width_s)
        by_slot[min(slot, slots - 1)].append(value)
    means = [Decimal(f"{mean(known):.6g}") if known else None for known in by_slot]
    return [{"metric": metric, "unit": None, "hosts": 1, "period_s": width_s, "values": means}]


def _means(hosts: list[Series], points: int, width: int) -> list[Decimal | None]:
    values: list[Decimal | None] = []
    whole = all(host.whole for host in hosts)
    for start in range(0, points, width):
        stop = start + width
        if whole:
            parts = [host.present[start:stop] for host in hosts]
            average = math.fsum(chain.from_iterable(parts)) / sum(map(len, parts))
        else:
            at_once = chain.from_iterable([host.values[start:stop] for host in hosts])
            known = [value for value in at_once if value is not None]
            if not known:
                values.append(None)
                continue
            average = mean(known)
        values.append(Decimal(f"{average:.1f}"))
    return values
