"""Other accounts and regions: the template of a member, and the stack of an organization."""

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

import boto3
import pytest
import yaml  # type: ignore[import-untyped]
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.cloudformation.models import cloudformation_backends
from moto.events.models import EventPattern

from infra.members import TEMPLATE, assumable_roles, create_forwarding, delete_forwarding
from infra.settings import Settings
from sageaudit.adapters.aws import cloudwatch, sagemaker
from sageaudit.adapters.aws.accounts import role_arn
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import TEMPLATE_VERSION, parse_heartbeat
from sageaudit.domain.policy.scope import MEMBER_ROLE, MemberAccounts
from tests.infra.reading import ACCOUNTS, ORGANIZATION, Template, of_type, only_resource, read

MEMBER: dict[str, Any] = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))
HOME, OTHER, REGION, FAR = "111122223333", "222233334444", "us-east-1", "eu-west-1"
LONGEST = {
    "AWS::IAM::Policy": 10_240,
    "AWS::IAM::ManagedPolicy": 6_144,
    "AWS::Events::Rule": 2_048,
    "AWS::Events::EventBusPolicy": 10_240,
    "AWS::SQS::QueuePolicy": 262_144,
}
"""Characters, by the default quotas. What is too long for the inline policies of a role, the CDK
puts into a managed one. A queue's policy counts with its attributes."""
LONGEST_NAME = 64
FORWARDING = {"ForwardRole", "ForwardRule", "HeartbeatRole", "HeartbeatGroup", "Heartbeat"}
"""The resources of a member that send its events home."""


def documents(template: Template) -> Iterator[tuple[str, str]]:
    """Each policy and pattern as AWS counts it: filled in, without white space."""
    for kind, keys in {
        "AWS::IAM::Policy": "PolicyDocument",
        "AWS::IAM::ManagedPolicy": "PolicyDocument",
        "AWS::Events::Rule": "EventPattern",
        "AWS::Events::EventBusPolicy": "Statement",
        "AWS::SQS::QueuePolicy": "PolicyDocument",
    }.items():
        for properties in of_type(template, kind).values():
            yield kind, json.dumps(filled(properties[keys]), separators=(",", ":"))


def filled(value: Any, values: dict[str, str] | None = None) -> Any:
    """Intrinsics with long values in their place."""
    known = {
        "AWS::AccountId": HOME,
        "AWS::Partition": "aws-us-gov",
        "AWS::Region": "ap-southeast-1",
        "AWS::StackName": "a-stack-with-a-name-of-thirty-",
        **(values or {}),
    }
    match value:
        case {"Ref": name}:
            return known.get(name, f"arn:aws-us-gov:sqs:ap-southeast-1:{HOME}:a-long-name-{name}")
        case {"Fn::GetAtt": [name, _]}:
            return f"arn:aws-us-gov:sqs:ap-southeast-1:{HOME}:a-long-name-{name}"
        case {"Fn::Join": [separator, parts]}:
            return separator.join(filled(part, known) for part in parts)
        case {"Fn::Sub": str(text)}:
            for name, put in known.items():
                text = text.replace(f"${{{name}}}", put)
            assert "${" not in text
            return text
        case dict():
            return {key: filled(inner, known) for key, inner in value.items()}
        case list():
            return [filled(inner, known) for inner in value]
    return value


@pytest.mark.parametrize("name", ["organization", "accounts", "many-channels", "strict"])
def test_every_document_is_within_the_default_quotas(templates: Path, name: str) -> None:
    """Of a thousand accounts in twelve regions, and of as many as are named one by one."""
    template = read(templates, f"{name}.json")
    found = list(documents(template))
    assert {kind for kind, text in found if len(text) > LONGEST[kind]} == set()
    assert {"AWS::IAM::Policy", "AWS::Events::Rule"} <= {kind for kind, _ in found}


def test_a_thousand_accounts_make_the_template_no_longer(templates: Path) -> None:
    """It names none of them: the list is in the asset."""
    text = json.dumps(read(templates, "organization.json"))
    assert not [account for account in ORGANIZATION.role_by_account if account in text]
    assert str(ORGANIZATION.external_id) not in text


def test_roles_are_assumed_by_name_in_the_organization_only(templates: Path) -> None:
    """Without an organization, each one is granted by itself."""
    in_it = {"StringEquals": {"aws:ResourceOrgID": ORGANIZATION.organization}}
    for function in ("AuditRole", "SweepRole"):
        [grant] = assuming(read(templates, "organization.json"), function)
        assert filled(grant["Resource"]) == f"arn:aws-us-gov:iam::*:role/{MEMBER_ROLE}"
        assert grant["Condition"] == in_it
        grants = assuming(read(templates, "accounts.json"), function)
        resources = [role for grant in grants for role in grant["Resource"]]
        assert len(resources) == len(ACCOUNTS.role_by_account)
        assert "*" not in json.dumps(resources)


def test_more_accounts_need_their_organization(templates: Path) -> None:
    """CloudFormation would say it late, and not how to go on."""
    assert "set organization in [accounts]" in read(templates, "too-many.json")


def assuming(template: Template, function: str) -> list[dict[str, Any]]:
    """The statements of a role about assuming others."""
    policies = [
        *of_type(template, "AWS::IAM::Policy").items(),
        *of_type(template, "AWS::IAM::ManagedPolicy").items(),
    ]
    return [
        statement
        for _, policy in policies
        if any(role["Ref"].startswith(function) for role in policy["Roles"])
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "sts:AssumeRole"
    ]


def test_events_of_the_organization_come_to_a_bus_of_the_stack(templates: Path) -> None:
    """The rules of others on the default bus see none of them; any other account is refused."""
    template = read(templates, "organization.json")
    bus = only_resource(template, "AWS::Events::EventBus")
    assert bus["Name"] == {"Ref": "AWS::StackName"}
    statement = only_resource(template, "AWS::Events::EventBusPolicy")["Statement"]
    assert (statement["Principal"], statement["Action"]) == ("*", "events:PutEvents")
    in_it = {"StringEquals": {"aws:PrincipalOrgID": ORGANIZATION.organization}}
    assert statement["Condition"] == in_it
    own = only_resource(template, "AWS::Events::Rule", "TriggerJobEnded")["EventPattern"]
    assert own["account"] == [{"Ref": "AWS::AccountId"}]
    forwarded = only_resource(template, "AWS::Events::Rule", "TriggerMemberJobEnded")[
        "EventPattern"
    ]
    assert {*own} - {*forwarded} == {"account", "region"}


def test_a_stack_of_one_account_has_no_bus(templates: Path) -> None:
    """Nobody may forward anything to it."""
    assert not of_type(read(templates, "plain.json"), "AWS::Events::EventBus")


def test_a_member_lets_read_what_the_code_reads_there_and_nothing_else() -> None:
    """PERMISSIONS stand beside the calls; prices are asked for at home."""
    [policy] = MEMBER["Resources"]["ReadRole"]["Properties"]["Policies"]
    granted = [action for s in policy["PolicyDocument"]["Statement"] for action in s["Action"]]
    called = {*sagemaker.AUDIT_PERMISSIONS, *cloudwatch.PERMISSIONS, *sagemaker.LIST_PERMISSIONS}
    assert sorted(granted) == sorted(called)


def test_a_member_forwards_what_the_stack_takes(templates: Path) -> None:
    """The ends of jobs, replays and heartbeats; the bus has the name that the stack gives it."""
    template = read(templates, "organization.json")
    rule = MEMBER["Resources"]["ForwardRule"]["Properties"]
    taken = [
        only_resource(template, "AWS::Events::Rule", f"TriggerMember{name}")["EventPattern"]
        for name in ("JobEnded", "Heartbeat")
    ]
    forwarded = rule["EventPattern"]
    assert sorted(forwarded["source"]) == sorted(chain(*(part["source"] for part in taken)))
    detail_types = chain(*(part["detail-type"] for part in taken))
    assert sorted(forwarded["detail-type"]) == sorted(detail_types)
    for event, is_forwarded in _events():
        matches = [EventPattern(None, pattern).matches_event(event) for pattern in taken]
        assert any(matches) is is_forwarded, event
        assert EventPattern(None, forwarded).matches_event(event) is is_forwarded, event
    [target] = rule["Targets"]
    names = values(OTHER, FAR)
    assert filled(target["Arn"], names) == f"arn:aws:events:{REGION}:{HOME}:event-bus/SageAudit"
    assert target["RoleArn"] == {"Fn::GetAtt": ["ForwardRole", "Arn"]}


def _events() -> Iterator[tuple[Any, bool]]:
    """Yields events of a member's default bus, and whether they are forwarded."""
    for kind in JobKind:
        for status, is_final in (("Completed", True), ("InProgress", False)):
            event = {
                "source": "aws.sagemaker",
                "detail-type": kind.spec.detail_type,
                "detail": {f"{kind.spec.prefix}JobStatus": status},
            }
            yield event, kind.spec.has_event and is_final
            yield event | {"source": "aws.s3"}, False
    schedule = MEMBER["Resources"]["Heartbeat"]["Properties"]["Target"]
    heartbeat = {
        "source": schedule["EventBridgeParameters"]["Source"],
        "detail-type": schedule["EventBridgeParameters"]["DetailType"],
        "detail": json.loads(schedule["Input"]),
    }
    yield heartbeat, True
    yield heartbeat | {"source": "aws.s3"}, False


def test_a_member_sends_the_heartbeat_that_home_understands() -> None:
    """It has the version that this home expects."""
    target = MEMBER["Resources"]["Heartbeat"]["Properties"]["Target"]
    event = {
        "source": target["EventBridgeParameters"]["Source"],
        "account": OTHER,
        "region": FAR,
        "time": "2026-05-20T12:00:00Z",
        "detail": json.loads(target["Input"]),
    }
    heartbeat = parse_heartbeat(json.dumps(event))
    assert heartbeat is not None
    assert heartbeat.account_region == AccountRegion(OTHER, FAR)
    assert heartbeat.template_version == TEMPLATE_VERSION


def test_only_the_forwarding_rule_may_use_its_role() -> None:
    """By its ARN, and so by its name, which differs for each bus and is short enough."""
    rule, role = (
        MEMBER["Resources"][name]["Properties"] for name in ("ForwardRule", "ForwardRole")
    )
    [statement] = role["AssumeRolePolicyDocument"]["Statement"]
    longest = values(OTHER, "ap-southeast-1") | {
        "HomeStack": "A" * 30,
        "HomeRegion": "us-gov-west-1",
    }
    name = filled(rule["Name"], longest)
    assert filled(statement["Condition"], longest) == {
        "StringEquals": {
            "aws:SourceAccount": OTHER,
            "aws:SourceArn": f"arn:aws:events:ap-southeast-1:{OTHER}:rule/{name}",
        }
    }
    assert all(part in name for part in (HOME, "us-gov-west-1", "A" * 30))
    assert len(name) <= LONGEST_NAME


def test_a_member_trusts_the_two_roles_by_the_names_that_the_stack_gives_them(
    templates: Path,
) -> None:
    """Through the account: a role that is made again under its name is trusted again."""
    [statement] = MEMBER["Resources"]["ReadRole"]["Properties"]["AssumeRolePolicyDocument"][
        "Statement"
    ]
    names = values(OTHER, REGION)
    assert filled(statement["Principal"], names) == {"AWS": f"arn:aws:iam::{HOME}:root"}
    trusted = filled(statement["Condition"]["ArnEquals"]["aws:PrincipalArn"], names)
    named = {
        filled(role["RoleName"], values(HOME, REGION) | {"AWS::StackName": "SageAudit"})
        for role in of_type(read(templates, "plain.json"), "AWS::IAM::Role").values()
        if "RoleName" in role
    }
    assert {arn.partition("role/")[2] for arn in trusted} == named
    longest = filled({"Fn::Sub": "${AWS::StackName}-${AWS::Region}-audit"})
    assert len(longest) <= LONGEST_NAME


@pytest.mark.parametrize("path", ["/", "/audit/"])
def test_a_member_trusts_roles_under_the_path_of_the_home(path: str) -> None:
    """The path is part of a role's ARN, which the condition compares."""
    role = MEMBER["Resources"]["ReadRole"]["Properties"]
    [statement] = role["AssumeRolePolicyDocument"]["Statement"]
    names = values(OTHER, REGION) | {"HomeRolePath": path}
    assert filled(statement["Condition"]["ArnEquals"]["aws:PrincipalArn"], names) == [
        f"arn:aws:iam::{HOME}:role{path}SageAudit-{REGION}-{function}"
        for function in ("audit", "sweep", "watch")
    ]


def test_a_members_roles_have_its_path_and_boundary_if_it_has_any() -> None:
    """Without them no property is set: CloudFormation cannot move a role with a name."""
    limited = {"RolePath": "/audit/", "PermissionsBoundary": "team/limit"}
    for given, path, boundary in (
        ({}, None, None),
        (limited, "/audit/", f"arn:aws:iam::{OTHER}:policy/team/limit"),
    ):
        known = values(OTHER, REGION) | given
        for name in ("ReadRole", "ForwardRole"):
            role = MEMBER["Resources"][name]["Properties"]
            assert chosen(role["Path"], known) == path
            assert chosen(role["PermissionsBoundary"], known) == boundary


def test_a_policy_names_a_members_role_with_its_path() -> None:
    """So the functions may assume the role that the member's stack makes under a path."""
    members = MemberAccounts({OTHER: "audit/sageaudit-read"})
    [(arns, _)] = assumable_roles(members)
    assert [arn.partition("::")[2] for arn in arns] == [f"{OTHER}:role/audit/sageaudit-read"]
    assert role_arn("audit/sageaudit-read", OTHER, REGION) == (
        f"arn:aws:iam::{OTHER}:role/audit/sageaudit-read"
    )


@pytest.mark.parametrize(
    ("account", "region", "of_home", "made"),
    [
        (HOME, REGION, "no", set()),
        (HOME, FAR, "no", set()),
        (HOME, FAR, "yes", FORWARDING),
        (OTHER, REGION, "no", {"ReadRole", *FORWARDING}),
        (OTHER, FAR, "no", FORWARDING),
    ],
)
def test_what_a_member_makes_where(account: str, region: str, of_home: str, made: set[str]) -> None:
    """The read role once in each account; nothing in the home account but by `make deploy`."""
    known = values(account, region) | {"OfHome": of_home}
    found = {
        name
        for name, resource in MEMBER["Resources"].items()
        if "Condition" in resource and holds(MEMBER["Conditions"][resource["Condition"]], known)
    }
    assert found == made
    assert [n for n, resource in MEMBER["Resources"].items() if "Condition" not in resource] == [
        "Placeholder"
    ]


@mock_aws
def test_the_own_account_forwards_from_the_regions_of_the_policy() -> None:
    """Created, left alone, made anew after a creation that failed, and deleted."""
    session = boto3.Session(region_name=REGION)

    def made() -> list[str]:
        rules = (session.client("events", region_name=at).list_rules() for at in (REGION, FAR))
        return [rule["Name"] for answer in rules for rule in answer["Rules"]]

    for _ in range(2):
        create_forwarding(session, (HOME, REGION), Settings(), [FAR])
        assert len(made()) == 1
    [stack] = cloudformation_backends[HOME][FAR].stacks.values()
    refused = ClientError(
        {"Error": {"Message": f"{stack.name} is in ROLLBACK_COMPLETE state"}}, "UpdateStack"
    )
    with mock.patch.object(stack, "update", side_effect=refused):
        create_forwarding(session, (HOME, REGION), Settings(), [FAR])
    [again] = cloudformation_backends[HOME][FAR].stacks.values()
    assert again.stack_id != stack.stack_id
    delete_forwarding(session, "SageAudit", [FAR])
    assert made() == []


@mock_aws
def test_the_own_accounts_forwarding_has_the_settings_of_the_stack() -> None:
    """The path and the boundary of its role, and the tags."""
    session = boto3.Session(region_name=REGION)
    settings = Settings(role_path="/audit/", permissions_boundary="limit", tags={"team": "ml"})
    create_forwarding(session, (HOME, REGION), settings, [FAR])
    roles = session.client("iam").list_roles(PathPrefix="/audit/")["Roles"]
    assert len(roles) == 2  # it forwards events, and sends a heartbeat
    for role in roles:
        found = session.client("iam").get_role(RoleName=role["RoleName"])["Role"]
        boundary = found["PermissionsBoundary"]["PermissionsBoundaryArn"]
        assert boundary == f"arn:aws:iam::{HOME}:policy/limit"
    [stack] = session.client("cloudformation", region_name=FAR).describe_stacks()["Stacks"]
    assert {tag["Key"]: tag["Value"] for tag in stack["Tags"]} == settings.all_tags


def test_the_environment_of_each_function_is_within_4_kb(templates: Path) -> None:
    """With as many channels as a policy may have, and the longest names."""
    functions = of_type(read(templates, "many-channels.json"), "AWS::Lambda::Function")
    for function in functions.values():
        if variables := function.get("Environment"):
            assert len(json.dumps(filled(variables["Variables"]))) <= 4_096


def values(account: str, region: str) -> dict[str, str]:
    """The parameters' values in an account and region."""
    given = {"HomeAccount": HOME, "HomeRegion": REGION}
    defaults = {k: p["Default"] for k, p in MEMBER["Parameters"].items() if "Default" in p}
    place = {"AWS::AccountId": account, "AWS::Region": region, "AWS::Partition": "aws"}
    return {**defaults, **given, **place}


def chosen(value: Any, known: dict[str, str]) -> str | None:
    """What an Fn::If gives; None for no value."""
    condition, if_true, if_false = value["Fn::If"]
    taken = if_true if holds(MEMBER["Conditions"][condition], known) else if_false
    return None if taken == {"Ref": "AWS::NoValue"} else str(filled(taken, known))


def holds(condition: Any, known: dict[str, str]) -> bool:
    """A condition of CloudFormation."""
    match condition:
        case {"Condition": str(name)}:
            return holds(MEMBER["Conditions"][name], known)
        case {"Fn::Not": [inner]}:
            return not holds(inner, known)
        case {"Fn::Or": parts}:
            return any(holds(part, known) for part in parts)
        case {"Fn::And": parts}:
            return all(holds(part, known) for part in parts)
        case {"Fn::Equals": [left, right]}:
            return bool(filled(left, known) == filled(right, known))
    raise ValueError(f"no condition: {condition}")
