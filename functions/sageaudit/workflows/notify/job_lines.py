"""The line about each job that ends, for the channels and routes that ask for one.

It is written by the first version of an audit, whatever its figures are. Later versions send none:
what they change is for alerts.
"""

from __future__ import annotations

from collections.abc import Mapping

from sageaudit.domain.alert.audit_figures import is_in_roll_up
from sageaudit.domain.alert.subject import MessageSubject
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import JobSubject
from sageaudit.errors import reading
from sageaudit.output.text.card import MessageCard
from sageaudit.output.text.job_line import job_line
from sageaudit.ports import History
from sageaudit.workflows.audit.reaudit import is_child

FIRST_VERSION = 1


def is_line_due(version: int, document: AuditDocument, policy: Policy) -> bool:
    """Whether a channel may get a line about this version. A roll-up's line is that of its jobs."""
    asked = policy.mode != "observe" and policy.has_job_lines
    return asked and version == FIRST_VERSION and not is_in_roll_up(document)


def line_channels(
    document: AuditDocument, tags: Mapping[str, str], policy: Policy
) -> tuple[str, ...]:
    """The channels that get the line."""
    job = document["job"]
    subject = JobSubject(job["account"], job["family"], tags, job["owner"], job["kind"])
    return policy.job_line_channels(subject)


def line_card(head: AuditSummary, subject: MessageSubject, history: History) -> MessageCard:
    """The card; of a roll-up with the number of its audited jobs. Raises Malformed or AwsError."""
    return job_line(subject, _children(head, history) if subject.document["rollup"] else None)


def _children(head: AuditSummary, history: History) -> int:
    """How many jobs of a roll-up are audited, which are those that its cost sums."""
    family = RunQuery.of_family(head.account, head.region, head.family)
    with reading("runs of the roll-up"):
        return sum(
            not run.rollup and is_child(run.key, head.key, head.ended_at)
            for run in history.runs(family)
        )
