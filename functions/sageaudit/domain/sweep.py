"""SageMaker's lists of jobs: their rows, what a sweep knows of a list, and the event that it sends.

SageMaker sorts its lists by name, creation time or status alone, so a list is read by creation
time. `next_created_after` says how far back: every job that was created before had ended, and was
looked
at, when the list was last read to its end. docs/decisions/0022-lists-are-read-by-creation-time.md.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta

from msgspec import Struct

from sageaudit.domain.job.job import FINISHED
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import SWEEP_SOURCE, JobRef
from sageaudit.structs import replace

LONGEST_LIFE = timedelta(days=30)
"""From creation to end: a training job may wait 2 days for capacity and run 28, a tuning job 30.

Source: botocore's sagemaker model, StoppingCondition and ResourceLimits.
"""
_CHILD_PREFIX = 32
"""A training job of a tuning job is named after it: `<tuning job>-001-1a2b3c4d`."""

FIRST_LOOKBACK = timedelta(hours=24)
"""How far the first sweep of a list looks back."""
OVERLAP = timedelta(hours=3)
"""Jobs that changed this long before the watermark are looked at once more: a list may be behind,
and so may the clock of a function: our choice."""
MAX_UNTRIED_TIME = timedelta(hours=3)
"""Each list is tried at most sweeps, which come every 15 minutes: our choice."""
_GRACE = timedelta(minutes=35)
_ROLLUP_GRACE = timedelta(minutes=80)
_MAX_OPEN_AGE = LONGEST_LIFE + timedelta(days=2)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ListedJob(Struct, frozen=True):
    """One row of a List* answer. Times are None where AWS did not give them."""

    ref: JobRef
    status: str
    created_at: datetime
    ended_at: datetime | None
    modified_at: datetime | None

    @property
    def is_finished(self) -> bool:
        """Whether nothing about the run itself can change any more."""
        return self.status in FINISHED

    @property
    def last_changed_at(self) -> datetime:
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

    def contains(self, job: ListedJob) -> bool:
        """Whether the job ended in the period."""
        return self.since <= job.last_changed_at.astimezone(UTC).date() <= self.until


def select_rows(
    rows: Iterable[ListedJob],
    period: Period,
    kinds: Iterable[JobKind],
    children: Collection[JobRef] = (),
) -> list[ListedJob]:
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
        if (rollup := row.ref.kind.spec.rollup) is not None
        and rollup.has_name_prefix
        and row.ref.kind in wanted
        and _is_in_period(row, period)
    }
    return [
        row
        for row in listed
        if (row.ref.kind in wanted and _is_in_period(row, period))
        or row.ref.arn in arns
        or _is_named_after(row, prefixes)
    ]


def rollups_with_listed_children(
    rows: Iterable[ListedJob], period: Period, kinds: Collection[JobKind]
) -> Iterator[ListedJob]:
    """The roll-ups among the rows to look at whose jobs are not named after them, each once."""
    for row in dict.fromkeys(rows):
        rollup = row.ref.kind.spec.rollup
        if (
            rollup
            and not rollup.has_name_prefix
            and row.ref.kind in kinds
            and _is_in_period(row, period)
        ):
            yield row


def sort_for_audit(rows: Iterable[ListedJob]) -> list[ListedJob]:
    """The order of auditing: the oldest end first, each run after the earlier runs of its family.

    Roll-ups come last, after the jobs that they sum.
    """
    return sorted(
        rows, key=lambda row: (bool(row.ref.kind.spec.rollup), row.last_changed_at, row.ref.arn)
    )


def newest_rows(rows: Sequence[ListedJob], limit: int) -> list[ListedJob]:
    """The last `limit` rows to end, in the order of auditing."""
    return sort_for_audit(sorted(rows, key=lambda row: (row.last_changed_at, row.ref.arn))[-limit:])


def _is_in_period(row: ListedJob, period: Period) -> bool:
    return not row.is_finished or period.contains(row)


def _is_named_after(
    row: ListedJob, prefixes: Mapping[tuple[JobKind | None, str], datetime]
) -> bool:
    """By kind and name: List* does not say which job launched it."""
    parts = row.ref.name.rsplit("-", 2)
    if len(parts) != 3:  # noqa: PLR2004 - name, number, hash
        return False
    launched_at = prefixes.get((row.ref.kind, parts[0][:_CHILD_PREFIX]))
    return launched_at is not None and launched_at <= row.created_at


def grace(kind: JobKind) -> timedelta:
    """How long after its end a job may lack an audit, though nothing was lost.

    The queue's delay of up to 15 minutes, a wait of 15 for late metrics, and 5 to work. A roll-up
    waits three times for the audits of its jobs: after its event, or after a sweep has sent one.
    """
    return _ROLLUP_GRACE if kind.spec.rollup and kind.spec.has_event else _GRACE


class JobList(Struct, frozen=True):
    """One of SageMaker's lists: a kind of job of one account."""

    account: str
    region: str
    kind: JobKind


class ListProgress(Struct, frozen=True):
    """A list that was not read to its end: the next sweep goes on from there.

    `started_at`: when its first page was read. `created_before`: jobs created from then on are
    done, and so are those of `edge`, by ARN, which were created just before.
    `oldest_open_created_at`: the
    earliest creation of a job that has not ended, or ended too lately.
    """

    started_at: datetime
    created_before: datetime
    oldest_open_created_at: datetime | None
    edge: frozenset[str] = frozenset()

    def after(self, page: Sequence[ListedJob]) -> ListProgress:
        """The same, with a page done. Jobs that were created together may stand on two pages."""
        if not page:
            return self
        last = min(row.created_at for row in page)
        before = last + timedelta(milliseconds=1)
        known = self.edge if before == self.created_before else frozenset[str]()
        edge = known | {row.ref.arn for row in page if row.created_at == last}
        return replace(self, created_before=before, edge=edge)


class ListState(Struct, frozen=True):
    """What is kept of a list between sweeps.

    `began_at`: when it was swept first; what ended before was missed by nobody. `watermark`: jobs
    that ended until then were looked at. `next_created_after`: where the next list begins, by
    creation.
    `tried_at`: the last time that a sweep began with it.
    """

    began_at: datetime
    watermark: datetime
    next_created_after: datetime
    progress: ListProgress | None = None
    tried_at: datetime | None = None


def drop_abandoned_lists(states: Mapping[JobList, ListState]) -> dict[JobList, ListState]:
    """Without those that are not tried any more: of an account or region that left the policy."""
    newest = max((one.tried_at for one in states.values() if one.tried_at), default=_EPOCH)
    return {
        of: one
        for of, one in states.items()
        if one.tried_at is None or newest - one.tried_at <= MAX_UNTRIED_TIME
    }


class SentEvent(Struct, frozen=True):
    """When a run's event was sent last; `due_at`: for which due look, None for a lost event.

    Also when an event came that was not lost, whose audit has to wait or failed.
    """

    at: datetime
    due_at: datetime | None


def first_state(now: datetime) -> ListState:
    """The state of a list that was never swept: with the overlap, it looks back LOOK_BACK."""
    since = now - FIRST_LOOKBACK
    return ListState(
        began_at=now, watermark=since + OVERLAP, next_created_after=since - LONGEST_LIFE
    )


def repair_state(state: ListState, kind: JobKind, now: datetime) -> ListState:
    """The state, where it can be: one with times in the future looks back a day once more.

    A clock that was ahead wrote it, and nobody knows what was skipped.
    """
    if state.watermark > now - grace(kind) or state.next_created_after > now:
        fresh = first_state(now)
        return replace(fresh, began_at=min(state.began_at, now), tried_at=state.tried_at)
    if state.progress is not None and state.progress.started_at > now:
        return replace(state, progress=None)
    return state


def start_or_resume(state: ListState, now: datetime) -> ListProgress:
    """The list where it stopped, or from its beginning."""
    return state.progress or ListProgress(now, now + timedelta(days=1), None)


def finish_list(state: ListState, under_way: ListProgress, kind: JobKind) -> ListState:
    """The state after a list's last page. The watermark is of its start: jobs ended meanwhile."""
    started_at = under_way.started_at
    oldest_open_created_at = under_way.oldest_open_created_at or started_at
    return ListState(
        began_at=state.began_at,
        watermark=max(state.watermark, started_at - grace(kind)),
        next_created_after=max(
            min(oldest_open_created_at, started_at) - OVERLAP, started_at - _MAX_OPEN_AGE
        ),
        tried_at=state.tried_at,
    )


class RowDecision(Struct, frozen=True):
    """What a sweep makes of one row of a list.

    `stays_open`: it must be listed again. `look`: it must have an audit by now. `counts`: it ended
    in the time that this sweep is the first to look at. `in_time`: it ended after the list was
    swept first. `has_event`: an event of it should have come.
    """

    must_be_listed_again: bool
    needs_audit: bool = False
    is_counted: bool = False
    is_after_first_sweep: bool = False
    should_have_event: bool = False


def decide_row(row: ListedJob, state: ListState, under_way: ListProgress) -> RowDecision:
    """What to do about a row."""
    if row.status not in FINISHED:
        return RowDecision(must_be_listed_again=not row.status.startswith("Delet"))
    if row.last_changed_at > under_way.started_at - grace(row.ref.kind):
        return RowDecision(must_be_listed_again=True)
    changed_at = max(row.last_changed_at, row.modified_at or row.last_changed_at)
    if changed_at <= state.watermark - OVERLAP:
        return RowDecision(must_be_listed_again=False)
    after = row.last_changed_at >= state.began_at
    return RowDecision(
        must_be_listed_again=False,
        needs_audit=True,
        is_counted=after and row.last_changed_at > state.watermark,
        is_after_first_sweep=after,
        should_have_event=after and row.ref.kind.spec.has_event,
    )


def make_event(ref: JobRef, status: str, created_at: datetime, ended_at: datetime) -> str:
    """The event of a run, for the queue of finished jobs."""
    prefix = ref.kind.spec.prefix
    event = {
        "source": SWEEP_SOURCE,
        "detail-type": ref.kind.spec.detail_type,
        "account": ref.account,
        "region": ref.region,
        "time": ended_at.astimezone(UTC).isoformat(),
        "detail": {
            f"{prefix}JobName": ref.name,
            f"{prefix}JobArn": ref.arn,
            f"{prefix}JobStatus": status,
            "CreationTime": (created_at - _EPOCH) // timedelta(milliseconds=1),
        },
    }
    return json.dumps(event)
