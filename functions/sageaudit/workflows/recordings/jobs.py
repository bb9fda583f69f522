"""Recorded jobs answer in place of AWS, so that the workflow of live jobs audits them offline."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from sageaudit.adapters.files import recording
from sageaudit.adapters.files.local_files import fingerprint_key
from sageaudit.adapters.files.recording import (
    FileRecording,
    RecordedSet,
    Recording,
    only_recording,
)
from sageaudit.adapters.files.text_file import display_name
from sageaudit.adapters.prices import packaged, sources
from sageaudit.domain.audit.record import NO_CREATION_TIME, UNKNOWN_NAME
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.course import as_of
from sageaudit.domain.job.describe import ParsedAnswer, latest_time, parse, parse_answer
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.sweep import ListedJob
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import (
    METRIC_ARRIVAL_TIMEOUT,
    Measurements,
    MissingMetrics,
    RawSeries,
)
from sageaudit.errors import BadRecording, BadUsage, JobNotFound, MalformedData
from sageaudit.ports import History
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import AuditDependencies

NOT_RECORDED = MissingMetrics(
    "metric_missing",
    "the recording lacks these metrics of this job",
    "Add its CloudWatch metrics to the recording, or audit the job by its name.",
)
_CACHED_FILES = 64
"""How many parsed files are cached. A scan reads some jobs ahead of their audits."""


class RecordedJob(Struct, frozen=True):
    """One recorded job. Implements Jobs, Metrics and Markets for its audit.

    `load` reads the recording again at each call, since a scan has thousands. `list_row` is the job
    as a row of List*. `read_at` is when a live job was recorded, or else the job's end, or else the
    latest time in the recording.
    """

    load: Callable[[], Recording]
    list_row: ListedJob
    read_at: datetime
    parsed: ParsedAnswer | None = None
    """The Describe answer; None if its audit must parse it again."""
    launched_jobs: tuple[JobRef, ...] | None = None
    """The jobs that a roll-up launched, including those deleted before the recording.

    None for a file without its jobs.
    """

    @classmethod
    def from_recording(cls, recording: Recording, load: Callable[[], Recording]) -> Self:
        """Returns the job of a recording. Raises MalformedData."""
        parsed = parse_answer(recording.describe)
        job = parsed.job({}, account=recording.account, region=recording.region)
        return cls(load, _list_row(job), _recording_time(job, recording), parsed)

    @property
    def key(self) -> JobKey:
        """The run's key. A later run with the same name has another key."""
        return JobKey(self.list_row.ref.arn, self.list_row.created_at)

    @property
    def final_at(self) -> datetime:
        """When the job's audit in a persistent history is final: a day after the job's end."""
        has_ended = self.read_at == self.list_row.ended_at
        return self.read_at + METRIC_ARRIVAL_TIMEOUT if has_ended else self.read_at

    @property
    def is_rollup(self) -> bool:
        """True if the job is a roll-up, which is summed after its jobs."""
        return self.list_row.ref.kind.spec.rollup is not None

    def describe(self, _: JobRef) -> dict[str, Any]:
        """Returns the recorded answer of Describe."""
        return dict(self.load().describe)

    def tags(self, _: JobRef) -> dict[str, str]:
        """Returns the recorded tags."""
        return dict(self.load().tags)

    def parse_answer(self, answer: Mapping[str, Any]) -> ParsedAnswer:
        """Returns the parsed answer. Raises MalformedData."""
        return parse_answer(answer) if self.parsed is None else self.parsed

    def children(self, _: JobRef) -> tuple[JobRef, ...] | None:
        """Returns the jobs that the job launched; None if its file does not have them."""
        return self.launched_jobs

    def read(self, job: Job, _: datetime) -> Measurements:
        """Returns the recorded series as measurements."""
        return recorded_measurements(self.load(), job, packaged.instance_types())

    def market(self, job: Job, now: datetime) -> Market:
        """Returns a market with the recorded price list, then the packaged prices."""
        return recorded_market(self.load(), job, now)

    def dependencies(
        self, history: History, policy: Policy, *, is_history_persistent: bool = True
    ) -> AuditDependencies:
        """Returns the dependencies of the job's audit."""
        recorded = self.load()
        read_context = recorded.read_context
        return AuditDependencies(
            jobs=self,
            metrics=self,
            history=history,
            markets=self,
            policy=policy,
            ruleset=catalogue.ruleset(),
            fingerprint_key=fingerprint_key,
            parse_answer=self.parse_answer,
            is_history_persistent=is_history_persistent,
            can_metrics_arrive=read_context is not None,
            has_all_tags=recorded.has_all_tags,
            notes=read_context.notes if read_context else (),
        )


class RecordedPart(Struct, frozen=True):
    """The jobs of one recording in a file, a roll-up last. `name` is for messages.

    `is_set` means that the recording has a roll-up's jobs.
    """

    name: str
    jobs: Sequence[RecordedJob]
    is_set: bool


def recorded_parts(path: Path, *, for_history: bool = False) -> list[RecordedPart | BadRecording]:
    """Returns the jobs of each recording in a file, and a refusal in the place of a bad one.

    `for_history` also refuses what no persistent history can store: a wrong ARN, or no time.
    """
    try:
        recordings = read_recordings(path)
    except BadRecording as error:
        return [error]
    return [
        _recorded_part(path, index, row, for_history=for_history)
        for index, row in enumerate(recordings)
    ]


def _recorded_part(
    path: Path, index: int, row: FileRecording, *, for_history: bool
) -> RecordedPart | BadRecording:
    if isinstance(row.recorded, BadRecording):
        return row.recorded
    try:
        jobs = make_recorded_jobs(row.recorded, lambda job: partial(_recording, path, index, job))
    except MalformedData as error:
        return BadRecording(f"{row.place}: {error}")
    reasons = (_history_refusal(job.list_row) for job in jobs if for_history)
    if reason := next(filter(None, reasons), None):
        return BadRecording(f"{row.place}: {reason}")
    return RecordedPart(row.place, jobs, isinstance(row.recorded, RecordedSet))


def _history_refusal(row: ListedJob) -> str | None:
    if row.ref.arn != row.ref.name and JobRef.from_arn(row.ref.arn) is None:
        return f"its ARN is not the ARN of a job: {row.ref.arn}"
    if row.created_at == NO_CREATION_TIME and row.ended_at is None:
        return "has no creation, start or end time, without which no history can store it"
    return None


def _recording(path: Path, index: int, job_index: int) -> Recording:
    """Returns a job's recording. Raises JobNotFound if the file has changed or vanished."""
    try:
        recorded = read_recordings(path)[index].recorded
        if isinstance(recorded, BadRecording):
            raise recorded
        return all_recordings(recorded)[job_index]
    except (BadRecording, IndexError) as error:
        raise JobNotFound(f"{path} changed while it was read") from error


def recorded_jobs_in_folder(
    folder: Path, on_refused: Callable[[BadRecording], None]
) -> list[RecordedJob]:
    """Returns the jobs of all recordings below a folder.

    Of two files with the same run, the first is used. `on_refused` is called for each recording
    that no history can store. Raises BadUsage if there is no JSON file.
    """
    paths = sorted(_recording_paths(folder)) if folder.is_dir() else [folder]
    if not paths:
        raise BadUsage(f"--recordings {folder} has no .json or .jsonl file")
    jobs: dict[JobKey, RecordedJob] = {}
    for path in paths:
        for part in recorded_parts(path, for_history=True):
            if isinstance(part, BadRecording):
                on_refused(part)
                continue
            for job in part.jobs:  # without their answers, since a folder may have thousands
                jobs.setdefault(job.key, replace(job, parsed=None))
    return [*jobs.values()]


def _recording_paths(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.name.removesuffix(".gz").endswith((".json", ".jsonl")) and not path.is_dir():
            yield path


def make_recorded_jobs(
    recording: Recording | RecordedSet, load: Callable[[int], Callable[[], Recording]]
) -> list[RecordedJob]:
    """Returns a file's jobs, a roll-up last. `load` returns a job's loader by its index.

    Raises MalformedData.
    """
    jobs = [
        RecordedJob.from_recording(recorded, load(index))
        for index, recorded in enumerate(all_recordings(recording))
    ]
    if isinstance(recording, RecordedSet) and recording.rollup is not None:
        *children, rollup = jobs
        refs = (child.list_row.ref for child in children)
        return [*children, replace(rollup, launched_jobs=(*refs, *recording.deleted_jobs))]
    return jobs


def all_recordings(recording: Recording | RecordedSet) -> tuple[Recording, ...]:
    """Returns all recordings of a file, a roll-up last."""
    if isinstance(recording, Recording):
        return (recording,)
    return (*recording.children, *filter(None, (recording.rollup,)))


def read_recording(path: Path) -> Recording | RecordedSet:
    """Reads a file with one job. Raises BadRecording."""
    return only_recording(read_recordings(path), display_name(str(path)))


def read_recordings(path: Path) -> tuple[FileRecording, ...]:
    """Reads a file, and caches it until it changes. Raises BadRecording.

    A pipe or standard input is read only once.
    """
    try:
        status = path.stat()
    except (OSError, ValueError):
        return _read_stream(path)
    if not stat.S_ISREG(status.st_mode):
        return _read_stream(path)
    return _read_version(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=_CACHED_FILES)
def _read_version(path: Path, _modified_ns: int, _size: int) -> tuple[FileRecording, ...]:
    return recording.read_all(path)


@cache
def _read_stream(path: Path) -> tuple[FileRecording, ...]:
    return recording.read_all(path)


class MeasuredJob(Struct, frozen=True):
    """A job as of `now`, with its measurements and the market to bill it with."""

    job: Job
    usage: Measurements
    market: Market
    now: datetime


def measure_recording(recording: Recording) -> MeasuredJob:
    """Returns a recording's job with its measurements and recorded prices. Raises MalformedData.

    Without time and prices, the job is measured as of its end, at packaged prices.
    """
    job = parse(
        recording.describe, recording.tags, account=recording.account, region=recording.region
    )
    now = _recording_time(job, recording)
    job = as_of(job, now)
    market = recorded_market(recording, job, now)
    return MeasuredJob(job, recorded_measurements(recording, job, market.types), market, now)


def recorded_market(recording: Recording, job: Job, now: datetime) -> Market:
    """Returns a market with the recorded price list, then the packaged prices."""
    read_context = recording.read_context
    return sources.offline_markets().market(job, now, read_context.prices if read_context else None)


def recorded_measurements(
    recording: Recording, job: Job, types: Mapping[str, InstanceType]
) -> Measurements:
    """Returns the measurements of the recorded series."""
    read_context = recording.read_context
    missing_reason, notes = (
        (read_context.no_points_reason, read_context.metric_notes)
        if read_context
        else (NOT_RECORDED, ())
    )
    return measure(job, recording.series, types, missing_reason=missing_reason, notes=notes)


def _list_row(job: Job) -> ListedJob:
    created_at = job.created_at or job.started_at or NO_CREATION_TIME
    account_and_region = job.account or UNKNOWN_NAME, job.region or UNKNOWN_NAME
    ref = JobRef(job.kind, job.name, job.arn or job.name, *account_and_region)
    modified_at = job.last_modified_at or job.ended_at or created_at
    return ListedJob(ref, job.status, created_at, job.ended_at, modified_at)


def _recording_time(job: Job, recording: Recording) -> datetime:
    """Returns when a live job was recorded, or else the job's end, or else the recording's latest
    time.
    """
    if recording.read_context is not None:
        return recording.read_context.read_at
    if job.finished and job.ended_at:
        return job.ended_at
    latest = filter(
        None, (latest_time(recording.describe), *map(_last_point_time, recording.series))
    )
    return job.ended_at or max(latest, default=datetime.now(UTC))


def _last_point_time(series: RawSeries) -> datetime | None:
    indexes = [index for index, value in enumerate(series.values) if value is not None]
    return series.start + timedelta(seconds=indexes[-1] * series.period_s) if indexes else None
