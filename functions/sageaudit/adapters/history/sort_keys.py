"""Texts that identify runs, and that sort them by their ends or rechecks."""

from __future__ import annotations

import hashlib
from datetime import datetime

from sageaudit.adapters.history.codec import epoch_ms, moment_text
from sageaudit.domain.audit.summary import JobKey

LONGEST_TEXT = 2_000
"""Most characters of a text in rows and keys; the document has the full text."""
_LONGEST_PART_BYTES = 512
"""A partition key has at most 2,048 bytes, a sort key 1,024; a longer one fails the transaction."""


def part(text: str) -> str:
    """The text as one part of a key: itself, or when too long its beginning and a hash."""
    encoded = text[:LONGEST_TEXT].encode("utf-8", "replace")
    if len(encoded) <= _LONGEST_PART_BYTES:
        return encoded.decode()
    kept = encoded[: _LONGEST_PART_BYTES - 65].decode("utf-8", "ignore")
    return f"{kept}~{hashlib.sha256(encoded).hexdigest()}"


def run_id(key: JobKey) -> str:
    """Identifies one run: its ARN and creation time in epoch milliseconds."""
    return f"{part(key.arn)}#{epoch_ms(key.created_at)}"


def ended_sk(ended_at: datetime, key: JobKey) -> str:
    """Sorts by the job's end; unique, so that a list can be continued after it."""
    return f"{moment_text(ended_at)}#{run_id(key)}"


def before_sk(before: datetime | None) -> str:
    """Sorts after every `ended_sk` that a list shows: those before a moment, or all."""
    return "~" if before is None else moment_text(before)


def ended_after(moment: datetime) -> str:
    """Sorts after every `ended_sk` up to this moment, since "$" follows "#"."""
    return f"{moment_text(moment)}$"


def due_sk(due_at: datetime, key: JobKey) -> str:
    """Sorts by the recheck time; unique."""
    return f"{moment_text(due_at)}#{run_id(key)}"


def due_until(before: datetime) -> str:
    """Sorts after every `due_sk` with a time up to `before`, since "$" follows "#"."""
    return f"{moment_text(before)}$"
