"""A sweep sends jobs whose reaudit is due, and ended jobs whose events were lost.

It sends events to the queue of finished jobs. `audit` decides by the stored summary what to do. A
sweep may stop at any point: each job that it sent is audited once, and the next sweep continues
from its last page. It also stores which jobs run, for the watch.

Each account and region has a lane, and lanes are read side by side: SageMaker limits the requests
of each. What a member denies is not asked again for an hour, and does not count as a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial

from msgspec import Struct

from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import AccountRegion, JobRef
from sageaudit.domain.members import ASSUME_ROLE, Denial, Member, denial_reason
from sageaudit.domain.sweep import (
    MAX_RUNNING_JOBS,
    JobList,
    ListState,
    SentEvent,
    SweptRegion,
    last_read_at,
    make_event,
)
from sageaudit.errors import AwsError
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows.side_by_side import run_side_by_side
from sageaudit.workflows.sweep.lists import (
    ListSweep,
    ListSweepResult,
    SweepDependencies,
    send_event,
)

DUE_PAGE_SIZE = 100
SLOW_LIST = timedelta(seconds=30)
"""A list that fails after this time has waited for retries of the SDK. Our choice."""
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
RESEND_DUE_AFTER = timedelta(days=4)
"""If a run is still due, its event is sent again after this time.

`audit` abandons a message at 3.5 days. An earlier second event would become a second dead letter.
"""


class DueAuditsSent(Struct, frozen=True):
    """How many due audits were sent. `error` and `unreadable` say why others were not."""

    sent_count: int
    error: AwsError | None = None
    unreadable: tuple[str, ...] = ()


class MemberChecked(Struct, frozen=True):
    """A member that denied access was asked again. `denial` is what it still denies.

    `sent_count`: how many waiting events were sent, since their jobs can be read now.
    """

    account_region: AccountRegion
    denial: Denial | None
    sent_count: int = 0
    error: AwsError | None = None


class RegionStored(Struct, frozen=True):
    """The state of one account and region was stored, or could not be stored.

    `not_stored_count`: running jobs above MAX_RUNNING_JOBS, which the watch does not see.
    """

    account_region: AccountRegion
    not_stored_count: int = 0
    error: AwsError | None = None


class SweepSummary(Struct, frozen=True):
    """A sweep as a whole.

    `oldest_list_age`: the time since the last complete reading of the list for which that is
    longest; lists that members deny do not count. `denying_count`: how many of the other accounts
    and regions (`member_count`) deny something.
    """

    oldest_list_age: timedelta
    member_count: int
    denying_count: int


SweepPart = DueAuditsSent | MemberChecked | ListSweepResult | RegionStored | SweepSummary


def sweep(deps: SweepDependencies) -> Iterator[SweepPart]:
    """Yields the results of a sweep's parts. A part that fails does not stop the others.

    Lists that were not tried for the longest time come first. Members that deny access come last.
    Raises AwsError before the first part.
    """
    deps.sweep_store.record_installation()
    now = deps.clock()
    members, stored = deps.registry.members(), deps.sweep_store.swept_regions()
    regions = [
        _RegionSweep(
            deps,
            members.get(account_region) or Member(account_region),
            stored.get(account_region) or SweptRegion(),
        )
        for account_region in deps.scope.audited(members, now)
    ]
    regions.sort(key=lambda region: (region.member.denial is not None, region.last_tried_at))
    lanes: list[Iterator[Callable[[], SweepPart]]] = [
        iter([partial(_send_due, deps)]),
        *(region.calls() for region in regions),
    ]
    yield from run_side_by_side(lanes, deps.workers)
    yield _summary(regions, deps)


def _summary(regions: list[_RegionSweep], deps: SweepDependencies) -> SweepSummary:
    ages = [age for region in regions for age in region.list_ages(deps.clock())]
    others = [region for region in regions if region.account_region != deps.scope.home]
    denying_count = sum(region.member.denial is not None for region in others)
    return SweepSummary(max(ages, default=timedelta()), len(others), denying_count)


class _RegionSweep:
    """Reads the lists of one account and region, one after another."""

    def __init__(self, deps: SweepDependencies, member: Member, stored: SweptRegion) -> None:
        self.member = member
        self.account_region = member.account_region
        self._deps = deps
        self._lists: dict[JobKind, ListState] = dict(stored.lists)
        self._running_jobs = dict(stored.running_jobs)
        self._is_changed = self._is_denial_new = False
        self._is_slow = False

    @property
    def last_tried_at(self) -> datetime:
        """When the list was tried that waits for the longest time."""
        return min(_tried_at(self._lists.get(kind)) for kind in JobKind)

    def calls(self) -> Iterator[Callable[[], SweepPart]]:
        """Yields the steps of the sweep. Each is to be run before the next is asked for.

        After a list that failed slowly, the others are left to the next sweep, which begins with
        them: they would also wait for all retries.
        """
        denial = self.member.denial
        if denial is not None and denial.should_check(self._deps.clock()):
            yield partial(self._check_member, denial)
        for kind in sorted(JobKind, key=lambda kind: _tried_at(self._lists.get(kind))):
            if self._is_slow or self._deps.is_out_of_time():
                break
            if not self._is_denied(kind):
                yield partial(self._sweep_list, kind)
        if self._is_changed:
            yield self._store

    def list_ages(self, now: datetime) -> Iterator[timedelta]:
        """Yields the time since the last complete reading of each list that may be read."""
        for kind, state in self._lists.items():
            if not self._is_denied(kind):
                yield now - last_read_at(state, kind)

    def _is_denied(self, kind: JobKind) -> bool:
        denial = self.member.denial
        return denial is not None and denial.denies(f"sagemaker:{kind.spec.list_call}")

    def _sweep_list(self, kind: JobKind) -> ListSweepResult:
        began_at = self._deps.clock()
        job_list = JobList(self.account_region.account, self.account_region.region, kind)
        list_sweep = ListSweep(
            self._deps, job_list, self._lists.get(kind), self._running_jobs.get(kind, ())
        )
        result = list_sweep.run()
        if list_sweep.state is not None:
            self._lists[kind] = list_sweep.state
        self._running_jobs[kind] = list_sweep.running_jobs
        self._is_changed = True
        took = self._deps.clock() - began_at
        self._is_slow = result.error is not None and took > SLOW_LIST
        if result.denial is not None:
            self._record_denied_list(result.denial)
        return result

    def _record_denied_list(self, error: AwsError) -> None:
        new = Denial.from_error(error, self._deps.clock())
        earlier = self.member.denial or new
        actions = tuple(dict.fromkeys((*earlier.actions, *new.actions)))
        denial = replace(earlier, actions=actions)
        self.member, self._is_denial_new = replace(self.member, denial=denial), True

    def _check_member(self, denial: Denial) -> MemberChecked:
        """Asks the member again, and sends the waiting events of the jobs that can be read now."""
        deps, now = self._deps, self._deps.clock()
        try:
            errors = deps.check_member(self.account_region.account, self.account_region.region)
            checked = self._new_denial(denial, errors, now)
            sent_count, are_all_sent = self._send_waiting(checked)
            if checked is None:
                is_cleared = are_all_sent and deps.registry.clear_denial(self.account_region, now)
                checked = None if is_cleared else denial
            else:
                deps.registry.replace_denial(self.account_region, checked)
        except AwsError as error:
            return MemberChecked(self.account_region, denial, error=error)
        self.member = replace(self.member, denial=checked)
        return MemberChecked(self.account_region, checked, sent_count)

    def _new_denial(
        self, denial: Denial, errors: Mapping[str, AwsError], now: datetime
    ) -> Denial | None:
        refusals = {
            action: error
            for action, error in errors.items()
            if self._deps.scope.is_denied_by_member(self.account_region, error)
        }
        if refusals:
            reason = denial_reason(next(iter(refusals.values())))
            return Denial(denial.since, now, tuple(refusals), reason)
        # If requests were throttled or not answered, nothing new is known.
        return replace(denial, checked_at=now) if errors else None

    def _send_waiting(self, denial: Denial | None) -> tuple[int, bool]:
        """Sends the events of jobs that can be described. Returns how many, and if in time.

        The denial is removed after the last event, so that a sweep that stops here is repeated.
        """
        deps, sent_count = self._deps, 0
        if denial is not None and ASSUME_ROLE in denial.actions:
            return 0, True
        for key, event in deps.registry.waiting_events(self.account_region):
            if deps.is_out_of_time():
                return sent_count, False
            describe = f"sagemaker:{event.kind.spec.describe_call}"
            if denial is None or not denial.denies(describe):
                record = SentEvent(deps.clock(), None, waited_for_member=True)
                send_event(deps, event.body, key, record)
                deps.registry.remove_waiting_event(key, event)
                sent_count += 1
        return sent_count, True

    def _store(self) -> RegionStored:
        rows = [row for rows in self._running_jobs.values() for row in rows]
        kept = set(sorted(rows, key=lambda row: row.created_at, reverse=True)[:MAX_RUNNING_JOBS])
        running_jobs = {
            kind: tuple(row for row in rows if row in kept)
            for kind, rows in self._running_jobs.items()
        }
        swept = SweptRegion(self._lists, running_jobs)
        try:
            self._deps.sweep_store.save_swept_region(self.account_region, swept)
            if self._is_denial_new and self.member.denial is not None:
                self._deps.registry.replace_denial(self.account_region, self.member.denial)
        except AwsError as error:
            return RegionStored(self.account_region, error=error)
        return RegionStored(self.account_region, len(rows) - len(kept))


def _tried_at(state: ListState | None) -> datetime:
    return (state and state.tried_at) or _NEVER


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
    if ref is None or not deps.scope.includes(ref.account_region):
        return False
    last_record = deps.sweep_store.event_record(run.key)
    if (
        last_record is not None
        and last_record.due_at == run.due_at
        and now - last_record.last_event_at < RESEND_DUE_AFTER
    ):
        return False
    body = make_event(ref, run.status, run.key.created_at, run.ended_at)
    send_event(deps, body, run.key, SentEvent(now, run.due_at))
    return True
