"""A sweep: sends jobs whose reaudit is due, and finds ended jobs whose events were lost.

Both go to the queue of finished jobs, as events; `audit` decides by the HEAD item what to do. A
sweep may stop at any point: what it sent is audited once, and the next one continues there. It
checks running jobs after all lists (`workflows/sweep/watch.py`).
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
"""The shortest delay of a message: 0 means the queue's own delay, which waits for metrics."""
DUE_PAGE_SIZE = 100
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
RESEND_DUE_AFTER = timedelta(days=4)
"""An event that is still due is sent again after this time. `audit` abandons a message at 3.5 days;
an earlier second event of the run would fail too, and be a second dead letter."""


class SweepDependencies(Struct, frozen=True):
    """What a sweep reads, and where it writes.

    `accounts`, `regions`: those whose jobs are audited. `is_out_of_time`: whether to stop and leave
    the remaining work to the next sweep. `watch`: None to skip running jobs.
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
    """How many due audits were sent; `error` and `unreadable` say why others were not."""

    sent: int
    error: AwsError | None = None
    unreadable: tuple[str, ...] = ()


class ListSweepResult(Struct, frozen=True):
    """The result of reading one list of jobs.

    `ended`: jobs that should be audited by now, and ended in the time that this sweep checks first.
    `missing`: jobs without an audit that ended then or in the OVERLAP before; several sweeps count
    the same job. `lost_events`: sent once, since their event was lost. `sent_without_event`: sent,
    since AWS has no event for their kind. `sent_from_before`: sent, since they ended before the
    list's first sweep. `unreadable`: why it is not known whether a job is audited, a sentence each.
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
    """Yields a sweep's parts. A part that fails stops no other. Raises AwsError before the first.

    Lists that were not tried for the longest time come first, so that a slow list never blocks the
    others for ever. Running jobs are checked last, in another order each time.
    """
    deps.sweep_store.record_installation()
    states = {
        job_list: deps.sweep_store.list_state(job_list)
        for job_list in starmap(JobList, product(deps.accounts, deps.regions, JobKind))
    }
    yield _send_due(deps)
    running: dict[JobList, list[ListedJob]] = {}
    for job_list in sorted(states, key=lambda key: _last_tried_at(states[key])):
        if deps.is_out_of_time():
            break
        swept = _ListSweep(deps, job_list)
        yield swept.sweep(states[job_list])
        running[job_list] = list(swept.running.values())
    if deps.watch is not None:
        for job_list in shuffle(running, deps.clock()):
            if rows := running[job_list]:
                yield check_running_jobs(
                    deps.watch, job_list, rows, deps.clock, deps.is_out_of_time
                )


def _last_tried_at(state: ListState | None) -> datetime:
    return (state and state.tried_at) or _NEVER


class _ListSweep:
    """Reads one list page by page, and counts. `running`: its running jobs, by their ARNs."""

    def __init__(self, deps: SweepDependencies, job_list: JobList) -> None:
        self.running: dict[str, ListedJob] = {}
        self._deps = deps
        self._job_list = job_list
        self._swept = ListSweepResult(job_list)

    def sweep(self, stored_state: ListState | None) -> ListSweepResult:
        """Reads the list as far as time allows."""
        try:
            return self._run(stored_state)
        except AwsError as error:
            return replace(self._swept, error=error)

    def _run(self, kept: ListState | None) -> ListSweepResult:
        deps, job_list, now = self._deps, self._job_list, self._deps.clock()
        state = first_state(now) if kept is None else repair_state(kept, job_list.kind, now)
        state = replace(state, tried_at=now)
        deps.sweep_store.save_list_state(job_list, state)
        under_way = start_or_resume(state, now)
        try:
            for page in deps.job_pages.pages(
                job_list,
                created_after=state.next_created_after,
                created_before=under_way.created_before,
            ):
                under_way = self._page(page, state, under_way)
                if deps.is_out_of_time():
                    deps.sweep_store.save_list_state(job_list, replace(state, progress=under_way))
                    return self._swept
        except AwsError:
            if under_way != start_or_resume(state, now):
                deps.sweep_store.save_list_state(job_list, replace(state, progress=under_way))
            raise
        deps.sweep_store.save_list_state(job_list, finish_list(state, under_way, job_list.kind))
        return replace(self._swept, is_complete=True)

    def _page(
        self, page: Sequence[ListedJob], state: ListState, under_way: ListProgress
    ) -> ListProgress:
        """Checks each row; returns how far the list has been read."""
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
        """Checks a row; returns whether later sweeps must check it again.

        They must if an ended job has no audit, or one that cannot be read, until the overlap ends.
        """
        decision = decide_row(row, state, under_way)
        if not decision.needs_audit:
            return decision.must_be_listed_again
        key = JobKey(row.ref.arn, row.created_at)
        try:
            audited = self._deps.history.summary(key) is not None
        except BadHistory as error:
            self._swept = replace(self._swept, unreadable=(*self._swept.unreadable, str(error)))
            self._count(ended=decision.is_counted)
            return True
        sent = not audited and self._send(row, key)
        sent_first = sent and decision.is_after_first_sweep and not decision.should_have_event
        self._count(
            ended=decision.is_counted,
            missing=decision.is_after_first_sweep and not audited and not sent_first,
            lost_events=sent and decision.should_have_event,
            sent_without_event=sent_first,
            sent_from_before=sent and not decision.is_after_first_sweep,
        )
        return not audited

    def _count(self, **increments: bool) -> None:
        swept = self._swept
        self._swept = replace(
            swept, **{name: getattr(swept, name) + n for name, n in increments.items()}
        )

    def _send(self, row: ListedJob, key: JobKey) -> bool:
        """Sends a run's event, unless one was sent or arrived."""
        if self._deps.sweep_store.event_record(key) is not None:
            return False
        body = make_event(row.ref, row.status, row.created_at, row.last_changed_at)
        _send(self._deps, body, key, SentEvent(self._deps.clock(), None))
        return True


def _send_due(deps: SweepDependencies) -> DueAuditsSent:
    """Sends due runs' events that were not sent recently, the longest due first."""
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
    """Sends a due run's event, if its account and region are audited here."""
    ref = JobRef.from_arn(head.key.arn, head.job)
    if ref is None or ref.account not in deps.accounts or ref.region not in deps.regions:
        return False
    last = deps.sweep_store.event_record(head.key)
    if last is not None and last.due_at == head.due_at and now - last.at < RESEND_DUE_AFTER:
        return False
    body = make_event(ref, head.status, head.key.created_at, head.ended_at)
    _send(deps, body, head.key, SentEvent(now, head.due_at))
    return True


def _send(deps: SweepDependencies, body: str, key: JobKey, note: SentEvent) -> None:
    """Sends, then stores it. After a stop in between it is sent twice and audited once."""
    deps.queue.send(body, delay_s=QUEUE_DELAY_S)
    deps.sweep_store.record_event_sent(key, note)
