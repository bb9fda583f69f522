"""Reads an audit for a view, in which one that cannot be read costs no other."""

from __future__ import annotations

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import JobKey
from sageaudit.domain.audit.well_formed import fault_in
from sageaudit.errors import BadHistory
from sageaudit.ports import History


def whole_audit(history: History, key: JobKey, version: int | None = None) -> AuditDocument | None:
    """The document of a version; None where there is none, or one of another form."""
    try:
        document = history.audit(key, version)
    except BadHistory:
        return None
    return None if fault_in(document) else document
