"""Compares a request with AWS's service model: unknown, missing and impossible parameters.

The model is botocore's: shapes by name, each with its type, members, required members and limits. A
value that is still unknown is never wrong or missing.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

from msgspec import Struct

from sageaudit.domain.nearest import nearest_name
from sageaudit.domain.request.request import Path, UnknownValue

_READ_ONLY = "read-only and isn't accepted"
"""In the model's documentation, this text marks members that only Describe returns."""
_MAX_NAMED_VALUES = 6
"""An enumeration's values are listed in a sentence up to this number. Above it, only the nearest
value is named."""
_INSTANCE = re.compile(r"ml\.[a-z]+\d+[a-z]*(?:-[a-z0-9]+)?\.([a-z0-9]+)")
_MAX_MATCHED_LENGTH = 500
"""Longer values (in characters) are not matched with the model's pattern."""
_DOCUMENTED_LIMITS: Mapping[tuple[str, str], Mapping[str, int]] = {
    ("StoppingCondition", "MaxRuntimeInSeconds"): {"min": 1, "max": 28 * 86_400},
    ("ResourceConfig", "InstanceCount"): {"min": 1},
    ("InstanceGroup", "InstanceCount"): {"min": 1},
    ("CreateTransformJobRequest", "MaxPayloadInMB"): {"min": 0, "max": 100},
}
"""Limits that the model has only in its texts ("the maximum value is 28 days"), by shape and
parameter."""
_TYPES: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "structure": ("an object", Mapping),
    "map": ("an object", Mapping),
    "list": ("a list", list),
    "string": ("a string", str),
    "boolean": ("true or false", bool),
    "integer": ("a whole number", int),
    "long": ("a whole number", int),
    "float": ("a number", (int, float, Decimal)),
    "double": ("a number", (int, float, Decimal)),
}
"""The name in sentences, and the Python types of values, by type of the model."""


class Fault(enum.StrEnum):
    """What is wrong with a parameter. The values are the words in reports."""

    UNKNOWN = "unknown-parameter"
    MISSING = "missing-parameter"
    TYPE = "wrong-type"
    LIMITS = "outside-limits"
    VALUE = "unknown-value"


class Problem(Struct, frozen=True):
    """One parameter that AWS would refuse.

    `suggestion` is the name or value that was probably meant.
    """

    fault: Fault
    path: Path
    sentence: str
    suggestion: str | None = None

    @property
    def unjudged_paths(self) -> tuple[Path, ...]:
        """The paths that no rule may judge.

        These are the refused path and, for an unknown parameter, the path that was probably meant.
        """
        if self.fault is not Fault.UNKNOWN or self.suggestion is None:
            return (self.path,)
        return self.path, (*self.path[:-1], self.suggestion)


class ApiModel(Struct, frozen=True):
    """AWS's service model. `version` is the version of the SDK that contains it."""

    shapes: Mapping[str, Mapping[str, Any]]
    version: str

    def members(self, shape: str) -> Mapping[str, Any]:
        """Returns the parameters of a structure, by name."""
        members: Mapping[str, Any] = self.shapes.get(shape, {}).get("members", {})
        return members

    def problems(
        self, shape: str, body: Mapping[str, Any], optional: Iterable[str] = ()
    ) -> tuple[Problem, ...]:
        """Returns the problems for which AWS would refuse a request of this shape.

        The parameters in `optional` may be missing, because they are set later.
        """
        filled_later = {(key,) for key in optional}
        all_problems = self._structure(shape, body, ())
        return tuple(
            problem
            for problem in all_problems
            if problem.fault is not Fault.MISSING or problem.path not in filled_later
        )

    def _value(self, shape_name: str, value: object, place: Path) -> Iterator[Problem]:
        shape = self.shapes.get(shape_name)
        if shape is None or isinstance(value, UnknownValue) or value is None:
            return
        type_text, python_types = _TYPES.get(shape["type"], ("", object))
        has_right_type = isinstance(value, python_types) and (
            isinstance(value, bool) is (shape["type"] == "boolean") or not type_text
        )
        if not has_right_type:
            yield Problem(
                Fault.TYPE, place, f"must be {type_text}", self._as_text(shape, value, place)
            )
        elif isinstance(value, Mapping) and shape["type"] == "structure":
            yield from self._structure(shape_name, value, place)
        elif isinstance(value, Mapping):
            yield from _limits(shape, len(value), place, f"has {len(value)} entries")
            for key, item in value.items():
                yield from self._value(shape["value"]["shape"], item, (*place, key))
        elif isinstance(value, list):
            yield from _limits(shape, len(value), place, f"has {len(value)} items")
            # items beyond the maximum are refused with the list
            for index, item in enumerate(value[: shape.get("max")]):
                yield from self._value(shape["member"]["shape"], item, (*place, index))
        elif isinstance(value, str):
            yield from self._text(shape, value, place)
        elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            yield from _limits(shape, value, place, f"is {value}")

    def _as_text(self, shape: Mapping[str, Any], value: object, place: Path) -> str | None:
        """Returns the JSON text of a number or boolean if AWS takes it in place of the value."""
        if shape["type"] != "string" or not isinstance(value, bool | int | float | Decimal):
            return None
        text = str(value).lower()
        return None if any(self._text(shape, text, place)) else text

    def _structure(
        self, shape_name: str, value: Mapping[str, Any], place: Path
    ) -> Iterator[Problem]:
        shape = self.shapes[shape_name]
        members = shape["members"]
        misspelled = set()
        for key, item in value.items():
            if key not in members:
                suggestion = nearest_name(key, list(members))
                misspelled.add(suggestion)
                hint = f": did you mean {suggestion}?" if suggestion else ""
                sentence = f"is not a parameter that AWS knows{hint}"
                yield Problem(Fault.UNKNOWN, (*place, key), sentence, suggestion)
            elif _READ_ONLY in members[key].get("documentation", ""):
                sentence = "is in Describe answers only: AWS does not take it in a request"
                yield Problem(Fault.UNKNOWN, (*place, key), sentence)
            else:
                yield from self._value(members[key]["shape"], item, (*place, key))
                yield from _check_documented_limits(shape_name, key, item, (*place, key))
        for key in shape.get("required", ()):
            if value.get(key) is None and key not in misspelled:
                yield Problem(Fault.MISSING, (*place, key), "is required, and is missing")

    def _text(self, shape: Mapping[str, Any], value: str, place: Path) -> Iterator[Problem]:
        allowed_values = shape.get("enum")
        if allowed_values and value not in allowed_values:
            if not _is_newer_type(value, allowed_values):
                yield _unknown_enum_value(value, allowed_values, place)
        elif problems := [*_limits(shape, len(value), place, f"has {len(value)} characters")]:
            yield from problems
        elif (pattern := shape.get("pattern")) and not _matches_pattern(pattern, value):
            sentence = f"does not have the form that AWS asks for ({pattern})"
            yield Problem(Fault.LIMITS, place, sentence)


def _unknown_enum_value(value: str, allowed_values: Sequence[str], place: Path) -> Problem:
    suggestion = nearest_name(value, allowed_values)
    if len(allowed_values) <= _MAX_NAMED_VALUES:
        hint = f": it must be {_join_with_or(allowed_values)}"
    else:
        hint = f": did you mean {suggestion}?" if suggestion else ""
    return Problem(Fault.VALUE, place, f"has a value that AWS does not know{hint}", suggestion)


def _is_newer_type(value: str, allowed_values: Sequence[str]) -> bool:
    """Returns True for an instance type of a known size, which may be newer than the model."""
    match = _INSTANCE.fullmatch(value)
    sizes = {name.rpartition(".")[2] for name in allowed_values}
    return match is not None and allowed_values[0].startswith("ml.") and match[1] in sizes


def _check_documented_limits(shape: str, key: str, value: object, place: Path) -> Iterator[Problem]:
    limits = _DOCUMENTED_LIMITS.get((shape, key))
    if limits is None or not isinstance(value, int) or isinstance(value, bool):
        return
    if value > 0 or (value == 0 and limits["min"] > 0 and key == "InstanceCount"):
        yield from _limits(limits, value, place, f"is {value}")


def _limits(
    limits: Mapping[str, Any], number: float | Decimal, place: Path, number_text: str
) -> Iterator[Problem]:
    """Yields a problem if the number is outside AWS's limits.

    `place`: the parameter's path. `number_text`: the number in a sentence, such as `is 5`.
    """
    if accepted_range := _allowed_range(limits, number):
        yield Problem(Fault.LIMITS, place, f"{number_text}: {accepted_range}")


def _allowed_range(limits: Mapping[str, Any], number: float | Decimal) -> str | None:
    """Returns the range that AWS takes, for people; None if the number is inside it."""
    minimum, maximum = limits.get("min"), limits.get("max")
    is_below = minimum is not None and number < minimum
    if not is_below and (maximum is None or number <= maximum):
        return None
    if maximum is None:
        return f"AWS takes {minimum} or more"
    return (
        f"AWS takes {maximum} at most" if minimum is None else f"AWS takes {minimum} to {maximum}"
    )


@cache
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except re.error:  # some have Unicode classes that Python does not know
        return None


def _matches_pattern(pattern: str, value: str) -> bool:
    """Returns whether the value matches. True if the pattern cannot be tried."""
    compiled = _compiled(pattern)
    if compiled is None or len(value) > _MAX_MATCHED_LENGTH:
        return True
    return compiled.fullmatch(value) is not None


def _join_with_or(values: Sequence[str]) -> str:
    if len(values) == 1:
        return values[0]
    return f"{', '.join(values[:-1])} or {values[-1]}"
