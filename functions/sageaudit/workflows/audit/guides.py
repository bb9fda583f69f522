"""Reads the guides of a job that ran: what a history keeps of it and of its family."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import NO_CREATION_TIME
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.guides.guides import GuideDocument, chosen
from sageaudit.domain.guides.traits import of_audit
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import InstanceType
from sageaudit.errors import BadHistory, Malformed
from sageaudit.ports import History
from sageaudit.workflows.audit.stored import earlier_heads, runs_of


def read_guides(
    history: History, document: AuditDocument, types: Mapping[str, InstanceType]
) -> list[GuideDocument]:
    """The guides of an audit that the history has. Raises AwsError."""
    named = document["job"]
    begun = named["created_at"] or named["started_at"]
    created_at = datetime.fromisoformat(begun) if begun else NO_CREATION_TIME
    head = history.head(JobKey(named["arn"] or named["name"], created_at))
    if head is None:
        return chosen(of_audit(document, None, None, (), types))
    runs = runs_of(earlier_heads(head, history))
    return chosen(of_audit(document, _job(history, head), head, runs, types))


def _job(history: History, head: AuditSummary) -> Job | None:
    """The job as it was described; None after 90 days, and where it cannot be read."""
    try:
        detail = history.detail(head.key)
        if detail is None:
            return None
        return parse(detail.describe, detail.tags, account=head.account, region=head.region)
    except (BadHistory, Malformed):
        return None
