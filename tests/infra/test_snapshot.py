"""The committed template: it is the stack's, and the local AWS can create it."""

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from infra.names import PLACEHOLDER_CODE
from infra.template import POLICY
from local.stack import TEMPLATE, adapt_to_moto, stub_asset
from sageaudit.adapters.files.policy_file import load_policy

IGNORED = {
    "AWS::CloudWatch::Alarm",
    "AWS::Logs::QueryDefinition",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::QueuePolicy",
    "AWS::Scheduler::Schedule",
    "AWS::Scheduler::ScheduleGroup",
}
"""What moto's CloudFormation skips. Nothing the flow needs to run locally may join these; the local
AWS reads the schedule's rate from the template."""


@pytest.fixture(scope="module")
def local_stack() -> Iterator[set[str]]:
    """The snapshot, created without delay; gives the types that moto skipped."""
    with mock_aws(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _put_stub_code()
        boto3.client("cloudformation").create_stack(
            StackName="sageaudit",
            TemplateBody=adapt_to_moto(TEMPLATE.read_text(encoding="utf-8")),
            Parameters=[{"ParameterKey": "AuditDelaySeconds", "ParameterValue": "0"}],
            Capabilities=["CAPABILITY_IAM"],
        )
        _keep_moto_from_invoking()
        yield set(re.findall(r"AWS::\w+::\w+", " ".join(str(w.message) for w in caught)))


def test_the_snapshot_is_fresh(templates: Path) -> None:
    """`make golden` rewrites it; the diff is what a deployment would change."""
    fresh = TEMPLATE.read_bytes() == (templates / "snapshot.json").read_bytes()
    assert fresh, "local/template.json is old: run make golden and read the diff"


def test_moto_creates_it_and_skips_only_what_is_known(local_stack: set[str]) -> None:
    """A type that joins those skipped would be missing from the demo unseen."""
    [stack] = boto3.client("cloudformation").describe_stacks(StackName="sageaudit")["Stacks"]
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    assert local_stack == IGNORED


def test_moto_keeps_how_functions_are_fed(local_stack: set[str]) -> None:
    """The local AWS invokes handlers as these say: a queue of each channel, and three others."""
    mappings = boto3.client("lambda").list_event_source_mappings()["EventSourceMappings"]
    assert len(mappings) == 3 + len(load_policy(POLICY).channels)
    [stream] = [m for m in mappings if "dynamodb" in m["EventSourceArn"]]
    assert "AUDIT#" in stream["FilterCriteria"]["Filters"][0]["Pattern"]


@pytest.mark.parametrize(
    ("source", "kind", "field", "status", "reaches"),
    [
        ("aws.sagemaker", "Training Job", "TrainingJobStatus", "Completed", True),
        ("aws.sagemaker", "Processing Job", "ProcessingJobStatus", "Failed", True),
        ("aws.sagemaker", "Transform Job", "TransformJobStatus", "Stopped", True),
        (
            "sageaudit.replay",
            "HyperParameter Tuning Job",
            "HyperParameterTuningJobStatus",
            "Completed",
            True,
        ),
        ("aws.sagemaker", "Training Job", "TrainingJobStatus", "InProgress", False),
        ("aws.sagemaker", "Endpoint", "EndpointStatus", "Failed", False),
        ("someone.else", "Training Job", "TrainingJobStatus", "Completed", False),
    ],
)
def test_the_pattern_lets_ended_jobs_through(
    local_stack: set[str], source: str, kind: str, field: str, status: str, reaches: bool
) -> None:
    """And nothing else of the bus."""
    entry = {
        "Source": source,
        "DetailType": f"SageMaker {kind} State Change",
        "Detail": json.dumps({field: status}),
    }
    boto3.client("events").put_events(Entries=[entry])
    assert len(_receive("FinishedJobs")) == reaches


def _receive(name: str) -> list[Any]:
    sqs = boto3.client("sqs")
    [url] = [
        url for url in sqs.list_queues()["QueueUrls"] if re.search(rf"{name}[0-9A-F]{{8}}-", url)
    ]
    messages: list[Any] = sqs.receive_message(QueueUrl=url).get("Messages", [])
    for message in messages:
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return messages


def _keep_moto_from_invoking() -> None:
    """It would run each function in Docker as soon as a message is there."""
    client = boto3.client("lambda")
    for mapping in client.list_event_source_mappings()["EventSourceMappings"]:
        client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)


def _put_stub_code() -> None:
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=PLACEHOLDER_CODE["S3Bucket"])
    s3.put_object(
        Bucket=PLACEHOLDER_CODE["S3Bucket"], Key=PLACEHOLDER_CODE["S3Key"], Body=stub_asset()
    )
