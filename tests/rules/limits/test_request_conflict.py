from __future__ import annotations

from tests.fakes.planned import LATER, asked, told
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "request-conflict"
IMAGE, NAME = "AlgorithmSpecification.TrainingImage", "AlgorithmSpecification.AlgorithmName"
GROUPS = [{"InstanceGroupName": "a", "InstanceType": "ml.m5.xlarge", "InstanceCount": 1}]


test_cases = cases(
    RULE,
    "An image or a name but not both. One of them is needed.",
    row(finds("…both…"), {NAME: "mine"}),
    row(finds("…neither…"), {IMAGE: None}),
    row(CLEAR, {IMAGE: None, NAME: "mine"}),
    "A value that is known later counts as set. The image of a plan that builds it.",
    row(CLEAR, {IMAGE: LATER}),
    "Instances are asked for in one way. None is no way, and groups beside a type are two.",
    row(finds("…no instance type…"), {"ResourceConfig.InstanceType": None}),
    row(finds("…InstanceType and InstanceGroups…"), {"ResourceConfig.InstanceGroups": GROUPS}),
    "A serverless job needs none of them. AWS chooses.",
    row("not applicable: …", {"ServerlessJobConfig": {"BaseModelArn": "arn:aws:x"}, IMAGE: None}),
    ask=asked,
)  # fmt: skip


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
