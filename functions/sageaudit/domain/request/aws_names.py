"""Reads a request whose keys and types are those of another tool, by AWS's service model.

Terraform, boto3 wrappers and CloudTrail write AWS's names as `instance_type` or `instanceType`.
Terraform writes an object as a list of one, and tags as a map; the SageMaker operator for
Kubernetes writes maps as lists. CloudFormation takes numbers and switches as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sageaudit.domain.nearest import nearest_name
from sageaudit.domain.request.placeholders import JSONPATH_ENDING
from sageaudit.domain.request.request import UnknownValue
from sageaudit.domain.request.validity import ApiModel

_SWITCHES = {"true": True, "false": False}
_MAX_DIGITS = 18


def plain_name(key: object) -> str:
    """Returns a key as all naming styles have it: in lower case, without underscores."""
    return str(key).removesuffix(JSONPATH_ENDING).replace("_", "").lower()


class AwsNames(Struct, frozen=True):
    """Renames the keys of a request to AWS's parameters, and gives numbers their type.

    `left_out`: collects a sentence for each key that is not a parameter; None: such keys are the
    tool's own. `omitted_prefix`: a prefix of AWS's names that the tool omits.
    """

    model: ApiModel
    left_out: list[str] | None = None
    omitted_prefix: str = ""

    def structure(self, shape: str, values: Mapping[str, Any], place: str = "") -> dict[str, Any]:
        """Returns an object of a shape of the model, without empty values.

        A parameter that a misspelled key probably means is an UnknownValue.
        """
        members = self.model.members(shape)
        name_by_plain_name = {plain_name(name): name for name in members}
        body: dict[str, Any] = {}
        misspelled: dict[str, UnknownValue] = {}
        for key, item in values.items():
            name = name_by_plain_name.get(plain_name(key)) or name_by_plain_name.get(
                plain_name(self.omitted_prefix) + plain_name(key)
            )
            if name is not None:
                value = self._value(members[name]["shape"], item, f"{place}{key}.")
                if value is not None:
                    body[name] = value
            elif self.left_out is not None:
                suggestion = nearest_name(str(key), members)
                hint = f" (did you mean {suggestion}?)" if suggestion else ""
                self.left_out.append(
                    f"{place}{key} is not a parameter that AWS knows{hint}: it is left out"
                )
                if suggestion:
                    misspelled[suggestion] = UnknownValue(f"{key} may mean it")
        return misspelled | body

    def _value(self, shape: str, value: Any, place: str) -> Any:
        """Returns a value in the form that AWS's API takes; None if it is empty."""
        spec = self.model.shapes.get(shape, {})
        kind = spec.get("type")
        if kind == "structure" and isinstance(value, list) and len(value) <= 1:
            value = value[0] if value else None
        if kind == "structure" and isinstance(value, Mapping):
            return self.structure(shape, value, place)
        if kind == "list" and isinstance(value, Mapping) and spec["member"]["shape"] == "Tag":
            return [{"Key": key, "Value": tag} for key, tag in value.items()]
        if kind == "list" and isinstance(value, list):
            return [self._value(spec["member"]["shape"], item, place) for item in value] or None
        if kind == "map" and isinstance(value, list):
            return _map_of_pairs(value)
        if isinstance(value, str):
            return _typed(kind, value)
        return value


def _map_of_pairs(items: list[Any]) -> Any:
    """Returns a map that is written as a list of objects with name and value."""
    if not all(isinstance(item, Mapping) and {"name", "value"} <= item.keys() for item in items):
        return items
    return {str(item["name"]): item["value"] for item in items}


def _typed(kind: str | None, value: str) -> object:
    """Returns a text as the number or switch that the model asks for; None if it is empty."""
    if kind in {"integer", "long"} and value.isdecimal() and len(value) <= _MAX_DIGITS:
        return int(value)
    if kind == "boolean":
        return _SWITCHES.get(value.lower(), value)
    return value or None
