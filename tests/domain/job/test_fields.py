from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.job import fields
from sageaudit.errors import MalformedData

# 2025-11-20T09:00:00Z is 1763629200 seconds after the epoch
NINE = datetime(2025, 11, 20, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        NINE,
        datetime(2025, 11, 20, 9, 0),  # noqa: DTZ001 - naive on purpose
        datetime(2025, 11, 20, 11, 0, tzinfo=timezone(timedelta(hours=2))),
        *(1763629200, 1763629200.0, Decimal(1763629200), 1763629200000),
        *("1763629200", "1763629200000", "1763629200.000"),
        *("2025-11-20T09:00:00Z", "2025-11-20T09:00:00+00:00", "2025-11-20T11:00:00.000+02:00"),
        *("2025-11-20T09:00:00", "2025-11-20 09:00:00"),
    ],
    ids=str,
)
def test_a_time_is_read_in_every_form_that_aws_prints(value: object) -> None:
    """A datetime, epoch seconds or milliseconds, digits and ISO 8601 mean the same time in UTC."""
    moment = fields.parsed_time(value, "CreationTime")
    assert moment == NINE
    assert moment.tzinfo is UTC


def test_an_absent_time_is_none_and_milliseconds_keep_their_fraction() -> None:
    """1763632620265 is 265 ms after the full second."""
    moment = fields.parsed_time(1763632620265, "t")
    assert moment == datetime(2025, 11, 20, 9, 57, 0, 265000, tzinfo=UTC)
    assert fields.parsed_time(None, "t") is fields.parsed_time("", "t") is None


@pytest.mark.parametrize(
    "value",
    [True, [], {}, "yesterday", "12:00", float("nan"), float("inf"), 10**400, "9" * 17, -(10**17)],
    ids=lambda value: str(value)[:12],
)
def test_an_invalid_time_is_refused_with_its_key(value: object) -> None:
    """The error has the key of the invalid value."""
    with pytest.raises(MalformedData, match="CreationTime") as caught:
        fields.parsed_time(value, "CreationTime")
    assert caught.value.key == "CreationTime"


@pytest.mark.parametrize(
    ("value", "expected"), [(None, None), (0, 0), (7, 7), (7.0, 7), ("7", 7), (Decimal(7), 7)]
)
def test_a_count_is_a_whole_number(value: object, expected: int | None) -> None:
    """In the forms that JSON, DynamoDB or a person may write."""
    assert fields.count({"n": value}, "n") == expected


@pytest.mark.parametrize(
    "value",
    [True, -1, 1.5, "x", "NaN", float("inf"), [], {}, 10**400, "1e999999", 10**18],
    ids=lambda value: str(value)[:12],
)
def test_an_invalid_count_is_refused(value: object) -> None:
    """Negative numbers, fractions, other types, and numbers so large that their sums would
    overflow.
    """
    with pytest.raises(MalformedData, match=r"^n "):
        fields.count({"n": value}, "n")


OTHER_TYPES: dict[Any, list[Any]] = {
    fields.section: [[], "x"],
    fields.items: [{}, [1], "ab"],
    fields.text: [5, []],
    fields.flag: ["true", 1],
    fields.optional_flag: ["yes"],
    fields.number: [True, "0.5", [], {}],
}


@pytest.mark.parametrize(
    ("read", "value"), [(read, value) for read, wrong in OTHER_TYPES.items() for value in wrong]
)
def test_a_field_of_another_type_is_refused_with_its_key(read: Any, value: object) -> None:
    """For example an object in place of a text."""
    with pytest.raises(MalformedData, match="VpcConfig"):
        read({"VpcConfig": value}, "VpcConfig")


def test_null_is_absent() -> None:
    """EventBridge sends null for absent values."""
    answer = {"a": None}
    assert fields.section(answer, "a") == {}
    assert fields.items(answer, "a") == []
    assert fields.text(answer, "a") is None
    assert fields.flag(answer, "a") is False
    assert fields.optional_flag(answer, "a") is fields.optional_flag({}, "a") is None
    assert [fields.optional_flag({"a": value}, "a") for value in (True, False)] == [True, False]
    assert fields.text({"KmsKeyId": ""}, "KmsKeyId") is None
    assert [fields.has_value({"a": value}, "a") for value in (None, "", "x")] == [
        False,
        False,
        True,
    ]
    assert fields.nested_reader("b.c", fields.text)({"b": {"c": "x"}}) == "x"
    assert fields.nested_reader("b.c", fields.text)({}) is None


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (None, None),
        (3, Decimal(3)),
        (0.1, Decimal("0.1")),
        (Decimal("-2.50"), Decimal("-2.50")),
        (float("nan"), None),
        (float("-inf"), None),
        (Decimal("sNaN"), None),
        (10**400, None),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_number_is_exact_and_finite(value: object, exact: Decimal | None) -> None:
    """A value that is not finite counts as absent."""
    assert fields.number({"Value": value}, "Value") == exact
