"""Reads what the history knows of the family of a job that has not run."""

from __future__ import annotations

from itertools import islice

from sageaudit.domain.audit.record import FAMILY_RUNS, NOT_NAMED
from sageaudit.ports import History
from sageaudit.workflows.audit.family import runs_of
from sageaudit.workflows.check.run import FamilyHistory, PlannedJob

_AUDITS = 3
"""The newest audits whose advice is compared with the request: older advice may be outdated."""


def read_family(history: History, one: PlannedJob) -> FamilyHistory:
    """The family's newest runs in one query, and the audits of the last ones. Raises AwsError."""
    heads = tuple(
        history.by_family(
            one.job.account or NOT_NAMED,
            one.job.region or NOT_NAMED,
            one.family,
            limit=FAMILY_RUNS,
        )
    )
    found = (history.audit(head.key) for head in islice(heads, _AUDITS))
    return FamilyHistory(runs_of(heads), tuple(audit for audit in found if audit is not None))
