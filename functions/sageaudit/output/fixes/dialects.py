"""A finding's fix as text to paste, for the API, the SageMaker SDKs, boto3 and Terraform.

Each snippet contains only what changes. A comment names a parameter without an argument there.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Literal, get_args

from sageaudit.domain.audit.finding_document import FixDocument
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.fixes.literals import hcl, json_value, one_line, python
from sageaudit.output.fixes.names import ALWAYS_SENT, NOTES, TEXT_MAPS, WRITTEN
from sageaudit.output.fixes.ways import (
    LIST,
    MAPPING,
    MappedParameter,
    ParameterRow,
    WayStep,
    grouped,
    json_path,
    mapped_parameter,
    request_way,
    terraform_way,
    way,
)

Dialect = Literal["api", "sdk-v3", "sdk-v2", "boto3", "terraform"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
_WIDTH = 88
_INDENT = "    "
_BRACKETS = {MAPPING: ("{", "}"), LIST: ("[", "]")}


def fix_text(kind: str, fix: Sequence[FixDocument], dialect: Dialect) -> str:
    """The fix as text; empty when there is none. `kind` is a JobKind's value.

    `api` gives one JSON object from JSONPath to value (null: remove it); the others give source
    code fragments that parse on their own.
    """
    job_kind = JobKind(kind)
    if dialect == "api":
        return _api(job_kind, fix)
    rows: list[ParameterRow] = []
    comments: list[str] = []
    for parameter in fix:
        row, comment = _row(job_kind, parameter, dialect)
        rows += [row] if row else []
        comments += [f"# {comment}"] if comment else []
    if dialect == "terraform":
        snippets = (
            [_block('resource "aws_sagemaker_training_job" "this"', _body(rows))] if rows else []
        )
    else:
        snippets = [
            _opened(WayStep(root.name, root.name), inner, 0, 0) for root, inner in grouped(rows)
        ]
    return "\n".join([*snippets, *dict.fromkeys(comments)])


def _api(kind: JobKind, fix: Sequence[FixDocument]) -> str:
    pairs = []
    for parameter in fix:
        mapped = mapped_parameter(kind, parameter["parameter"])
        path = json_path(mapped) if mapped else f"$.{parameter['parameter']}"
        value = _in_request(mapped, parameter["new"])
        pairs.append(f"  {json_value(path)}: {json_value(value)}")
    return "\n".join(["{", ",\n".join(pairs), "}"]) if pairs else ""


def _row(
    kind: JobKind, fix: FixDocument, dialect: Dialect
) -> tuple[ParameterRow | None, str | None]:
    """The parameter's row, or None with a comment that says why; a row may have a comment too."""
    mapped = mapped_parameter(kind, fix["parameter"])
    new = fix["new"]
    if dialect == "terraform" and kind is not JobKind.TRAINING:
        return None, f"Terraform supports training jobs only: {_as_comment(fix)}"
    if mapped is None:
        return None, f"no argument: {_as_comment(fix)}"
    if dialect in {"boto3", "terraform"}:
        steps = request_way(kind, mapped) if dialect == "boto3" else terraform_way(mapped)
        if steps is None:
            return None, f"no argument: {_as_comment(fix)}"
        return ParameterRow(steps, _in_request(mapped, new), new is None), None
    text = mapped.names.v3 if dialect == "sdk-v3" else mapped.names.v2
    if text is None:
        return None, f"no argument: {_as_comment(fix)}"
    if new is None and text in ALWAYS_SENT:
        return None, f"no argument: {_as_comment(fix)} (the SDK always sends {text.split()[-1]})"
    sdk_way, note, instead = way(text, mapped.user_names), NOTES.get(text), WRITTEN.get(text, {})
    if (new is None or isinstance(new, str)) and new in instead:
        return ParameterRow(sdk_way, instead[new], removed=False), note
    value = _in_request(mapped, new) if mapped.pattern.startswith("Environment.") else new
    return ParameterRow(sdk_way, value, new is None), note


def _in_request(mapped: MappedParameter | None, value: Any) -> Any:
    """The value as the request takes it: maps of the request contain strings only."""
    if value is None or mapped is None or TEXT_MAPS.isdisjoint(mapped.pattern.split(".")[:-1]):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _as_comment(fix: FixDocument) -> str:
    path = one_line(fix["parameter"])
    return f"remove {path}" if fix["new"] is None else f"{path} = {json_value(fix['new'])}"


def _opened(step: WayStep, rows: list[ParameterRow], depth: int, begins: int) -> str:
    """The call, list or mapping of a step; `begins` is its column on the line."""
    items = [_before(step, WayStep(step.label)) + python(step.name)] if step.label else []
    for inner, rest in grouped(rows):
        name = _before(step, inner)
        if inner.opens:
            items.append(name + _opened(inner, rest, depth + 1, len(name)))
        elif rest[-1].removed:
            items.append(f"# remove {name.rstrip('=: ')}")
        else:
            items.append(name + python(rest[-1].value))
    opening, closing = _BRACKETS.get(step.opens, (f"{step.opens}(", ")"))
    line = f"{opening}{', '.join(items)}{closing}"
    plain = not any(item.startswith("#") or "\n" in item for item in items)
    if plain and len(_INDENT) * depth + begins + len(line) < _WIDTH:
        return line
    body = [item if item.startswith("#") else f"{item}," for item in items]
    return "\n".join([opening, textwrap.indent("\n".join(body), _INDENT), closing])


def _before(parent: WayStep, step: WayStep) -> str:
    """The text before a value: its key, its argument's name, or nothing in a list."""
    if parent.opens == LIST:
        return ""
    return f"{python(step.name)}: " if parent.opens == MAPPING else f"{step.name}="


def _body(rows: Iterable[ParameterRow]) -> list[str]:
    lines: list[str] = []
    for step, inner in grouped(rows):
        if step.opens == LIST:
            lines += [
                _block(step.name, [f"{one.label} = {hcl(one.name)}", *_body(rest)])
                for one, rest in grouped(inner)
            ]
        elif step.opens == MAPPING:
            pairs = [_argument(hcl(one.name), rest[-1]) for one, rest in grouped(inner)]
            lines.append(_block(f"{step.name} =", pairs))
        elif step.opens:
            lines.append(_block(step.name, _body(inner)))
        else:
            lines.append(_argument(step.name, inner[-1]))
    return lines


def _argument(name: str, row: ParameterRow) -> str:
    return f"# remove {name}" if row.removed else f"{name} = {hcl(row.value)}"


def _block(head: str, body: list[str]) -> str:
    return "\n".join([f"{head} {{", textwrap.indent("\n".join(body), "  "), "}"])
