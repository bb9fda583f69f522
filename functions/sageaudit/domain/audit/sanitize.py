"""The data kept to audit a job again: its sanitized Describe answer and its packed series.

Hyperparameters, environment, arguments, parameters of Debugger rules and hooks, and the users and
queries of addresses are never stored, because they often contain secrets. Flags derived from them
and the script's name are stored, so that rules give the same outcomes again. Free texts are
redacted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sageaudit.domain.audit.finding_document import iso
from sageaudit.domain.audit.record import Detail
from sageaudit.domain.job import entry_point, failure_words, hints, job_outputs
from sageaudit.domain.job.buckets import data_pinned
from sageaudit.domain.job.tags import safe_tags
from sageaudit.domain.job.user_values import FREE_TEXTS, PAIRS, RANGES, WORDS, user_values
from sageaudit.domain.privacy.addresses import SOME_VERSION, without_query
from sageaudit.domain.privacy.hidden_values import UserValues
from sageaudit.domain.privacy.redact import redact
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.domain.usage.series_codec import pack

MAX_BYTES = 200 * 1024
_NEVER_KEPT = PAIRS | WORDS | RANGES | {"ResponseMetadata"}


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
    kept_tags = safe_tags(answer, tags)
    return Detail(scrubbed(answer, kept_tags), kept_tags, packed, note)


def scrubbed(answer: Mapping[str, Any], tags: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The answer without possible secrets, with the flags derived from them; times as ISO 8601."""
    values = user_values(answer, tags)
    cleaned: dict[str, Any] = _kept("", answer, values)
    objective = job_outputs.objective(answer)
    said = failure_words.of_answer(answer)
    own = {
        hints.KEY: hints.kept(hints.of_answer(answer)),
        entry_point.ENTRY_POINT: entry_point.entry_point(answer),
        job_outputs.TUNED_FOR: objective.metric if objective else None,
        failure_words.KEY: None if said == failure_words.of_text(_failure(cleaned)) else said,
    }
    for key, value in own.items():
        cleaned.pop(key, None)
        if value:
            cleaned[key] = value
    return cleaned


def _kept(key: str, item: Any, values: UserValues) -> Any:
    if isinstance(item, Mapping):
        return {
            name: _kept(name, inner, values)
            for name, inner in item.items()
            if name not in _NEVER_KEPT
        }
    if isinstance(item, list | tuple):
        return [_kept(key, inner, values) for inner in item]
    if isinstance(item, str):
        return redact(item, values) if key in FREE_TEXTS else _address(item, values)
    return iso(item) if isinstance(item, datetime) else item


def _address(text: str, values: UserValues) -> str:
    """An address without what signs it and without values of the user; other texts as they are.

    That an address names a version of its data stays, also where the version was a value.
    """
    plain = without_query(text)
    if "://" not in plain:
        return plain
    hidden = redact(plain, values)
    lost = data_pinned([(None, plain)]) and not data_pinned([(None, hidden)])
    return f"{hidden}{SOME_VERSION}" if lost else hidden


def _failure(cleaned: Mapping[str, Any]) -> str:
    return cleaned.get("FailureReason") or cleaned.get("ExitMessage") or ""
