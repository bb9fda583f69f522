"""Packs a job's series as small compressed integers, to audit the job again later."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import astuple

from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.measure import per_host
from sageaudit.domain.usage.measurements import Curve, Measurements, Metric, Missing
from sageaudit.domain.usage.series import Series, percentile


def pack(usage: Measurements, *, only_extremes: bool = False, curves: bool = True) -> bytes:
    """Series as tenths of a percent (null: no point), curves to six digits: compressed JSON."""
    whole: dict[str, dict[str, list[int | None]]] = {}
    for metric, hosts in usage.series.items():
        kept = _extremes(usage, metric) if only_extremes else set(hosts)
        whole[metric.value] = {host: hosts[host].tenths for host in hosts if host in kept}
    document = {
        "period_s": usage.period_s,
        "points": usage.points,
        "hosts_expected": usage.hosts_expected,
        "begins_at": None if usage.begins_at is None else usage.begins_at.isoformat(),
        "unit": "0.1 percent",
        "series": whole,
        "missing": {m.value: astuple(why) for m, why in usage.missing.items()},
        "notes": usage.notes,
        "curves": {n: _steps(c) for n, c in usage.curves.items()} if curves else {},
    }
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode(), level=9)


def _steps(curve: Curve) -> dict[str, object]:
    """Where it begins, the seconds from there, and the values: far smaller than pairs."""
    begun = curve.points[0][0]
    return {
        "start": begun.isoformat(),
        "s": [(moment - begun).total_seconds() for moment, _ in curve.points],
        "values": [float(f"{value:.6g}") for _, value in curve.points],
    }


def _curve(steps: Mapping[str, Any]) -> Curve:
    begun = datetime.fromisoformat(steps["start"])
    moments = (begun + timedelta(seconds=second) for second in steps["s"])
    return Curve(tuple(zip(moments, steps["values"], strict=True)))


def _extremes(usage: Measurements, metric: Metric) -> set[str]:
    """The hosts with the lowest and the highest median."""
    medians = sorted(
        (percentile(series.present, 50), host) for host, series in usage.series[metric].items()
    )
    return {medians[0][1], medians[-1][1]}


def unpack(packed: bytes, job: Job, types: Mapping[str, InstanceType]) -> Measurements:
    """A job's measurements to a tenth of a percent, of the hosts that were kept."""
    document = json.loads(zlib.decompress(packed))
    vcpu, gpus, _ = per_host(job, types)
    begins_at = document.get("begins_at")
    return Measurements(
        period_s=document["period_s"],
        points=document["points"],
        hosts_expected=document["hosts_expected"],
        vcpu=vcpu,
        gpus=gpus,
        series={
            Metric(metric): {
                host: Series(tuple(None if point is None else point / 10 for point in points))
                for host, points in hosts.items()
            }
            for metric, hosts in document["series"].items()
        },
        missing={Metric(m): Missing(*why) for m, why in document["missing"].items()},
        notes=tuple(document["notes"]),
        begins_at=datetime.fromisoformat(begins_at) if begins_at else None,
        curves={name: _curve(steps) for name, steps in document.get("curves", {}).items()},
    )
