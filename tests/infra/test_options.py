"""The template with every setting that is off by default: each reaches all that it concerns."""

from pathlib import Path
from typing import Any

import pytest

from infra import functions
from infra.options import KEY_PERMISSIONS
from infra.settings import read_settings
from tests.infra.reading import CDK_CONTEXT, Template, of_type, only_resource, read, text
from tools.combinations import STRICT

SETTINGS = read_settings(STRICT)
KEY = SETTINGS.kms_key_arn


@pytest.fixture(scope="module")
def strict(templates: Path) -> Template:
    """The stack with every service of channels, a report, an organization, and every setting."""
    parsed: Template = read(templates, "strict.json")
    return parsed


def roles_statements(template: Template) -> dict[str, list[dict[str, Any]]]:
    """The statements of each role, from all of its policies, by its logical id."""
    found: dict[str, list[dict[str, Any]]] = {}
    for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        for policy in of_type(template, kind).values():
            for role in policy["Roles"]:
                found.setdefault(role["Ref"], []).extend(policy["PolicyDocument"]["Statement"])
    return found


def actions(statement: dict[str, Any]) -> set[str]:
    """The actions of a statement."""
    listed = statement["Action"]
    return {listed} if isinstance(listed, str) else set(listed)


def test_all_that_stores_data_is_encrypted_with_the_key(strict: Template) -> None:
    """Queues with dead letters, both topics, the logs and the table."""
    for kind, name in {
        "AWS::SQS::Queue": "KmsMasterKeyId",
        "AWS::SNS::Topic": "KmsMasterKeyId",
        "AWS::Logs::LogGroup": "KmsKeyId",
    }.items():
        found = of_type(strict, kind)
        assert found
        assert {properties.get(name) for properties in found.values()} == {KEY}, kind
    assert not [
        q for q in of_type(strict, "AWS::SQS::Queue").values() if "SqsManagedSseEnabled" in q
    ]
    assert only_resource(strict, "AWS::DynamoDB::Table")["SSESpecification"] == {
        "SSEEnabled": True,
        "SSEType": "KMS",
        "KMSMasterKeyId": KEY,
    }
    digest = only_resource(strict, "AWS::Lambda::Function", "DigestFunction")
    assert digest["Environment"]["Variables"]["REPORT_KEY_ARN"] == KEY


def test_each_role_may_use_the_key_through_the_services_that_it_calls(strict: Template) -> None:
    """And through no other: the queue's or table's service asks KMS in the caller's name."""
    for role, statements in roles_statements(strict).items():
        called = {
            action.partition(":")[0]
            for statement in statements
            if statement["Effect"] == "Allow"
            for action in actions(statement)
        } & KEY_PERMISSIONS.keys()
        granted = {
            text(statement["Condition"]["StringLike"]["kms:ViaService"]): actions(statement)
            for statement in statements
            if statement["Resource"] == KEY and "Condition" in statement
        }
        assert granted == {
            f"{service}.${{AWS::Region}}.*": set(KEY_PERMISSIONS[service]) for service in called
        }, role


@pytest.mark.parametrize(
    ("role", "services"),
    [
        ("AuditRole", {"dynamodb", "secretsmanager", "sqs"}),
        ("NotifyRole", {"dynamodb", "sqs"}),
        ("DeliverRole", {"dynamodb", "secretsmanager", "sns", "sqs"}),
        ("SweepRole", {"dynamodb", "sqs"}),
        ("DigestRole", {"dynamodb", "s3", "sqs"}),
        ("SweepScheduleRole", {"sqs"}),
        ("DigestScheduleRole", {"sqs"}),
    ],
)
def test_a_role_may_decrypt_what_its_function_reads(
    strict: Template, role: str, services: set[str]
) -> None:
    """A schedule's role, and a function's for its failed invocations, write dead letters."""
    [statements] = [found for name, found in roles_statements(strict).items() if name[:-8] == role]
    through = {
        text(statement["Condition"]["StringLike"]["kms:ViaService"]).partition(".")[0]
        for statement in statements
        if statement["Resource"] == KEY and "Condition" in statement
    }
    assert through == services


def test_every_function_is_in_the_subnets_and_lambda_may_connect_it(strict: Template) -> None:
    """Its own code may not touch the interfaces, which Lambda makes with the function's role."""
    assert SETTINGS.network is not None
    by_role = roles_statements(strict)
    for name, function in of_type(strict, "AWS::Lambda::Function").items():
        assert function["VpcConfig"] == {
            "SubnetIds": list(SETTINGS.network.subnet_ids),
            "SecurityGroupIds": list(SETTINGS.network.security_group_ids),
        }
        statements = by_role[function["Role"]["Fn::GetAtt"][0]]
        on_interfaces = [s for s in statements if any(a.startswith("ec2:") for a in actions(s))]
        assert [s["Effect"] for s in on_interfaces] == ["Allow", "Deny"], name
        assert all(actions(s) == set(functions.MANAGE_INTERFACES) for s in on_interfaces)
        denied_to = on_interfaces[1]["Condition"]["ArnLike"]["lambda:SourceFunctionArn"]
        assert text(denied_to).endswith(":function:${AWS::StackName}-*")


def test_every_role_has_the_boundary_and_the_path(strict: Template) -> None:
    """Those of schedules too."""
    for role in of_type(strict, "AWS::IAM::Role").values():
        assert role["Path"] == "/audit/"
        assert text(role["PermissionsBoundary"]) == (
            "arn:${AWS::Partition}:iam::${AWS::AccountId}:policy/audit/boundary"
        )


def test_every_resource_with_tags_has_those_of_the_settings(strict: Template) -> None:
    """In addition to the stack's own."""
    for name, resource in strict["Resources"].items():
        if tags := resource.get("Properties", {}).get("Tags"):
            given = {tag["Key"]: tag["Value"] for tag in tags}
            assert given == {"sageaudit": "SageAudit", "team": "ml-platform", "stage": "prod"}, name


def test_functions_and_logs_are_as_the_settings_say(strict: Template) -> None:
    """Runtime, architecture, days of logs; without the dashboard the saved queries stay."""
    for function in of_type(strict, "AWS::Lambda::Function").values():
        assert (function["Runtime"], function["Architectures"]) == ("python3.14", ["x86_64"])
    logs = of_type(strict, "AWS::Logs::LogGroup").values()
    assert {group["RetentionInDays"] for group in logs} == {400}
    assert not of_type(strict, "AWS::CloudWatch::Dashboard")
    assert of_type(strict, "AWS::Logs::QueryDefinition")


def test_by_default_none_of_it_is_there(template: Template) -> None:
    """No key but SNS's own, no subnet, no path, no boundary."""
    words = str(template)
    for word in (
        "kms:",
        "ec2:",
        "VpcConfig",
        "KmsKeyId",
        "'Path'",
        "PermissionsBoundary",
        "SSEType",
    ):
        assert word not in words
    assert of_type(template, "AWS::CloudWatch::Dashboard")


def test_the_cdks_own_context_decides_about_bootstrap_and_boundary(templates: Path) -> None:
    """As the page says: another qualifier, and a boundary that the CDK itself sets."""
    made = read(templates, "cdk-context.json")
    default = made["Parameters"]["BootstrapVersion"]["Default"]
    assert default == f"/cdk-bootstrap/{CDK_CONTEXT['@aws-cdk/core:bootstrapQualifier']}/version"
    for role in of_type(made, "AWS::IAM::Role").values():
        assert "policy/of-the-cdk" in str(role["PermissionsBoundary"])
