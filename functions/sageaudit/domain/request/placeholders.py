"""Finds the values of a request that another tool fills in before it sends the request.

| tool | form | source |
|---|---|---|
| Step Functions, JSONPath | a key that ends in `.$` | Amazon States Language, Payload Template |
| Step Functions, JSONata | `{% ... %}` | Amazon States Language, JSONata |
| CloudFormation | `Ref`, `Fn::...` | intrinsic function reference |
| SageMaker Pipelines | `Get`, `Std:...` | JSON schema of pipeline definitions |
| templates and examples | `${X}`, `$X`, `{{ X }}`, `<X>`, `...`, YOUR, ACCOUNT | our choice |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sageaudit.domain.request.request import UnknownValue

JSONPATH_ENDING = ".$"
_JSONATA = re.compile(r"\s*\{%.*%\}\s*", re.DOTALL)
_PLACEHOLDER = re.compile(
    r"\$\{|\{\{|<[A-Za-z][\w .:-]*>|\A\$[A-Za-z_]\w*\Z|\A\.\.\.\Z"
    r"|(?<![A-Za-z0-9])(?:YOUR|ACCOUNT)(?![A-Za-z0-9])"
)
_BY_STEP_FUNCTIONS = UnknownValue("Step Functions fills it in")
_BY_CLOUDFORMATION = UnknownValue("CloudFormation fills it in")
_BY_PIPELINE = UnknownValue("its pipeline fills it in")
_BY_TEMPLATE = UnknownValue("it has a placeholder")


def mark_unknown(value: Any) -> Any:
    """Returns a value with an UnknownValue for each part that another tool fills in."""
    if isinstance(value, str):
        return _unknown_text(value) or value
    if isinstance(value, list):
        return [mark_unknown(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    keys = [str(key) for key in value]
    if keys == ["Ref"] or any(key.startswith("Fn::") for key in keys):
        return _BY_CLOUDFORMATION
    if keys == ["Get"] or (len(keys) == 1 and keys[0].startswith("Std:")):
        return _BY_PIPELINE
    return {
        key.removesuffix(JSONPATH_ENDING): _BY_STEP_FUNCTIONS
        if key.endswith(JSONPATH_ENDING)
        else mark_unknown(item)
        for key, item in zip(keys, value.values(), strict=True)
    }


def _unknown_text(value: str) -> UnknownValue | None:
    if _JSONATA.fullmatch(value):
        return _BY_STEP_FUNCTIONS
    return _BY_TEMPLATE if _PLACEHOLDER.search(value) else None
