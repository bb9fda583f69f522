"""Every recorded job, read and audited once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sageaudit.adapters.files.recording import RecordedSet, Recording, read
from sageaudit.adapters.prices import packaged
from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.bill.bill import Bill, bill
from sageaudit.domain.bill.finding import Outcome
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import Job
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Missing
from sageaudit.rules import catalogue
from sageaudit.rules.card import Ruleset
from sageaudit.workflows.audit.judge import audit_job
from tests.fakes.jobs import START

DATA = Path(__file__).parents[1] / "recorded" / "data"
ABSENT = Missing("metric_missing", "the recording lacks these metrics of this job")


@dataclass(frozen=True)
class Recorded:
    """One job of a file; `file` names it, with its position where the file holds a set."""

    file: str
    composed: bool
    recording: Recording

    @property
    def job(self) -> Job:
        """The job as parsed."""
        one = self.recording
        return parse(one.describe, one.tags, account=one.account, region=one.region)

    def measured(self, recording: Recording | None = None) -> Measurements:
        """The job's series, or those of a changed recording."""
        raw = (recording or self.recording).series
        return measure(self.job, raw, packaged.market().types, absent=ABSENT)

    @property
    def bill(self) -> Bill:
        """At the packaged prices."""
        return bill(self.job, packaged.market())

    def outcomes(self, of: Measurements | None = None) -> dict[str, Outcome]:
        """Each rule's answer."""
        return {name.name: outcome for name, outcome in self._audit(of).outcomes}

    def document(self) -> AuditDocument:
        """The audit as it is printed."""
        return document(self._audit())

    def _audit(self, of: Measurements | None = None) -> Audit:
        job = self.job
        return audit_job(
            job,
            of or self.measured(),
            packaged.market(),
            Policy(),
            Ruleset(catalogue.load(), "test"),
            now=job.ended_at or START,
        )


def files() -> list[Path]:
    """All recordings."""
    return sorted((DATA / "jobs").glob("*.json"))


@cache
def everything() -> tuple[Recorded, ...]:
    """Every job of every file, a set's children among them."""
    made = []
    for path in files():
        provenance = json.loads(path.read_text(encoding="utf-8"))["provenance"]
        composed = bool(provenance.get("composed"))
        match read(path):
            case RecordedSet(children):
                made += [Recorded(f"{path.stem}[{n}]", True, c) for n, c in enumerate(children)]
            case Recording() as one:
                made.append(Recorded(path.stem, composed, one))
    return tuple(made)


def one(stem: str) -> Recorded:
    """The job of one file."""
    return next(item for item in everything() if item.file.startswith(stem))
