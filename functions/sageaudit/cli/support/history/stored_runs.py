"""Reads what is stored of a family's runs, to judge one that has not begun by them."""

from __future__ import annotations

from itertools import islice

from sageaudit.domain.audit.record import FAMILY_RUNS, NOT_NAMED, Head, RunQuery
from sageaudit.ports import History
from sageaudit.workflows.audit.family import runs_of
from sageaudit.workflows.audit.whole_audit import whole_audit
from sageaudit.workflows.check.run import FamilyHistory, PlannedJob

_AUDITS = 3
"""The newest audits whose advice is compared with a request: older advice may be outdated."""


def read_family(history: History, planned: PlannedJob) -> FamilyHistory:
    """The family of a job that has not run: its newest runs in one query, and the last audits,
    those of runs on the same instances first.

    Raises AwsError.
    """
    job = planned.job
    query = RunQuery.of_family(job.account or NOT_NAMED, job.region or NOT_NAMED, planned.family)
    heads = tuple(islice(history.runs(query, page_size=FAMILY_RUNS), FAMILY_RUNS))
    group = job.groups[0] if len(job.groups) == 1 else None
    asked = (group.instance_type, group.count) if group else None
    first = sorted(heads, key=lambda head: asked is None or _instances(head) != asked)[:_AUDITS]
    found = (whole_audit(history, head.key) for head in first)
    return FamilyHistory(runs_of(heads), tuple(audit for audit in found if audit is not None))


def _instances(head: Head) -> tuple[str | None, int | None]:
    facts = head.facts
    return (facts.instance_type, facts.instance_count) if facts else (None, None)
