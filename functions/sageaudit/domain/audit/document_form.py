"""Whether a stored value has the form of an audit: a history may have been changed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any, TypeGuard, get_args, get_origin, get_type_hints, is_typeddict

from sageaudit.domain.audit.document import AuditDocument


def is_audit(value: object) -> TypeGuard[AuditDocument]:
    """Whether it has every key of an audit, each with a value of its type."""
    return _fits(value, AuditDocument)


def _fits(value: object, hint: Any) -> bool:
    if hint is Any:
        return True
    if is_typeddict(hint):
        return isinstance(value, dict) and all(
            name in value and _fits(value[name], inner) for name, inner in _keys(hint).items()
        )
    origin, inner = get_origin(hint), get_args(hint)
    if origin is list:
        return isinstance(value, list) and all(_fits(one, inner[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(one, inner[1]) for one in value.values())
    if inner:
        return any(_fits(value, one) for one in inner)
    if hint is Decimal:
        return isinstance(value, (Decimal, int)) and not isinstance(value, bool)
    return isinstance(value, hint if hint in _PLAIN else str)


_PLAIN = frozenset({bool, int, str, type(None)})
"""Other classes are enumerations, whose words are text."""


@cache
def _keys(form: Any) -> Mapping[str, Any]:
    return get_type_hints(form)
