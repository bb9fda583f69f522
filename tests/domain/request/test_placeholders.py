import pytest

from sageaudit.domain.request.placeholders import mark_unknown
from sageaudit.domain.request.request import UnknownValue


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"Ref": "Type"}, "CloudFormation"),
        ({"Fn::If": ["Large", 2, 1]}, "CloudFormation"),
        ({"Fn::Transform": {}, "InstanceCount": 1}, "CloudFormation"),
        ({"Get": "Parameters.Type"}, "pipeline"),
        ({"Std:Join": {"Values": []}}, "pipeline"),
        ("{% $states.input.type %}", "Step Functions"),
        ("s3://${Bucket}/x", "placeholder"),
        ("$ROLE", "placeholder"),
        ("{{ params.role }}", "placeholder"),
        ("arn:aws:iam::<account-id>:role/x", "placeholder"),
        ("arn:aws:iam::ACCOUNT_ID:role/x", "placeholder"),
        ("...", "placeholder"),
    ],
)
def test_what_another_tool_fills_in_is_not_known_yet(value: object, reason: str) -> None:
    """The reason names the tool, and does not repeat the value."""
    marked = mark_unknown({"A": [value]})["A"][0]
    assert isinstance(marked, UnknownValue)
    assert reason in marked.reason


@pytest.mark.parametrize(
    "value",
    [
        "s3://bucket/a",
        "a < b",
        "$.input",
        "a{b}",
        "accountant",
        "ACCOUNTING-1",
        "x$y",
        {"Get": 1, "B": 2},
        3,
        None,
    ],
)
def test_other_values_stay(value: object) -> None:
    """A dollar sign alone is no placeholder."""
    assert mark_unknown(value) == value


def test_a_key_of_jsonpath_has_its_ending_removed() -> None:
    """Step Functions sends the parameter without it."""
    marked = mark_unknown({"TrainingJobName.$": "$.name", "RoleArn": "x"})
    assert isinstance(marked["TrainingJobName"], UnknownValue)
    assert marked["RoleArn"] == "x"
