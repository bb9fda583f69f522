"""Reads what AWS says of one job before its turn, so that its audit then asks nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct, field

from sageaudit.domain.job.course import so_far
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.sweep import Listed
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.errors import AwsError, Malformed, SageauditError
from sageaudit.workflows.audit.attempt import AuditDependencies

T = TypeVar("T")


class Reader(Struct, frozen=True):
    """Reads what AWS says of one job, on any thread.

    `metrics_ahead`: not of a recording, whose metrics are there when its audit asks for them.
    """

    job: Listed
    deps: AuditDependencies
    now: datetime
    metrics_ahead: bool = True

    def __call__(self) -> ReadJob:
        """Asks for description, tags and metrics, in this order."""
        ref, deps = self.job.ref, self.deps
        read = ReadJob(self.job, self.now, deps)
        read.answer = _kept(lambda: deps.jobs.describe(ref))
        if isinstance(read.answer, Exception):
            return read
        read.tag_answer = _kept(lambda: deps.jobs.tags(ref))
        job = _parsed(read.answer, ref, read.now) if self.metrics_ahead else None
        rollup = ref.kind.row.rollup
        if rollup is not None and not rollup.is_counted:
            read.child_answer = _kept(lambda: _listed(deps.jobs.children(ref)))
        elif job is not None and rollup is None:
            read.usage = _kept(lambda: deps.metrics.read(job, read.now))
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
