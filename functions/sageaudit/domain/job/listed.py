"""A job as a List* answer has it: enough to decide whether to describe it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta

from msgspec import Struct

from sageaudit.domain.job.job import FINISHED
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef

LONGEST_LIFE = timedelta(days=30)
"""From creation to end: a training job may wait 2 days for capacity and run 28, a tuning job 30.

Source: botocore's sagemaker model, StoppingCondition and ResourceLimits.
"""
_CHILD_PREFIX = 32
"""A training job of a tuning job is named after it: `<tuning job>-001-1a2b3c4d`."""


class Listed(Struct, frozen=True):
    """One row of a List* answer. Times are None where AWS did not give them."""

    ref: JobRef
    status: str
    created_at: datetime
    ended_at: datetime | None
    modified_at: datetime | None

    @property
    def finished(self) -> bool:
        """Whether nothing about the run itself can change any more."""
        return self.status in FINISHED

    @property
    def last_at(self) -> datetime:
        """Its end; the last change of a job without one."""
        return self.ended_at or self.modified_at or self.created_at


class Period(Struct, frozen=True):
    """Days in UTC, both included, in which a job must have ended."""

    since: date
    until: date

    @property
    def created_after(self) -> datetime:
        """No job that ended in the period was created before."""
        return datetime.combine(self.since, time(), UTC) - LONGEST_LIFE

    @property
    def created_before(self) -> datetime:
        """The end of the last day."""
        return datetime.combine(self.until, time(), UTC) + timedelta(days=1)

    def has(self, job: Listed) -> bool:
        """Whether the job ended in the period."""
        return self.since <= job.last_at.astimezone(UTC).date() <= self.until


def chosen(
    rows: Iterable[Listed],
    period: Period,
    kinds: Iterable[JobKind],
    children: Collection[JobRef] = (),
) -> list[Listed]:
    """The rows to look at: jobs of these kinds that ended in the period or have not ended.

    A roll-up comes with the jobs that it launched, of any day and kind, which its sums are made of:
    those that are named after it, and `children`. A row that is there twice (a page may shift while
    jobs are created) counts once.
    """
    wanted, listed = set(kinds), list(dict.fromkeys(rows))
    arns = {child.arn for child in children}
    prefixes = {
        (rollup.child_kind, row.ref.name): row.created_at
        for row in listed
        if (rollup := row.ref.kind.row.rollup) is not None
        and rollup.is_prefix
        and row.ref.kind in wanted
        and _in(row, period)
    }
    return [
        row
        for row in listed
        if (row.ref.kind in wanted and _in(row, period))
        or row.ref.arn in arns
        or _is_named_after(row, prefixes)
    ]


def with_listed_children(
    rows: Iterable[Listed], period: Period, kinds: Collection[JobKind]
) -> Iterator[Listed]:
    """The roll-ups among the rows to look at whose jobs are not named after them, each once."""
    for row in dict.fromkeys(rows):
        rollup = row.ref.kind.row.rollup
        if rollup and not rollup.is_prefix and row.ref.kind in kinds and _in(row, period):
            yield row


def in_order(rows: Iterable[Listed]) -> list[Listed]:
    """The order of auditing: the oldest end first, each run after the earlier runs of its family.

    Roll-ups come last, after the jobs that they sum.
    """
    return sorted(rows, key=lambda row: (bool(row.ref.kind.row.rollup), row.last_at, row.ref.arn))


def newest(rows: Sequence[Listed], limit: int) -> list[Listed]:
    """The last `limit` rows to end, in the order of auditing."""
    return in_order(sorted(rows, key=lambda row: (row.last_at, row.ref.arn))[-limit:])


def _in(row: Listed, period: Period) -> bool:
    return not row.finished or period.has(row)


def _is_named_after(row: Listed, prefixes: Mapping[tuple[JobKind | None, str], datetime]) -> bool:
    """By kind and name: List* does not say which job launched it."""
    parts = row.ref.name.rsplit("-", 2)
    if len(parts) != 3:  # noqa: PLR2004 - name, number, hash
        return False
    launched_at = prefixes.get((row.ref.kind, parts[0][:_CHILD_PREFIX]))
    return launched_at is not None and launched_at <= row.created_at
