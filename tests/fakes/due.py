"""What is due in a history, for tests that look at it."""

from datetime import datetime

from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.ports import History


def due(history: History, until: datetime) -> list[AuditSummary]:
    """The audits that are due by then, the oldest first; each of them can be read."""
    heads = []
    for head in history.runs(RunQuery.due(until)):
        assert isinstance(head, AuditSummary)
        heads.append(head)
    return heads
