"""SageMaker's lists of jobs: their rows, the state of a list, and the event that a sweep sends.

SageMaker sorts its lists only by name, creation time or status. So a sweep reads by creation time,
back to `next_created_after`. All jobs created earlier have ended and were checked.
docs/decisions/0022-lists-are-read-by-creation-time.md.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta

from msgspec import Struct, field

from sageaudit.domain.job.job import FINISHED
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import SWEEP_SOURCE, AccountRegion, JobRef
from sageaudit.structs import replace

LONGEST_LIFE = timedelta(days=30)
"""The longest time from creation to end: a training job may wait 2 days for capacity and run 28, a
tuning job 30. Source: botocore's sagemaker model, StoppingCondition and ResourceLimits."""
_CHILD_PREFIX = 32
"""The most characters of a tuning job's name. Its training jobs are named `<tuning
job>-001-1a2b3c4d`."""

FIRST_LOOKBACK = timedelta(hours=24)
"""How far the first sweep of a list looks back."""
OVERLAP = timedelta(hours=3)
"""Jobs are checked again if they changed at most this long before the watermark. SageMaker's list
or our clock may be behind. Our choice."""
MAX_UNTRIED_TIME = timedelta(hours=3)
"""If no sweep read a list for this long, the policy no longer includes it. Our choice: sweeps run
every 15 minutes."""
_GRACE = timedelta(minutes=35)
_ROLLUP_GRACE = timedelta(minutes=80)
_MAX_OPEN_AGE = LONGEST_LIFE + timedelta(days=2)
RUNNING_STATUS = "InProgress"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ListedJob(Struct, frozen=True):
    """One row of a List* answer. A time is None if AWS did not return it."""

    ref: JobRef
    status: str
    created_at: datetime
    ended_at: datetime | None
    modified_at: datetime | None

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended and can no longer change."""
        return self.status in FINISHED

    @property
    def last_changed_at(self) -> datetime:
        """When the job ended; without an end, when it was last modified or created."""
        return self.ended_at or self.modified_at or self.created_at


class Period(Struct, frozen=True):
    """The days (UTC, both included) in which a job must have ended."""

    since: date
    until: date

    @property
    def created_after(self) -> datetime:
        """The earliest creation time of a job that ended in the period."""
        return datetime.combine(self.since, time(), UTC) - LONGEST_LIFE

    @property
    def created_before(self) -> datetime:
        """The end of the period's last day."""
        return datetime.combine(self.until, time(), UTC) + timedelta(days=1)

    def contains(self, job: ListedJob) -> bool:
        """Returns whether the job ended in the period."""
        return self.since <= job.last_changed_at.astimezone(UTC).date() <= self.until


def select_rows(
    rows: Iterable[ListedJob],
    period: Period,
    kinds: Iterable[JobKind],
    children: Collection[JobRef] = (),
) -> list[ListedJob]:
    """Returns the jobs of these kinds that ended in the period or have not ended.

    If a returned job is a roll-up, the jobs that it launched are returned too, whatever their day
    and kind. `children` has these jobs, or their names show the roll-up. Repeated rows count once.
    """
    kind_set, unique_rows = set(kinds), list(dict.fromkeys(rows))
    arns = {child.arn for child in children}
    prefixes = {
        (rollup.child_kind, row.ref.name): row.created_at
        for row in unique_rows
        if (rollup := row.ref.kind.spec.rollup) is not None
        and rollup.has_name_prefix
        and row.ref.kind in kind_set
        and _is_in_period(row, period)
    }
    return [
        row
        for row in unique_rows
        if (row.ref.kind in kind_set and _is_in_period(row, period))
        or row.ref.arn in arns
        or _is_named_after(row, prefixes)
    ]


def rollups_with_listed_children(
    rows: Iterable[ListedJob], period: Period, kinds: Collection[JobKind]
) -> Iterator[ListedJob]:
    """Yields the roll-ups of the period and kinds whose jobs must be listed.

    The names of their jobs do not show which roll-up launched them.
    """
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
    """Returns the rows by their end, oldest first. Roll-ups come last, after their jobs."""
    return sorted(
        rows, key=lambda row: (bool(row.ref.kind.spec.rollup), row.last_changed_at, row.ref.arn)
    )


def newest_rows(rows: Sequence[ListedJob], limit: int) -> list[ListedJob]:
    """Returns the `limit` rows that ended last, in the order in which they are audited."""
    return sort_for_audit(sorted(rows, key=lambda row: (row.last_changed_at, row.ref.arn))[-limit:])


def _is_in_period(row: ListedJob, period: Period) -> bool:
    return not row.is_finished or period.contains(row)


def _is_named_after(
    row: ListedJob, prefixes: Mapping[tuple[JobKind | None, str], datetime]
) -> bool:
    """Returns whether the job's name shows that a roll-up launched the job.

    Rows of List* have no other sign. `prefixes`: the creation times of roll-ups, by the kind of
    their jobs and by the roll-up's name.
    """
    parts = row.ref.name.rsplit("-", 2)
    if len(parts) != 3:  # noqa: PLR2004 - name, number, hash
        return False
    parent_created_at = prefixes.get((row.ref.kind, parts[0][:_CHILD_PREFIX]))
    return parent_created_at is not None and parent_created_at <= row.created_at


def grace(kind: JobKind) -> timedelta:
    """Returns how long after a job's end sageaudit waits for the audit.

    If the audit is still missing then, the event counts as lost. A job needs up to 15 minutes in
    the queue, 15 for late metrics, and 5 for the work. A roll-up waits up to three times for its
    jobs' audits.
    """
    return _ROLLUP_GRACE if kind.spec.rollup and kind.spec.has_event else _GRACE


class JobList(Struct, frozen=True):
    """One of SageMaker's lists: the jobs of a kind in one account and region."""

    account: str
    region: str
    kind: JobKind

    @property
    def account_region(self) -> AccountRegion:
        """The list's account and region."""
        return AccountRegion(self.account, self.region)


class ListProgress(Struct, frozen=True):
    """Where the next sweep continues a list that was not read to its end.

    `started_at`: when the first page was read. `created_before`: jobs created at or after this time
    are done. `edge`: the ARNs of the jobs created just before this time that are done, too.
    `oldest_open_created_at`: the earliest creation time of the jobs that still run or have only
    just ended.
    """

    started_at: datetime
    created_before: datetime
    oldest_open_created_at: datetime | None
    edge: frozenset[str] = frozenset()

    def advance(self, page: Sequence[ListedJob]) -> ListProgress:
        """Returns the progress after a page.

        Jobs with the same creation time may be on two pages, so `edge` remembers their ARNs.
        """
        if not page:
            return self
        oldest = min(row.created_at for row in page)
        created_before = oldest + timedelta(milliseconds=1)
        same_edge = self.edge if created_before == self.created_before else frozenset[str]()
        edge = same_edge | {row.ref.arn for row in page if row.created_at == oldest}
        return replace(self, created_before=created_before, edge=edge)


class ListState(Struct, frozen=True):
    """The state of a list between sweeps.

    `began_at`: when the list was first swept. `watermark`: jobs that ended before this time were
    checked. `next_created_after`: the creation time from which the next sweep reads. `tried_at`:
    when the last sweep of the list started.
    """

    began_at: datetime
    watermark: datetime
    next_created_after: datetime
    progress: ListProgress | None = None
    tried_at: datetime | None = None


class SweptRegion(Struct, frozen=True):
    """What sweeps store about one account and region: its lists, and its running jobs.

    `running_jobs` are those that the last readable pages showed, by kind, newest creation first.
    """

    lists: Mapping[JobKind, ListState] = field(default_factory=dict)
    running_jobs: Mapping[JobKind, tuple[ListedJob, ...]] = field(default_factory=dict)


MAX_RUNNING_JOBS = 3_000
"""The maximum number of running jobs that are stored for one account and region: with the longest
random names their item has 300 KB, and DynamoDB allows 400. The oldest are kept, as these may run
for too long."""


def running_row(ref: JobRef, created_at: datetime) -> ListedJob:
    """Returns the row of a running job."""
    return ListedJob(ref, RUNNING_STATUS, created_at, None, None)


def list_states(
    regions: Mapping[AccountRegion, SweptRegion],
) -> dict[JobList, ListState]:
    """Returns the states of all lists."""
    return {
        JobList(account_region.account, account_region.region, kind): state
        for account_region, swept_region in regions.items()
        for kind, state in swept_region.lists.items()
    }


def drop_abandoned_lists(states: Mapping[JobList, ListState]) -> dict[JobList, ListState]:
    """Returns the states of the lists that sweeps still read.

    If sweeps have not tried a list for `MAX_UNTRIED_TIME`, the policy no longer includes it, or its
    member denies it.
    """
    newest = max((state.tried_at for state in states.values() if state.tried_at), default=_EPOCH)
    return {
        job_list: state
        for job_list, state in states.items()
        if state.tried_at is None or newest - state.tried_at <= MAX_UNTRIED_TIME
    }


def last_read_at(state: ListState, kind: JobKind) -> datetime:
    """Returns when the first page of the last complete reading was read.

    Before the first complete reading, it is when the list was first swept.
    """
    return max(state.watermark + grace(kind), state.began_at)


class SentEvent(Struct, frozen=True):
    """The record of the last event of a run.

    `last_event_at`: when sageaudit sent the event, or when an event arrived whose audit failed or
    has to wait. `due_at`: when the run was due to be audited again; None if the event has another
    reason. `waited_for_member`: the run's account or region could not be read when the event
    arrived, so that its audit is late for a known reason.
    """

    last_event_at: datetime
    due_at: datetime | None
    waited_for_member: bool = False


def first_state(now: datetime) -> ListState:
    """Returns the state of a list that was never swept."""
    since = now - FIRST_LOOKBACK
    return ListState(
        began_at=now, watermark=since + OVERLAP, next_created_after=since - LONGEST_LIFE
    )


def repair_state(state: ListState, kind: JobKind, now: datetime) -> ListState:
    """Returns the state, or a new one if its times are in the future.

    A clock that was ahead wrote such a state. Nobody knows what it skipped.
    """
    if state.watermark > now - grace(kind) or state.next_created_after > now:
        fresh = first_state(now)
        return replace(fresh, began_at=min(state.began_at, now), tried_at=state.tried_at)
    if state.progress is not None and state.progress.started_at > now:
        return replace(state, progress=None)
    return state


def start_or_resume(state: ListState, now: datetime) -> ListProgress:
    """Returns the progress of an interrupted list, or a new progress."""
    return state.progress or ListProgress(now, now + timedelta(days=1), None)


def finish_list(state: ListState, progress: ListProgress, kind: JobKind) -> ListState:
    """Returns the state after a list's last page.

    The new watermark is `grace` before the time at which the first page was read.
    """
    started_at = progress.started_at
    oldest_open_created_at = progress.oldest_open_created_at or started_at
    return ListState(
        began_at=state.began_at,
        watermark=max(state.watermark, started_at - grace(kind)),
        next_created_after=max(
            min(oldest_open_created_at, started_at) - OVERLAP, started_at - _MAX_OPEN_AGE
        ),
        tried_at=state.tried_at,
    )


class RowDecision(Struct, frozen=True):
    """What a sweep does about one row of a list.

    `needs_audit`: the job must have an audit by now. `is_counted`: no earlier sweep has checked
    this job. `is_after_first_sweep`: the job ended after the first sweep. `should_have_event`: the
    job's event should have arrived.
    """

    must_be_listed_again: bool
    needs_audit: bool = False
    is_counted: bool = False
    is_after_first_sweep: bool = False
    should_have_event: bool = False


def decide_row(row: ListedJob, state: ListState, progress: ListProgress) -> RowDecision:
    """Returns what a sweep does about a row."""
    if row.status not in FINISHED:
        return RowDecision(must_be_listed_again=not row.status.startswith("Delet"))
    if row.last_changed_at > progress.started_at - grace(row.ref.kind):
        return RowDecision(must_be_listed_again=True)
    changed_at = max(row.last_changed_at, row.modified_at or row.last_changed_at)
    if changed_at <= state.watermark - OVERLAP:
        return RowDecision(must_be_listed_again=False)
    is_new = row.last_changed_at >= state.began_at
    return RowDecision(
        must_be_listed_again=False,
        needs_audit=True,
        is_counted=is_new and row.last_changed_at > state.watermark,
        is_after_first_sweep=is_new,
        should_have_event=is_new and row.ref.kind.spec.has_event,
    )


def make_event(ref: JobRef, status: str, created_at: datetime, ended_at: datetime) -> str:
    """Returns a run's end event as JSON, for the queue of finished jobs."""
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
