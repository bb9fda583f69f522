"""Audits many listed jobs.

A lane is one account and region. Threads read its jobs' descriptions, tags and metrics ahead of the
audits. Audits are made one after another, oldest end first, so that each run finds its family's
earlier runs in the history. No data of a job stays in memory.
"""

from __future__ import annotations

import enum
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct, field

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import Sums, sums_from_document
from sageaudit.domain.job.course import as_of
from sageaudit.domain.job.describe import ParsedAnswer, parse_answer
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobEndEvent, JobRef
from sageaudit.domain.sweep import ListedJob
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.errors import (
    AccessDenied,
    AwsError,
    JobNotFound,
    MalformedData,
    NoCredentials,
    RejectedEvent,
    SageauditError,
)
from sageaudit.ports import PendingCall, Workers
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import AuditDependencies, AuditRecorded, AuditTrigger
from sageaudit.workflows.audit.run import audit_finished_job
from sageaudit.workflows.audit.stored import read_audit

READ_AHEAD = 24
"""How many jobs one lane reads ahead: enough for 10 jobs a second at 2 s each."""
_MAX_READ_AHEAD = 96
"""How many jobs of all lanes are read ahead and wait in memory for their audits."""
_MIN_READ_AHEAD = 4
"""The minimum number of jobs that one lane reads ahead."""
_MAX_ACTIVE_LANES = 32
"""How many lanes are read at the same time."""
_MAX_CONSECUTIVE_REFUSALS = 20
"""After this many consecutive refusals, the remaining jobs are not requested (our choice)."""
T = TypeVar("T")


class ScanResult(enum.StrEnum):
    """What a scan did with a listed job."""

    AUDITED = "audited"
    KNOWN = "known"
    """The history's audit of the job is final, so nothing was requested from AWS."""
    RUNNING = "running"
    """The job has not ended yet."""
    GONE = "gone"
    """The job was deleted after it was listed."""
    REFUSED = "refused"
    """A permission is missing, AWS gave no answer, or the answer was about another job."""
    NOT_ASKED = "not_asked"
    """Many jobs before this one were refused, or the credentials expired."""


class JobOutcome(Struct, frozen=True):
    """The result for one job. `sums` are its audit's amounts; None without an audit."""

    lane: Lane
    job: ListedJob
    result: ScanResult
    sums: Sums | None = None
    not_judged: tuple[str, ...] = ()
    error: SageauditError | None = None


class Lane(Struct, frozen=True, eq=False):
    """The jobs of one account and region in the order of their audits, and how to audit them."""

    account: str
    region: str
    deps: AuditDependencies
    jobs: Sequence[ListedJob]
    force: bool
    """True to repeat final audits."""
    recorded_dependencies: Callable[[ListedJob], tuple[AuditDependencies, datetime]] | None = None
    """Returns a recorded job's dependencies and time. None to use `deps` and the current time."""

    def dependencies_for(
        self, job: ListedJob, clock: Callable[[], datetime]
    ) -> tuple[AuditDependencies, datetime]:
        """Returns the dependencies and the time of a job's audit."""
        return (
            (self.deps, clock())
            if self.recorded_dependencies is None
            else self.recorded_dependencies(job)
        )


def is_final(
    job: ListedJob, summary: AuditSummary | None, deps: AuditDependencies, now: datetime
) -> bool:
    """Returns True if an audit made now would equal the history's audit of the job."""
    return (
        summary is not None
        and summary.settled
        and (summary.due_at is None or summary.due_at > now)
        and summary.last_modified_at == job.modified_at
        and (summary.ruleset, summary.policy) == (deps.ruleset.version, deps.policy.version)
    )


def jobs_to_audit(lane: Lane, now: datetime) -> Iterator[ListedJob]:
    """Yields the lane's jobs that must be requested from AWS."""
    for job in lane.jobs:
        if job.is_finished and (
            lane.force or not is_final(job, _stored_summary(lane, job), lane.deps, now)
        ):
            yield job


def scan_lanes(
    lanes: Sequence[Lane],
    workers: Workers,
    *,
    clock: Callable[[], datetime],
    is_stopped: Callable[[], bool] = lambda: False,
) -> Generator[JobOutcome, None, None]:
    """Audits the jobs of all lanes and records the audits. Yields each job's outcome.

    A job that fails does not stop the others. If `is_stopped()` is true, the scan ends after the
    current audit. Raises the history's errors, since audits are useless if they cannot be stored.
    """
    waiting = deque(lanes)
    active: list[_LaneProgress] = []
    try:
        while waiting or active:
            while waiting and len(active) < _MAX_ACTIVE_LANES:
                lane = waiting.popleft()
                active.append(_LaneProgress(lane, workers, clock, deque(lane.jobs)))
            jobs_ahead = min(READ_AHEAD, max(_MIN_READ_AHEAD, _MAX_READ_AHEAD // len(active)))
            for progress in active:
                yield from progress.read_ahead_to(jobs_ahead)
            progress_by_read = {
                progress.next_read: progress
                for progress in active
                if progress.next_read is not None
            }
            if progress_by_read:
                for pending in workers.wait_for_any(progress_by_read.keys()):
                    if is_stopped():
                        return
                    yield progress_by_read[pending].audit_next()
            if is_stopped():
                return
            active = [progress for progress in active if not progress.is_finished]
    finally:
        for progress in active:
            progress.cancel()


class _LaneProgress(Struct):
    lane: Lane
    workers: Workers
    clock: Callable[[], datetime]
    remaining: deque[ListedJob]
    read_ahead: deque[PendingCall[PrefetchedJob]] = field(default_factory=deque)
    consecutive_refusals: Counter[JobKind] = field(default_factory=Counter)
    """The number of consecutive refusals, by kind of job."""
    consecutive_failures: int = 0
    """The number of consecutive jobs about which AWS gave no answer."""
    fatal_error: SageauditError | None = None

    @property
    def next_read(self) -> PendingCall[PrefetchedJob] | None:
        """The read of the next job in order; None if no read was started."""
        return self.read_ahead[0] if self.read_ahead else None

    @property
    def is_finished(self) -> bool:
        return not self.remaining and not self.read_ahead

    def cancel(self) -> None:
        for pending in self.read_ahead:
            pending.cancel()

    def read_ahead_to(self, limit: int) -> Iterator[JobOutcome]:
        """Starts reads until `limit` jobs are ahead. Yields outcomes that need no read."""
        while self.remaining and len(self.read_ahead) < limit:
            job = self.remaining.popleft()
            if (outcome := self._outcome_without_request(job)) is not None:
                yield outcome
            else:
                read = partial(_read_job, job, *self.lane.dependencies_for(job, self.clock))
                from_aws = self.lane.recorded_dependencies is None
                self.read_ahead.append(self.workers.submit(partial(read, metrics_ahead=from_aws)))

    def _outcome_without_request(self, job: ListedJob) -> JobOutcome | None:
        if not job.is_finished:
            return JobOutcome(self.lane, job, ScanResult.RUNNING)
        summary = _stored_summary(self.lane, job)
        is_stored_final = is_final(job, summary, self.lane.deps, self.clock())
        if summary is not None and is_stored_final and not self.lane.force:
            return JobOutcome(
                self.lane, job, ScanResult.KNOWN, summary.sums, self._not_judged_reasons(summary)
            )
        if (
            self.fatal_error is not None
            or self.consecutive_refusals[job.ref.kind] >= _MAX_CONSECUTIVE_REFUSALS
        ):
            return JobOutcome(self.lane, job, ScanResult.NOT_ASKED)
        return None

    def _not_judged_reasons(self, summary: AuditSummary) -> tuple[str, ...]:
        if summary.judged in {None, Judged.YES}:
            return ()
        document = read_audit(self.lane.deps.history, summary.key)
        return () if document is None else tuple(document["not_judged"])

    def audit_next(self) -> JobOutcome:
        prefetched = self.read_ahead.popleft().result()
        job = prefetched.job
        if isinstance(prefetched.describe_answer, JobNotFound):
            return JobOutcome(self.lane, job, ScanResult.GONE)
        try:
            document = _audit(prefetched, self.lane)
        except RejectedEvent as error:
            named_error = RejectedEvent(error.code, f"{job.ref.name}: {error}")
            return JobOutcome(self.lane, job, ScanResult.REFUSED, error=named_error)
        except AwsError as error:
            if not prefetched.is_own_error(error):
                raise
            self._count_failure(job, error)
            return JobOutcome(self.lane, job, ScanResult.REFUSED, error=error)
        self.consecutive_refusals[job.ref.kind] = self.consecutive_failures = 0
        if document is None:
            return JobOutcome(self.lane, job, ScanResult.RUNNING)
        reasons = tuple(document["not_judged"])
        return JobOutcome(self.lane, job, ScanResult.AUDITED, sums_from_document(document), reasons)

    def _count_failure(self, job: ListedJob, error: AwsError) -> None:
        # Ends the lane if the next jobs would fail in the same way.
        if isinstance(error, AccessDenied):
            self.consecutive_refusals[job.ref.kind] += 1
            return
        self.consecutive_failures += 1
        if (
            isinstance(error, NoCredentials)
            or self.consecutive_failures >= _MAX_CONSECUTIVE_REFUSALS
        ):
            self.fatal_error = error


def _stored_summary(lane: Lane, job: ListedJob) -> AuditSummary | None:
    return lane.deps.history.summary(JobKey(job.ref.arn, job.created_at))


def _audit(prefetched: PrefetchedJob, lane: Lane) -> AuditDocument | None:
    """Audits a job like Lambda, and returns the audit; None if the job is running again."""
    deps = replace(
        prefetched.deps, jobs=prefetched, metrics=prefetched, parse_answer=prefetched.parse_answer
    )
    job = prefetched.job
    event = JobEndEvent(job.ref, job.status, job.created_at, job.ended_at, {})
    force = _stored_summary(lane, job) is not None
    outcome = audit_finished_job(
        event, deps, now=prefetched.now, caller=AuditTrigger.PERSON, force=force
    )
    return outcome.document if isinstance(outcome, AuditRecorded) else None


def _read_job(
    listed_job: ListedJob, deps: AuditDependencies, now: datetime, *, metrics_ahead: bool
) -> PrefetchedJob:
    # `metrics_ahead` is False for a recording, whose audit reads the metrics itself.
    ref, prefetched = listed_job.ref, PrefetchedJob(listed_job, now, deps)
    prefetched.describe_answer = _result_or_error(lambda: deps.jobs.describe(ref))
    if isinstance(prefetched.describe_answer, Exception):
        return prefetched
    prefetched.tag_answer = _result_or_error(lambda: deps.jobs.tags(ref))
    if metrics_ahead:
        with suppress(MalformedData):  # the audit says why the answer cannot be read
            prefetched.parsed = parse_answer(prefetched.describe_answer)
    rollup = ref.kind.spec.rollup
    if rollup is not None and not rollup.has_child_count:
        prefetched.children_answer = _result_or_error(lambda: _as_tuple(deps.jobs.children(ref)))
    elif prefetched.parsed is not None and rollup is None:
        job = as_of(prefetched.parsed.job({}, account=ref.account, region=ref.region), now)
        prefetched.usage = _result_or_error(lambda: deps.metrics.read(job, now))
    return prefetched


def _result_or_error(call: Callable[[], T]) -> T | SageauditError:
    # The job's audit raises the error later.
    try:
        return call()
    except SageauditError as error:
        return error


class PrefetchedJob(Struct):
    """AWS's answers about one job. Implements Jobs and Metrics for the job's audit."""

    job: ListedJob
    now: datetime
    deps: AuditDependencies
    describe_answer: dict[str, Any] | SageauditError = field(default_factory=dict)
    parsed: ParsedAnswer | None = None
    tag_answer: dict[str, str] | SageauditError = field(default_factory=dict)
    usage: Measurements | SageauditError | None = None
    children_answer: tuple[JobRef, ...] | SageauditError | None = None

    def is_own_error(self, error: AwsError) -> bool:
        """Returns True if the error is one of AWS's answers. Other errors are from the history."""
        return any(
            error is answer
            for answer in (self.describe_answer, self.tag_answer, self.usage, self.children_answer)
        )

    def describe(self, _: JobRef) -> dict[str, Any]:
        """Returns Describe's answer, or raises the error of the request."""
        return _value_or_raise(self.describe_answer)

    def parse_answer(self, answer: Mapping[str, Any]) -> ParsedAnswer:
        """Returns Describe's answer as it was parsed to read the metrics, if it was."""
        return self.deps.parse_answer(answer) if self.parsed is None else self.parsed

    def tags(self, _: JobRef) -> dict[str, str]:
        """Returns the job's tags, or raises the error of the request."""
        return _value_or_raise(self.tag_answer)

    def children(self, _: JobRef) -> tuple[JobRef, ...] | None:
        """Returns the jobs that a roll-up launched; None if they were not listed.

        They are listed only if Describe does not give their number.
        """
        return _value_or_raise(self.children_answer)

    def read(self, job: Job, now: datetime) -> Measurements:
        """Returns CloudWatch's answer. Reads the metrics now if they were not read ahead."""
        return (
            self.deps.metrics.read(job, now) if self.usage is None else _value_or_raise(self.usage)
        )


def _as_tuple(children: Iterable[JobRef] | None) -> tuple[JobRef, ...] | None:
    return None if children is None else tuple(children)


def _value_or_raise(answer: T | SageauditError) -> T:
    if isinstance(answer, SageauditError):
        raise answer
    return answer
