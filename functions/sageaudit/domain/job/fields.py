"""Reads one field of an AWS answer, and defines how fields are stored.

An absent or null field is None. An invalid value raises MalformedData. boto3 may have parsed the
values already. Otherwise they come from the CLI's JSON (ISO 8601 or epoch numbers) or from
EventBridge (epoch milliseconds, as integers or digits).

A shape says which fields of an answer are stored, and how. `job_fields` has the complete shape.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeGuard, TypeVar

from sageaudit.domain.moments import YEARS_TEXT, as_utc, has_valid_year
from sageaudit.errors import MalformedData

_MILLISECONDS_FROM = 100_000_000_000
"""Epoch numbers of at least this size are milliseconds, and smaller ones are seconds. Seconds reach
it in the year 5138; milliseconds passed it in 1973."""
_MAX_NUMBER = 10**9
"""No job has more seconds, instances or GB than this; sums of larger numbers would overflow."""
_UNSET_BY_GO = "0001-01-01T00:00:00Z"
"""What Go writes for a time that is not set, and so ACK."""
_DIGITS = re.compile(r"-?\d{1,17}(?:\.\d+)?\Z")

Value = TypeVar("Value")

DERIVED = "Derived"
"""The key of the values that were derived before an answer was stored. AWS has no such key."""
UNKNOWN = "Unknown"
"""Replaces a state that the SDK's service model does not have."""


def nested_reader(
    path: str, read: Callable[[Mapping[str, Any], str], Value]
) -> Callable[[Mapping[str, Any]], Value]:
    """Returns a function that reads the value at a path, such as `OutputDataConfig.KmsKeyId`.

    `read` is a reader of this module, such as `text`.
    """
    *sections, key = path.split(".")

    def read_nested(answer: Mapping[str, Any]) -> Value:
        for name in sections:
            answer = section(answer, name)
        return read(answer, key)

    return read_nested


def _checked_value(answer: Mapping[str, Any], key: str, kind: type, message: str) -> Any:
    """Returns None if absent or null. Raises MalformedData for a value of another type."""
    value = answer.get(key)
    if value is not None and not isinstance(value, kind):
        raise MalformedData(key, message)
    return value


def section(answer: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Returns the object under `key`, an empty one if absent or null."""
    value = answer.get(key)
    if type(value) is dict:  # as usual: the check of an abstract class takes longer
        return value
    return _checked_value(answer, key, Mapping, "is not an object") or {}


def items(answer: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Returns the list of objects under `key`, an empty one if absent or null."""
    value = _checked_value(answer, key, list, "is not a list of objects") or []
    if not all(isinstance(item, Mapping) for item in value):
        raise MalformedData(key, "is not a list of objects")
    return value


def text(answer: Mapping[str, Any], key: str) -> str | None:
    """Returns the string under `key`; None if absent.

    An empty string is None, too, because AWS prints `"KmsKeyId": ""`.
    """
    return _checked_value(answer, key, str, "is not a string") or None


def has_value(answer: Mapping[str, Any], key: str) -> bool:
    """Returns whether there is a value under `key` that is not empty."""
    return bool(answer.get(key))


def flag(answer: Mapping[str, Any], key: str) -> bool:
    """Returns the boolean under `key`; False if absent."""
    return bool(optional_flag(answer, key))


def optional_flag(answer: Mapping[str, Any], key: str) -> bool | None:
    """Returns the boolean under `key`; None if absent."""
    value: bool | None = _checked_value(answer, key, bool, "is not true or false")
    return value


def number(answer: Mapping[str, Any], key: str) -> Decimal | None:
    """Returns the exact number under `key`; None if absent or not finite, such as NaN."""
    value = answer.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise MalformedData(key, "is not a number")
    exact = Decimal(value) if isinstance(value, int) else Decimal(str(value))
    return exact if exact.is_finite() and math.isfinite(float(exact)) else None


def count(answer: Mapping[str, Any], key: str, *, maximum: int = _MAX_NUMBER) -> int | None:
    """Returns the whole number from 0 to `maximum` under `key`; None if absent."""
    value = answer.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise MalformedData(key, "is not a whole number")
    try:
        number = Decimal(str(value))
    except ArithmeticError as error:
        raise MalformedData(key, "is not a whole number") from error
    if not number.is_finite() or not 0 <= number <= maximum:
        raise MalformedData(key, f"is not a whole number from 0 to {maximum}")
    if number != number.to_integral_value():
        raise MalformedData(key, "is not a whole number")
    return int(number)


def time(answer: Mapping[str, Any], key: str) -> datetime | None:
    """Returns the time under `key` in UTC; None if absent.

    A time without an offset is taken as UTC.
    """
    return parsed_time(answer.get(key), key)


def parsed_time(value: object, key: str) -> datetime | None:
    """Returns a time in UTC; None for None, an empty text and Go's unset time.

    `value` is a datetime, epoch seconds or milliseconds (a number or digits), or an ISO 8601 text.
    Raises MalformedData with `key` for any other value.
    """
    if value is None or (isinstance(value, str) and value in {"", _UNSET_BY_GO}):
        return None
    try:
        if isinstance(value, datetime):
            moment = value
        elif _is_epoch(value):
            moment = _from_epoch(float(value))
        elif isinstance(value, str):
            moment = datetime.fromisoformat(value)
        else:
            raise MalformedData(key, "is not a time")
        if not has_valid_year(moment):
            raise MalformedData(key, f"is not a time of {YEARS_TEXT}")
        return as_utc(moment)
    except (ValueError, OverflowError, OSError) as error:
        raise MalformedData(key, "is not a time") from error


def _is_epoch(value: object) -> TypeGuard[int | float | Decimal | str]:
    if isinstance(value, str):
        return _DIGITS.match(value) is not None
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _from_epoch(number: float) -> datetime:
    if not math.isfinite(number):
        raise ValueError("not finite")
    seconds = number / 1000 if abs(number) >= _MILLISECONDS_FROM else number
    return datetime.fromtimestamp(seconds, UTC)


class StoredAs(enum.Enum):
    """How a field is stored.

    A member whose value is a text stores text that users see. The value describes that text.
    """

    COUNT = enum.auto()
    NUMBER = enum.auto()
    FLAG = enum.auto()
    TIME = enum.auto()
    STATE = enum.auto()
    """One of AWS's enumerated words; any other word becomes Unknown."""
    PRESENCE = enum.auto()
    """Only whether there is a value."""
    FAILURE = enum.auto()
    """The known words of a failure message."""
    IMAGE_PULL = enum.auto()
    """Whether the message of a Downloading phase mentions the image."""
    TYPE = "instance type"
    JOB = "name of the job"
    ARN = "ARN of the job, and of what started it"
    IMAGE = "container image without its digest; name of an algorithm"
    MODEL = "name of the model, without times and hashes"
    ADDRESS = "S3 bucket, and whether the address names a version of its data"
    CHANNEL = "name of an input or output"
    GROUP = "name of an instance group"
    METRIC = "name of a metric of the job's code"
    RULE = "name of a Debugger rule"


Paths = Mapping[str, StoredAs]
"""How fields are stored, by path: `InputDataConfig[].ChannelName` is in each item of a list."""
Shape = Mapping[str, "StoredAs | Shape | list[Shape]"]
"""How fields are stored, nested like an answer."""

Read = Callable[[StoredAs, Mapping[str, Any], str], Any]
"""A function that returns the stored form of a field. It takes how the field is stored, its section
and its key."""


def read_fields(answer: Mapping[str, Any], shape: Shape, read: Read) -> dict[str, Any]:
    """Returns the fields of an answer that `shape` has, each as `read` returns it.

    Raises MalformedData for an invalid field.
    """
    stored: dict[str, Any] = {}
    for key, inner in shape.items():
        if answer.get(key) is None:
            if key in answer:
                stored[key] = None
        elif isinstance(inner, StoredAs):
            stored[key] = read(inner, answer, key)
        elif isinstance(inner, list):
            stored[key] = [read_fields(item, inner[0], read) for item in items(answer, key)]
        else:
            stored[key] = read_fields(section(answer, key), inner, read)
    return stored


def nest_paths(*mappings: Paths) -> Shape:
    """Returns the nested shape of these paths.

    Raises ValueError if two mappings store a path in different ways.
    """
    shape: dict[str, Any] = {}
    for paths in mappings:
        for path, nested in paths.items():
            *sections, key = path.split(".")
            place = shape
            for section in sections:
                name = section.removesuffix("[]")
                inner = place.setdefault(name, [{}] if section != name else {})
                place = inner[0] if section != name else inner
            if place.setdefault(key, nested) != nested:
                raise ValueError(f"{path} is stored in two ways")
    return shape


def shown_fields(
    shape: Shape, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], StoredAs]]:
    """Yields the paths of fields whose text users see. In a path, "*" stands for any list index."""
    for key, inner in shape.items():
        if isinstance(inner, StoredAs):
            if isinstance(inner.value, str):
                yield (*path, key), inner
        elif isinstance(inner, list):
            yield from shown_fields(inner[0], (*path, key, "*"))
        else:
            yield from shown_fields(inner, (*path, key))
