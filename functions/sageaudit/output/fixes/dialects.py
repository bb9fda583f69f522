"""A finding's fix as text to paste, for the SageMaker SDKs and boto3.

Each snippet contains only what changes. A comment names a parameter without an argument there.
Values are always on one line, since names may be hostile: characters that do not print (control
characters, marks that reverse a line) are escaped; all others stay readable.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal, get_args

from sageaudit.domain.audit.finding_document import FixDocument
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.text import fix_code

Dialect = Literal["sdk-v3", "sdk-v2", "boto3"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
_WIDTH = 88
_INDENT = "    "
_BEYOND_16_BITS = 0xFFFF
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_BRACKETS = {fix_code.MAPPING: ("{", "}"), fix_code.LIST: ("[", "]")}


def fix_text(kind: str, fix: Sequence[FixDocument], dialect: Dialect) -> str:
    """The fix as source code that parses on its own; empty when there is none.

    `kind` is a JobKind's value.
    """
    job_kind = JobKind(kind)
    rows: list[fix_code.ParameterRow] = []
    comments: list[str] = []
    for parameter in fix:
        row, comment = _row(job_kind, parameter, dialect)
        rows += [row] if row else []
        comments += [f"# {comment}"] if comment else []
    snippets = [_opened(root, inner, 0, 0) for root, inner in fix_code.grouped(rows)]
    return "\n".join([*snippets, *dict.fromkeys(comments)])


def _row(
    kind: JobKind, fix: FixDocument, dialect: Dialect
) -> tuple[fix_code.ParameterRow | None, str | None]:
    """The parameter's row, or None with a comment that says why; a row may have a comment too."""
    mapped = fix_code.mapped_parameter(kind, fix["parameter"])
    new = fix["new"]
    if mapped is None:
        return None, f"no argument: {_as_comment(fix)}"
    if dialect == "boto3":
        value = _in_request(mapped, new)
        return fix_code.ParameterRow(fix_code.request_way(kind, mapped), value, new is None), None
    text = mapped.names.v3 if dialect == "sdk-v3" else mapped.names.v2
    if text is None:
        return None, f"no argument: {_as_comment(fix)}"
    if new is None and text in fix_code.ALWAYS_SENT:
        return None, f"no argument: {_as_comment(fix)} (the SDK always sends {text.split()[-1]})"
    sdk_way, note = fix_code.way(text, mapped.user_names), fix_code.NOTES.get(text)
    instead = fix_code.WRITTEN.get(text, {})
    if (new is None or isinstance(new, str)) and new in instead:
        return fix_code.ParameterRow(sdk_way, instead[new], removed=False), note
    value = _in_request(mapped, new) if mapped.pattern.startswith("Environment.") else new
    return fix_code.ParameterRow(sdk_way, value, new is None), note


def _in_request(mapped: fix_code.MappedParameter, value: Any) -> Any:
    """The value as the request takes it: maps of the request contain strings only."""
    if value is None or fix_code.TEXT_MAPS.isdisjoint(mapped.pattern.split(".")[:-1]):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _as_comment(fix: FixDocument) -> str:
    path = _one_line(fix["parameter"])
    return f"remove {path}" if fix["new"] is None else f"{path} = {_python(fix['new'])}"


def _opened(
    step: fix_code.WayStep, rows: list[fix_code.ParameterRow], depth: int, begins: int
) -> str:
    """The call, list or mapping of a step; `begins` is its column on the line."""
    items = [_before(step, fix_code.WayStep(step.label)) + _python(step.name)] if step.label else []
    for inner, rest in fix_code.grouped(rows):
        name = _before(step, inner)
        if inner.opens:
            items.append(name + _opened(inner, rest, depth + 1, len(name)))
        elif rest[-1].removed:
            items.append(f"# remove {name.rstrip('=: ')}")
        else:
            items.append(name + _python(rest[-1].value))
    opening, closing = _BRACKETS.get(step.opens, (f"{step.opens}(", ")"))
    line = f"{opening}{', '.join(items)}{closing}"
    plain = not any(item.startswith("#") or "\n" in item for item in items)
    if plain and len(_INDENT) * depth + begins + len(line) < _WIDTH:
        return line
    body = [item if item.startswith("#") else f"{item}," for item in items]
    return "\n".join([opening, textwrap.indent("\n".join(body), _INDENT), closing])


def _before(parent: fix_code.WayStep, step: fix_code.WayStep) -> str:
    """The text before a value: its key, its argument's name, or nothing in a list."""
    if parent.opens == fix_code.LIST:
        return ""
    return f"{_python(step.name)}: " if parent.opens == fix_code.MAPPING else f"{step.name}="


def _python(value: Any) -> str:
    """The value as a Python literal."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    if isinstance(value, int | float) and math.isfinite(value):
        return repr(value)
    written = (
        f"\\{char}" if char in '"\\' else char if char.isprintable() else _escape(char)
        for char in str(value)
    )
    return f'"{"".join(written)}"'


def _one_line(text: str) -> str:
    """The text for a comment: characters that do not print are escaped."""
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    """Half of a surrogate pair, which is no character, is replaced."""
    code = ord(_REPLACEMENT if "\ud800" <= char <= "\udfff" else char)
    return f"\\U{code:08x}" if code > _BEYOND_16_BITS else f"\\u{code:04x}"
