import json

import pytest

from sageaudit.domain.request.definitions import MAX_CHARACTERS, parse_definition
from sageaudit.errors import MalformedData

DEFINITION: dict[str, object] = {"Steps": []}
TEXT = json.dumps(DEFINITION)


@pytest.mark.parametrize(
    "value",
    [
        DEFINITION,
        TEXT,
        {"Fn::Sub": TEXT},
        {"Fn::Sub": [TEXT, {"A": "b"}]},
        {"Fn::Join": ["", ['{"Steps"', ": []}"]]},
        {"Fn::ToJsonString": DEFINITION},
    ],
)
def test_a_definition_is_an_object_a_text_or_a_function_around_it(value: object) -> None:
    """As the API, the CDK, SAM and CloudFormation write it."""
    assert parse_definition(value) == DEFINITION


def test_what_cloudformation_fills_in_is_a_placeholder() -> None:
    """Also a number, which has no quotes."""
    joined = {
        "Fn::Join": ["", ['{"Count": ', {"Ref": "Count"}, ', "Arn": "a:', {"Ref": "P"}, '"}']]
    }
    assert parse_definition(joined) == {"Count": "${later}", "Arn": "a:${later}"}
    assert parse_definition({"Fn::Sub": '{"Counts": [${A}, ${B}]}'}) == {"Counts": ["${A}", "${B}"]}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        ("[" * 100_000, "is not JSON"),
        (3, "is not known yet, or not an object"),
        ({"Fn::GetAtt": ["A", "B"]}, "is not known yet, or not an object"),
        (" " * (MAX_CHARACTERS + 1), "has 1,048,577 characters, and AWS takes 1,048,576 at most"),
    ],
)
def test_what_is_no_definition_is_named(value: object, reason: str) -> None:
    """In words that follow the name of its resource."""
    with pytest.raises(MalformedData, match=f"^its definition {reason}$"):
        parse_definition(value)
