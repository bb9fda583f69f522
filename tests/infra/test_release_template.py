"""The templates of a release: what CloudFormation takes without the CDK."""

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from infra import release_template
from infra.names import TAG
from local.stack import adapt_to_moto, quiet_templates, stub_asset
from sageaudit.workflows.pack import TEMPLATE_CHANNELS
from tests.infra.reading import of_type, read

BUCKET, STACK = "our-bucket", "Mine"
MAX_BYTES = 1_000_000
"""CloudFormation's limit for a template in S3."""


@pytest.fixture(params=TEMPLATE_CHANNELS)
def released(request: pytest.FixtureRequest, templates: Path) -> dict[str, Any]:
    """Returns one template of a release."""
    template: dict[str, Any] = read(templates, request.param)
    return template


def test_it_needs_no_bootstrap_and_fits_into_a_bucket(released: dict[str, Any]) -> None:
    """The rule and the parameter of the CDK's bootstrap are left out."""
    assert released.keys() == {"Description", "Outputs", "Parameters", "Resources"}
    assert "BootstrapVersion" not in released["Parameters"]
    text = release_template.to_text(released)
    assert "cdk-hnb659fds" not in text
    assert json.loads(text) == released
    assert len(text) < MAX_BYTES
    assert released["Description"].endswith("(sageaudit 1.2.3)")


def test_its_code_is_the_asset_of_the_parameters(released: dict[str, Any]) -> None:
    """Only these two have no default."""
    codes = [row["Code"] for row in of_type(released, "AWS::Lambda::Function").values()]
    assert codes == [{"S3Bucket": {"Ref": "AssetBucket"}, "S3Key": {"Ref": "AssetKey"}}] * 6
    required = {name for name, row in released["Parameters"].items() if "Default" not in row}
    assert required == {"AssetBucket", "AssetKey"}


def test_it_has_the_alarm_of_budgets(released: dict[str, Any]) -> None:
    """A packed policy may have budgets."""
    alarms = of_type(released, "AWS::CloudWatch::Alarm")
    assert sum("BudgetsFailing" in name for name in alarms) == 1


def test_it_keeps_the_table_and_names_no_partition_region_or_stack(
    released: dict[str, Any],
) -> None:
    """So it can be deployed under every name, in each region and partition."""
    [table_id] = of_type(released, "AWS::DynamoDB::Table")
    table = released["Resources"][table_id]
    assert table["DeletionPolicy"] == "RetainExceptOnCreate"
    assert "arn:aws" not in json.dumps(released)
    all_tags = [row.get("Properties", {}).get("Tags") for row in released["Resources"].values()]
    used = [tags for tags in all_tags if tags]
    assert used == [[{"Key": TAG, "Value": {"Ref": "AWS::StackName"}}]] * len(used)


def test_only_the_digest_follows_the_parameters_of_time(released: dict[str, Any]) -> None:
    """Sweep and watch keep their own times."""
    times = {
        json.dumps([row[key] for key in ("ScheduleExpression", "ScheduleExpressionTimezone")])
        for row in of_type(released, "AWS::Scheduler::Schedule").values()
    }
    assert times == {
        '["cron(2/15 * * * ? *)", "UTC"]',
        '["cron(9/15 * * * ? *)", "UTC"]',
        '[{"Ref": "DigestSchedule"}, {"Ref": "DigestTimezone"}]',
    }


def test_cloudformation_creates_it_from_a_bucket_and_takes_another_asset(templates: Path) -> None:
    """As `aws cloudformation deploy --s3-bucket` does: by a change set."""
    text = adapt_to_moto(json.dumps(read(templates, "sageaudit-slack.template.json")))
    with mock_aws(), quiet_templates():
        s3, formation = boto3.client("s3"), boto3.client("cloudformation")
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="template", Body=text)
        sizes = []
        for kind, key in (("CREATE", "a.zip"), ("UPDATE", "bc.zip")):
            s3.put_object(Bucket=BUCKET, Key=key, Body=stub_asset(key))
            formation.create_change_set(
                StackName=STACK,
                ChangeSetName=kind,
                ChangeSetType=kind,
                TemplateURL=f"https://{BUCKET}.s3.us-east-1.amazonaws.com/template",
                Parameters=[
                    {"ParameterKey": "AssetBucket", "ParameterValue": BUCKET},
                    {"ParameterKey": "AssetKey", "ParameterValue": key},
                ],
                Capabilities=["CAPABILITY_NAMED_IAM"],
            )
            formation.execute_change_set(StackName=STACK, ChangeSetName=kind)
            functions = boto3.client("lambda").list_functions()["Functions"]
            sizes.append({function["CodeSize"] for function in functions})
        [stack] = formation.describe_stacks(StackName=STACK)["Stacks"]
        assert stack["StackStatus"] == "UPDATE_COMPLETE"
        assert len(functions) == 6
        assert sizes == [{len(stub_asset("a.zip"))}, {len(stub_asset("bc.zip"))}]
