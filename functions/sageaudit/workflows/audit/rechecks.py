"""Which other audits are due since a run was recorded: of its family, and of its tuning job.

A process can stop, or the table fail, between the record and this. So it is done once more where
the message of the run comes back: a second time changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Self

from sageaudit.domain.audit.record import NO_CREATION_TIME, NOT_NAMED, Head, JobKey, RunQuery
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.ports import History

_SUMMED_AFTER = timedelta(hours=1)
_NEWEST = 10
"""A tuning job ends after its training jobs, or together with the last of them."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run in one version of its audit, as far as other audits depend on it."""

    key: JobKey
    version: int
    account: str
    region: str
    family: str
    ended_at: datetime | None

    @classmethod
    def of_job(cls, job: Job, family: str, key: JobKey, version: int) -> Self:
        """The run of a job."""
        place = job.account or NOT_NAMED, job.region or NOT_NAMED
        return cls(key, version, *place, family, job.ended_at)

    @classmethod
    def of_head(cls, head: Head) -> Self:
        """The run of a head."""
        place = head.account, head.region
        return cls(head.key, head.version, *place, head.family, head.ended_at)


def recheck_family(run: RecordedRun, history: History, *, now: datetime) -> None:
    """Makes the audits due, as of `now`, that would be judged otherwise since this one's record."""
    if run.ended_at is not None:
        history.recheck_family(
            run.key,
            account=run.account,
            region=run.region,
            family=run.family,
            ended_at=run.ended_at,
            due_at=now,
        )


def recheck_sum(run: RecordedRun, history: History, *, now: datetime) -> None:
    """Makes the settled sum of a tuning job due, as one of its training jobs was audited late.

    Of a training job's first audit soon after its end, no sum can be settled yet.
    """
    soon = run.ended_at is not None and now - run.ended_at < _SUMMED_AFTER
    if not is_tuning_family(run.family) or (run.version == 1 and soon):
        return
    family = RunQuery.of_family(run.account, run.region, run.family)
    for head in islice(history.runs(family, page_size=_NEWEST), _NEWEST):
        if head.rollup and head.settled and is_child(run.key, head.key, head.ended_at):
            history.make_due(head.key, now)


def recheck_others(run: RecordedRun, history: History, *, now: datetime) -> None:
    """Both: its family, and the sum of its tuning job."""
    recheck_family(run, history, now=now)
    recheck_sum(run, history, now=now)


def recheck_summed(
    summed: Sequence[Head], job: Job, key: JobKey, history: History, *, now: datetime
) -> None:
    """Makes a sum due whose training jobs were audited while it was made: neither saw the other."""
    if _versions(children_of(job, history)) != _versions(summed):
        history.make_due(key, now)


def recheck_again(head: Head, history: History, *, now: datetime) -> None:
    """The same for a run whose message came back after it was recorded."""
    if head.rollup:
        if head.settled:
            history.make_due(head.key, now)
        return
    recheck_others(RecordedRun.of_head(head), history, now=now)


def children_of(job: Job, history: History) -> list[Head]:
    """The audited training jobs of a tuning job: of this run of its name, not of another one."""
    family = RunQuery.of_family(job.account or "", job.region or "", job.arn or "")
    key = JobKey(job.arn or "", job.created_at) if job.created_at else None
    return [
        head
        for head in history.runs(family)
        if not head.rollup and (key is None or is_child(head.key, key, job.ended_at))
    ]


def is_child(key: JobKey, tuning: JobKey, tuning_ended_at: datetime | None) -> bool:
    """Whether a training job was created while this run of the tuning job lasted, if it says so."""
    if NO_CREATION_TIME in {key.created_at, tuning.created_at}:
        return True
    ended = tuning_ended_at is not None and key.created_at > tuning_ended_at
    return key.created_at >= tuning.created_at and not ended


def is_tuning_family(family: str) -> bool:
    """Training jobs of a tuning job, and its sum, are the family that has its ARN as name."""
    ref = JobRef.from_arn(family)
    return ref is not None and ref.kind is JobKind.TUNING


def _versions(heads: Sequence[Head]) -> set[tuple[JobKey, int]]:
    return {(head.key, head.version) for head in heads}
