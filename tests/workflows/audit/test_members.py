"""Events of members: heartbeats, jobs whose account denies access, and their release by sweeps."""

import json
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from local.functions import ProcessKilled
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import ASSUME_ROLE, HEARTBEAT_SOURCE, Denial, Member
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.domain.sweep import SentEvent
from sageaudit.errors import AccessDenied, AwsError, NoCredentials, Throttled, Unavailable
from sageaudit.structs import replace
from sageaudit.workflows.sweep.run import sweep
from tests.fakes.audit_flow import NAME
from tests.fakes.audit_function import AuditFunction, describe_answer, minutes_after_end
from tests.fakes.calls import CallProxy, die_at_step, with_steps
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.lambda_events import CREATED, job_event
from tests.fakes.merged_calls import Step, run_merged, step_orders
from tests.fakes.sweeps import SweepFlow, row

OTHER = "222233334444"
MEMBER, HOME = AccountRegion(OTHER, REGION), AccountRegion(ACCOUNT, REGION)
ARN = f"arn:aws:sagemaker:{REGION}:{OTHER}:training-job/{NAME}"
KEY = JobKey(ARN, CREATED)
ORGANIZATION = MemberAccounts(organization="o-a1b2c3d4e5", organization_role="sageaudit-read")
DENIED = AccessDenied("sagemaker:DescribeTrainingJob", "not permitted")
NO_ROLE = AccessDenied(ASSUME_ROLE, "no such role")
REGION_OFF = NoCredentials("The AWS credentials are expired or not valid")


def member_event(**envelope: Any) -> str:
    """Returns the event of a member's job."""
    return job_event(envelope={"account": OTHER} | envelope, TrainingJobArn=ARN)


def heartbeat(account: str = OTHER, **changes: Any) -> str:
    """Returns the heartbeat of a member, sent at END."""
    event = {
        "source": HEARTBEAT_SOURCE,
        "account": account,
        "region": REGION,
        "time": minutes_after_end(0).isoformat(),
        "detail": {"template_version": 1},
    }
    return json.dumps(event | changes)


def organization() -> AuditFunction:
    """Returns an audit function whose members are the accounts of an organization."""
    function = AuditFunction(policy=Policy(members=ORGANIZATION))
    function.job(NAME, (-60, describe_answer(TrainingJobArn=ARN)))
    return function


def deny(function: AuditFunction, error: AwsError = DENIED, until_min: float = 10**6) -> None:
    """Lets the member deny Describe."""
    function.outage("Describe", error, until_min)


def audit_count(function: AuditFunction) -> int:
    """Returns how many audits of the member's job were recorded."""
    versions = iter(range(1, 100))
    return next(number for number in versions if not function.history.audit(KEY, number)) - 1


# Registration


def test_an_account_of_the_organization_is_a_member_from_its_first_job_on() -> None:
    """Its job is audited by the same event, and no list names the account."""
    function = organization()
    function.send(member_event())
    function.run()
    at = minutes_after_end(5)
    assert function.registry.members() == {MEMBER: Member(MEMBER, at, at)}
    assert (function.counts["JobsAudited"], audit_count(function)) == (1, 1)


def test_a_member_is_recorded_once_a_day_by_each_process() -> None:
    """A thousand jobs a day of one account write its item once; the next day once more."""
    function = organization()
    for _ in range(5):
        function.send(member_event())
    function.run()
    assert function.faults.calls["record_seen"] == 1
    function.clock.now += timedelta(days=1)
    function.send(member_event())
    function.send(member_event())
    function.run()
    assert function.faults.calls["record_seen"] == 2


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (job_event(), "its own account"),
        (member_event(source="sageaudit.replay"), "a person sent it"),
        (member_event(source="sageaudit.sweep"), "a sweep sent it"),
    ],
)
def test_an_event_that_no_member_forwarded_records_nobody(body: str, why: str) -> None:
    """It does not show that the member's rule works."""
    function = organization()
    function.job(NAME, (-60, describe_answer()) if why == "its own account" else (-60, None))
    function.send(body)
    function.run()
    assert function.registry.members() == {}


def test_a_member_that_cannot_be_recorded_is_audited() -> None:
    """Its next event records it."""
    function = organization()
    function.faults.fail("record_seen", Throttled("busy"))
    function.send(member_event())
    function.run()
    assert (function.counts["JobsAudited"], function.counts["AuditFailed"]) == (1, 0)
    assert function.registry.members() == {}
    function.send(member_event())
    function.run()
    assert list(function.registry.members()) == [MEMBER]


def test_a_heartbeat_is_recorded_and_audits_nothing() -> None:
    """The time in it counts: it may have waited in the queue."""
    function = organization()
    function.send(heartbeat())
    function.run()
    sent_at = minutes_after_end(0)
    assert function.registry.members() == {MEMBER: Member(MEMBER, sent_at, sent_at, 1)}
    assert not function.counts


def test_a_heartbeat_from_the_future_counts_from_its_arrival() -> None:
    """Whoever puts the event sets its time: it cannot keep a member from being silent."""
    function = organization()
    function.send(heartbeat(time="2099-01-01T00:00:00Z"))
    function.run()
    assert function.registry.members()[MEMBER].last_seen_at == minutes_after_end(5)


def test_a_heartbeat_that_is_not_recorded_is_delivered_again() -> None:
    """It is not lost while the table is throttled."""
    function = organization()
    function.faults.fail("record_seen", Throttled("busy"), Throttled("busy"))
    function.send(heartbeat())
    function.run()
    assert list(function.registry.members()) == [MEMBER]
    assert not function.dead.messages


def test_a_malformed_heartbeat_is_a_dead_letter_and_records_nobody() -> None:
    """Somebody else than the template's schedule put it on the bus."""
    function = organization()
    function.send(heartbeat(detail={"template_version": 10**40}))
    function.run()
    assert function.registry.members() == {}
    assert (function.counts["RejectedEvents"], len(function.dead.messages)) == (1, 1)


def test_a_job_of_an_account_outside_the_list_is_a_dead_letter() -> None:
    """In a list of accounts, the bus does not decide who is a member."""
    function = AuditFunction(policy=Policy(members=MemberAccounts({"333344445555": "r"})))
    function.send(member_event())
    function.run()
    assert (function.counts["RejectedEvents"], len(function.dead.messages)) == (1, 1)
    assert function.registry.members() == {}


def test_an_event_names_a_job_of_its_own_account_only() -> None:
    """No account of the organization can have a job of another one audited, or register it."""
    function = organization()
    function.send(member_event(account="333344445555"))
    function.run()
    assert function.counts["RejectedEvents"] == 1
    assert not function.jobs.describe_calls
    assert function.registry.members() == {}


# Denials


@pytest.mark.parametrize("error", [DENIED, NO_ROLE, REGION_OFF], ids=str)
def test_the_event_of_a_member_that_denies_access_waits_in_the_table(error: AwsError) -> None:
    """It leaves the queue at its first delivery: it is no failure, no retry and no dead letter."""
    function = organization()
    deny(function, error)
    function.send(member_event())
    function.run()
    at = minutes_after_end(5)
    assert not function.queue.messages
    assert not function.dead.messages
    assert (function.counts["EventsWaiting"], function.counts["AuditFailed"]) == (1, 0)
    [(key, event)] = function.registry.waiting_events(MEMBER)
    assert (key, event.arrived_at) == (KEY, at)
    assert json.loads(event.body) == json.loads(member_event())
    assert function.registry.members()[MEMBER].denial == Denial.from_error(error, at)
    assert function.notes.notes == {KEY: SentEvent(at, None, waited_for_member=True)}


def test_of_a_batch_only_the_event_of_the_member_that_denies_waits() -> None:
    """The other account's job is audited at once."""
    function = organization()
    function.job("own", (-60, describe_answer("own")))
    function.faults.fail("Describe", DENIED)
    function.send(member_event())
    function.send(job_event("own"))
    function.run()
    assert (function.counts["EventsWaiting"], function.counts["JobsAudited"]) == (1, 1)


def test_a_refusal_at_home_is_a_failure() -> None:
    """Nobody but the home account can mend it, so it has an alarm."""
    function = AuditFunction(policy=Policy(members=ORGANIZATION))
    function.job()
    deny(function, until_min=60)
    function.send()
    function.run(50)
    assert function.counts["AuditFailed"] > 1
    assert function.registry.members() == {}
    assert function.queue.messages


@pytest.mark.parametrize("error", [Throttled("busy"), Unavailable("no answer")], ids=str)
def test_a_member_that_does_not_answer_denies_nothing(error: AwsError) -> None:
    """Its event is delivered again."""
    function = organization()
    deny(function, error, until_min=30)
    function.send(member_event())
    function.run()
    assert function.registry.members()[MEMBER].denial is None
    assert function.counts["JobsAudited"] == 1


def test_an_event_without_a_creation_time_does_not_wait() -> None:
    """It does not say of which run it is, so it is delivered again."""
    function = organization()
    deny(function, until_min=30)
    function.send(job_event(envelope={"account": OTHER}, TrainingJobArn=ARN, CreationTime=None))
    function.run()
    assert not list(function.registry.waiting_events(MEMBER))
    assert function.counts["JobsAudited"] == 1


def test_a_poisoned_event_of_a_member_that_denies_is_a_dead_letter() -> None:
    """It is rejected before the role is assumed, and never waits."""
    function = organization()
    deny(function)
    function.send(job_event(envelope={"account": OTHER}, TrainingJobArn="arn:aws:s3:::bucket"))
    function.run()
    assert (function.counts["RejectedEvents"], function.counts["EventsWaiting"]) == (1, 0)
    assert not function.jobs.describe_calls


# Audit and sweep


def sweep_of(function: AuditFunction) -> SweepFlow:
    """Returns the sweep over the function's queue, table and member; its job is in the list."""
    flow = SweepFlow(function.clock.now, accounts=(ACCOUNT, OTHER))
    flow.registry, flow.notes, flow.queue = function.registry, function.notes, function.queue
    flow.history = function.history  # type: ignore[assignment]
    flow.pages.rows.append(row(NAME, minutes_after_end(0), created_at=CREATED, account=OTHER))
    return flow


def sweep_now(function: AuditFunction, flow: SweepFlow) -> None:
    """Runs one sweep, after a quarter of an hour."""
    flow.now = function.clock.now = function.clock.now + timedelta(minutes=15)
    list(flow.sweep_parts())
    function.clock.now = flow.now


def test_the_sweep_frees_the_event_when_the_member_can_be_read_again() -> None:
    """A day later; meanwhile the sweep sees the job in the list, and does not call it lost."""
    function = organization()
    deny(function, until_min=24 * 60)
    flow = sweep_of(function)
    flow.denials = {MEMBER: {DENIED.action: DENIED}}
    function.send(member_event())
    function.run(20)
    for _ in range(2):
        sweep_now(function, flow)
    assert not function.queue.messages
    function.clock.now = minutes_after_end(25 * 60)
    flow.denials.clear()
    sweep_now(function, flow)
    function.run()
    assert (audit_count(function), function.counts["DuplicateEvents"]) == (1, 0)
    assert function.registry.members()[MEMBER].denial is None
    assert not list(function.registry.waiting_events(MEMBER))
    assert not function.dead.messages


def audit_killed_at(number: int) -> AuditFunction:
    """Returns the function after a delivery that died at this step of its table; it was denied."""
    function = organization()
    deny(function, until_min=12 * 60)
    registry, step = function.registry, die_at_step(number)
    function.registry = with_steps(registry, step)
    record = function.notes.record_event_sent

    def record_with_steps(*arguments: Any) -> None:
        step()
        record(*arguments)
        step()

    function.send(member_event())
    with patch.object(function.notes, "record_event_sent", record_with_steps):
        function.run(6)
    function.registry = registry
    return function


@pytest.mark.parametrize("number", range(9))
def test_a_wait_that_is_killed_at_any_step_loses_nothing(number: int) -> None:
    """The event is delivered again, and audited once when the member can be read."""
    function = audit_killed_at(number)
    assert bool(function.queue.messages) is (number < 8)
    function.run(11 * 60)
    assert not function.queue.messages
    assert len(list(function.registry.waiting_events(MEMBER))) == 1
    assert function.registry.members()[MEMBER].denial is not None
    function.clock.now = minutes_after_end(13 * 60)
    sweep_now(function, sweep_of(function))
    function.run()
    assert audit_count(function) == 1
    assert not function.dead.messages


def test_a_release_that_is_killed_at_any_step_loses_nothing() -> None:
    """The next sweep sends the rest; a job whose event is sent twice is audited once."""
    killed_count = 0
    for number in range(200):
        function = organization()
        deny(function, until_min=30)
        function.send(member_event())
        function.run(40)
        flow = sweep_of(function)
        flow.step = die_at_step(number)
        try:
            sweep_now(function, flow)
            break
        except ProcessKilled:
            killed_count += 1
        function.clock.now = flow.now
        sweep_now(function, sweep_of(function))
        function.run()
        assert audit_count(function) == 1
        assert not list(function.registry.waiting_events(MEMBER))
        assert function.registry.members()[MEMBER].denial is None
    assert killed_count > 10


AUDIT_STEPS, SWEEP_STEPS = 4, 4


def test_in_no_order_of_steps_an_event_waits_without_a_denial() -> None:
    """A sweep would never send it: the audit was denied just before the member was mended."""
    orders = list(step_orders(AUDIT_STEPS, SWEEP_STEPS))
    assert len(orders) == 70
    left = [order for order in orders if _waits_without_denial(order)]
    assert not left


def _waits_without_denial(order: tuple[int, ...]) -> bool:
    """Runs an audit that is denied, and a sweep that finds the member mended, in this order."""
    function = organization()
    deny(function)
    function.registry.add_denial(MEMBER, Denial.from_error(NO_ROLE, minutes_after_end(-60)))
    function.send(member_event())
    function.clock.move(300)
    flow = sweep_of(function)
    registry, describe = function.registry, function.jobs.describe

    def ticking(step: Step) -> Step:
        def tick() -> None:
            step()
            function.clock.move(1)

        return tick

    def stepping(tick: Step, *names: str) -> Any:
        return CallProxy(registry, lambda name: tick() if name in names else None)

    def audit(step: Step) -> None:
        tick = ticking(step)
        tick()

        def describe_later(ref: Any) -> Any:
            tick()
            return describe(ref)

        function.jobs.describe = describe_later  # type: ignore[method-assign]
        function.registry = stepping(tick, "add_waiting_event", "add_denial")
        function.run(6)

    def sweep_once(step: Step) -> None:
        tick = ticking(step)
        tick()

        def check_member(*_: str) -> dict[str, AwsError]:
            tick()
            return {}

        flow.registry = stepping(tick, "waiting_events", "clear_denial")
        deps = flow.dependencies(lambda: True)
        list(sweep(replace(deps, check_member=check_member, clock=function.clock)))

    run_merged(order, audit, sweep_once)
    waits = bool(list(registry.waiting_events(MEMBER)))
    assert waits or function.queue.messages, "the event was lost"
    return waits and registry.members()[MEMBER].denial is None
