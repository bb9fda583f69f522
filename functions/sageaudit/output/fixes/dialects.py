"""A finding's fix as text to paste, for the API, the SageMaker SDKs, boto3 and Terraform.

Each snippet contains only what changes. A comment names a parameter without an argument there.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal, get_args

from sageaudit.domain.audit.finding_document import FixDocument
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.fixes import hcl_text, python_text
from sageaudit.output.fixes.literals import json_value, one_line
from sageaudit.output.fixes.names import ALWAYS_SENT, TEXT_MAPS, WRITTEN
from sageaudit.output.fixes.training import NOTES
from sageaudit.output.fixes.ways import (
    MappedParameter,
    ParameterRow,
    json_path,
    mapped_parameter,
    request_way,
    way,
)

Dialect = Literal["api", "sdk-v3", "sdk-v2", "boto3", "terraform"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)


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
        snippets = [hcl_text.resource(rows)] if rows else []
    else:
        snippets = python_text.calls(rows)
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
    if dialect == "boto3":
        return ParameterRow(request_way(kind, mapped), _in_request(mapped, new), new is None), None
    text = _way_text(mapped, dialect)
    if text is None:
        return None, f"no argument: {_as_comment(fix)}"
    if new is None and text in ALWAYS_SENT:
        return None, f"no argument: {_as_comment(fix)} (the SDK always sends {text.split()[-1]})"
    steps = way(text, mapped.user_names)
    instead = WRITTEN.get(text, {})
    if (new is None or isinstance(new, str)) and new in instead:
        return ParameterRow(steps, instead[new], removed=False), NOTES.get(text)
    own = dialect != "terraform" and not mapped.pattern.startswith("Environment.")
    value = new if own else _in_request(mapped, new)
    return ParameterRow(steps, value, new is None), NOTES.get(text)


def _way_text(mapped: MappedParameter, dialect: Dialect) -> str | None:
    names = mapped.names
    return {"sdk-v3": names.v3, "sdk-v2": names.v2, "terraform": names.terraform}[dialect]


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
