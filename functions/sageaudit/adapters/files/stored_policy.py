"""The validated policy in the Lambda asset. It is written at synth, and read without loading rules.

The file has the fields of `Policy` as JSON. Decimals and dates are strings, so that they stay
exact.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from itertools import repeat
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import asdict

from sageaudit.domain.moments import parse_day
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import PARSE_ERRORS, BadPolicy

FILE_NAME = "policy.json"
ASSET_PATH = Path(__file__).parents[3] / FILE_NAME
"""The stored policy's path at the root of the Lambda asset, beside the package."""


def load(path: Path | None = None) -> Policy:
    """Reads the policy from the Lambda asset, or from `path`. Raises BadPolicy."""
    path = path or ASSET_PATH
    try:
        return from_text(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadPolicy(f"{path}: cannot be read ({error.strerror})") from error
    except PARSE_ERRORS as error:
        raise BadPolicy(f"{path}: is not a policy that `make synth` wrote") from error


def to_text(policy: Policy) -> str:
    """Returns the policy as one line of JSON."""
    return json.dumps(_to_json_value(policy)) + "\n"


def from_text(text: str) -> Policy:
    """Reads the policy from a text that `to_text` wrote."""
    policy: Policy = _read(json.loads(text), Policy)
    return policy


def _to_json_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _to_json_value(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [_to_json_value(part) for part in value]
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (Decimal, date)):
        return str(value)
    if isinstance(value, Struct):
        return {name: _to_json_value(part) for name, part in asdict(value).items()}
    return value


def _read(value: Any, kind: Any) -> Any:
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if origin is UnionType:
        return None if value is None else _read(value, arguments[0])
    if origin is Mapping:
        return {key: _read(part, arguments[1]) for key, part in value.items()}
    if origin is tuple:
        part_kinds = repeat(arguments[0], len(value)) if arguments[-1] is Ellipsis else arguments
        return tuple(map(_read, value, part_kinds))
    if origin in {frozenset, Decimal} or (isinstance(origin, type) and issubclass(origin, Enum)):
        return origin(value)
    if origin is date:
        return parse_day(value)
    if isinstance(origin, type) and issubclass(origin, Struct):
        types = get_type_hints(origin)
        return origin(**{name: _read(value[name], types[name]) for name in types})
    return value
