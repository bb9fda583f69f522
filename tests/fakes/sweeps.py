"""Sweeps over fake lists of jobs, history and queue; each request moves the clock."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from local.functions import ProcessKilled
from local.workers import InlineWorkers
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import AccountRegion, JobRef
from sageaudit.domain.members import AuditScope
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.domain.sweep import JobList, ListedJob, ListState, SweptRegion, list_states
from sageaudit.errors import AwsError, UnreadableItem
from sageaudit.ports import SweepStore, Workers
from sageaudit.structs import replace
from sageaudit.workflows.sweep.lists import ListSweepResult, SweepDependencies
from sageaudit.workflows.sweep.run import SweepPart, sweep
from tests.fakes.calls import die_at_step, no_step, with_steps
from tests.fakes.families import run_summary
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.memory_ledger import MemoryMemberRegistry, MemorySweepStore
from tests.fakes.queues import FakeQueue

NOON = datetime(2026, 5, 20, 12, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
TRAINING = JobList(ACCOUNT, REGION, JobKind.TRAINING)


def row(
    name: str,
    ended_at: datetime | None,
    *,
    lasts: timedelta = HOUR,
    created_at: datetime | None = None,
    kind: JobKind = JobKind.TRAINING,
    status: str = "Completed",
    account: str = ACCOUNT,
    region: str = REGION,
    modified_at: datetime | None = None,
) -> ListedJob:
    """Returns a row of a list; without `ended_at` the job still runs."""
    arn = f"arn:aws:sagemaker:{region}:{account}:{kind.spec.arn_word}/{name}"
    ref = JobRef.from_arn(arn, name)
    assert ref is not None
    if ended_at is None:
        assert created_at is not None
        return ListedJob(ref, "InProgress", created_at, None, modified_at or created_at)
    created = created_at or ended_at - lasts
    return ListedJob(ref, status, created, ended_at, modified_at or ended_at)


def key_of(listed: ListedJob) -> JobKey:
    """Returns the key of the job's audit."""
    return JobKey(listed.ref.arn, listed.created_at)


@dataclass
class KnownRuns:
    """Fakes History for sweeps: summaries and due audits."""

    summaries: dict[JobKey, AuditSummary] = field(default_factory=dict)
    fails: AwsError | None = None
    summary_reads: Counter[JobKey] = field(default_factory=Counter)
    unreadable: set[JobKey] = field(default_factory=set)
    left_out: list[UnreadableItem] = field(default_factory=list)

    def add_audits(self, *rows: ListedJob, due_at: datetime | None = None) -> None:
        for listed in rows:
            self.summaries[key_of(listed)] = summary_of(listed, due_at=due_at)

    def summary(self, key: JobKey) -> AuditSummary | None:
        if self.fails:
            raise self.fails
        self.summary_reads[key] += 1
        if key in self.unreadable:
            raise UnreadableItem(key.arn, "cannot be read")
        return self.summaries.get(key)

    def runs(
        self, query: RunQuery[AuditSummary], *, page_size: int | None = None
    ) -> Iterator[AuditSummary]:
        if self.fails:
            raise self.fails
        until = datetime.fromisoformat(*query.values)
        waiting = [head for head in self.summaries.values() if head.due_at and head.due_at <= until]
        for head in sorted(waiting, key=lambda head: (head.due_at, head.key.arn)):
            if head.key in self.unreadable:
                self.left_out.append(UnreadableItem(head.key.arn, "cannot be read"))
            else:
                yield head

    def take_unreadable(self) -> tuple[UnreadableItem, ...]:
        left_out, self.left_out = self.left_out, []
        return tuple(left_out)


def summary_of(listed: ListedJob, *, due_at: datetime | None = None) -> AuditSummary:
    """Returns the summary of the job's audit."""
    return run_summary(
        key=key_of(listed),
        settled=due_at is None,
        due_at=due_at,
        last_modified_at=listed.last_changed_at,
        job=listed.ref.name,
        kind=listed.ref.kind.value,
        status=listed.status,
        account=listed.ref.account,
        region=listed.ref.region,
        ended_at=listed.last_changed_at,
    )


@dataclass
class FakePages:
    """Fakes SageMaker's lists, in pages of `size`, each of which takes a second.

    `alter_page` gets a list, the page number and its rows; it returns other rows, or raises.
    """

    flow: "SweepFlow"
    rows: list[ListedJob] = field(default_factory=list)
    size: int = 100
    requests: list[tuple[datetime, JobList]] = field(default_factory=list)
    alter_page: Callable[[JobList, int, list[ListedJob]], list[ListedJob]] = lambda _of, _n, page: (
        page
    )

    def pages(
        self, job_list: JobList, *, created_after: datetime, created_before: datetime
    ) -> Iterator[list[ListedJob]]:
        start, number = 0, 0
        while True:
            self.flow.now += timedelta(seconds=1)
            self.requests.append((self.flow.now, job_list))
            rows = self._rows(job_list, created_after, created_before)
            number += 1
            yield self.alter_page(job_list, number, rows[start : start + self.size])
            start += self.size
            if start >= len(rows):
                return

    def _rows(self, job_list: JobList, after: datetime, before: datetime) -> list[ListedJob]:
        now = self.flow.now
        listed_now = [
            row if row.ended_at is None or row.ended_at <= now else _running(row)
            for row in self.rows
            if (row.ref.account, row.ref.region, row.ref.kind)
            == (job_list.account, job_list.region, job_list.kind)
            and row.created_at <= now
            and after < row.created_at < before
        ]
        return sorted(listed_now, key=lambda row: row.created_at, reverse=True)


def _running(row: ListedJob) -> ListedJob:
    return replace(row, status="InProgress", ended_at=None, modified_at=row.created_at)


class SweepFlow:
    """A sweep with all its fakes, beginning at `now`."""

    def __init__(self, now: datetime = NOON, *, accounts: tuple[str, ...] = (ACCOUNT,)) -> None:
        self.now = now
        self.pages = FakePages(self)
        self.history = KnownRuns()
        self.notes = MemorySweepStore()
        self.registry = MemoryMemberRegistry()
        self.denials: dict[AccountRegion, dict[str, AwsError]] = {}
        self.queue = FakeQueue()
        self.workers: Workers = InlineWorkers()
        self.accounts = accounts
        self.regions: tuple[str, ...] = (REGION,)
        self.max_pages: int | None = None
        self.step: Callable[[], None] = no_step

    def sweep(self) -> list[SweepPart]:
        """Runs one sweep; checks that it reads no more pages than it has time for."""
        already, most = len(self.pages.requests), self.max_pages
        parts = list(self.sweep_parts())
        waits = {message.visible_at - message.sent_at for message in self.queue.messages.values()}
        assert waits <= {timedelta(seconds=1)}, "the queue's own delay is for metrics"
        assert not any(self.queue.attributes())
        assert most is None or len(self.pages.requests) - already <= most
        return parts

    def dependencies(self, out_of_time: Callable[[], bool]) -> SweepDependencies:
        """Returns the dependencies of a sweep."""
        return SweepDependencies(
            job_pages=self.pages,
            history=cast("Any", self.history),
            sweep_store=cast("Any", with_steps(self.notes, self._step)),
            queue=cast("Any", with_steps(self.queue, self._step)),
            registry=cast("Any", with_steps(self.registry, self._step)),
            scope=AuditScope(AccountRegion(self.accounts[0], self.regions[0]), self.members),
            check_member=lambda account, region: self.denials.get(
                AccountRegion(account, region), {}
            ),
            workers=self.workers,
            clock=lambda: self.now,
            is_out_of_time=out_of_time,
        )

    def check_member(self, account: str, region: str) -> dict[str, AwsError]:
        """What a member denies."""
        return self.denials.get(AccountRegion(account, region), {})

    @property
    def members(self) -> MemberAccounts:
        """The other accounts and regions; the first ones are home."""
        roles = dict.fromkeys(self.accounts[1:], "sageaudit-read")
        return MemberAccounts(roles, regions=self.regions[1:])

    def _step(self) -> None:
        self.step()

    def sweep_parts(self) -> Iterator[SweepPart]:
        """Yields the parts of one sweep."""
        already = len(self.pages.requests)

        def out_of_time() -> bool:
            most = self.max_pages
            return most is not None and len(self.pages.requests) - already >= most

        return sweep(self.dependencies(out_of_time))

    def state(self, job_list: JobList) -> ListState:
        """Returns the stored state of a list that was swept."""
        return list_states(self.notes.swept_regions())[job_list]

    def is_killed_at(self, number: int) -> bool:
        """Whether a sweep that dies at this step of its queue or notes came to that step."""
        self.step, completed = die_at_step(number), False
        with suppress(ProcessKilled):
            self.sweep()
            completed = True
        self.step = no_step
        return not completed

    def sweep_until(self, until: datetime, *, audits: bool = True) -> list[SweepPart]:
        """Runs a sweep every 15 minutes; by default the jobs that it sends are audited at once."""
        parts: list[SweepPart] = []
        while self.now <= until:
            begun_at = self.now
            parts += self.sweep()
            if audits:
                self.audit_sent()
            self.now = max(begun_at + 15 * MINUTE, self.now)
        return parts

    def total_until(self, moment: datetime, *, audits: bool = True) -> ListSweepResult:
        """Runs the same sweeps; returns the results of all lists added up."""
        return add_up(self.sweep_until(moment, audits=audits))

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events sent to the queue of finished jobs."""
        return [json.loads(body) for body, _ in self.queue.sent]

    @property
    def names(self) -> list[str]:
        """The job names of these events."""
        return [
            value
            for event in self.events
            for name, value in event["detail"].items()
            if name.endswith("JobName")
        ]

    def audit_sent(self) -> None:
        """Audits all jobs in the queue, so that they are no longer due."""
        by_arn = {row.ref.arn: row for row in self.pages.rows}
        for body in self.events:
            arn = next(v for k, v in body["detail"].items() if k.endswith("JobArn"))
            if arn in by_arn:
                self.history.add_audits(by_arn[arn])


def flow_with(*rows: ListedJob, accounts: tuple[str, ...] = (ACCOUNT,)) -> SweepFlow:
    """Returns a flow that has swept for a day, and then gets these jobs."""
    flow = SweepFlow(NOON - DAY, accounts=accounts)
    for hours in (24, 12, 6, 3, 1, 0.25):
        flow.now = NOON - hours * HOUR
        flow.sweep()
    flow.now = NOON
    flow.pages.rows += rows
    flow.pages.requests.clear()
    return flow


def refuse_list(job_list: JobList, error: Exception, *, from_page: int = 1) -> Any:
    """Returns a function for `alter_page` that lets a list fail from a page on."""

    def spoil(requested_list: JobList, number: int, rows: list[ListedJob]) -> list[ListedJob]:
        if requested_list == job_list and number >= from_page:
            raise error
        return rows

    return spoil


def add_up(parts: list[SweepPart]) -> ListSweepResult:
    """Adds up the results of all lists."""
    lists = [part for part in parts if isinstance(part, ListSweepResult)]
    return ListSweepResult(
        lists[0].job_list,
        ended_count=sum(result.ended_count for result in lists),
        missing_count=sum(result.missing_count for result in lists),
        lost_events=sum(result.lost_events for result in lists),
        sent_without_event=sum(result.sent_without_event for result in lists),
        sent_from_before=sum(result.sent_from_before for result in lists),
        is_complete=all(result.is_complete for result in lists),
        error=next((result.error for result in lists if result.error), None),
        unreadable=tuple(why for result in lists for why in result.unreadable),
    )


def read_list(store: SweepStore, job_list: JobList) -> ListState | None:
    """Returns the stored state of one list."""
    return list_states(store.swept_regions()).get(job_list)


def store_list(store: SweepStore, job_list: JobList, state: ListState) -> None:
    """Stores the state of one list beside the other lists of its account and region."""
    region = store.swept_regions().get(job_list.account_region, SweptRegion())
    lists = {**region.lists, job_list.kind: state}
    store.save_swept_region(job_list.account_region, replace(region, lists=lists))
