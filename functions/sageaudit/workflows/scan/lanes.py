"""Audits many listed jobs: AWS is read ahead by many workers, audits are made in one order.

A lane is one account and region. Its jobs are described, and their tags and metrics read, some
jobs ahead of the audit; the audits themselves follow one another, the oldest end first, so that
each run finds the earlier runs of its family in the history. Nothing of a job is kept afterwards.
"""

from __future__ import annotations

import enum
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct, field

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import Sums, sums_of
from sageaudit.domain.job.course import so_far
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobEnded, JobRef
from sageaudit.domain.sweep import Listed
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.errors import (
    AccessDenied,
    AwsError,
    JobNotFound,
    Malformed,
    NoCredentials,
    RejectedEvent,
    SageauditError,
)
from sageaudit.ports import Pending, Workers
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import AuditDependencies, Audited, Caller
from sageaudit.workflows.audit.run import audit_finished_job
from sageaudit.workflows.audit.stored import whole_audit

AHEAD = 24
"""Jobs of one lane that are read before their turn: enough for 10 a second at 2 s each."""
_AHEAD_IN_ALL = 96
"""The same of all lanes together: what is read waits in memory for its audit."""
_LEAST_AHEAD = 4
"""The least of one lane, however many there are."""
_LANES = 32
"""Lanes that are read at the same time."""
_GIVE_UP_AFTER = 20
"""Refusals in a row, without one success, after which the rest is not asked for: our choice."""
T = TypeVar("T")


class Result(enum.StrEnum):
    """What became of a listed job."""

    AUDITED = "audited"
    KNOWN = "known"
    """Its audit in the history is final: AWS was not asked."""
    RUNNING = "running"
    """It has not ended yet."""
    GONE = "gone"
    """It was deleted after it was listed."""
    REFUSED = "refused"
    """A permission is missing, AWS did not answer, or with another job: `error` says which."""
    NOT_ASKED = "not_asked"
    """The same was refused for many jobs before it, or the credentials expired."""


class Outcome(Struct, frozen=True):
    """What became of one job. `sums`: what its audit adds; None without an audit."""

    lane: Lane
    job: Listed
    result: Result
    sums: Sums | None = None
    not_judged: tuple[str, ...] = ()
    error: SageauditError | None = None


class Lane(Struct, frozen=True, eq=False):
    """The jobs of one account and region in the order of auditing, and what audits them."""

    account: str
    region: str
    deps: AuditDependencies
    jobs: Sequence[Listed]
    again: bool
    """Audit also those that are final."""
    recorded: Callable[[Listed], tuple[AuditDependencies, datetime]] | None = None
    """What each job is audited with, and as of when; None: `deps`, as of now."""

    def of(self, job: Listed, clock: Callable[[], datetime]) -> tuple[AuditDependencies, datetime]:
        """What a job is audited with, and as of when."""
        return (self.deps, clock()) if self.recorded is None else self.recorded(job)


def is_final(
    job: Listed, head: AuditSummary | None, deps: AuditDependencies, now: datetime
) -> bool:
    """Whether the history's audit of a job is what an audit now would give."""
    return (
        head is not None
        and head.settled
        and (head.due_at is None or head.due_at > now)
        and head.last_modified_at == job.modified_at
        and (head.ruleset, head.policy) == (deps.ruleset.version, deps.policy.version)
    )


def to_audit(lane: Lane, now: datetime) -> Iterator[Listed]:
    """The jobs of a lane that AWS would be asked about."""
    for job in lane.jobs:
        if job.finished and (lane.again or not is_final(job, _head(lane, job), lane.deps, now)):
            yield job


def scan(
    lanes: Sequence[Lane],
    workers: Workers,
    *,
    clock: Callable[[], datetime],
    stopped: Callable[[], bool] = lambda: False,
) -> Generator[Outcome, None, None]:
    """Audits the jobs of all lanes and records the audits; one outcome for each job, as it is done.

    A job that fails does not stop the others. When `stopped()` becomes true, it ends after the
    audit in hand. Raises what the history raises: an audit that cannot be kept is not worth asking
    for.
    """
    waiting = deque(lanes)
    active: list[_Progress] = []
    try:
        while waiting or active:
            while waiting and len(active) < _LANES:
                lane = waiting.popleft()
                active.append(_Progress(lane, workers, clock, deque(lane.jobs)))
            ahead = min(AHEAD, max(_LEAST_AHEAD, _AHEAD_IN_ALL // len(active)))
            for progress in active:
                yield from progress.read_on(ahead)
            heads = {progress.head: progress for progress in active if progress.head is not None}
            if heads:
                for pending in workers.first_done(heads.keys()):
                    if stopped():
                        return
                    yield heads[pending].audit_next()
            if stopped():
                return
            active = [progress for progress in active if not progress.at_end]
    finally:
        for progress in active:
            progress.cancel()


class _Progress(Struct):
    """How far one lane is."""

    lane: Lane
    workers: Workers
    clock: Callable[[], datetime]
    left: deque[Listed]
    ahead: deque[Pending[ReadJob]] = field(default_factory=deque)
    refused: Counter[JobKind] = field(default_factory=Counter)
    """Refusals in a row by kind."""
    failed: int = 0
    """Jobs in a row that AWS did not answer."""
    ended_by: SageauditError | None = None

    @property
    def head(self) -> Pending[ReadJob] | None:
        """The next job in order, if it is being read."""
        return self.ahead[0] if self.ahead else None

    @property
    def at_end(self) -> bool:
        return not self.left and not self.ahead

    def cancel(self) -> None:
        """Has nothing read any more that was not begun."""
        for pending in self.ahead:
            pending.cancel()

    def read_on(self, most: int) -> Iterator[Outcome]:
        """Reads on until `most` jobs are ahead; yields the outcomes of those not to be read."""
        while self.left and len(self.ahead) < most:
            job = self.left.popleft()
            if (outcome := self._without_asking(job)) is not None:
                yield outcome
            else:
                read = partial(_read_job, job, *self.lane.of(job, self.clock))
                from_aws = self.lane.recorded is None
                self.ahead.append(self.workers.submit(partial(read, metrics_ahead=from_aws)))

    def _without_asking(self, job: Listed) -> Outcome | None:
        if not job.finished:
            return Outcome(self.lane, job, Result.RUNNING)
        head = _head(self.lane, job)
        final = is_final(job, head, self.lane.deps, self.clock())
        if head is not None and final and not self.lane.again:
            return Outcome(self.lane, job, Result.KNOWN, head.sums, self._reasons(head))
        if self.ended_by is not None or self.refused[job.ref.kind] >= _GIVE_UP_AFTER:
            return Outcome(self.lane, job, Result.NOT_ASKED)
        return None

    def _reasons(self, head: AuditSummary) -> tuple[str, ...]:
        """Why an audit of the history did not judge all; only its document says so."""
        if head.judged in {None, Judged.YES}:
            return ()
        document = whole_audit(self.lane.deps.history, head.key)
        return () if document is None else tuple(document["not_judged"])

    def audit_next(self) -> Outcome:
        """Audits and records the job at the head, which has been read."""
        read = self.ahead.popleft().result()
        job = read.job
        if isinstance(read.answer, JobNotFound):
            return Outcome(self.lane, job, Result.GONE)
        try:
            document = _audit(read, self.lane)
        except RejectedEvent as error:
            named = RejectedEvent(error.code, f"{job.ref.name}: {error}")
            return Outcome(self.lane, job, Result.REFUSED, error=named)
        except AwsError as error:
            if not read.met(error):
                raise
            self._note(job, error)
            return Outcome(self.lane, job, Result.REFUSED, error=error)
        self.refused[job.ref.kind] = self.failed = 0
        if document is None:
            return Outcome(self.lane, job, Result.RUNNING)
        reasons = tuple(document["not_judged"])
        return Outcome(self.lane, job, Result.AUDITED, sums_of(document), reasons)

    def _note(self, job: Listed, error: AwsError) -> None:
        """Ends the lane where the next jobs would fail in the same way."""
        if isinstance(error, AccessDenied):
            self.refused[job.ref.kind] += 1
            return
        self.failed += 1
        if isinstance(error, NoCredentials) or self.failed >= _GIVE_UP_AFTER:
            self.ended_by = error


def _head(lane: Lane, job: Listed) -> AuditSummary | None:
    return lane.deps.history.head(JobKey(job.ref.arn, job.created_at))


def _audit(read: ReadJob, lane: Lane) -> AuditDocument | None:
    """The audit that the Lambda would make and record; None for a job that runs again."""
    deps = replace(read.deps, jobs=read, metrics=read)
    job = read.job
    ended = JobEnded(job.ref, job.status, job.created_at, job.ended_at, {})
    known = _head(lane, job) is not None
    audited = audit_finished_job(ended, deps, now=read.now, caller=Caller.PERSON, again=known)
    return audited.document if isinstance(audited, Audited) else None


def _read_job(
    listed: Listed, deps: AuditDependencies, now: datetime, *, metrics_ahead: bool
) -> ReadJob:
    """Reads description, tags and metrics of one job, in this order, on any thread.

    `metrics_ahead`: not of a recording, whose metrics are there when its audit asks for them.
    """
    ref, read = listed.ref, ReadJob(listed, now, deps)
    read.answer = _kept(lambda: deps.jobs.describe(ref))
    if isinstance(read.answer, Exception):
        return read
    read.tag_answer = _kept(lambda: deps.jobs.tags(ref))
    job = _parsed(read.answer, ref, now) if metrics_ahead else None
    rollup = ref.kind.row.rollup
    if rollup is not None and not rollup.is_counted:
        read.child_answer = _kept(lambda: _listed(deps.jobs.children(ref)))
    elif job is not None and rollup is None:
        read.usage = _kept(lambda: deps.metrics.read(job, now))
    return read


def _parsed(answer: Mapping[str, Any], ref: JobRef, now: datetime) -> Job | None:
    """The job to read metrics of; None where the answer cannot be read: the audit says so."""
    try:
        return so_far(parse(answer, {}, account=ref.account, region=ref.region), now)
    except Malformed:
        return None


def _kept(call: Callable[[], T]) -> T | SageauditError:
    """The result, or the error to raise when the job's turn comes."""
    try:
        return call()
    except SageauditError as error:
        return error


class ReadJob(Struct):
    """What AWS said of one job: implements Jobs and Metrics for its audit."""

    job: Listed
    now: datetime
    deps: AuditDependencies
    answer: dict[str, Any] | SageauditError = field(default_factory=dict)
    tag_answer: dict[str, str] | SageauditError = field(default_factory=dict)
    usage: Measurements | SageauditError | None = None
    child_answer: tuple[JobRef, ...] | SageauditError | None = None

    def met(self, error: AwsError) -> bool:
        """Whether AWS gave this error; any other one is the history's."""
        return any(
            error is answer
            for answer in (self.answer, self.tag_answer, self.usage, self.child_answer)
        )

    def describe(self, _: JobRef) -> dict[str, Any]:
        """As AWS answered; raises what it raised."""
        return _given(self.answer)

    def tags(self, _: JobRef) -> dict[str, str]:
        """As AWS answered; raises what it raised."""
        return _given(self.tag_answer)

    def children(self, _: JobRef) -> tuple[JobRef, ...] | None:
        """As AWS answered; only those that Describe does not count are asked for."""
        return _given(self.child_answer)

    def read(self, job: Job, now: datetime) -> Measurements:
        """As CloudWatch answered; asked now, where the job was not read ahead so far."""
        return self.deps.metrics.read(job, now) if self.usage is None else _given(self.usage)


def _listed(children: Iterable[JobRef] | None) -> tuple[JobRef, ...] | None:
    return None if children is None else tuple(children)


def _given(answer: T | SageauditError) -> T:
    if isinstance(answer, SageauditError):
        raise answer
    return answer
