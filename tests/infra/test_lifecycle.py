"""A stack is removed and made again with its table, a table is restored, two stacks do not meet."""

import json
import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import boto3
import pytest
from moto import mock_aws

from infra.kept_table import NotAHistoryTable, adopt_table, protect_table
from local.aws import LocalAws
from local.demo import POLICY
from local.stack import STACK
from sageaudit.adapters.files.policy_file import load_policy
from sageaudit.adapters.history.dynamo import keys as schema
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from tests.adapters.history import tables
from tests.adapters.history.tables import new_table
from tests.infra.reading import KEPT_STREAM, KEPT_TABLE, Template, of_type, read
from tests.integration.whole_flow import a_failed_job, renamed, scene

UNTAGGED = {
    "AWS::CloudWatch::Dashboard",
    "AWS::Events::EventBusPolicy",
    "AWS::IAM::Policy",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Logs::QueryDefinition",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::QueuePolicy",
    "AWS::Scheduler::Schedule",
}
"""Types that CloudFormation gives no tags."""


def test_a_stack_that_is_deployed_again_has_the_history_of_the_one_before(templates: Path) -> None:
    """Deployed, audited, removed, deployed again with the old table: it goes on where it was."""
    first = a_failed_job()
    later = renamed(first, "another-job", later=timedelta(days=3))
    with scene(first.ended_at) as current_scene:
        current_scene.aws.end_job(first)
        current_scene.aws.advance()
        assert current_scene.headlines()
        formation = current_scene.aws.session.client("cloudformation")
        dynamodb = current_scene.aws.session.client("dynamodb")
        table = current_scene.aws.physical_id("HistoryTable")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # moto names again what it does not create
            formation.delete_stack(StackName=STACK)
        assert not current_scene.aws.session.client("lambda").list_functions()["Functions"]
        posted = len(current_scene.slack.posts)
        text = (templates / "adopted.json").read_text(encoding="utf-8")
        text = text.replace(KEPT_STREAM, adopt_table(dynamodb, table)).replace(KEPT_TABLE, table)
        again = LocalAws(
            current_scene.aws.clock,
            policy=load_policy(POLICY),
            transport=current_scene.slack.transport,
            on_step=lambda _: None,
            sweeps=False,
            template=text,
        )
        again.end_job(later)
        again.advance()
        assert [name for name in again.resources if name.startswith("HistoryTable")] == []
        history = DynamoHistory(dynamodb, table)
        for job in (first, later):
            audit = history.audit(job.key)
            assert audit is not None
            assert (audit["job"]["name"], audit["audit"]["version"]) == (job.name, 1)
            assert history.audit(job.key, 2) is None
        # Of the first job nobody is told again, though the stream is read from its start.
        assert [first.name in headline for headline in current_scene.headlines()[posted:]] == [
            False
        ]


@pytest.fixture
def dynamodb() -> Iterator[Any]:
    """An account."""
    with mock_aws():
        yield boto3.client("dynamodb")


def test_a_restored_table_becomes_the_history_with_all_that_a_new_one_has(dynamodb: Any) -> None:
    """Point-in-time recovery brings items, keys and indexes back, and none of the settings."""
    table = new_table(dynamodb)
    protect_table(dynamodb, table, {"sageaudit": "SageAudit"})
    dynamodb.restore_table_to_point_in_time(
        SourceTableName=table, TargetTableName="restored", UseLatestRestorableTime=True
    )
    for _ in range(2):  # the second time there is nothing to do
        stream = adopt_table(dynamodb, "restored")
        protect_table(dynamodb, "restored", {"sageaudit": "SageAudit", "team": "ml"})
    found = dynamodb.describe_table(TableName="restored")["Table"]
    assert found["LatestStreamArn"] == stream
    assert found["StreamSpecification"]["StreamViewType"] == "NEW_IMAGE"
    assert found["DeletionProtectionEnabled"]
    expiry = dynamodb.describe_time_to_live(TableName="restored")["TimeToLiveDescription"]
    assert expiry == {"TimeToLiveStatus": "ENABLED", "AttributeName": schema.TTL_ATTRIBUTE}
    backups = dynamodb.describe_continuous_backups(TableName="restored")
    recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"
    tags = dynamodb.list_tags_of_resource(ResourceArn=found["TableArn"])["Tags"]
    # moto keeps each repeat
    assert {(tag["Key"], tag["Value"]) for tag in tags} == {
        ("sageaudit", "SageAudit"),
        ("team", "ml"),
    }


def test_a_table_that_is_none_of_ours_is_not_adopted(dynamodb: Any) -> None:
    """Nothing of it is changed."""
    key = {"AttributeName": "id", "AttributeType": "S"}
    dynamodb.create_table(
        TableName="orders",
        AttributeDefinitions=[key],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    narrow = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["kind"]}
    with mock.patch.object(tables, "PROJECTION", narrow):
        narrow_table = new_table(dynamodb)
    wrong = (
        ("orders", "keys and indexes"),
        (narrow_table, "keys and indexes"),
        ("nothing", "no table"),
    )
    for name, why in wrong:
        with pytest.raises(NotAHistoryTable, match=why):
            adopt_table(dynamodb, name)
    assert "StreamSpecification" not in dynamodb.describe_table(TableName="orders")["Table"]


def test_every_name_that_two_stacks_could_share_is_made_of_the_stacks(templates: Path) -> None:
    """So that a second one in an account meets nothing of the first."""
    template = read(templates, "organization.json")
    named = {
        key: value
        for resource in template["Resources"].values()
        for key, value in resource.get("Properties", {}).items()
        if key in {"RoleName", "Name", "FunctionName", "QueueName", "TableName", "TopicName"}
        or key in {"AlarmName", "DashboardName", "LogGroupName", "BucketName"}
        if resource["Type"]
        not in {"AWS::Lambda::EventSourceMapping", "AWS::Lambda::EventInvokeConfig"}
    }
    assert set(named) >= {"RoleName", "Name"}
    assert [value for value in named.values() if "AWS::StackName" not in json.dumps(value)] == []
    for function in of_type(template, "AWS::Lambda::Function").values():
        variables = function["Environment"]["Variables"]
        assert variables["POWERTOOLS_METRICS_NAMESPACE"] == {"Ref": "AWS::StackName"}
    assert set(read(templates, "tuned.json")["Resources"]) == set(
        read(templates, "plain.json")["Resources"]
    )


def test_everything_that_can_have_a_tag_has_the_stacks(templates: Path) -> None:
    """Cost Explorer then shows what the auditor itself costs."""
    assert untagged(read(templates, "organization.json"), "SageAudit") <= UNTAGGED
    assert untagged(read(templates, "tuned.json"), "Mine") <= UNTAGGED


def untagged(template: Template, stack: str) -> set[str]:
    """The types of what has no such tag."""
    tag = {"Key": "sageaudit", "Value": stack}
    return {
        resource["Type"]
        for resource in template["Resources"].values()
        if tag not in listed(resource.get("Properties", {}).get("Tags", []))
    }


def listed(tags: Any) -> list[Any]:
    """Tags as a list of keys and values; some types have a map."""
    if isinstance(tags, dict):
        return [{"Key": key, "Value": value} for key, value in tags.items()]
    return list(tags)


def test_a_real_template_checks_the_version_of_the_bootstrap(templates: Path) -> None:
    """The local AWS alone goes without."""
    deployed = read(templates, "assembly/SageAudit.template.json")
    assert "CheckBootstrapVersion" in deployed["Rules"]
    assert "BootstrapVersion" in deployed["Parameters"]


def test_concurrency_and_tracing_are_settings(templates: Path) -> None:
    """Five audits at once leave room in a new account, which has ten; none is reserved."""
    for name, at_once, traced in (("plain", 5, False), ("tuned", 20, True)):
        template = read(templates, f"{name}.json")
        functions = of_type(template, "AWS::Lambda::Function").values()
        assert not [f for f in functions if "ReservedConcurrentExecutions" in f]
        tracing = [f.get("TracingConfig") == {"Mode": "Active"} for f in functions]
        assert tracing == [traced] * len(functions)
        mappings = of_type(template, "AWS::Lambda::EventSourceMapping")
        [audit] = [m for key, m in mappings.items() if key.startswith("AuditSource")]
        assert audit["ScalingConfig"]["MaximumConcurrency"] == at_once
