"""The data kept to audit a job again: its sanitized Describe answer and its packed series.

Hyperparameters and environment are never stored, because they often contain secrets. Flags derived
from them and the script's name are stored, so that rules give the same outcomes again. Free texts
are redacted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sageaudit.domain.audit.document import iso
from sageaudit.domain.audit.record import Detail
from sageaudit.domain.job import entry_point, hints, job_outputs
from sageaudit.domain.job.redact import redact
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.domain.usage.series_codec import pack

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
_FREE_TEXT = frozenset({"FailureReason", "ExitMessage", "StatusMessage", "StatusDetails"})


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
    return Detail(scrubbed(answer), dict(tags), packed, note)


def scrubbed(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer without possible secrets, with the flags derived from them; times as ISO 8601."""
    cleaned = {key: _kept(key, item) for key, item in answer.items() if key not in _NEVER_KEPT}
    objective = job_outputs.objective(answer)
    own = {
        hints.KEY: hints.kept(hints.of_answer(answer)),
        entry_point.ENTRY_POINT: entry_point.entry_point(answer),
        job_outputs.TUNED_FOR: objective.metric if objective else None,
    }
    for key, value in own.items():
        cleaned.pop(key, None)
        if value:
            cleaned[key] = value
    return cleaned


def _kept(key: str, item: Any) -> Any:
    if isinstance(item, Mapping):
        return {name: _kept(name, inner) for name, inner in item.items() if name not in _NEVER_KEPT}
    if isinstance(item, list | tuple):
        return [_kept(key, inner) for inner in item]
    if isinstance(item, str) and key in _FREE_TEXT:
        return redact(item)
    return iso(item) if isinstance(item, datetime) else item
