"""The line about each job that ends, for the channels and routes that ask for one.

It is written by the first version of an audit, whatever its figures are. Later versions send none:
what they change is for alerts.
"""

from __future__ import annotations

from collections.abc import Mapping

from sageaudit.domain.alert.audit_figures import is_in_roll_up
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import JobKey
from sageaudit.domain.job.describe import parse
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import JobSubject
from sageaudit.errors import reading
from sageaudit.output.text.card import MessageCard
from sageaudit.output.text.job_line import job_line
from sageaudit.ports import History

FIRST_VERSION = 1


def has_line(version: int, document: AuditDocument, policy: Policy) -> bool:
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


def line_card(key: JobKey, document: AuditDocument, history: History) -> MessageCard:
    """The card; of a roll-up with the number of jobs that it launched. Raises Malformed."""
    return job_line(document, _trials(key, history) if document["rollup"] else None)


def _trials(key: JobKey, history: History) -> int | None:
    """How many training jobs a tuning job launched; None where its answer is not kept."""
    with reading("detail of the run"):
        detail = history.detail(key)
        tuning = parse(detail.describe, detail.tags).tuning if detail else None
    return tuning.launched if tuning else None
