"""A sweep: sends what is due to be audited again, and finds ended jobs that no event told of.

Both go to the queue of finished jobs, as events; `audit` decides from its HEAD what to do. A sweep
may stop at any point: what it sent is audited once, and the next one goes on where it stopped. The
jobs that run are looked at after all lists were read (`workflows/sweep/watch.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product, starmap

from msgspec import Struct

from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.sweep import (
    JobList,
    ListedJob,
    ListProgress,
    ListState,
    SentEvent,
    decide_row,
    finish_list,
    first_state,
    make_event,
    repair_state,
    start_or_resume,
)
from sageaudit.errors import AwsError, BadHistory
from sageaudit.ports import History, JobPageSource, Queue, SweepStore
from sageaudit.structs import replace
from sageaudit.workflows.sweep.watch import (
    WatchDependencies,
    WatchResult,
    check_running_jobs,
    shuffle,
)

QUEUE_DELAY_S = 1
"""The shortest delay of a message: at 0, the queue's own applies, which waits for metrics."""
DUE_PAGE_SIZE = 100
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
RESEND_DUE_AFTER = timedelta(days=4)
"""What was sent as due and still is, is sent again after this time. `audit` gives a message up at
3.5 days: before, a second one of the same run would fail beside it, and be a second dead letter."""


class SweepDependencies(Struct, frozen=True):
    """What a sweep reads, and where it writes.

    `accounts`, `regions`: those whose jobs are audited. `out_of_time` says when to leave the rest
    to the next. `watch`: what running jobs are looked at with; None: they are not.
    """

    job_pages: JobPageSource
    history: History
    sweep_store: SweepStore
    queue: Queue
    accounts: Sequence[str]
    regions: Sequence[str]
    clock: Callable[[], datetime]
    is_out_of_time: Callable[[], bool]
    watch: WatchDependencies | None = None


class DueAuditsSent(Struct, frozen=True):
    """How many due audits were sent; `error` is why not all, `unreadable` why some were not."""

    sent: int
    error: AwsError | None = None
    unreadable: tuple[str, ...] = ()


class ListSweepResult(Struct, frozen=True):
    """One list of jobs, read as far as it went.

    `ended`: jobs that ended in the time that this sweep is the first to look at, and should be
    audited by now. `missing`: jobs without an audit that ended since, or in the OVERLAP before: one
    that stays so is in it for hours. `found`: sent, once, as no event told of them. `sent_first`:
    sent, as AWS sends no event of their kind. `looked_back`: sent, as they ended before the list
    was swept first. `whole`: read to its last page. `error` is
    why it was not. `unreadable`: why it is not known whether a job is audited, one sentence each.
    """

    job_list: JobList
    ended: int = 0
    missing: int = 0
    lost_events: int = 0
    sent_without_event: int = 0
    sent_from_before: int = 0
    is_complete: bool = False
    error: AwsError | None = None
    unreadable: tuple[str, ...] = ()


def sweep(deps: SweepDependencies) -> Iterator[DueAuditsSent | ListSweepResult | WatchResult]:
    """One sweep, part by part. A part that fails stops no other. Raises AwsError before the first.

    The lists that were not tried for the longest time come first: one that always takes long, or
    hangs, holds up no other for ever. Running jobs are looked at last, in another order each time.
    """
    deps.sweep_store.record_installation()
    states = {
        one: deps.sweep_store.list_state(one)
        for one in starmap(JobList, product(deps.accounts, deps.regions, JobKind))
    }
    yield _send_due(deps)
    running: dict[JobList, list[ListedJob]] = {}
    for one in sorted(states, key=lambda one: _last_tried_at(states[one])):
        if deps.is_out_of_time():
            break
        swept = _ListSweep(deps, one)
        yield swept.sweep(states[one])
        running[one] = list(swept.running.values())
    if deps.watch is not None:
        for one in shuffle(running, deps.clock()):
            if rows := running[one]:
                yield check_running_jobs(deps.watch, one, rows, deps.clock, deps.is_out_of_time)


def _last_tried_at(state: ListState | None) -> datetime:
    return (state and state.tried_at) or _NEVER


class _ListSweep:
    """Reads one list page by page, and keeps count. `running`: its jobs that run, by their ARNs."""

    def __init__(self, deps: SweepDependencies, job_list: JobList) -> None:
        self.running: dict[str, ListedJob] = {}
        self._deps = deps
        self._of = job_list
        self._swept = ListSweepResult(job_list)

    def sweep(self, stored_state: ListState | None) -> ListSweepResult:
        """Reads it as far as time allows."""
        try:
            return self._run(stored_state)
        except AwsError as error:
            return replace(self._swept, error=error)

    def _run(self, kept: ListState | None) -> ListSweepResult:
        deps, of, now = self._deps, self._of, self._deps.clock()
        state = first_state(now) if kept is None else repair_state(kept, of.kind, now)
        state = replace(state, tried_at=now)
        deps.sweep_store.save_list_state(of, state)
        under_way = start_or_resume(state, now)
        try:
            for page in deps.job_pages.pages(
                of, created_after=state.next_created_after, created_before=under_way.created_before
            ):
                under_way = self._page(page, state, under_way)
                if deps.is_out_of_time():
                    deps.sweep_store.save_list_state(of, replace(state, progress=under_way))
                    return self._swept
        except AwsError:
            if under_way != start_or_resume(state, now):
                deps.sweep_store.save_list_state(of, replace(state, progress=under_way))
            raise
        deps.sweep_store.save_list_state(of, finish_list(state, under_way, of.kind))
        return replace(self._swept, is_complete=True)

    def _page(
        self, page: Sequence[ListedJob], state: ListState, under_way: ListProgress
    ) -> ListProgress:
        """Looks at each row; returns how far the list is read now."""
        for row in page:
            if row.status == "InProgress" and not row.ref.kind.spec.rollup:
                self.running[row.ref.arn] = row
            if row.ref.arn not in under_way.edge and self._check_row(row, state, under_way):
                oldest_open_created_at = min(
                    under_way.oldest_open_created_at or row.created_at, row.created_at
                )
                under_way = replace(under_way, oldest_open_created_at=oldest_open_created_at)
        return under_way.after(page)

    def _check_row(self, row: ListedJob, state: ListState, under_way: ListProgress) -> bool:
        """Looks at a row. One that ended and has no audit is looked at while the overlap lasts.

        So is one whose audit cannot be read.
        """
        what = decide_row(row, state, under_way)
        if not what.needs_audit:
            return what.must_be_listed_again
        key = JobKey(row.ref.arn, row.created_at)
        try:
            audited = self._deps.history.summary(key) is not None
        except BadHistory as error:
            self._swept = replace(self._swept, unreadable=(*self._swept.unreadable, str(error)))
            self._count(ended=what.is_counted)
            return True
        sent = not audited and self._send(row, key)
        sent_first = sent and what.is_after_first_sweep and not what.should_have_event
        self._count(
            ended=what.is_counted,
            missing=what.is_after_first_sweep and not audited and not sent_first,
            lost_events=sent and what.should_have_event,
            sent_without_event=sent_first,
            sent_from_before=sent and not what.is_after_first_sweep,
        )
        return not audited

    def _count(self, **increments: bool) -> None:
        swept = self._swept
        self._swept = replace(
            swept, **{name: getattr(swept, name) + n for name, n in increments.items()}
        )

    def _send(self, row: ListedJob, key: JobKey) -> bool:
        """Sends a run's event, once."""
        if self._deps.sweep_store.event_record(key) is not None:
            return False
        body = make_event(row.ref, row.status, row.created_at, row.last_changed_at)
        _send(self._deps, body, key, SentEvent(self._deps.clock(), None))
        return True


def _send_due(deps: SweepDependencies) -> DueAuditsSent:
    """Sends what is due and was not sent lately, the longest due first."""
    now, sent, unreadable = deps.clock(), 0, list[str]()
    due = deps.history.runs(RunQuery.due_until(now), page_size=DUE_PAGE_SIZE)
    try:
        for head in due:
            if deps.is_out_of_time():
                break
            if isinstance(head, BadHistory):
                unreadable.append(str(head))
            else:
                sent += _send_head(deps, head, now)
    except AwsError as error:
        return DueAuditsSent(sent, error, tuple(unreadable))
    return DueAuditsSent(sent, None, tuple(unreadable))


def _send_head(deps: SweepDependencies, head: AuditSummary, now: datetime) -> bool:
    """Sends a due run's event, if its job is one that may be audited here."""
    ref = JobRef.from_arn(head.key.arn, head.job)
    if ref is None or ref.account not in deps.accounts or ref.region not in deps.regions:
        return False
    known = deps.sweep_store.event_record(head.key)
    if known is not None and known.due_at == head.due_at and now - known.at < RESEND_DUE_AFTER:
        return False
    body = make_event(ref, head.status, head.key.created_at, head.ended_at)
    _send(deps, body, head.key, SentEvent(now, head.due_at))
    return True


def _send(deps: SweepDependencies, body: str, key: JobKey, note: SentEvent) -> None:
    """Noted after it was sent: a stop in between sends it twice, which is audited once."""
    deps.queue.send(body, delay_s=QUEUE_DELAY_S)
    deps.sweep_store.record_event_sent(key, note)
