"""Sweeps of members: some deny access, are mended, or do not answer; the others are read."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import repeat
from unittest.mock import patch

import pytest

from local.workers import InlineWorkers
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import ASSUME_ROLE, Denial, Member, WaitingEvent
from sageaudit.domain.sweep import JobList, ListedJob, SentEvent
from sageaudit.errors import AccessDenied, AwsError, NoCredentials, Throttled, Unavailable
from sageaudit.structs import replace
from sageaudit.workflows.side_by_side import MAX_RUNNING
from sageaudit.workflows.sweep.lists import ListSweepResult
from sageaudit.workflows.sweep.members import describe_members
from sageaudit.workflows.sweep.run import (
    SLOW_LIST,
    DueAuditsSent,
    MemberChecked,
    RegionStored,
    SweepPart,
    SweepSummary,
    sweep,
)
from sweep import handler
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.lambda_events import Lambda, parse_counts
from tests.fakes.sweeps import DAY, HOUR, MINUTE, NOON, SweepFlow, key_of, row
from tests.fakes.virtual_time import VirtualTime

OTHER, THIRD = "222233334444", "333344445555"
MEMBER = AccountRegion(OTHER, REGION)
NO_ROLE = AccessDenied(ASSUME_ROLE, "no such role")
NO_LISTS = AccessDenied("sagemaker:ListTrainingJobs", "not permitted")
NO_DESCRIBE = AccessDenied("sagemaker:DescribeTrainingJob", "not permitted")
REGION_OFF = NoCredentials("the credentials are not valid in this region")
ENVIRON = {"POWERTOOLS_SERVICE_NAME": "sweep", "POWERTOOLS_METRICS_NAMESPACE": "sageaudit"}
KINDS = len(JobKind)


@dataclass
class Lists:
    """Fakes SageMaker's lists of many accounts: empty, denied, or answered after `takes_s`."""

    flow: SweepFlow
    errors: dict[AccountRegion, AwsError] = field(default_factory=dict)
    takes_s: Callable[[JobList], float] = lambda _: 0
    sleep: Callable[[float], None] = lambda _: None
    requests: list[JobList] = field(default_factory=list)

    def pages(self, job_list: JobList, **_: datetime) -> Iterator[list[ListedJob]]:
        self.requests.append(job_list)
        self.sleep(self.takes_s(job_list))
        error = self.errors.get(job_list.account_region)
        if error is not None and self._is_about(error, job_list):
            raise error
        yield []

    @staticmethod
    def _is_about(error: AwsError, job_list: JobList) -> bool:
        action = error.action if isinstance(error, AccessDenied) else ""
        return action in {"", ASSUME_ROLE, f"sagemaker:{job_list.kind.spec.list_call}"}

    def take_requests(self, account: str) -> int:
        """Returns how many lists of an account were asked for since the last call."""
        count = sum(job_list.account == account for job_list in self.requests)
        self.requests.clear()
        return count


def flow_of(*accounts: str) -> tuple[SweepFlow, Lists]:
    """Returns a sweep of the home account and of these accounts."""
    flow = SweepFlow(NOON, accounts=(ACCOUNT, *accounts))
    lists = Lists(flow)
    flow.pages = lists  # type: ignore[assignment]
    return flow, lists


def sweep_at(flow: SweepFlow, moment: datetime) -> list[SweepPart]:
    """Runs one sweep at this time."""
    flow.now = moment
    return list(flow.sweep_parts())


def denied(flow: SweepFlow, lists: Lists, account: str, error: AwsError) -> None:
    """Lets a member deny its lists and whatever a check asks for."""
    account_region = AccountRegion(account, REGION)
    action = error.action if isinstance(error, AccessDenied) else ASSUME_ROLE
    lists.errors[account_region] = error
    flow.denials[account_region] = {action: error}


def mended(flow: SweepFlow, lists: Lists) -> None:
    """Lets all members be read again."""
    lists.errors.clear()
    flow.denials.clear()


def errors(parts: list[SweepPart]) -> list[AwsError]:
    """Returns the errors of all parts."""
    return [
        part.error
        for part in parts
        if not isinstance(part, SweepSummary) and part.error is not None
    ]


def summary(parts: list[SweepPart]) -> SweepSummary:
    """Returns the sweep's last part."""
    assert isinstance(parts[-1], SweepSummary)
    return parts[-1]


# Denied lists


@pytest.mark.parametrize("error", [NO_ROLE, REGION_OFF], ids=str)
def test_a_member_without_a_role_is_no_failure_and_is_tried_once(error: AwsError) -> None:
    """Its other lists are left out; the home account's are read."""
    flow, lists = flow_of(OTHER)
    denied(flow, lists, OTHER, error)
    parts = sweep_at(flow, NOON)
    [denial] = [part.denial for part in parts if isinstance(part, ListSweepResult) and part.denial]
    assert denial == error
    assert not errors(parts)
    assert Counter(job_list.account for job_list in lists.requests) == {ACCOUNT: KINDS, OTHER: 1}
    assert flow.registry.members()[MEMBER].denial == Denial.from_error(error, NOON)


def test_a_member_that_denies_one_list_is_read_for_the_others() -> None:
    """Each list that it denies is added to its denial."""
    flow, lists = flow_of(OTHER)
    denied(flow, lists, OTHER, NO_LISTS)
    sweep_at(flow, NOON)
    assert lists.take_requests(OTHER) == KINDS
    sweep_at(flow, NOON + 15 * MINUTE)
    assert lists.take_requests(OTHER) == KINDS - 1


def test_a_denial_of_two_lists_names_both() -> None:
    """Since the first of them, with its reason."""
    flow, lists = flow_of(OTHER)
    second = AccessDenied("sagemaker:ListProcessingJobs", "not permitted either")
    flow.registry.add_denial(MEMBER, Denial.from_error(NO_LISTS, NOON - HOUR))
    flow.denials[MEMBER] = {NO_LISTS.action: NO_LISTS}
    lists.errors[MEMBER] = second
    sweep_at(flow, NOON)
    denial = flow.registry.members()[MEMBER].denial
    assert denial is not None
    assert denial.actions == (NO_LISTS.action, second.action)
    assert (denial.since, denial.reason) == (NOON - HOUR, str(NO_LISTS))


def test_a_refusal_at_home_is_a_failure_of_the_list() -> None:
    """Nobody else can mend it."""
    flow, lists = flow_of(OTHER)
    lists.errors[AccountRegion(ACCOUNT, REGION)] = NO_LISTS
    assert errors(sweep_at(flow, NOON)) == [NO_LISTS]
    assert flow.registry.members() == {}


def test_a_throttled_member_is_a_failure_and_denies_nothing() -> None:
    """It is read again by the next sweep."""
    flow, lists = flow_of(OTHER)
    lists.errors[MEMBER] = Throttled("busy")
    assert len(errors(sweep_at(flow, NOON))) == KINDS
    assert flow.registry.members() == {}


def test_a_denied_list_keeps_its_watermark_and_is_not_late() -> None:
    """After ten days it is read from where it was last read to its end."""
    flow, lists = flow_of(OTHER)
    sweep_at(flow, NOON)
    job_list = JobList(OTHER, REGION, JobKind.TRAINING)
    before = flow.state(job_list)
    denied(flow, lists, OTHER, NO_ROLE)
    for day in range(1, 11):
        parts = sweep_at(flow, NOON + day * DAY)
    assert summary(parts).oldest_list_age < timedelta(minutes=1)
    after = flow.state(job_list)
    assert (after.watermark, after.next_created_after) == (
        before.watermark,
        before.next_created_after,
    )


# Checks


def test_a_new_denial_is_checked_by_the_next_sweep_and_then_hourly() -> None:
    """A check asks for everything; between checks the member is left alone."""
    flow, lists = flow_of(OTHER)
    denied(flow, lists, OTHER, NO_ROLE)
    checked = []
    for quarter in range(13):
        parts = sweep_at(flow, NOON + quarter * 15 * MINUTE)
        if any(isinstance(part, MemberChecked) for part in parts):
            checked.append(quarter)
        assert lists.take_requests(OTHER) == (quarter == 0)
    assert checked == [1, 5, 9]
    denial = flow.registry.members()[MEMBER].denial
    assert denial is not None
    assert (denial.since, denial.checked_at) == (NOON, NOON + 9 * 15 * MINUTE)


def test_a_mended_member_is_read_in_the_same_sweep() -> None:
    """It was denied for an hour."""
    flow, lists = flow_of(OTHER)
    denied(flow, lists, OTHER, NO_ROLE)
    sweep_at(flow, NOON)
    mended(flow, lists)
    parts = sweep_at(flow, NOON + 15 * MINUTE)
    assert MemberChecked(MEMBER, None) in parts
    assert lists.take_requests(OTHER) == 1 + KINDS
    assert flow.registry.members()[MEMBER].denial is None
    assert summary(parts).denying_count == 0


def test_a_check_that_is_throttled_keeps_the_denial_for_an_hour() -> None:
    """Nothing new is known."""
    flow, _ = flow_of(OTHER)
    flow.registry.add_denial(MEMBER, Denial.from_error(NO_ROLE, NOON - HOUR))
    flow.denials[MEMBER] = {"sagemaker:ListTags": Throttled("busy")}
    sweep_at(flow, NOON)
    denial = flow.registry.members()[MEMBER].denial
    assert denial == Denial(NOON - HOUR, NOON, (ASSUME_ROLE,), str(NO_ROLE), is_confirmed=True)


def test_a_check_whose_result_is_not_stored_is_a_failure_and_is_repeated() -> None:
    """The table is throttled."""
    flow, lists = flow_of(OTHER)
    denied(flow, lists, OTHER, NO_ROLE)
    sweep_at(flow, NOON)

    with patch.object(flow.registry, "replace_denial", side_effect=Throttled("busy")):
        parts = sweep_at(flow, NOON + 15 * MINUTE)
    assert [str(error) for error in errors(parts)] == ["busy"]
    assert not errors(sweep_at(flow, NOON + 30 * MINUTE))


def test_members_that_deny_are_asked_last() -> None:
    """A check may wait for many timeouts."""
    flow, lists = flow_of(OTHER, THIRD)
    flow.registry.add_denial(MEMBER, Denial.from_error(NO_LISTS, NOON))
    flow.denials[MEMBER] = {NO_LISTS.action: NO_LISTS}
    sweep_at(flow, NOON)
    first = lists.requests[0].account, lists.requests[1].account
    assert OTHER not in first


# Waiting events


def wait(flow: SweepFlow, name: str, kind: JobKind = JobKind.TRAINING) -> JobKey:
    """Lets the event of a member's job wait."""
    listed = row(name, NOON - HOUR, account=OTHER, kind=kind)
    event = WaitingEvent(MEMBER, kind, json.dumps({"name": name}), NOON)
    flow.registry.add_waiting_event(key_of(listed), event)
    return key_of(listed)


def test_the_events_of_a_mended_member_are_sent_once() -> None:
    """Each is recorded, so that the lists do not send its job once more."""
    flow, _ = flow_of(OTHER)
    waiting_keys = [wait(flow, "a"), wait(flow, "b")]
    flow.registry.add_denial(MEMBER, Denial.from_error(NO_ROLE, NOON - MINUTE))
    [checked] = [part for part in sweep_at(flow, NOON) if isinstance(part, MemberChecked)]
    assert (checked.denial, checked.sent_count) == (None, 2)
    assert flow.events == [{"name": "a"}, {"name": "b"}]
    assert [flow.notes.notes[key].waited_for_member for key in waiting_keys] == [True, True]
    sweep_at(flow, NOON + 15 * MINUTE)
    assert len(flow.events) == 2


def test_only_events_whose_jobs_can_be_described_are_sent() -> None:
    """The member still denies one kind of job."""
    flow, _ = flow_of(OTHER)
    wait(flow, "denied")
    wait(flow, "readable", JobKind.PROCESSING)
    flow.registry.add_denial(MEMBER, Denial.from_error(NO_ROLE, NOON - MINUTE))
    flow.denials[MEMBER] = {NO_DESCRIBE.action: NO_DESCRIBE}
    sweep_at(flow, NOON)
    assert flow.events == [{"name": "readable"}]
    assert len(list(flow.registry.waiting_events(MEMBER))) == 1


def test_events_for_which_a_sweep_has_no_time_are_sent_by_the_next_one() -> None:
    """The member stays denied until then, so that it is checked again."""
    flow, _ = flow_of(OTHER)
    for name in "abcde":
        wait(flow, name)
    flow.registry.add_denial(MEMBER, Denial.from_error(NO_ROLE, NOON - MINUTE))
    flow.now = NOON
    list(sweep(flow.dependencies(lambda: len(flow.queue.messages) >= 2)))
    assert flow.events == [{"name": "a"}, {"name": "b"}]
    assert flow.registry.members()[MEMBER].denial is not None
    sweep_at(flow, NOON + 15 * MINUTE)
    assert flow.events == [{"name": name} for name in "abcde"]
    assert flow.registry.members()[MEMBER].denial is None


def test_a_listed_job_whose_event_waits_is_neither_lost_nor_missing() -> None:
    """The alarm about lost events stays quiet for as long as the member denies Describe."""
    flow = SweepFlow(NOON - DAY, accounts=(ACCOUNT, OTHER))
    flow.sweep()
    listed = row("waits", NOON - HOUR, account=OTHER)
    flow.pages.rows.append(listed)
    event = WaitingEvent(MEMBER, JobKind.TRAINING, "{}", NOON)
    flow.registry.add_waiting_event(key_of(listed), event)
    flow.notes.record_event_sent(key_of(listed), SentEvent(NOON, None, waited_for_member=True))
    flow.registry.add_denial(MEMBER, Denial.from_error(NO_DESCRIBE, NOON - DAY))
    flow.denials[MEMBER] = {NO_DESCRIBE.action: NO_DESCRIBE}
    counts = flow.total_until(NOON + 5 * HOUR, audits=False)
    assert (counts.lost_events, counts.missing_count) == (0, 0)
    assert not flow.events


# Counts of many members


def sweeper(flow: SweepFlow) -> handler.Sweeper:
    """Returns the function over these accounts."""
    return handler.Sweeper(
        lambda _, is_out_of_time: flow.dependencies(is_out_of_time),
        flow.notes,
        lambda: flow.now,
        RecordReport(ENVIRON),
        open_workers=InlineWorkers,
    )


def counts_of_sweep(
    flow: SweepFlow, moment: datetime, capsys: pytest.CaptureFixture[str]
) -> dict[str, int]:
    """Runs the function once; returns its counts."""
    flow.now = moment
    sweeper(flow)({}, Lambda(repeat(600_000)))
    return {name: number for (name, _), number in parse_counts(capsys.readouterr().out).items()}


def test_of_300_members_one_denies_for_ten_days_and_no_sweep_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The alarm about failed sweeps stays free for other causes; the member is counted."""
    accounts = [str(200_000_000_000 + number) for number in range(300)]
    flow, lists = flow_of(*accounts)
    denied(flow, lists, accounts[77], NO_ROLE)
    ages = (timedelta(), 15 * MINUTE, 30 * MINUTE, DAY, 10 * DAY)
    found = [counts_of_sweep(flow, NOON + age, capsys) for age in ages]
    assert found == [{"MembersUnreadable": 1}] * len(found)
    mended(flow, lists)
    assert counts_of_sweep(flow, NOON + 11 * DAY, capsys) == {}


def test_a_sweep_fails_if_no_member_can_be_read(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The cause is at home; two members that both deny are already told apart from one."""
    flow, lists = flow_of(OTHER, THIRD)
    denied(flow, lists, OTHER, NO_ROLE)
    assert counts_of_sweep(flow, NOON, capsys) == {"MembersUnreadable": 1}
    denied(flow, lists, THIRD, NO_ROLE)
    later = counts_of_sweep(flow, NOON + 15 * MINUTE, capsys)
    assert later == {"MembersUnreadable": 2, "SweepFailed": 1}
    assert "look at this account's own role" in caplog.text


def test_the_only_member_may_deny_without_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """It is more likely broken than the home account."""
    flow, lists = flow_of(OTHER)
    denied(flow, lists, OTHER, NO_ROLE)
    assert counts_of_sweep(flow, NOON, capsys) == {"MembersUnreadable": 1}


def test_a_list_that_is_not_read_for_an_hour_is_counted_with_its_age(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A healthy deployment has no such metric."""
    flow, lists = flow_of(OTHER)
    assert counts_of_sweep(flow, NOON, capsys) == {}
    lists.errors[MEMBER] = Throttled("busy")
    counts = counts_of_sweep(flow, NOON + HOUR, capsys)
    assert counts == {"SweepFailed": 1, "OldestListSeconds": 3600}


# Doctor


def test_doctor_reads_the_members_in_pages() -> None:
    """Each request stops when its time is up, at the end of a batch; none is missing or twice."""
    accounts = [str(200_000_000_000 + number) for number in range(2 * MAX_RUNNING + 5)]
    flow, _ = flow_of(*accounts)
    checks: list[str] = []

    def check_member(account: str, _: str) -> dict[str, AwsError]:
        checks.append(account)
        flow.now += timedelta(seconds=1)
        return {}

    deps = replace(flow.dependencies(lambda: False), check_member=check_member)
    answers = [describe_members(deps, "", flow.now + timedelta(seconds=40))]
    while answers[-1]["next"] is not None:
        until = flow.now + timedelta(seconds=40)
        answers.append(describe_members(deps, answers[-1]["next"], until))
    rows = [row for answer in answers for row in answer["members"]]
    assert [row["account"] for row in rows] == accounts == sorted(checks)
    assert len(answers) == 2


def test_doctor_shows_what_is_known_of_each_member() -> None:
    """One that denies, one that left, and one that the policy does not include."""
    flow, _ = flow_of(OTHER, THIRD)
    unknown = AccountRegion("999988887777", REGION)
    denial = Denial.from_error(NO_ROLE, NOON - DAY)
    flow.registry.stored = {
        MEMBER: Member(MEMBER, NOON - 9 * DAY, NOON - 5 * DAY, 1, denial),
        unknown: Member(unknown, NOON - HOUR, NOON - HOUR, 2),
    }
    wait(flow, "a")
    flow.denials = {MEMBER: {ASSUME_ROLE: NO_ROLE}, unknown: {ASSUME_ROLE: NO_ROLE}}
    answer = describe_members(flow.dependencies(lambda: False), "", NOON + MINUTE)
    denying, silent, stranger = answer["members"]
    assert denying == {
        "account": OTHER,
        "region": REGION,
        "is_audited": True,
        "missing_permissions": {ASSUME_ROLE: "no such role"},
        "first_seen_at": "2026-05-11T12:00:00+00:00",
        "last_seen_at": "2026-05-15T12:00:00+00:00",
        "denied_since": "2026-05-19T12:00:00+00:00",
        "is_gone": True,
        "is_silent": True,
        "template_version": 1,
        "waiting_events": 1,
    }
    assert (silent["account"], silent["last_seen_at"], silent["is_silent"]) == (THIRD, None, False)
    assert (stranger["is_audited"], stranger["missing_permissions"]) == (False, {})
    assert answer["next"] is None


# Lanes


def test_an_account_that_hangs_delays_only_itself() -> None:
    """It takes up one of the workers; the others read 100 accounts in their usual time."""
    time = VirtualTime(max_threads=MAX_RUNNING)
    accounts = [str(200_000_000_000 + number) for number in range(100)]
    flow, lists = flow_of(*accounts)
    hangs = accounts[3]
    lists.takes_s = lambda job_list: 90 if job_list.account == hangs else 1
    lists.sleep = time.sleep
    lists.errors[AccountRegion(hangs, REGION)] = Unavailable("no answer")
    ended_at: dict[str, float] = {}
    deps = replace(
        flow.dependencies(lambda: False),
        workers=time,
        clock=lambda: NOON + timedelta(seconds=time.clock()),
    )
    for part in sweep(deps):
        if isinstance(part, RegionStored):
            ended_at[part.account_region.account] = time.clock()
    assert ended_at.pop(hangs) == 90
    assert lists.take_requests(hangs) == 1
    assert len(ended_at) == 100
    usual_s = 101 * KINDS / (MAX_RUNNING - 1)
    assert max(ended_at.values()) < usual_s + 3


def test_after_a_slow_failure_the_account_is_left_to_the_next_sweep() -> None:
    """That begins with the lists that were not tried; a quick failure leaves the others in."""
    flow, lists = flow_of(OTHER)
    lists.errors[MEMBER] = Unavailable("no answer")
    takes = SLOW_LIST + timedelta(seconds=1)

    def sleep(seconds: float) -> None:
        flow.now += timedelta(seconds=seconds)

    lists.sleep = sleep
    lists.takes_s = lambda job_list: takes.total_seconds() * (job_list.account == OTHER)
    tried: list[JobKind] = []
    for number in range(KINDS):
        sweep_at(flow, NOON + number * 15 * MINUTE)
        tried += [job_list.kind for job_list in lists.requests if job_list.account == OTHER]
        lists.requests.clear()
    assert sorted(tried) == sorted(JobKind)
    lists.takes_s = lambda _: 0
    sweep_at(flow, NOON + DAY)
    assert lists.take_requests(OTHER) == KINDS


def test_sweeps_without_enough_time_try_every_list_before_any_list_again() -> None:
    """Each begins with the lists that were not tried for longest."""
    flow, lists = flow_of(OTHER, THIRD, "444455556666")
    list_count = 4 * KINDS
    for number in range(list_count // 2):
        flow.now = NOON + number * 15 * MINUTE
        asked_before = len(lists.requests)
        is_out_of_time = partial(_has_asked, lists, asked_before + 2)
        list(sweep(flow.dependencies(is_out_of_time)))
    assert len(lists.requests) == len(set(lists.requests)) == list_count


def _has_asked(lists: Lists, count: int) -> bool:
    return len(lists.requests) >= count


def test_due_audits_are_sent_whatever_members_do() -> None:
    """They are a lane of their own."""
    flow, lists = flow_of(OTHER)
    denied(flow, lists, OTHER, NO_ROLE)
    listed = row("due", NOON - DAY)
    flow.history.add_audits(listed, due_at=NOON - HOUR)
    assert DueAuditsSent(1) in sweep_at(flow, NOON)
