"""Members and waiting events: the table and the registry in memory answer alike."""

from datetime import datetime
from typing import Any

import pytest

from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.member_registry import DynamoMemberRegistry
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import Denial, Member, WaitingEvent
from sageaudit.ports import MemberRegistry
from sageaudit.structs import replace
from tests.fakes.memory_ledger import MemoryMemberRegistry
from tests.fakes.sweeps import DAY, HOUR, MINUTE, NOON

MEMBER = AccountRegion("222233334444", "us-east-1")
ELSEWHERE = AccountRegion("222233334444", "eu-west-1")
OTHER = AccountRegion("333344445555", "us-east-1")
DENIAL = Denial(NOON, NOON, ("sts:AssumeRole",), "no such role")
LISTS = Denial(NOON, NOON + HOUR, ("sagemaker:ListTrainingJobs",), "not permitted")


@pytest.fixture(params=["memory", "table"])
def registry(request: pytest.FixtureRequest, client: Any, table: str) -> MemberRegistry:
    """Both."""
    in_memory = request.param == "memory"
    return MemoryMemberRegistry() if in_memory else DynamoMemberRegistry(client, table)


def waiting(
    name: str, account_region: AccountRegion = MEMBER, at: datetime = NOON
) -> tuple[JobKey, WaitingEvent]:
    """Returns a waiting event and its job's key."""
    account, region = account_region.account, account_region.region
    key = JobKey(f"arn:aws:sagemaker:{region}:{account}:training-job/{name}", NOON - HOUR)
    return key, WaitingEvent(account_region, JobKind.TRAINING, f'{{"name": "{name}"}}', at)


def is_denied(registry: MemberRegistry, account_region: AccountRegion = MEMBER) -> bool:
    """Returns whether a denial of the member is stored."""
    member = registry.members().get(account_region)
    return member is not None and member.denial is not None


def test_a_member_is_known_from_its_first_event_on(registry: MemberRegistry) -> None:
    """Each region is a member of its own."""
    assert registry.members() == {}
    registry.record_seen(MEMBER, NOON, None)
    registry.record_seen(ELSEWHERE, NOON + HOUR, 3)
    registry.record_seen(MEMBER, NOON + DAY, None)
    assert registry.members() == {
        MEMBER: Member(MEMBER, NOON, NOON + DAY),
        ELSEWHERE: Member(ELSEWHERE, NOON + HOUR, NOON + HOUR, 3),
    }


def test_an_event_that_arrives_late_changes_no_time(registry: MemberRegistry) -> None:
    """A heartbeat behind a job's event still stores the version of its template."""
    registry.record_seen(MEMBER, NOON, None)
    for late in (NOON, NOON - HOUR):
        registry.record_seen(MEMBER, late, None)
        assert registry.members()[MEMBER] == Member(MEMBER, NOON, NOON)
    registry.record_seen(MEMBER, NOON - MINUTE, 2)
    assert registry.members()[MEMBER] == Member(MEMBER, NOON, NOON, 2)


def test_the_event_of_a_job_keeps_the_version_of_the_template(registry: MemberRegistry) -> None:
    """Only heartbeats have one."""
    registry.record_seen(MEMBER, NOON, 2)
    registry.record_seen(MEMBER, NOON + HOUR, None)
    assert registry.members()[MEMBER].template_version == 2
    registry.record_seen(MEMBER, NOON + DAY, 3)
    assert registry.members()[MEMBER].template_version == 3


def test_the_first_denial_stays_until_a_check_replaces_it(registry: MemberRegistry) -> None:
    """It may come before the first event of the member, and keeps what is known of it."""
    registry.add_denial(MEMBER, DENIAL)
    registry.record_seen(MEMBER, NOON, 1)
    registry.add_denial(MEMBER, LISTS)
    assert registry.members()[MEMBER] == Member(MEMBER, NOON, NOON, 1, DENIAL)
    registry.replace_denial(MEMBER, LISTS)
    assert registry.members()[MEMBER] == Member(MEMBER, NOON, NOON, 1, LISTS)


def test_a_denial_that_a_check_did_not_confirm_is_removed(registry: MemberRegistry) -> None:
    """What else is known of the member stays; the next denial is a new one."""
    registry.record_seen(MEMBER, NOON, 1)
    registry.add_denial(MEMBER, DENIAL)
    registry.replace_denial(MEMBER, replace(DENIAL, checked_at=NOON + MINUTE))
    assert registry.clear_denial(MEMBER, NOON + HOUR)
    assert registry.members()[MEMBER] == Member(MEMBER, NOON, NOON, 1)
    registry.add_denial(MEMBER, LISTS)
    assert registry.members()[MEMBER].denial == LISTS


@pytest.mark.parametrize(("repeated_after", "is_cleared"), [(-MINUTE, True), (0 * MINUTE, False)])
def test_a_denial_that_was_repeated_since_the_check_began_stays(
    registry: MemberRegistry, repeated_after: Any, is_cleared: bool
) -> None:
    """An audit was denied in the meantime, and its event waits."""
    asked_at = NOON + HOUR
    registry.add_denial(MEMBER, DENIAL)
    repeated_at = asked_at + repeated_after
    registry.add_denial(MEMBER, replace(DENIAL, since=repeated_at, checked_at=repeated_at))
    assert registry.clear_denial(MEMBER, asked_at) is is_cleared
    assert is_denied(registry) is not is_cleared
    assert registry.clear_denial(MEMBER, asked_at + HOUR)
    assert not is_denied(registry)


def test_a_denial_that_is_not_stored_can_be_removed(registry: MemberRegistry) -> None:
    """Two sweeps may check the same member, one after the other."""
    assert registry.clear_denial(MEMBER, NOON)
    assert not is_denied(registry)


def test_events_wait_for_their_own_member_until_they_are_removed(
    registry: MemberRegistry,
) -> None:
    """An event that arrives twice waits once."""
    first, second, other = waiting("a"), waiting("b"), waiting("a", OTHER)
    for key, event in (first, second, other, first):
        registry.add_waiting_event(key, event)
    assert dict(registry.waiting_events(MEMBER)) == dict([first, second])
    assert sum(1 for _ in registry.waiting_events(MEMBER)) == 2
    registry.remove_waiting_event(*first)
    registry.remove_waiting_event(*first)
    assert list(registry.waiting_events(MEMBER)) == [second]
    assert list(registry.waiting_events(OTHER)) == [other]
    assert list(registry.waiting_events(ELSEWHERE)) == []


@pytest.mark.parametrize(
    "odd",
    [
        {"last_seen_at": {"S": "soon"}},
        {"denied_since": {"S": "2026-05-20T12:00:00.000000Z"}},
        {"template_version": {"S": "new"}},
        {"sk": {"S": "222233334444"}},
        {"sk": {"S": "222233334444#us-east-1#x"}},
    ],
    ids=str,
)
def test_a_member_that_cannot_be_read_leaves_the_others(
    client: Any, table: str, odd: dict[str, Any]
) -> None:
    """Its next event does not repair the row, but no other member is lost with it."""
    registry = DynamoMemberRegistry(client, table)
    registry.record_seen(OTHER, NOON, 1)
    key = {"pk": {"S": keys.MEMBERS_PK}, "sk": {"S": keys.member_sk(MEMBER)}}
    client.put_item(TableName=table, Item=key | odd)
    assert list(registry.members()) == [OTHER]
    [unreadable] = registry.take_unreadable()
    assert unreadable.key.startswith("MEMBERS 222233334444")


@pytest.mark.parametrize("odd", [{"kind": {"S": "none"}}, {"arrived_at": {"S": "soon"}}, {}])
def test_a_waiting_event_that_cannot_be_read_leaves_the_others(
    client: Any, table: str, odd: dict[str, Any]
) -> None:
    """Only its own job is not audited."""
    registry = DynamoMemberRegistry(client, table)
    pair = waiting("a")
    registry.add_waiting_event(*pair)
    key = {"pk": {"S": keys.waiting_pk(MEMBER)}, "sk": {"S": "0"}}
    client.put_item(TableName=table, Item=key | odd)
    assert list(registry.waiting_events(MEMBER)) == [pair]
    assert [item.key for item in registry.take_unreadable()] == [f"{keys.waiting_pk(MEMBER)} 0"]
