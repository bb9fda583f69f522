"""What is kept to judge a job again: its scrubbed Describe answer and its packed series.

Hyperparameters and environment are never kept: they often hold secrets. Failure texts are redacted.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sageaudit.domain.audit import iso
from sageaudit.domain.measurements import Measurements, Metric
from sageaudit.domain.record import Detail
from sageaudit.domain.redact import redact
from sageaudit.domain.series import percentile

MAX_BYTES = 200 * 1024
_NEVER_KEPT = frozenset(
    {
        "HyperParameters",
        "StaticHyperParameters",
        "TunedHyperParameters",
        "Environment",
        "ContainerArguments",
        "ResponseMetadata",
    }
)
_FREE_TEXT = frozenset({"FailureReason", "ExitMessage", "StatusMessage"})
_QUANTILES = (0, 5, 50, 95, 99.5, 100)


def detail_of(answer: Mapping[str, Any], tags: Mapping[str, str], seen: Measurements) -> Detail:
    """At most 200 KB of series; above that the extreme hosts in full, the others as quantiles."""
    packed, note = pack(seen), None
    if len(packed) > MAX_BYTES:
        packed = pack(seen, only_extremes=True)
        note = "series of the extreme hosts in full, of the others as quantiles"
    if len(packed) > MAX_BYTES:
        packed, note = b"", "the series were too large to keep"
    return Detail(scrubbed(answer), dict(tags), packed, note)


def scrubbed(value: Any) -> Any:
    """The answer without what may hold secrets; times as ISO 8601."""
    if isinstance(value, Mapping):
        return {
            key: redact(item) if key in _FREE_TEXT and isinstance(item, str) else scrubbed(item)
            for key, item in value.items()
            if key not in _NEVER_KEPT
        }
    if isinstance(value, list | tuple):
        return [scrubbed(item) for item in value]
    return iso(value) if isinstance(value, datetime) else value


def pack(seen: Measurements, *, only_extremes: bool = False) -> bytes:
    """Series as tenths of a percent (null: no point), as compressed JSON."""
    whole: dict[str, dict[str, list[int | None]]] = {}
    quantiles: dict[str, dict[str, list[int]]] = {}
    for metric, hosts in seen.series.items():
        kept = _extremes(seen, metric) if only_extremes else set(hosts)
        for host, series in hosts.items():
            if host in kept:
                points = [None if v is None else round(v * 10) for v in series.values]
                whole.setdefault(metric.value, {})[host] = points
            else:
                marks = [round(percentile(series.present, q) * 10) for q in _QUANTILES]
                quantiles.setdefault(metric.value, {})[host] = marks
    document = {
        "period_s": seen.period_s,
        "unit": "0.1 percent",
        "series": whole,
        "quantiles": {"at": _QUANTILES, "hosts": quantiles} if quantiles else None,
    }
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode(), level=9)


def _extremes(seen: Measurements, metric: Metric) -> set[str]:
    """The hosts with the lowest and the highest median."""
    medians = sorted(
        (percentile(series.present, 50), host) for host, series in seen.series[metric].items()
    )
    return {medians[0][1], medians[-1][1]}
