"""Recorded jobs below a folder as lanes of a scan: the files stand for AWS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sageaudit.adapters.files import recording
from sageaudit.adapters.files.recording import Recording
from sageaudit.adapters.prices import packaged
from sageaudit.cli.support.history.fingerprint_key import fingerprint_key
from sageaudit.cli.support.recordings import recorded_run
from sageaudit.domain.audit.record import NO_CREATION_TIME, NOT_NAMED
from sageaudit.domain.job import buckets
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.event import described_run
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.listed import Listed
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import METRICS_COME_WITHIN, Measurements
from sageaudit.errors import BadRecording, BadUsage, JobNotFound, Malformed, RejectedEvent
from sageaudit.ports import History
from sageaudit.rules import catalogue
from sageaudit.workflows.audit import run as flow

_Place = tuple[Path, int]
"""A file, and the number of the recording in it."""


@dataclass
class RecordedJobs:
    """Implements Jobs, Metrics, Buckets and Markets with files, read again for each job.

    A run that is in two files is read from the first.
    """

    jobs: list[Listed] = field(default_factory=list)
    _places: dict[JobRef, _Place] = field(default_factory=dict)
    _regions: dict[str, str] = field(default_factory=dict)
    _as_of: dict[JobRef, datetime] = field(default_factory=dict)

    def add(self, path: Path) -> None:
        """Adds the jobs of one file. Raises BadRecording, also where its ARN is no job's."""
        found = []
        for number, recorded in enumerate(_recordings(path)):
            try:
                job, as_of = _listed(recorded)
                described_run(job.ref, recorded.describe)
            except (Malformed, RejectedEvent) as error:
                raise BadRecording(f"{path}: {error}") from error
            found.append((job, as_of, number))
        for job, as_of, number in found:
            if job.ref not in self._places:
                self._places[job.ref] = path, number
                self._as_of[job.ref] = as_of
                self.jobs.append(job)

    def as_of(self, job: Listed) -> datetime:
        """As of when a recorded job is audited: when it was read, or its end."""
        return self._as_of[job.ref]

    def describe(self, ref: JobRef) -> dict[str, Any]:
        """The recorded answer."""
        answer = dict(self._recording(ref).describe)
        self._regions.update(answer.get(buckets.KEY, {}))
        return answer

    def tags(self, ref: JobRef) -> dict[str, str]:
        """The recorded tags."""
        return dict(self._recording(ref).tags)

    def children(self, _: JobRef) -> Iterator[JobRef]:
        """None: the history has them."""
        return iter(())

    def read(self, job: Job, _: datetime) -> Measurements:
        """The recorded series."""
        return recorded_run.measured(self._recording_of(job), job, packaged.types())

    def market(self, job: Job, now: datetime) -> Market:
        """The recorded price list before the packaged prices."""
        return recorded_run.market_of(self._recording_of(job), job, now)

    def regions(self, _: str, __: str, names: Sequence[str]) -> Mapping[str, str]:
        """The recorded regions."""
        return {name: self._regions[name] for name in names if name in self._regions}

    def dependencies(self, history: History, policy: Policy) -> flow.AuditDependencies:
        """What the audits read from, write to and are judged by."""
        return flow.AuditDependencies(
            jobs=self,
            metrics=self,
            history=history,
            buckets=self,
            markets=self,
            policy=policy,
            ruleset=catalogue.ruleset(),
            fingerprint_key=fingerprint_key,
        )

    def _recording_of(self, job: Job) -> Recording:
        return self._recording(_ref(job, job.account, job.region))

    def _recording(self, ref: JobRef) -> Recording:
        """Raises JobNotFound for a file that changed or vanished meanwhile."""
        path, number = self._places[ref]
        try:
            return _recordings(path)[number]
        except (BadRecording, IndexError) as error:
            raise JobNotFound(f"{path}: changed while it was read") from error


def recorded_jobs(folder: Path, refused: Callable[[BadRecording], None]) -> RecordedJobs:
    """The jobs of all recordings below a folder. Raises BadUsage where there is no JSON file.

    A file that cannot be read is given to `refused` and left out.
    """
    paths = sorted(folder.rglob("*.json")) if folder.is_dir() else [folder]
    if not paths:
        raise BadUsage(f"--recordings {folder} has no .json file")
    jobs = RecordedJobs()
    for path in paths:
        try:
            jobs.add(path)
        except BadRecording as error:
            refused(error)
    return jobs


def _recordings(path: Path) -> Sequence[Recording]:
    read = recording.read(path)
    if isinstance(read, Recording):
        return (read,)
    return (*read.children, *filter(None, (read.tuning,)))


def _listed(recorded: Recording) -> tuple[Listed, datetime]:
    """The job as List* would have it, and as of when it is audited. Raises Malformed."""
    job = parse(recorded.describe, {}, account=recorded.account, region=recorded.region)
    created_at = job.created_at or job.started_at or NO_CREATION_TIME
    ref = _ref(job, job.account, job.region)
    modified_at = job.last_modified_at or job.ended_at or created_at
    row = Listed(ref, job.status, created_at, job.ended_at, modified_at)
    as_of = recorded_run.as_of(job, recorded)
    # A recording gets no more metrics, so that those it lacks are not late.
    return row, as_of + METRICS_COME_WITHIN if as_of == job.ended_at else as_of


def _ref(job: Job, account: str | None, region: str | None) -> JobRef:
    return JobRef(
        job.kind, job.name, job.arn or job.name, account or NOT_NAMED, region or NOT_NAMED
    )
