"""All recorded jobs, each read and audited once, when a test first needs it."""

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
from sageaudit.domain.usage.measurements import Measurements, MissingMetrics
from sageaudit.rules import catalogue
from sageaudit.rules.card import Ruleset
from sageaudit.workflows.audit.judge import audit_job
from tests.fakes.jobs import START
from tests.fakes.packaged_prices import packaged_market

DATA = Path(__file__).parents[1] / "recorded" / "data"
ABSENT = MissingMetrics("metric_missing", "the recording lacks these metrics of this job")


@dataclass(frozen=True)
class Recorded:
    """One recorded job. `file`: the name of its file, with its position if there are several."""

    file: str
    composed: bool
    recording: Recording

    @cached_property
    def job(self) -> Job:
        """The parsed job."""
        recording = self.recording
        return parse(
            recording.describe, recording.tags, account=recording.account, region=recording.region
        )

    def measured(self, recording: Recording | None = None) -> Measurements:
        """Returns the measurements of the job's series, or of a changed recording's."""
        raw = (recording or self.recording).series
        return measure(self.job, raw, packaged_market().types, missing_reason=ABSENT)

    @property
    def bill(self) -> Bill:
        """The bill at the packaged prices."""
        return bill(self.job, packaged_market())

    def outcomes(self, usage: Measurements | None = None) -> dict[str, Outcome]:
        """Returns each rule's outcome for the job's own measurements, or for others."""
        audit = self.audit if usage is None else self._audited(usage)
        return {name.name: outcome for name, outcome in audit.outcomes}

    @cached_property
    def document(self) -> AuditDocument:
        """The audit as a document."""
        return document(self.audit)

    @cached_property
    def audit(self) -> Audit:
        """The audit with the default rules."""
        return self._audited(self.measured())

    def _audited(self, usage: Measurements) -> Audit:
        rules, now = Ruleset(catalogue.load(), "test"), self.job.ended_at or START
        return audit_job(self.job, usage, packaged_market(), Policy(), rules, now=now)


def files() -> list[Path]:
    """Returns the paths of all recordings."""
    return sorted((DATA / "jobs").glob("*.json"))


def file(stem: str) -> Path:
    """Returns the path of a recording."""
    return DATA / "jobs" / f"{stem}.json"


def stem_params() -> list[Any]:
    """Returns the names of all recordings as test parameters.

    `make test` runs the first of each kind and a sample; `make test-all` runs all.
    """
    stems = [path.stem for path in files()]
    kinds = {stem.partition("-")[0]: stem for stem in reversed(stems)}
    quick_stems = {*kinds.values(), *stems[::6]}
    return [s if s in quick_stems else pytest.param(s, marks=pytest.mark.more) for s in stems]


@cache
def jobs_of_file(stem: str) -> tuple[Recorded, ...]:
    """Returns the job of a recording file, or the jobs of a set."""
    path = file(stem)
    provenance = json.loads(path.read_text(encoding="utf-8"))["provenance"]
    match read(path):
        case RecordedSet(children):
            return tuple(Recorded(f"{stem}[{n}]", True, c) for n, c in enumerate(children))
        case single:
            return (Recorded(stem, bool(provenance.get("composed")), single),)


def all_recorded_jobs() -> Iterator[Recorded]:
    """Yields all jobs of all recordings."""
    return chain.from_iterable(jobs_of_file(path.stem) for path in files())


def recorded_job(stem: str) -> Recorded:
    """Returns the job of the first recording whose name begins with `stem`."""
    return jobs_of_file(next(path.stem for path in files() if path.stem.startswith(stem)))[0]
