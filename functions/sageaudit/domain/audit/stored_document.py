"""Checks that a stored document has the keys and types of its classes, before it is used.

A word or a time is text in a document. `Annotated[str, Severity]` says that the text is one of
these words, and `Annotated[str, Moment]` that it is a time.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from msgspec import convert, defstruct

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.money import check_figure


class Figure:
    """Checks a number of a document. Raises TypeError or ValueError if it is not a figure."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, Decimal):
            raise TypeError(f"{value} is not a decimal")
        check_figure(value)


def check_document(value: object) -> AuditDocument:
    """Returns the value if it is an audit's document. Raises ValueError.

    Unknown keys are accepted.
    """
    unchecked = [value]
    while unchecked:
        document = unchecked.pop()
        checked = convert(document, _checked_form(AuditDocument), dec_hook=_read_text)
        unchecked += checked.children or ()
    return cast("AuditDocument", value)


def _read_text(form: type[Any], text: object) -> object:
    return form(text)


@cache
def _checked_form(shape: type[Any]) -> Any:
    """Returns a Struct with the same fields, whose words and times have their own types."""
    hints = get_type_hints(shape, include_extras=True)
    return defstruct(shape.__name__, [(name, _checked_type(hint)) for name, hint in hints.items()])


def _checked_type(hint: Any) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is AuditDocument:  # a child, which `check_document` checks by itself
        return dict[str, Any]
    if is_typeddict(hint):
        return _checked_form(hint)
    if hint is Decimal:
        return Figure
    if origin is Annotated:
        return arguments[1]
    if origin in {Union, UnionType}:
        return Union[tuple(map(_checked_type, arguments))]  # noqa: UP007 - made at run time
    if origin in {list, dict}:
        return origin[tuple(map(_checked_type, arguments))]
    return hint
