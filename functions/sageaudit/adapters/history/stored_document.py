"""The stored form of an audit: its text, its digest, and how it is trimmed when too large.

It is JSON in gzip: the 5 to 15 KB of a typical audit take about 2 KB. The stream passes the bytes
to `notify` unchanged. A document over the limit is trimmed and notes what was left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, cast

from sageaudit.adapters.files.exact_json import gzip_text, read_gzip_json, to_json
from sageaudit.adapters.history.rows import findings_without_row
from sageaudit.domain.audit.document import AuditDocument

LARGEST_BYTES = 350_000
"""UTF-8 bytes of the JSON of one document: whatever it says, its gzip then fits the 400 KB of an
item, names and other attributes included."""
LONGEST_TEXT = 300
LONGEST_LIST = 50
"""Characters and entries kept of each text and list by the last trim."""

_Document = dict[str, Any]


def digest_of(document: AuditDocument) -> str:
    """Half a SHA-256 of the document without its version, which History assigns, and without its
    recheck time: a recheck that changes nothing else is no new version.
    """
    audit = {name: value for name, value in document["audit"].items() if name != "version"}
    audit["due_at"] = None
    return hashlib.sha256(
        to_json({**document, "audit": audit}, sort_keys=True).encode()
    ).hexdigest()[:32]


def stored(document: AuditDocument, version: int) -> bytes:
    """The bytes to store."""
    return gzip_text(stored_text(document, version))


def stored_text(document: AuditDocument, version: int) -> str:
    """The JSON to store, with its version, trimmed to fit one item."""
    audit = {**document["audit"], "version": version}
    fitting = cast("_Document", {**document, "audit": audit})
    if more := findings_without_row(document):
        note = f"Findings that no list shows: {more} (lists have one of each rule, 40 at most)."
        fitting = _with_note(fitting, note)
    text = to_json(fitting)
    for trim, note in _TRIMS:
        if len(text.encode()) <= LARGEST_BYTES:
            break
        trimmed = trim(fitting)
        if trimmed != fitting:
            fitting = _with_note(trimmed, note)
            text = to_json(fitting)
    return text


def read(packed: bytes) -> AuditDocument:
    """The document of stored bytes. Raises one of NOT_GZIP_JSON for others."""
    return cast("AuditDocument", read_gzip_json(packed))


def _with_note(document: _Document, note: str) -> _Document:
    coverage = document["audit"]["coverage"]
    coverage = {**coverage, "missing": [*coverage["missing"], note]}
    return {**document, "audit": {**document["audit"], "coverage": coverage}}


def _without_evidence(document: _Document) -> _Document:
    return {
        **document,
        "findings": [{**finding, "evidence": {}} for finding in document["findings"]],
    }


def _with_light_children(document: _Document) -> _Document:
    light = [
        {**_without_evidence(child), "phases": [], "waterfall": []}
        for child in document["children"] or ()
    ]
    return {**document, "children": light if document["children"] is not None else None}


def _without_children(document: _Document) -> _Document:
    return {**document, "children": [] if document["children"] is not None else None}


def _clipped(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _clipped(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_clipped(entry) for entry in value[:LONGEST_LIST]]
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return value[: LONGEST_TEXT - 1] + "…"
    return value


_TRIMS: tuple[tuple[Callable[[_Document], _Document], str], ...] = (
    (_with_light_children, "Phases and evidence of the child jobs are only in their own audits."),
    (_without_children, "The child jobs are left out: each has its own audit."),
    (_without_evidence, "The evidence of the findings was too large to store."),
    (_clipped, "Long texts and lists were cut: the audit was too large to store."),
)
"""Applied in this order until the document fits; no trim changes a total in dollars."""
