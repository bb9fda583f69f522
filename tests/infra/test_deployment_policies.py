"""The policies of a deployment: of who runs `make deploy`, and of CloudFormation's role."""

import json
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from unittest import mock

import boto3
import pytest
import yaml  # type: ignore[import-untyped]
from moto import mock_aws

from infra import deploy
from infra.deploy_flags import Flags
from infra.kept_table import adopt_table
from infra.members import TEMPLATE as MEMBER
from infra.members import create_forwarding
from infra.names import MEMBER_REGIONS
from infra.settings import Settings, cdk_context
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import ChannelConfig, default_channels
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.workflows.doctor.deployment import (
    DEFAULT_QUALIFIER,
    DEPLOY,
    EXECUTION,
    deployment_grants,
    make_deployment_policy,
)
from sageaudit.workflows.doctor.permissions import PolicyScope
from tests.adapters.history.tables import new_table
from tests.fakes.aws_calls import AwsCalls, Call, aws_calls
from tests.infra.handler_actions import UNUSED, needed_actions
from tests.infra.reading import Template, read, text
from tests.infra.test_deploy import STACK

ACCOUNT, HOME, FAR, LEFT = "111122223333", "us-east-1", "eu-west-1", "eu-central-1"
MOST_CHARACTERS = 6_144
"""Of a managed policy, without white space: "IAM and AWS STS character limits"."""
SYNTHESIZED = (
    *("adopted", "accounts", "every-channel", "many-channels", "organization", "own-keys"),
    *("plain", "quiet", "tuned"),
)
NAME_KEYS: Mapping[str, tuple[str]] = {
    "AWS::CloudWatch::Alarm": ("AlarmName",),
    "AWS::DynamoDB::Table": ("TableName",),
    "AWS::Events::EventBus": ("Name",),
    "AWS::Events::Rule": ("Name",),
    "AWS::IAM::ManagedPolicy": ("ManagedPolicyName",),
    "AWS::IAM::Role": ("RoleName",),
    "AWS::Lambda::Function": ("FunctionName",),
    "AWS::Logs::LogGroup": ("LogGroupName",),
    "AWS::SNS::Topic": ("TopicName",),
    "AWS::SQS::Queue": ("QueueName",),
    "AWS::Scheduler::ScheduleGroup": ("Name",),
}
FREE = {"sts:GetCallerIdentity"}
OF_MEMBERS = ("events:", "iam:", "scheduler:")
"""Services that CloudFormation calls for a stack of a further region, in the caller's name."""
OF_THE_CDK_CLI = {"sts:AssumeRole"}
OF_CLOUDFORMATION = {"ssm:GetParameters"}
"""The parameter of the bootstrap's version, which the template reads."""
OF_OWN_KEYS = {"kms:GenerateDataKey*", "kms:ReEncrypt*"}
"""For the table with a key of one's own: "Authorizing use of your customer managed key" in
DynamoDB's guide. The schemas do not name them."""


def actions_of(policy: Mapping[str, Any]) -> list[str]:
    return [action for statement in policy["Statement"] for action in statement["Action"]]


def policy_of(kind: str, scope: PolicyScope | None = None, *, members: bool = False) -> Any:
    grants = deployment_grants(kind, has_members=members)
    return make_deployment_policy(grants, scope or PolicyScope())


def resource_types(templates: Iterable[Template]) -> set[str]:
    return {resource["Type"] for part in templates for resource in part["Resources"].values()}


@pytest.fixture(scope="module")
def stacks(templates: Path) -> list[Template]:
    """The stack with every option that the tests synthesize."""
    return [read(templates, f"{name}.json") for name in SYNTHESIZED]


@pytest.fixture(scope="module")
def member() -> Template:
    """The stack of a further region."""
    parsed: Template = yaml.safe_load(MEMBER.read_text(encoding="utf-8"))
    return parsed


def test_cloudformation_may_create_update_and_delete_every_resource(stacks: list[Template]) -> None:
    """It may do what its handlers do with these types, and nothing else."""
    needed = {action for kind in resource_types(stacks) for action in needed_actions(kind)}
    granted = actions_of(policy_of(EXECUTION))
    assert {a for a in needed if not any(fnmatchcase(a, g) for g in granted)} == set()
    assert {*granted} - needed - OF_OWN_KEYS == OF_CLOUDFORMATION


def test_who_deploys_may_create_the_stacks_of_further_regions(member: Template) -> None:
    """`make deploy` creates them in the name of its caller."""
    needed = {action for kind in resource_types([member]) for action in needed_actions(kind)}
    granted = {*actions_of(policy_of(DEPLOY, members=True))} - {*actions_of(policy_of(DEPLOY))}
    assert {
        action for action in granted if action.startswith(("events:", "iam:", "kms:", "scheduler:"))
    } == needed


def test_no_template_sets_a_property_whose_actions_are_left_out(
    stacks: list[Template], member: Template
) -> None:
    """Such a property needs its actions in the policy."""
    set_properties = {
        (resource["Type"], name)
        for part in (*stacks, member)
        for resource in part["Resources"].values()
        for name in resource.get("Properties", ())
    }
    assert (
        set_properties & {(kind, name) for kind, names in UNUSED.items() for name in names} == set()
    )


def test_every_chosen_name_begins_with_the_name_of_the_stack(stacks: list[Template]) -> None:
    """The policies are limited to such names; CloudFormation's own names begin so too."""
    names = [
        text(resource["Properties"][key])
        for part in stacks
        for resource in part["Resources"].values()
        for key in NAME_KEYS.get(resource["Type"], ())
        if key in resource.get("Properties", {})
    ]
    assert names
    assert not [name for name in names if not name.startswith("${AWS::StackName}")]


@pytest.mark.parametrize("region", ["us-gov-west-1", "cn-northwest-1", "ap-northeast-1"])
@pytest.mark.parametrize("kind", [DEPLOY, EXECUTION])
def test_a_policy_fits_into_a_managed_policy(kind: str, region: str) -> None:
    """Also with the longest names of stacks and regions, in every partition."""
    policy = policy_of(kind, PolicyScope(region=region, stack="S" * 30), members=True)
    assert len(json.dumps(policy, separators=(",", ":"))) <= MOST_CHARACTERS


def test_a_policy_is_limited_to_stack_region_table_and_bootstrap() -> None:
    grants = deployment_grants(DEPLOY)
    scope = PolicyScope(region="eu-west-1", table="kept", stack="Mine")
    statements = make_deployment_policy(grants, scope, "platform")["Statement"]
    resources = {action: part["Resource"] for part in statements for action in part["Action"]}
    assert resources["sts:AssumeRole"][0] == (
        "arn:aws:iam::*:role/cdk-platform-deploy-role-*-eu-west-1"
    )
    assert resources["ssm:GetParameter"] == (
        "arn:aws:ssm:eu-west-1:*:parameter/cdk-bootstrap/platform/version"
    )
    assert resources["dynamodb:UpdateTable"] == "arn:aws:dynamodb:eu-west-1:*:table/kept"
    assert resources["sns:Subscribe"] == "arn:aws:sns:eu-west-1:*:Mine-*"


def test_generated_names_of_a_long_stack_name_are_shortened() -> None:
    """CloudFormation shortens the stack's name in them, but not the names of the template."""
    scope = PolicyScope(stack="a-stack-with-a-name-of-thirty-")
    [queues] = [
        part["Resource"]
        for part in policy_of(EXECUTION, scope)["Statement"]
        if "sqs:CreateQueue" in part["Action"]
    ]
    assert "arn:aws:sqs:*:*:a-stack-with-a-name-*-*" in queues


def arn_of(call: Call, region: str) -> str:
    """Returns the ARN of the resource of a call, as IAM compares it with a policy."""
    names = ("TopicArn", "ResourceArn", "SecretId", "Name", "StackName", "TableName")
    name = next(call.params[key] for key in names if key in call.params)
    kind = {
        "cloudformation": f"stack/{name}/1",
        "dynamodb": f"table/{name}",
        "secretsmanager": f"secret:{name}-Ab12Cd",
        "ssm": f"parameter{name}",
    }
    if name.startswith("arn:"):
        return str(name)
    return f"arn:aws:{call.service}:{region}:{ACCOUNT}:{kind[call.service]}"


@pytest.fixture
def deployments() -> Iterator[AwsCalls]:
    """The calls of a first deployment, and of one with another region, table and channel."""
    channels = {**default_channels(), "slack": ChannelConfig("slack", "sageaudit/channel/slack")}
    flags = Flags(
        is_interactive=False,
        assume_yes=True,
        secrets={"slack": "https://hooks.slack.com/services/T/B/not-a-real-one"},
        alarms_to=("ops@example.com",),
        notices_to=(),
    )
    members = MemberAccounts(regions=(FAR,))
    with mock_aws():
        session = boto3.Session(region_name=HOME)
        formation = session.client("cloudformation")
        formation.create_stack(StackName="SageAudit", TemplateBody=STACK)
        session.client("ssm").put_parameter(
            Name=f"/cdk-bootstrap/{DEFAULT_QUALIFIER}/version", Value="21", Type="String"
        )
        kept = new_table(session.client("dynamodb"))
        session.client("dynamodb").update_table(
            TableName=kept, StreamSpecification={"StreamEnabled": False}
        )
        create_forwarding(session, (ACCOUNT, HOME), Settings(), [LEFT])
        outputs = deploy._outputs(formation, "SageAudit") or {}

        def outputs_with_a_region(client: Any, stack: str) -> dict[str, str]:
            client.describe_stacks(StackName=stack)
            return {**outputs, MEMBER_REGIONS: LEFT}

        key = session.client("kms").create_key()["KeyMetadata"]["Arn"]
        contexts: tuple[dict[str, Any], ...] = ({}, {"kms_key_arn": key, "tags": {"team": "ml"}})
        with aws_calls() as calls, mock.patch.object(deploy, "_outputs", outputs_with_a_region):
            # The second one replaces the secret, and gives secrets another key and tag.
            for context in contexts:
                policy, whole = Policy(channels=channels, members=members), cdk_context() | context
                with mock.patch.object(deploy, "cdk_context", lambda whole=whole: whole):
                    deploy.deploy(session, lambda *_: None, flags, policy)
            adopt_table(session.client("dynamodb"), kept)
        yield calls


def test_who_deploys_may_do_exactly_what_make_deploy_calls(deployments: AwsCalls) -> None:
    granted = {
        action
        for action in actions_of(policy_of(DEPLOY, members=True))
        if not action.startswith((*OF_MEMBERS, "kms:"))
    }
    assert deployments.names - FREE == granted - OF_THE_CDK_CLI


def test_each_call_of_make_deploy_is_on_a_granted_resource(deployments: AwsCalls) -> None:
    """The names of tables are those of the test's stack."""
    policy = policy_of(DEPLOY, PolicyScope(table="*"), members=True)
    granted = [
        (action, resource)
        for statement in policy["Statement"]
        for action in statement["Action"]
        for resource in (
            [statement["Resource"]]
            if isinstance(statement["Resource"], str)
            else statement["Resource"]
        )
    ]
    assert [
        (call.name, arn_of(call, HOME))
        for call in deployments.log
        if call.name not in FREE
        and not any(
            call.name == action and fnmatchcase(arn_of(call, HOME), resource)
            for action, resource in granted
        )
    ] == []
