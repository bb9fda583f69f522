"""Every recorded job, read and audited once: when a test asks for it, never at import."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.files.recording import RecordedSet, Recording, read
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
from tests.fakes.packaged_prices import packaged_market

DATA = Path(__file__).parents[1] / "recorded" / "data"
ABSENT = Missing("metric_missing", "the recording lacks these metrics of this job")


@dataclass(frozen=True)
class Recorded:
    """One job of a file; `file` names it, with its position where the file holds a set."""

    file: str
    composed: bool
    recording: Recording

    @cached_property
    def job(self) -> Job:
        """The job as parsed."""
        one = self.recording
        return parse(one.describe, one.tags, account=one.account, region=one.region)

    def measured(self, recording: Recording | None = None) -> Measurements:
        """The job's series, or those of a changed recording."""
        raw = (recording or self.recording).series
        return measure(self.job, raw, packaged_market().types, missing_reason=ABSENT)

    @property
    def bill(self) -> Bill:
        """At the packaged prices."""
        return bill(self.job, packaged_market())

    def outcomes(self, of: Measurements | None = None) -> dict[str, Outcome]:
        """Each rule's answer, to the job's own series or to others."""
        audit = self.audit if of is None else self._audited(of)
        return {name.name: outcome for name, outcome in audit.outcomes}

    @cached_property
    def document(self) -> AuditDocument:
        """The audit as it is printed."""
        return document(self.audit)

    @cached_property
    def audit(self) -> Audit:
        """By the shipped rules."""
        return self._audited(self.measured())

    def _audited(self, of: Measurements) -> Audit:
        rules, now = Ruleset(catalogue.load(), "test"), self.job.ended_at or START
        return audit_job(self.job, of, packaged_market(), Policy(), rules, now=now)


def files() -> list[Path]:
    """All recordings."""
    return sorted((DATA / "jobs").glob("*.json"))


def file(stem: str) -> Path:
    """The recording of this name."""
    return DATA / "jobs" / f"{stem}.json"


def each() -> list[Any]:
    """The names of all recordings as parameters: `make test` runs the first of each kind and some.

    `make test-all` runs them all.
    """
    stems = [path.stem for path in files()]
    kinds = {stem.partition("-")[0]: stem for stem in reversed(stems)}
    few = {*kinds.values(), *stems[::6]}
    return [s if s in few else pytest.param(s, marks=pytest.mark.more) for s in stems]


@cache
def of_file(stem: str) -> tuple[Recorded, ...]:
    """The job of a file, or a set's children."""
    path = file(stem)
    provenance = json.loads(path.read_text(encoding="utf-8"))["provenance"]
    match read(path):
        case RecordedSet(children):
            return tuple(Recorded(f"{stem}[{n}]", True, c) for n, c in enumerate(children))
        case single:
            return (Recorded(stem, bool(provenance.get("composed")), single),)


def everything() -> Iterator[Recorded]:
    """Every job of every file."""
    return chain.from_iterable(of_file(path.stem) for path in files())


def one(stem: str) -> Recorded:
    """The job of the first file whose name begins so."""
    return of_file(next(path.stem for path in files() if path.stem.startswith(stem)))[0]
