"""Reads the definition of a pipeline or state machine that a request, plan or template contains.

It is an object, JSON in a string, or a function of CloudFormation around such a string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sageaudit.errors import MalformedData

MAX_CHARACTERS = 2**20
"""The most characters of a definition. Source: AWS's service models, PipelineDefinition of
sagemaker and Definition of stepfunctions."""
_SUBJECT = "its definition"
_LATER = "${later}"
"""Stands in a text for a part that CloudFormation fills in."""
_BARE_PLACEHOLDER = re.compile(r"(?<=[:,\[])(\s*)(\$\{[^{}\"]*\})(?=\s*[,\]}])")


def parse_definition(value: object) -> Mapping[str, Any]:
    """Returns a definition as an object.

    Parts that CloudFormation fills in are placeholders such as `${Name}`. Raises MalformedData.
    """
    if isinstance(value, Mapping) and "Fn::ToJsonString" in value:
        value = value["Fn::ToJsonString"]
    definition_text = render_text(value)
    if definition_text is None:
        if isinstance(value, Mapping) and not any(str(key).startswith("Fn::") for key in value):
            return value
        raise MalformedData(_SUBJECT, "is not known yet, or not an object")
    if len(definition_text) > MAX_CHARACTERS:
        raise MalformedData(
            _SUBJECT,
            f"has {len(definition_text):,} characters, and AWS takes {MAX_CHARACTERS:,} at most",
        )
    definition = _parse_json(definition_text)
    if not isinstance(definition, Mapping):
        raise MalformedData(_SUBJECT, "is not a JSON object")
    return definition


def _parse_json(definition_text: str) -> object:
    """Returns the value of a JSON text.

    A number that is filled in later is no JSON until its placeholder has quotes.
    """
    try:
        return json.loads(definition_text)
    except (ValueError, RecursionError):
        quoted_text = _BARE_PLACEHOLDER.sub(r'\1"\2"', definition_text)
    try:
        return json.loads(quoted_text)
    except (ValueError, RecursionError) as error:
        raise MalformedData(_SUBJECT, "is not JSON") from error


def render_text(value: object) -> str | None:
    """Returns a text, with placeholders for what Fn::Sub or Fn::Join fills in; None if it is none
    of these.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    [(function, argument)] = value.items()
    arguments = argument if isinstance(argument, list) and argument else [argument]
    if function == "Fn::Sub" and isinstance(arguments[0], str):
        return arguments[0]
    if function == "Fn::Join" and isinstance(arguments[-1], list) and len(arguments) > 1:
        texts = (render_text(part) for part in arguments[-1])
        return str(arguments[0]).join(_LATER if text is None else text for text in texts)
    return None
