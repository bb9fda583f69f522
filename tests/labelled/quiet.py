"""How often each rule speaks of jobs in which an expert finds nothing, by kind of job."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sageaudit.cli.support.recordings.recorded_audits import audit_recording
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import stands
from sageaudit.domain.policy.policy import Policy
from tests.labelled.collected import families, stories
from tests.labelled.large import SCENARIOS, Scenario
from tests.labelled.sagas import audits

_NOTHING_PERCENT = 6
"""Experts allow so much of a healthy job's bill for a start or an end that waits."""


def is_healthy(scenario: Scenario) -> bool:
    """Has the expert nothing to say, and no dollars?"""
    expert = scenario.expert
    if expert.must_say or expert.wasted_usd is None or expert.lost_usd is None:
        return False
    most = (scenario.bill_usd or 0) * _NOTHING_PERCENT / 100
    return expert.wasted_usd[1] <= most and expert.lost_usd[1] == 0


@cache
def healthy() -> tuple[AuditDocument, ...]:
    """The audits of all healthy labelled jobs under the shipped rules."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.json"
        recordings = [one.recording() for one in SCENARIOS if is_healthy(one)]
        recordings += [story.tell(1) for story in stories() if not story.wasteful]
        documents = []
        for one in recordings:
            file.write_text(json.dumps(one), encoding="utf-8")
            documents.append(audit_recording(file, Policy()))
    documents += [audits(saga.tell(1))[-1] for saga in families() if not saga.wasteful]
    return tuple(job for document in documents for job in _jobs(document))


def _jobs(document: AuditDocument) -> Iterator[AuditDocument]:
    """The job itself, or the training jobs of a roll-up."""
    if document["rollup"]:
        yield from document["children"] or ()
    else:
        yield document


def kinds() -> Counter[str]:
    """How many healthy jobs there are of each kind."""
    return Counter(document["job"]["kind"] for document in healthy())


def spoken() -> Counter[tuple[str, str]]:
    """Of how many of them a rule speaks, by rule and kind."""
    return Counter(
        (finding["rule"], document["job"]["kind"])
        for document in healthy()
        for finding in document["findings"]
        if stands(finding)
    )
