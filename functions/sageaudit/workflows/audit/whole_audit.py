"""Reads an audit for a view, in which one that cannot be read costs no other."""

from __future__ import annotations

from sageaudit.domain.audit.document import SCHEMA, AuditDocument
from sageaudit.domain.audit.summary import JobKey
from sageaudit.errors import BadHistory
from sageaudit.ports import History


def whole_audit(history: History, key: JobKey, version: int | None = None) -> AuditDocument | None:
    """The document of a version; None where there is none, or one that cannot be read."""
    try:
        document = history.audit(key, version)
    except BadHistory:
        return None
    return document if isinstance(document, dict) and document.get("schema") == SCHEMA else None
