"""What is kept to judge a job again: its scrubbed Describe answer and its packed series.

Hyperparameters and environment are never kept: they often hold secrets. Failure texts are redacted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sageaudit.domain.audit import iso
from sageaudit.domain.measurements import Measurements
from sageaudit.domain.packed import pack
from sageaudit.domain.record import Detail
from sageaudit.domain.redact import redact

MAX_BYTES = 200 * 1024
_NEVER_KEPT = frozenset(
    {
        "HyperParameters",
        "StaticHyperParameters",
        "TunedHyperParameters",
        "Environment",
        "ContainerArguments",
        "ContainerEntrypoint",
        "ResponseMetadata",
    }
)
_FREE_TEXT = frozenset({"FailureReason", "ExitMessage", "StatusMessage"})


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
