"""Reads one list of jobs: sends ended jobs without an audit, and collects the running ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct

from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.members import AuditScope
from sageaudit.domain.sweep import (
    RUNNING_STATUS,
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
from sageaudit.ports import (
    History,
    JobPageSource,
    MemberRegistry,
    Queue,
    SweepStore,
    Workers,
)
from sageaudit.structs import replace

QUEUE_DELAY_S = 1
"""The delay of a sent message, in seconds. With 0, SQS uses the queue's own delay, in which metrics
arrive.
"""


class SweepDependencies(Struct, frozen=True):
    """What a sweep reads and writes, and whose jobs it audits.

    `check_member` returns the actions that an account and region denies, with the errors.
    `is_out_of_time` says whether to leave the remaining work to the next sweep.
    """

    job_pages: JobPageSource
    history: History
    sweep_store: SweepStore
    registry: MemberRegistry
    queue: Queue
    scope: AuditScope
    check_member: Callable[[str, str], dict[str, AwsError]]
    workers: Workers
    clock: Callable[[], datetime]
    is_out_of_time: Callable[[], bool]


class ListSweepResult(Struct, frozen=True):
    """The result of reading one list of jobs.

    `ended_count`: jobs that should be audited by now and that no earlier sweep has counted.
    `missing_count`: jobs without an audit that ended in the same time, or in the OVERLAP before.
    Several sweeps count the same missing job.

    Three fields count the sent jobs by reason. `lost_events`: the job's event was lost.
    `sent_without_event`: AWS has no event for the job's kind. `sent_from_before`: the job ended
    before the list's first sweep. `unreadable`: a sentence for each job whose stored summary cannot
    be read. `denial`: the error with which a member denies the list. `error` and `defect`: other
    reasons why the list could not be read to its end.
    """

    job_list: JobList
    ended_count: int = 0
    missing_count: int = 0
    lost_events: int = 0
    sent_without_event: int = 0
    sent_from_before: int = 0
    is_complete: bool = False
    unreadable: tuple[str, ...] = ()
    denial: AwsError | None = None
    error: AwsError | None = None
    defect: Exception | None = None


class ListSweep:
    """Reads one list page by page.

    After `run`, `state` is the list's new state, and `running_jobs` are its running jobs: those
    that the pages showed, and those of `earlier_running_jobs` that may still run.
    """

    def __init__(
        self,
        deps: SweepDependencies,
        job_list: JobList,
        stored_state: ListState | None,
        earlier_running_jobs: Sequence[ListedJob] = (),
    ) -> None:
        self.state = stored_state
        self.result = ListSweepResult(job_list)
        self._deps = deps
        self._job_list = job_list
        self._stored_state = stored_state
        self._earlier_running_jobs = earlier_running_jobs
        self._running: dict[str, ListedJob] = {}
        self._ended: set[str] = set()

    def run(self) -> ListSweepResult:
        """Reads the list until the time is up. An error becomes a part of the result."""
        try:
            self._read()
        except AwsError as error:
            is_denial = self._deps.scope.is_denied_by_member(self._job_list.account_region, error)
            denial, other = (error, None) if is_denial else (None, error)
            self.result = replace(self.result, denial=denial, error=other)
        except Exception as error:  # noqa: BLE001 - a bug with one list must not stop the others
            self.result = replace(self.result, defect=error)
        return self.result

    @property
    def running_jobs(self) -> tuple[ListedJob, ...]:
        """The list's running jobs, newest creation first."""
        known = {row.ref.arn: row for row in self._earlier_running_jobs}
        is_whole_list = self.result.is_complete and (
            self._stored_state is None or self._stored_state.progress is None
        )
        if is_whole_list:
            known.clear()
        for arn in self._ended:
            known.pop(arn, None)
        rows = (known | self._running).values()
        return tuple(sorted(rows, key=lambda row: (row.created_at, row.ref.arn), reverse=True))

    def _read(self) -> None:
        deps, job_list, now = self._deps, self._job_list, self._deps.clock()
        state = (
            first_state(now)
            if self._stored_state is None
            else repair_state(self._stored_state, job_list.kind, now)
        )
        self.state = state = replace(state, tried_at=now)
        progress = start_or_resume(state, now)
        for page in deps.job_pages.pages(
            job_list,
            created_after=state.next_created_after,
            created_before=progress.created_before,
        ):
            progress = self._check_page(page, state, progress)
            self.state = replace(state, progress=progress)
            if deps.is_out_of_time():
                return
        self.state = finish_list(state, progress, job_list.kind)
        self.result = replace(self.result, is_complete=True)

    def _check_page(
        self, page: Sequence[ListedJob], state: ListState, progress: ListProgress
    ) -> ListProgress:
        """Returns how far the list has been read."""
        for row in page:
            if row.status != RUNNING_STATUS:
                self._ended.add(row.ref.arn)
            elif not row.ref.kind.spec.rollup:
                self._running[row.ref.arn] = row
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
            self.result = replace(self.result, unreadable=(*self.result.unreadable, str(error)))
            self._count(ended_count=decision.is_counted)
            return True
        event_record = None if is_audited else self._deps.sweep_store.event_record(key)
        was_sent = not is_audited and event_record is None
        if was_sent:
            body = make_event(row.ref, row.status, row.created_at, row.last_changed_at)
            send_event(self._deps, body, key, SentEvent(self._deps.clock(), None))
        was_sent_without_event = (
            was_sent and decision.is_after_first_sweep and not decision.should_have_event
        )
        # An audit that waited for its member is late for a known reason.
        is_missing = not is_audited and not (event_record and event_record.waited_for_member)
        self._count(
            ended_count=decision.is_counted,
            missing_count=decision.is_after_first_sweep
            and is_missing
            and not was_sent_without_event,
            lost_events=was_sent and decision.should_have_event,
            sent_without_event=was_sent_without_event,
            sent_from_before=was_sent and not decision.is_after_first_sweep,
        )
        return not is_audited

    def _count(self, **increments: bool) -> None:
        result = self.result
        self.result = replace(
            result,
            **{name: getattr(result, name) + increment for name, increment in increments.items()},
        )


def send_event(deps: SweepDependencies, body: str, key: JobKey, event_record: SentEvent) -> None:
    """Sends a run's event to the queue of finished jobs, and records that it was sent.

    If the process stops before the second step, the event is sent twice and the run audited once.
    """
    deps.queue.send(body, delay_s=QUEUE_DELAY_S)
    deps.sweep_store.record_event_sent(key, event_record)
