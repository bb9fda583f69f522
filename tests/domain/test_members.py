"""Members: which accounts and regions are audited, who is silent or gone, and their heartbeats."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import (
    ASSUME_ROLE,
    CHECK_INTERVAL,
    HEARTBEAT_SOURCE,
    SILENT_AFTER,
    AuditScope,
    Denial,
    Heartbeat,
    Member,
    parse_heartbeat,
    unreadable_members,
)
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.errors import AccessDenied, AwsError, NoCredentials, RejectedEvent, Throttled
from sageaudit.structs import replace

NOON = datetime(2026, 5, 20, 12, 0, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
HOME = AccountRegion("111122223333", "us-east-1")
OTHER, THIRD, UNKNOWN = "222233334444", "333344445555", "999988887777"
NO_ROLE = AccessDenied(ASSUME_ROLE, "no such role")
NO_LISTS = AccessDenied("sagemaker:ListTrainingJobs", "not permitted")
ORGANIZATION = MemberAccounts(organization="o-a1b2c3d4e5", organization_role="sageaudit-read")
DENIAL = Denial.from_error(NO_ROLE, NOON)


def place(account: str, region: str = "us-east-1") -> AccountRegion:
    """Returns an account in the home's region by default."""
    return AccountRegion(account, region)


def seen(account_region: AccountRegion, ago: timedelta = HOUR, **known: Any) -> Member:
    """Returns a member whose last event arrived before NOON."""
    return Member(account_region, NOON - ago, NOON - ago, **known)


def audited(members: MemberAccounts, *registered: Member) -> list[str]:
    """Returns the accounts and regions that are audited."""
    by_place = {member.account_region: member for member in registered}
    return [str(audited) for audited in AuditScope(HOME, members).audited(by_place)]


# Scope


def test_a_deployment_without_members_audits_its_own_account_and_region() -> None:
    """An event of another account changes nothing."""
    assert audited(MemberAccounts(), seen(place(OTHER))) == ["111122223333 in us-east-1"]


def test_a_list_of_accounts_is_audited_before_any_event_arrives() -> None:
    """In the home's region and the policy's others; an account that is not listed is left out."""
    members = MemberAccounts({OTHER: "sageaudit-read"}, regions=("eu-west-1",))
    assert audited(members, seen(place(UNKNOWN))) == [
        "111122223333 in eu-west-1",
        "111122223333 in us-east-1",
        "222233334444 in eu-west-1",
        "222233334444 in us-east-1",
    ]


def test_an_organization_is_audited_where_events_arrived() -> None:
    """A denial that was recorded before the first event does not make a member."""
    never_seen = Member(place(THIRD), denial=DENIAL)
    assert audited(ORGANIZATION, seen(place(OTHER)), never_seen) == [
        "111122223333 in us-east-1",
        "222233334444 in us-east-1",
    ]


def test_accounts_listed_by_role_are_audited_in_an_organization_before_their_first_event() -> None:
    """Their roles have other names than those of the organization."""
    members = replace(ORGANIZATION, role_by_account={OTHER: "arn:aws:iam::222233334444:role/x"})
    assert "222233334444 in us-east-1" in audited(members)
    assert members.role(OTHER) == "arn:aws:iam::222233334444:role/x"
    assert members.role(THIRD) == "sageaudit-read"


def test_an_event_of_a_region_that_the_policy_does_not_name_makes_no_member() -> None:
    """The account is audited in the named regions from which its events arrive."""
    members = replace(ORGANIZATION, regions=("eu-west-1",))
    elsewhere, named = seen(place(OTHER, "ap-south-1")), seen(place(OTHER, "eu-west-1"))
    assert audited(members, elsewhere, named) == [
        "111122223333 in eu-west-1",
        "111122223333 in us-east-1",
        "222233334444 in eu-west-1",
    ]


def test_a_group_replaces_the_regions_of_its_accounts() -> None:
    """Groups are for other accounts: the home account has the regions of all."""
    groups = {OTHER: ("ap-south-1",), HOME.account: ("eu-west-1",)}
    members = MemberAccounts(
        dict.fromkeys((OTHER, THIRD), "r"), regions=("eu-north-1",), regions_by_account=groups
    )
    assert audited(members) == [
        "111122223333 in eu-north-1",
        "111122223333 in us-east-1",
        "222233334444 in ap-south-1",
        "333344445555 in eu-north-1",
        "333344445555 in us-east-1",
    ]
    assert members.all_regions == ("eu-north-1", "ap-south-1", "eu-west-1")
    scope = AuditScope(HOME, members)
    assert scope.includes(HOME)
    assert not scope.includes(place(OTHER))


def test_a_group_adds_no_account_to_a_list() -> None:
    """It says only where an account is audited."""
    members = MemberAccounts({OTHER: "r"}, regions_by_account={THIRD: ("us-east-1",)})
    assert "333344445555 in us-east-1" not in audited(members, seen(place(THIRD)))


# Silent and gone


def test_a_member_is_silent_after_three_days_without_an_event() -> None:
    """One that never sent a heartbeat is not silent: its template may be older than heartbeats."""
    assert not seen(place(OTHER), SILENT_AFTER, template_version=1).is_silent(NOON)
    assert seen(place(OTHER), SILENT_AFTER + MINUTE, template_version=1).is_silent(NOON)
    assert not seen(place(OTHER), 30 * SILENT_AFTER).is_silent(NOON)
    assert not Member(place(OTHER)).is_silent(NOON)


def test_silence_alone_does_not_stop_the_reading_of_a_member() -> None:
    """Only a member that is silent and denies access is gone."""
    heard = seen(place(THIRD))
    silent = seen(place(OTHER), 4 * 24 * HOUR, template_version=1)
    assert "222233334444 in us-east-1" in audited(ORGANIZATION, silent, heard)
    gone = replace(silent, denial=DENIAL)
    assert "222233334444 in us-east-1" not in audited(ORGANIZATION, gone, heard)
    returned = replace(gone, last_seen_at=NOON)
    assert "222233334444 in us-east-1" in audited(ORGANIZATION, returned, heard)


def test_no_member_is_gone_while_no_event_of_any_member_arrives() -> None:
    """Then the cause is at home, and all members are asked."""
    silent = [
        seen(place(account), 4 * 24 * HOUR, template_version=1, denial=DENIAL)
        for account in (OTHER, THIRD)
    ]
    assert len(audited(ORGANIZATION, *silent)) == 3


def test_a_listed_account_is_asked_again_although_it_is_gone() -> None:
    """The list says that it is a member."""
    gone = seen(place(OTHER), 4 * 24 * HOUR, template_version=1, denial=DENIAL)
    assert gone.is_gone(NOON)
    assert "222233334444 in us-east-1" in audited(MemberAccounts({OTHER: "r"}), gone)


def test_the_digest_names_members_that_deny_and_are_not_gone() -> None:
    """They are sorted by account and region."""
    gone = seen(place(OTHER), 4 * 24 * HOUR, template_version=1, denial=DENIAL)
    denying = [seen(place(account), denial=DENIAL) for account in (UNKNOWN, THIRD)]
    members = [gone, *denying, seen(place(HOME.account, "eu-west-1"))]
    by_place = {member.account_region: member for member in members}
    assert not unreadable_members(by_place, lambda _: False)
    found = unreadable_members(by_place, lambda _: True)
    assert [member.account_region.account for member in found] == [THIRD, UNKNOWN]


# Denials


def test_a_new_denial_is_checked_at_the_next_sweep_and_then_hourly() -> None:
    """A role that was just created may be denied for some seconds."""
    assert DENIAL.should_check(NOON)
    confirmed = replace(DENIAL, checked_at=NOON + MINUTE, is_confirmed=True)
    last = confirmed.checked_at
    assert not confirmed.should_check(last + CHECK_INTERVAL - timedelta(microseconds=1))
    assert confirmed.should_check(last + CHECK_INTERVAL)


def test_a_check_in_the_future_does_not_delay_the_next_one() -> None:
    """A clock that was ahead recorded it."""
    ahead = replace(DENIAL, checked_at=NOON + 24 * HOUR, is_confirmed=True)
    assert ahead.should_check(NOON)


def test_a_role_that_cannot_be_assumed_denies_everything() -> None:
    """Another denial is about its action only."""
    assert DENIAL.denies("sagemaker:DescribeTrainingJob")
    lists = Denial.from_error(NO_LISTS, NOON)
    assert lists.denies("sagemaker:ListTrainingJobs")
    assert not lists.denies("sagemaker:DescribeTrainingJob")


@pytest.mark.parametrize(
    ("error", "is_denied"),
    [
        (NO_ROLE, True),
        (NO_LISTS, True),
        (AccessDenied("cloudwatch:GetMetricData", "not permitted"), True),
        (NoCredentials("the security token is not valid: the region is not enabled"), True),
        (AccessDenied("dynamodb:PutItem", "not permitted"), False),
        (AccessDenied("pricing:GetProducts", "not permitted"), False),
        (Throttled("busy"), False),
    ],
    ids=str,
)
def test_only_refusals_of_a_members_own_services_are_its_denials(
    error: AwsError, is_denied: bool
) -> None:
    """The table and the prices are the home's. The home's own refusals are failures."""
    scope = AuditScope(HOME, ORGANIZATION)
    assert scope.is_denied_by_member(place(OTHER), error) is is_denied
    assert scope.is_denied_by_member(place(HOME.account, "eu-west-1"), error) is is_denied
    assert not scope.is_denied_by_member(HOME, error)


def test_a_refusal_without_an_action_counts_as_that_of_the_role() -> None:
    """A region that is not enabled names none."""
    off = Denial.from_error(NoCredentials("log in again"), NOON)
    assert off.actions == (ASSUME_ROLE,)
    assert "the region may not be enabled" in off.reason
    assert Denial.from_error(NO_LISTS, NOON).actions == ("sagemaker:ListTrainingJobs",)


def test_a_region_that_is_not_enabled_is_named_as_the_probable_cause() -> None:
    """AWS only says that the credentials are not valid; nobody has to log in again."""
    error = NoCredentials("The AWS credentials are not valid: log in again")
    assert "the region may not be enabled" in Denial.from_error(error, NOON).reason
    assert DENIAL.reason == "no such role"


# Heartbeats


def heartbeat(**changes: Any) -> str:
    """Returns the event of a member's schedule; a value of None is left out."""
    event = {
        "source": HEARTBEAT_SOURCE,
        "account": OTHER,
        "region": "eu-west-1",
        "time": "2026-05-20T12:00:00Z",
        "detail": {"template_version": 4},
    }
    return json.dumps({key: value for key, value in (event | changes).items() if value is not None})


def test_a_heartbeat_names_its_account_region_time_and_template() -> None:
    """Other parts of its detail are ignored, so that a newer template is understood."""
    detail = {"template_version": 4, "account": UNKNOWN, "role": "arn:aws:iam::1:role/x"}
    expected = Heartbeat(place(OTHER, "eu-west-1"), NOON, 4)
    assert parse_heartbeat(heartbeat(detail=detail)) == expected


@pytest.mark.parametrize(
    "body", ["", "no JSON", "[]", "null", '{"source": "aws.sagemaker"}', "[" * 100_000]
)
def test_another_message_is_no_heartbeat(body: str) -> None:
    """It is checked as the event of a job."""
    assert parse_heartbeat(body) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"account": None},
        {"account": 222233334444},
        {"account": "22223333444"},
        {"account": "222233334444\n"},
        {"account": "٢٢٢٢٣٣٣٣٤٤٤٤"},
        {"region": None},
        {"region": "eu-west-1#x"},
        {"region": ["eu-west-1"]},
        {"time": None},
        {"time": "soon"},
        {"time": 10**30},
        {"detail": None},
        {"detail": []},
        {"detail": {}},
        {"detail": {"template_version": None}},
        {"detail": {"template_version": "4"}},
        {"detail": {"template_version": True}},
        {"detail": {"template_version": 4.5}},
        {"detail": {"template_version": 0}},
        {"detail": {"template_version": 10**40}},
    ],
    ids=str,
)
def test_a_heartbeat_with_a_malformed_part_is_rejected(changes: dict[str, Any]) -> None:
    """Any principal of the organization can put one on the bus: it must not reach the table."""
    with pytest.raises(RejectedEvent) as rejected:
        parse_heartbeat(heartbeat(**changes))
    assert rejected.value.code == "malformed"
