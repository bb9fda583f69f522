"""Whether a stored document has the form of an audit: keys, types, words and times.

A document is read as it is; only where that fails is its form checked. So a corrupt one is
`Malformed`, and a defect of this program stays one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.bill.finding import Bucket, Confidence, Severity
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import UNREADABLE, Malformed

Place = tuple[str, str]
"""A class of the document, and a key of it."""

WORDS: Mapping[Place, type[StrEnum]] = {
    ("AuditDocument", "judged"): Judged,
    ("JobDocument", "kind"): JobKind,
    ("JobDocument", "purchase"): Purchase,
    ("FindingDocument", "severity"): Severity,
    ("FindingDocument", "confidence"): Confidence,
    ("FindingDocument", "bucket"): Bucket,
}
"""The words of keys that are typed as plain text."""
FORMATS: Mapping[Place, str] = {
    **{("JobDocument", key): "date-time" for key in ("created_at", "started_at", "ended_at")},
    ("AuditDocumentHead", "due_at"): "date-time",
    ("ExemptDocument", "until"): "date",
}
"""The formats of texts, as JSON Schema names them."""
_YEARS = range(1970, 2200)
_MOST = Decimal("1e15")
"""No amount, quantity or count of seconds of a job reaches it, and sums of more would overflow."""
_keys = cache(get_type_hints)
_WHOLES: Mapping[object, str] = {list: "a list", dict: "an object"}
_NAMES: Mapping[object, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    Decimal: "a number",
    NoneType: "null",
}


@contextmanager
def reading(*documents: AuditDocument | None) -> Iterator[None]:
    """Raises Malformed where what is done with stored documents fails for the form of one."""
    try:
        yield
    except UNREADABLE as error:
        for document in documents:
            if document is not None and (fault := fault_in(document)):
                raise Malformed("document", f"cannot be read: {fault}") from error
        raise


def fault_in(document: object) -> str | None:
    """The first key whose value an audit cannot have, and why; None for a document of this form."""
    return next(_faults(document, AuditDocument, "document"), None)


def _faults(value: object, shape: Any, name: str) -> Iterator[str]:
    origin, inside = get_origin(shape), get_args(shape)
    if shape is Any:
        return
    if is_typeddict(shape):
        yield from _of_object(value, shape, name)
    elif origin in {Union, UnionType}:
        if all(any(_faults(value, one, name)) for one in inside):
            kinds = [one for one in inside if one is not NoneType]
            yield next(_faults(value, kinds[0], name))
    elif origin in _WHOLES:
        yield from _of_parts(value, origin, inside[-1], name)
    elif origin is Literal:
        if not isinstance(value, str) or value not in inside:
            yield f"{name} is none of its words"
    elif not _is_of(value, shape):
        yield f"{name} is not {_NAMES[shape]}"


def _of_parts(value: object, whole: Any, shape: Any, name: str) -> Iterator[str]:
    if not isinstance(value, whole):
        yield f"{name} is not {_WHOLES[whole]}"
        return
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in parts:
        yield from _faults(item, shape, f"{name}.{key}")


def _of_object(value: object, shape: Any, name: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{name} is not an object"
        return
    for key, kind in _keys(shape).items():
        at, place = f"{name}.{key}", (shape.__name__, key)
        if key not in value:
            yield f"{at} is not there"
            continue
        yield from _faults(value[key], kind, at)
        if isinstance(value[key], str):
            yield from _of_text(value[key], place, at)


def _of_text(text: str, place: Place, name: str) -> Iterator[str]:
    if (words := WORDS.get(place)) and text not in {word.value for word in words}:
        yield f"{name} is none of its words"
    if (form := FORMATS.get(place)) and not _is_moment(text, form):
        yield f"{name} is not a {form}"


def _is_of(value: object, shape: object) -> bool:
    if shape is Decimal:
        number = isinstance(value, int | Decimal) and not isinstance(value, bool)
        return number and abs(Decimal(str(value))) < _MOST
    if shape is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MOST
    return isinstance(value, shape)  # type: ignore[arg-type]


def _is_moment(text: str, form: str) -> bool:
    try:
        if form == "date":
            return bool(date.fromisoformat(text))
        moment = datetime.fromisoformat(text)
    except ValueError:
        return False
    return moment.tzinfo is not None and moment.year in _YEARS
