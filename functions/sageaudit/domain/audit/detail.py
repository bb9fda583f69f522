"""The data kept to audit a job again: its kept Describe answer, its tags and its packed series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sageaudit.domain.audit.record import Detail
from sageaudit.domain.job.kept import keep, kept_tags
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.domain.usage.series_codec import pack

MAX_BYTES = 200 * 1024


def detail_of(answer: Mapping[str, Any], tags: Mapping[str, str], usage: Measurements) -> Detail:
    """The detail to store, with at most 200 KB of series; its note says what was left out."""
    packed, note = pack(usage), None
    if len(packed) > MAX_BYTES:
        packed = pack(usage, only_extremes=True)
        note = "series of the extreme hosts in full, of the others as quantiles"
    if len(packed) > MAX_BYTES and usage.curves:
        packed = pack(usage, only_extremes=True, curves=False)
        note = "series of the extreme hosts in full, of the others as quantiles; no curves"
    if len(packed) > MAX_BYTES:
        packed, note = b"", "the series were too large to keep"
    return Detail(keep(answer), kept_tags(tags), packed, note)
