from __future__ import annotations

from sageaudit.domain.bill.finding import Clear, NotApplicable
from tests.fakes.planned import LATER, said, told

RULE = "request-conflict"
IMAGE, NAME = "AlgorithmSpecification.TrainingImage", "AlgorithmSpecification.AlgorithmName"
GROUPS = [{"InstanceGroupName": "a", "InstanceType": "ml.m5.xlarge", "InstanceCount": 1}]


def test_an_image_or_a_name_but_not_both() -> None:
    """One of them is needed."""
    assert "both" in told(RULE, {NAME: "mine"}).found.summary
    assert "neither" in told(RULE, {IMAGE: None}).found.summary
    assert said(RULE, {IMAGE: None, NAME: "mine"}) == Clear()


def test_a_value_that_is_known_later_counts_as_set() -> None:
    """The image of a plan that builds it."""
    assert said(RULE, {IMAGE: LATER}) == Clear()


def test_instances_are_asked_for_in_one_way() -> None:
    """None is no way, and groups beside a type are two."""
    assert "no instance type" in told(RULE, {"ResourceConfig.InstanceType": None}).found.summary
    both = told(RULE, {"ResourceConfig.InstanceGroups": GROUPS})
    assert "InstanceType and InstanceGroups" in both.found.summary


def test_all_conflicts_are_told_at_once() -> None:
    """Each with its own fix."""
    channel = {
        "ChannelName": "train",
        "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x",
                                        "InstanceGroupNames": ["b"]}},
    }  # fmt: skip
    finding = told(
        RULE,
        {
            "ResourceConfig.InstanceType": None,
            "ResourceConfig.InstanceGroups": GROUPS,
            "ResourceConfig.KeepAlivePeriodInSeconds": 60,
            "InputDataConfig": [channel],
        },
    )
    assert [fix.path.rpartition(".")[2] for fix in finding.found.fix] == [
        "KeepAlivePeriodInSeconds",
        "InstanceGroupNames[0]",
    ]


def test_a_serverless_job_needs_none_of_them() -> None:
    """AWS chooses."""
    serverless = {"ServerlessJobConfig": {"BaseModelArn": "arn:aws:x"}, IMAGE: None}
    assert isinstance(said(RULE, serverless), NotApplicable)
