"""Recorded jobs in place of AWS: audited by the same workflow as live jobs, without a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from sageaudit.adapters.files import recording
from sageaudit.adapters.files.local_files import fingerprint_key
from sageaudit.adapters.files.recording import RecordedSet, Recording
from sageaudit.adapters.prices import packaged, sources
from sageaudit.domain.audit.record import NO_CREATION_TIME, UNKNOWN_NAME
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.course import as_of
from sageaudit.domain.job.describe import latest_time, parse
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.sweep import ListedJob
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import (
    METRIC_ARRIVAL_TIMEOUT,
    Measurements,
    Missing,
    RawSeries,
)
from sageaudit.errors import BadRecording, BadUsage, JobNotFound, MalformedData
from sageaudit.ports import History
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import AuditDependencies

NOT_RECORDED = Missing(
    "metric_missing",
    "the recording lacks these metrics of this job",
    "Add its CloudWatch metrics to the recording, or audit the job by its name.",
)
_CACHED_FILES = 64
"""The most parsed files that are cached: a scan reads some jobs ahead of their audits."""


class RecordedJob(Struct, frozen=True):
    """One recorded job. Implements Jobs, Metrics and Markets for its audit.

    `load` reads its recording, again at each call, since a scan has thousands. `list_row`: the job
    as a row of List*. `read_at`: when a live job was recorded; otherwise its end, or the latest
    time in the recording of a running job.
    """

    load: Callable[[], Recording]
    list_row: ListedJob
    read_at: datetime
    launched_jobs: tuple[JobRef, ...] | None = None
    """A roll-up's jobs in its file, and those that were deleted before it was written; None for a
    file without its jobs."""

    @classmethod
    def from_recording(cls, recorded: Recording, load: Callable[[], Recording]) -> Self:
        """The job of a recording. Raises MalformedData."""
        job = parse(recorded.describe, {}, account=recorded.account, region=recorded.region)
        return cls(load, _list_row(job), _recording_time(job, recorded))

    @property
    def key(self) -> JobKey:
        """The run's key, since a later run may have the same name."""
        return JobKey(self.list_row.ref.arn, self.list_row.created_at)

    @property
    def final_at(self) -> datetime:
        """When its audit in a persistent history is final: a day after its end."""
        ended = self.read_at == self.list_row.ended_at
        return self.read_at + METRIC_ARRIVAL_TIMEOUT if ended else self.read_at

    @property
    def is_rollup(self) -> bool:
        """Whether it is summed after the jobs that it launched."""
        return self.list_row.ref.kind.spec.rollup is not None

    def describe(self, _: JobRef) -> dict[str, Any]:
        """The recorded answer."""
        return dict(self.load().describe)

    def tags(self, _: JobRef) -> dict[str, str]:
        """The recorded tags."""
        return dict(self.load().tags)

    def children(self, _: JobRef) -> tuple[JobRef, ...] | None:
        """The jobs that it launched, if its file has them."""
        return self.launched_jobs

    def read(self, job: Job, _: datetime) -> Measurements:
        """The recorded series."""
        return recorded_measurements(self.load(), job, packaged.instance_types())

    def market(self, job: Job, now: datetime) -> Market:
        """The recorded price list, then the packaged prices."""
        return recorded_market(self.load(), job, now)

    def dependencies(
        self, history: History, policy: Policy, *, is_history_persistent: bool = True
    ) -> AuditDependencies:
        """The dependencies of its audit."""
        recorded = self.load()
        as_read = recorded.read_context
        return AuditDependencies(
            jobs=self,
            metrics=self,
            history=history,
            markets=self,
            policy=policy,
            ruleset=catalogue.ruleset(),
            fingerprint_key=fingerprint_key,
            is_history_persistent=is_history_persistent,
            can_metrics_arrive=as_read is not None,
            has_all_tags=recorded.has_all_tags,
            notes=as_read.notes if as_read else (),
        )


def recorded_jobs(path: Path) -> list[RecordedJob]:
    """The jobs of one file, a roll-up last. Raises BadRecording."""
    try:
        return make_recorded_jobs(
            _parse_file(path), lambda number: partial(_recording, path, number)
        )
    except MalformedData as error:
        raise BadRecording(f"{path}: {error}") from error


def _recording(path: Path, number: int) -> Recording:
    """Reads one recording. Raises JobNotFound if the file has changed or vanished."""
    try:
        return all_recordings(_parse_file(path))[number]
    except (BadRecording, IndexError) as error:
        raise JobNotFound(f"{path}: changed while it was read") from error


def recorded_jobs_in_folder(
    folder: Path, on_refused: Callable[[BadRecording], None]
) -> list[RecordedJob]:
    """The jobs of all recordings below a folder; a run that is in two files is read from one.

    Calls `on_refused` for a file that no history can store, and leaves it out. Raises BadUsage if
    there is no JSON file.
    """
    paths = sorted(folder.rglob("*.json")) if folder.is_dir() else [folder]
    if not paths:
        raise BadUsage(f"--recordings {folder} has no .json file")
    jobs: dict[JobKey, RecordedJob] = {}
    for path in paths:
        try:
            jobs = {job.key: job for job in recorded_jobs_with_arns(path)} | jobs
        except BadRecording as error:
            on_refused(error)
    return [*jobs.values()]


def recorded_jobs_with_arns(path: Path) -> list[RecordedJob]:
    """The jobs of a file for a persistent history. Raises BadRecording for ARNs of other things."""
    jobs = recorded_jobs(path)
    for job in jobs:
        ref = job.list_row.ref
        if ref.arn != ref.name and JobRef.from_arn(ref.arn) is None:
            raise BadRecording(f"{path}: its ARN is no job's: {ref.arn}")
    return jobs


def make_recorded_jobs(
    read: Recording | RecordedSet, load: Callable[[int], Callable[[], Recording]]
) -> list[RecordedJob]:
    """The jobs of a file, a roll-up last; `load` makes the loader of a job, by its index.

    Raises MalformedData.
    """
    jobs = [
        RecordedJob.from_recording(recorded, load(number))
        for number, recorded in enumerate(all_recordings(read))
    ]
    if isinstance(read, RecordedSet) and read.rollup is not None:
        *children, rollup = jobs
        refs = (child.list_row.ref for child in children)
        return [*children, replace(rollup, launched_jobs=(*refs, *read.deleted))]
    return jobs


def all_recordings(recorded: Recording | RecordedSet) -> tuple[Recording, ...]:
    """All recordings of a file, a roll-up last."""
    if isinstance(recorded, Recording):
        return (recorded,)
    return (*recorded.children, *filter(None, (recorded.rollup,)))


def _parse_file(path: Path) -> Recording | RecordedSet:
    """Parses a file, from the cache if it has not changed. Raises BadRecording."""
    try:
        stat = path.stat()
    except OSError as error:
        raise BadRecording(f"{path}: cannot be read ({error.strerror})") from error
    return _parse_file_version(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=_CACHED_FILES)
def _parse_file_version(path: Path, _modified_ns: int, _size: int) -> Recording | RecordedSet:
    return recording.read(path)


class MeasuredJob(Struct, frozen=True):
    """A job, its measurements, and the market to bill it with, all as of `now`."""

    job: Job
    usage: Measurements
    market: Market
    now: datetime


def measure_recording(recorded: Recording) -> MeasuredJob:
    """The run in a recording, as of the time and at the prices of the recording.

    Without these, as of the job's end and at packaged prices. Raises MalformedData.
    """
    job = parse(recorded.describe, recorded.tags, account=recorded.account, region=recorded.region)
    now = _recording_time(job, recorded)
    job = as_of(job, now)
    market = recorded_market(recorded, job, now)
    return MeasuredJob(job, recorded_measurements(recorded, job, market.types), market, now)


def recorded_market(recorded: Recording, job: Job, now: datetime) -> Market:
    """The market: the recorded price list, then the packaged prices."""
    read = recorded.read_context
    return sources.offline_markets().market(job, now, read.prices if read else None)


def recorded_measurements(
    recorded: Recording, job: Job, types: Mapping[str, InstanceType]
) -> Measurements:
    """The measurements of the recorded series."""
    read = recorded.read_context
    absent, notes = (read.no_points_reason, read.metric_notes) if read else (NOT_RECORDED, ())
    return measure(job, recorded.series, types, missing_reason=absent, notes=notes)


def _list_row(job: Job) -> ListedJob:
    created_at = job.created_at or job.started_at or NO_CREATION_TIME
    place = job.account or UNKNOWN_NAME, job.region or UNKNOWN_NAME
    ref = JobRef(job.kind, job.name, job.arn or job.name, *place)
    modified_at = job.last_modified_at or job.ended_at or created_at
    return ListedJob(ref, job.status, created_at, job.ended_at, modified_at)


def _recording_time(job: Job, recorded: Recording) -> datetime:
    """When a live job was recorded; otherwise the job's end, or the latest time in the recording of
    a running job.
    """
    if recorded.read_context is not None:
        return recorded.read_context.read_at
    if job.finished and job.ended_at:
        return job.ended_at
    latest = filter(None, (latest_time(recorded.describe), *map(_last_point_time, recorded.series)))
    return job.ended_at or max(latest, default=datetime.now(UTC))


def _last_point_time(series: RawSeries) -> datetime | None:
    points = [number for number, value in enumerate(series.values) if value is not None]
    return series.start + timedelta(seconds=points[-1] * series.period_s) if points else None
