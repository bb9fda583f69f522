"""Packs measurements, so that the job can be audited again, and unpacks them."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec.structs import astuple

from sageaudit.domain.job.job import Job
from sageaudit.domain.moments import parse_moment
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.measure import devices_per_host
from sageaudit.domain.usage.measurements import Curve, Measurements, Metric, MissingMetrics
from sageaudit.domain.usage.series import Series

_FAR_TOO_LARGE = 4
"""Packing ends at a quarter of the limit if all series would have this many times the limit."""
_MISSING_TENTHS = 0xFFFF
"""Stands for a missing point. Others have at most 1,000 tenths."""


def pack(usage: Measurements, max_bytes: int) -> tuple[bytes, str | None]:
    """Returns measurements in at most `max_bytes`, and a note of what was left out, if anything.

    Series become tenths of a percent, and curves have six digits. If not all of it fits, only the
    hosts with the lowest and the highest mean are kept, then also no curves, then nothing.
    """
    curves = _compress_json({name: _packed_curve(curve) for name, curve in usage.curves.items()})
    no_curves, left = _compress_json({}), max_bytes - len(curves)
    if packed := _pack_series(usage, usage.series, left):
        return curves + packed, None
    extremes = {metric: _extreme_hosts(hosts) for metric, hosts in usage.series.items()}
    if packed := _pack_series(usage, extremes, left):
        return curves + packed, "series of the extreme hosts alone"
    packed = _pack_series(usage, extremes, max_bytes - len(no_curves)) if usage.curves else None
    if packed:
        return no_curves + packed, "series of the extreme hosts alone; no curves"
    return b"", "the series were too large to keep"


def _pack_series(
    usage: Measurements, series: Mapping[Metric, Mapping[str, Series]], max_bytes: int
) -> bytes | None:
    """Returns these series and what else `usage` has, without curves; None above `max_bytes`.

    A line of JSON with everything but the points is followed by the points of each series. They
    are compressed at the lowest level: higher ones take many times as long, for noise alone.
    """
    document = {
        "period_s": usage.period_s,
        "points": usage.points,
        "hosts_expected": usage.hosts_expected,
        "begins_at": None if usage.begins_at is None else usage.begins_at.isoformat(),
        "series": {metric.value: list(hosts) for metric, hosts in series.items()},
        "missing": {m.value: astuple(missing) for m, missing in usage.missing.items()},
        "notes": usage.notes,
    }
    lines = [line for hosts in series.values() for line in hosts.values()]
    compressor = zlib.compressobj(level=1)
    packed = compressor.compress(json.dumps(document, separators=(",", ":")).encode() + b"\n")
    for number, line in enumerate(lines):
        # What is compressed of a job that does not fit is thrown away.
        is_far_too_large = len(packed) * len(lines) > _FAR_TOO_LARGE * max_bytes * number
        if len(packed) > max_bytes or (len(packed) > max_bytes // 4 and is_far_too_large):
            return None
        packed += compressor.compress(_packed_points(line))
    packed += compressor.flush()
    return packed if len(packed) <= max_bytes else None


def _packed_points(line: Series) -> bytes:
    """Returns the low bytes of the points' tenths, then the high bytes, which hardly change."""
    tenths = [_MISSING_TENTHS if value is None else value * 10 for value in line.values]
    packed = struct.pack(f"<{len(tenths)}H", *map(round, tenths))
    return packed[0::2] + packed[1::2]


def _unpacked_points(packed: bytes) -> Series:
    count = len(packed) // 2
    pairs = zip(packed[:count], packed[count:], strict=True)
    tenths = [low + 256 * high for low, high in pairs]
    return Series(tuple([None if t == _MISSING_TENTHS else t / 10 for t in tenths]))


def _compress_json(document: object) -> bytes:
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode())


def _packed_curve(curve: Curve) -> dict[str, object]:
    """Stores seconds since the start, because pairs of time and value would be far longer."""
    start = curve.points[0][0]
    return {
        "start": start.isoformat(),
        "s": [(moment - start).total_seconds() for moment, _ in curve.points],
        "values": " ".join([f"{value:.6g}" for _, value in curve.points]),
    }


def _unpacked_curve(packed: Mapping[str, Any]) -> Curve:
    start = parse_moment(packed["start"])
    moments = (start + timedelta(seconds=second) for second in packed["s"])
    return Curve(tuple(zip(moments, map(float, packed["values"].split()), strict=True)))


def _extreme_hosts(hosts: Mapping[str, Series]) -> dict[str, Series]:
    means = [(sum(line.present) / len(line.present), host) for host, line in hosts.items()]
    extremes = {min(means)[1], max(means)[1]}
    return {host: line for host, line in hosts.items() if host in extremes}


def unpack(packed: bytes, job: Job, types: Mapping[str, InstanceType]) -> Measurements:
    """Returns the measurements that `pack` stored, to a tenth of a percent."""
    decompressor = zlib.decompressobj()
    curves = json.loads(decompressor.decompress(packed))
    parts = io.BytesIO(zlib.decompress(decompressor.unused_data))
    document = json.loads(parts.readline())
    vcpu, gpus, _ = devices_per_host(job, types)
    begins_at, count = document["begins_at"], document["points"]
    return Measurements(
        period_s=document["period_s"],
        points=count,
        hosts_expected=document["hosts_expected"],
        vcpu=vcpu,
        gpus=gpus,
        series={
            Metric(metric): {host: _unpacked_points(parts.read(2 * count)) for host in hosts}
            for metric, hosts in document["series"].items()
        },
        missing={Metric(m): MissingMetrics(*fields) for m, fields in document["missing"].items()},
        notes=tuple(document["notes"]),
        begins_at=parse_moment(begins_at) if begins_at else None,
        curves={name: _unpacked_curve(steps) for name, steps in curves.items()},
    )
