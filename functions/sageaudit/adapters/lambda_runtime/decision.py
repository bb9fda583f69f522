"""An audit to decide about, as the queue of decisions has it: by its keys in the table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sageaudit.adapters.history.dynamo.table import PARTITION_KEY, SORT_KEY
from sageaudit.adapters.lambda_runtime.stream import WRITTEN_AT, run_of, written_at
from sageaudit.domain.audit.record import JobKey
from sageaudit.errors import Malformed


@dataclass(frozen=True, slots=True)
class Decision:
    """The keys of one version of an audit, and when it was written."""

    pk: str
    key: JobKey
    version: int
    at: datetime


def read_decision(body: str, *, sent_at: datetime) -> Decision:
    """Parses a letter of the stream. Raises Malformed.

    `sent_at` is taken where the letter does not say when the audit was written.
    """
    try:
        letter: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed("body", "is not JSON") from error
    if not isinstance(letter, dict):
        raise Malformed("body", "is not an object")
    pk, key, version = run_of(_text(letter, PARTITION_KEY), _text(letter, SORT_KEY))
    return Decision(pk, key, version, written_at(letter.get(WRITTEN_AT), sent_at))


def _text(letter: dict[str, Any], name: str) -> str:
    value = letter.get(name)
    if not isinstance(value, str):
        raise Malformed(name, "is not a text")
    return value
