"""A sweep sends jobs whose reaudit is due, and ended jobs whose events were lost.

It sends events to the queue of finished jobs. `audit` decides by the stored summary what to do. A
sweep may stop at any point: each job that it sent is audited once, and the next sweep continues
from its last page. It checks running jobs after all lists (`workflows/sweep/watch.py`).
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
from sageaudit.errors import AwsError, UnreadableItem
from sageaudit.ports import History, JobPageSource, Queue, SweepStore
from sageaudit.structs import replace
from sageaudit.workflows.sweep.watch import (
    WatchDependencies,
    WatchResult,
    check_running_jobs,
    shuffle,
)

QUEUE_DELAY_S = 1
"""The delay of a sent message, in seconds. With 0, SQS uses the queue's own delay, in which metrics
arrive.
"""
DUE_PAGE_SIZE = 100
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
RESEND_DUE_AFTER = timedelta(days=4)
"""If a run is still due, its event is sent again after this time.

`audit` abandons a message at 3.5 days. An earlier second event would become a second dead letter.
"""


class SweepDependencies(Struct, frozen=True):
    """What a sweep reads and writes, and whose jobs it audits.

    `is_out_of_time` says whether to leave the remaining work to the next sweep. Without `watch`,
    running jobs are skipped.
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
    """How many due audits were sent. `error` and `unreadable` say why others were not."""

    sent_count: int
    error: AwsError | None = None
    unreadable: tuple[str, ...] = ()


class ListSweepResult(Struct, frozen=True):
    """The result of reading one list of jobs.

    `ended_count`: jobs that should be audited by now and that no earlier sweep has counted.
    `missing_count`: jobs without an audit that ended in the same time, or in the OVERLAP before.
    Several sweeps count the same missing job.

    Three fields count the sent jobs by reason. `lost_events`: the job's event was lost.
    `sent_without_event`: AWS has no event for the job's kind. `sent_from_before`: the job ended
    before the list's first sweep. `unreadable`: a sentence for each job whose stored summary cannot
    be read.
    """

    job_list: JobList
    ended_count: int = 0
    missing_count: int = 0
    lost_events: int = 0
    sent_without_event: int = 0
    sent_from_before: int = 0
    is_complete: bool = False
    error: AwsError | None = None
    unreadable: tuple[str, ...] = ()


def sweep(deps: SweepDependencies) -> Iterator[DueAuditsSent | ListSweepResult | WatchResult]:
    """Yields the results of a sweep's parts. A part that fails does not stop the others.

    Lists that were not tried for the longest time come first, so that a slow list never blocks the
    others. Running jobs come last. Raises AwsError before the first part.
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
        list_sweep = _ListSweep(deps, job_list)
        yield list_sweep.sweep(states[job_list])
        running[job_list] = list(list_sweep.running.values())
    if deps.watch is not None:
        for job_list in shuffle(running, deps.clock()):
            if rows := running[job_list]:
                yield check_running_jobs(
                    deps.watch, job_list, rows, deps.clock, deps.is_out_of_time
                )


def _last_tried_at(state: ListState | None) -> datetime:
    return (state and state.tried_at) or _NEVER


class _ListSweep:
    """Reads one list page by page. `running` has the list's running jobs, by ARN."""

    def __init__(self, deps: SweepDependencies, job_list: JobList) -> None:
        self.running: dict[str, ListedJob] = {}
        self._deps = deps
        self._job_list = job_list
        self._result = ListSweepResult(job_list)

    def sweep(self, stored_state: ListState | None) -> ListSweepResult:
        """Reads the list until the time is up. An AwsError becomes the result's error."""
        try:
            return self._run(stored_state)
        except AwsError as error:
            return replace(self._result, error=error)

    def _run(self, stored_state: ListState | None) -> ListSweepResult:
        deps, job_list, now = self._deps, self._job_list, self._deps.clock()
        state = (
            first_state(now)
            if stored_state is None
            else repair_state(stored_state, job_list.kind, now)
        )
        state = replace(state, tried_at=now)
        deps.sweep_store.save_list_state(job_list, state)
        progress = start_or_resume(state, now)
        try:
            for page in deps.job_pages.pages(
                job_list,
                created_after=state.next_created_after,
                created_before=progress.created_before,
            ):
                progress = self._check_page(page, state, progress)
                if deps.is_out_of_time():
                    deps.sweep_store.save_list_state(job_list, replace(state, progress=progress))
                    return self._result
        except AwsError:
            if progress != start_or_resume(state, now):
                deps.sweep_store.save_list_state(job_list, replace(state, progress=progress))
            raise
        deps.sweep_store.save_list_state(job_list, finish_list(state, progress, job_list.kind))
        return replace(self._result, is_complete=True)

    def _check_page(
        self, page: Sequence[ListedJob], state: ListState, progress: ListProgress
    ) -> ListProgress:
        """Returns how far the list has been read."""
        for row in page:
            if row.status == "InProgress" and not row.ref.kind.spec.rollup:
                self.running[row.ref.arn] = row
            if row.ref.arn not in progress.edge and self._check_row(row, state, progress):
                oldest_open_created_at = min(
                    progress.oldest_open_created_at or row.created_at, row.created_at
                )
                progress = replace(progress, oldest_open_created_at=oldest_open_created_at)
        return progress.advance(page)

    def _check_row(self, row: ListedJob, state: ListState, progress: ListProgress) -> bool:
        """Returns True if later sweeps must check the row again.

        They must check an ended job without a readable audit, until the overlap ends.
        """
        decision = decide_row(row, state, progress)
        if not decision.needs_audit:
            return decision.must_be_listed_again
        key = JobKey(row.ref.arn, row.created_at)
        try:
            is_audited = self._deps.history.summary(key) is not None
        except UnreadableItem as error:
            self._result = replace(self._result, unreadable=(*self._result.unreadable, str(error)))
            self._count(ended_count=decision.is_counted)
            return True
        was_sent = not is_audited and self._send(row, key)
        was_sent_without_event = (
            was_sent and decision.is_after_first_sweep and not decision.should_have_event
        )
        self._count(
            ended_count=decision.is_counted,
            missing_count=decision.is_after_first_sweep
            and not is_audited
            and not was_sent_without_event,
            lost_events=was_sent and decision.should_have_event,
            sent_without_event=was_sent_without_event,
            sent_from_before=was_sent and not decision.is_after_first_sweep,
        )
        return not is_audited

    def _count(self, **increments: bool) -> None:
        result = self._result
        self._result = replace(
            result,
            **{name: getattr(result, name) + increment for name, increment in increments.items()},
        )

    def _send(self, row: ListedJob, key: JobKey) -> bool:
        """Sends the run's event. Returns False if the event was sent before or has arrived."""
        if self._deps.sweep_store.event_record(key) is not None:
            return False
        body = make_event(row.ref, row.status, row.created_at, row.last_changed_at)
        _send(self._deps, body, key, SentEvent(self._deps.clock(), None))
        return True


def _send_due(deps: SweepDependencies) -> DueAuditsSent:
    """Sends the events of due runs that were not sent recently, longest due first."""
    now, sent_count = deps.clock(), 0
    due_runs = deps.history.runs(RunQuery.due_until(now), page_size=DUE_PAGE_SIZE)
    try:
        for run in due_runs:
            if deps.is_out_of_time():
                break
            sent_count += _send_due_run(deps, run, now)
    except AwsError as error:
        return DueAuditsSent(sent_count, error, _take_unreadable(deps.history))
    return DueAuditsSent(sent_count, None, _take_unreadable(deps.history))


def _take_unreadable(history: History) -> tuple[str, ...]:
    return tuple(map(str, history.take_unreadable()))


def _send_due_run(deps: SweepDependencies, run: AuditSummary, now: datetime) -> bool:
    """Sends the event of a due run.

    Returns False if the event was sent recently, or if this deployment does not audit the run.
    """
    ref = JobRef.from_arn(run.key.arn, run.job)
    if ref is None or ref.account not in deps.accounts or ref.region not in deps.regions:
        return False
    last_record = deps.sweep_store.event_record(run.key)
    if (
        last_record is not None
        and last_record.due_at == run.due_at
        and now - last_record.last_event_at < RESEND_DUE_AFTER
    ):
        return False
    body = make_event(ref, run.status, run.key.created_at, run.ended_at)
    _send(deps, body, run.key, SentEvent(now, run.due_at))
    return True


def _send(deps: SweepDependencies, body: str, key: JobKey, event_record: SentEvent) -> None:
    # If the process stops before the second step, the event is sent twice and the run audited once.
    deps.queue.send(body, delay_s=QUEUE_DELAY_S)
    deps.sweep_store.record_event_sent(key, event_record)
