"""A finding's fix as text to paste: in the words of the API, the SDKs, boto3 and Terraform.

Each snippet has exactly what changes. What a dialect has no argument for is said in a comment.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal, get_args

from sageaudit.domain.audit.document import FixDocument
from sageaudit.domain.job.kinds import JobKind
from sageaudit.text.fixes import hcl_text, python_text
from sageaudit.text.fixes.literals import json_value, one_line
from sageaudit.text.fixes.names import ALWAYS_SENT, TEXT_MAPS, WRITTEN
from sageaudit.text.fixes.training import NOTES
from sageaudit.text.fixes.ways import Known, Row, json_path, known, request_way, way

Dialect = Literal["api", "sdk-v3", "sdk-v2", "boto3", "terraform"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)


def fix_text(kind: str, fix: Sequence[FixDocument], dialect: Dialect) -> str:
    """The fix of a job of one kind; empty where there is none.

    `api` is one JSON object of JSONPath and value (null: remove it); the others are fragments of
    source that parse by themselves.
    """
    job_kind = JobKind(kind)
    if dialect == "api":
        return _api(job_kind, fix)
    rows: list[Row] = []
    comments: list[str] = []
    for one in fix:
        row, comment = _row(job_kind, one, dialect)
        rows += [row] if row else []
        comments += [f"# {comment}"] if comment else []
    if dialect == "terraform":
        snippets = [hcl_text.resource(rows)] if rows else []
    else:
        snippets = python_text.calls(rows)
    return "\n".join([*snippets, *dict.fromkeys(comments)])


def _api(kind: JobKind, fix: Sequence[FixDocument]) -> str:
    pairs = []
    for one in fix:
        found = known(kind, one["parameter"])
        path = json_path(found) if found else f"$.{one['parameter']}"
        value = _in_request(found, one["new"])
        pairs.append(f"  {json_value(path)}: {json_value(value)}")
    return "\n".join(["{", ",\n".join(pairs), "}"]) if pairs else ""


def _row(kind: JobKind, fix: FixDocument, dialect: Dialect) -> tuple[Row | None, str | None]:
    """The parameter's row, or the comment that says why there is none; a row may have a note."""
    found = known(kind, fix["parameter"])
    new = fix["new"]
    if dialect == "terraform" and kind is not JobKind.TRAINING:
        return None, f"Terraform is written for training jobs only: {_said(fix)}"
    if found is None:
        return None, f"no argument: {_said(fix)}"
    if dialect == "boto3":
        return Row(request_way(kind, found), _in_request(found, new), new is None), None
    text = _way_text(found, dialect)
    if text is None:
        return None, f"no argument: {_said(fix)}"
    if new is None and text in ALWAYS_SENT:
        return None, f"no argument: {_said(fix)} (the SDK always sends {text.split()[-1]})"
    steps = way(text, found.user_names)
    instead = WRITTEN.get(text, {})
    if (new is None or isinstance(new, str)) and new in instead:
        return Row(steps, instead[new], removed=False), NOTES.get(text)
    own = dialect != "terraform" and not found.pattern.startswith("Environment.")
    value = new if own else _in_request(found, new)
    return Row(steps, value, new is None), NOTES.get(text)


def _way_text(found: Known, dialect: Dialect) -> str | None:
    names = found.names
    return {"sdk-v3": names.v3, "sdk-v2": names.v2, "terraform": names.terraform}[dialect]


def _in_request(found: Known | None, value: Any) -> Any:
    """The value as the request takes it: its maps are of texts."""
    if value is None or found is None or TEXT_MAPS.isdisjoint(found.pattern.split(".")[:-1]):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _said(fix: FixDocument) -> str:
    path = one_line(fix["parameter"])
    return f"remove {path}" if fix["new"] is None else f"{path} = {json_value(fix['new'])}"
