"""Plans which fixes of a checked file can be written into it, and what the file then says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from sageaudit.adapters.files import request_file, text_file
from sageaudit.adapters.files.request_edit import Edit, EditableFile, edit_json
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.request.aws_names import plain_name
from sageaudit.domain.request.placeholders import mark_unknown
from sageaudit.domain.request.recognise import FileFormat, recognise, reject_non_request
from sageaudit.domain.request.request import Path, Request, UnknownValue, split_path, value_at
from sageaudit.domain.request.validity import Fault
from sageaudit.errors import BadUsage, MalformedData
from sageaudit.workflows.check.comparison import counted_findings
from sageaudit.workflows.check.document import CheckedFile
from sageaudit.workflows.check.run import RequestChecker


class Fix(Struct, frozen=True):
    """A finding's fix as edits of the file. `skipped_because`: why it is not written."""

    job_index: int
    finding: dict[str, Any]
    edits: tuple[Edit, ...] = ()
    skipped_because: str | None = None


class FixPlan(Struct, frozen=True):
    """The fixes of one file, its text before and after, and the check of the new text."""

    file: EditableFile
    before: str
    after: str
    fixes: tuple[Fix, ...]
    skipped: tuple[Fix, ...]
    checked: CheckedFile


def plan_fixes(checker: RequestChecker, path: str, checked: CheckedFile) -> FixPlan:
    """Returns the fixes of a file's counted findings that have one known value.

    The changed file is checked: a fix after which its finding stays, or AWS refuses another
    parameter, is left out. Raises BadUsage for a file that cannot be changed in place.
    """
    if path == text_file.STDIN:
        raise BadUsage("--write needs a file: standard input cannot be changed")
    request = request_file.read(path, reject_non_request)
    if checked["form"] == FileFormat.TERRAFORM.value:
        raise BadUsage(f"{path}: is a plan: change the arguments in your Terraform code")
    if not request.text:
        raise BadUsage(f"{path}: is not written to: --write changes only JSON")
    if repeated := request.line_numbers()[1]:
        raise BadUsage(f"{path}: is not written to, since it has {repeated[0][-1]} twice")
    file = EditableFile.read(path, request.text)
    parsed = recognise(
        request.document, checker.model, form=checker.form, pipeline=checker.pipeline
    )
    candidates = list(_choose(_fixes(checked, parsed.requests)))
    writer = _Writer(checker, path, request.text, checked)
    fixes = [fix for fix in candidates if fix.skipped_because is None]
    accepted, after, checked_after = writer.accept(fixes)
    useless = [fix for fix in fixes if fix not in accepted]
    return FixPlan(
        file=file,
        before=request.text,
        after=after,
        fixes=tuple(accepted),
        skipped=(
            *(fix for fix in candidates if fix.skipped_because),
            *(_skip(fix, "the changed file would have a finding in its place") for fix in useless),
        ),
        checked=checked_after,
    )


class _Writer(Struct, frozen=True):
    """Tries fixes on a file's text."""

    checker: RequestChecker
    path: str
    text: str
    checked: CheckedFile

    def accept(self, fixes: Sequence[Fix]) -> tuple[list[Fix], str, CheckedFile]:
        """Returns the fixes that help, the text with them, and its check."""
        if not fixes:
            return [], self.text, self.checked
        after, checked_after = self._apply(fixes)
        if checked_after is not None and self._help(fixes, checked_after):
            return list(fixes), after, checked_after
        accepted: list[Fix] = []
        best = (self.text, self.checked)
        for fix in fixes:
            after, checked_after = self._apply([*accepted, fix])
            if checked_after is not None and self._help([*accepted, fix], checked_after):
                accepted.append(fix)
                best = (after, checked_after)
        return accepted, *best

    def _apply(self, fixes: Sequence[Fix]) -> tuple[str, CheckedFile | None]:
        after = edit_json(self.text, [edit for fix in fixes for edit in fix.edits])
        try:
            checked = self.checker.check_file(self.path, json.loads(after), lambda: ({}, ()))
        except MalformedData:
            return after, None
        return after, checked

    def _help(self, fixes: Sequence[Fix], checked: CheckedFile) -> bool:
        jobs, new_jobs = self.checked["jobs"], checked["jobs"]
        if len(jobs) != len(new_jobs):
            return False
        refusals = [
            (index, row["rule"], row["path"])
            for index, job in enumerate(new_jobs)
            for row in counted_findings(job)
            if row["refused"]
        ]
        known_refusals = {
            (index, row["rule"], row["path"])
            for index, job in enumerate(jobs)
            for row in job["findings"]
        }
        remaining = {
            (index, row["rule"], row["path"])
            for index, job in enumerate(new_jobs)
            for row in counted_findings(job)
        }
        return known_refusals.issuperset(refusals) and not any(
            (fix.job_index, fix.finding["rule"], fix.finding["path"]) in remaining for fix in fixes
        )


def _fixes(checked: CheckedFile, requests: Sequence[Request]) -> Iterator[Fix]:
    for index, (job, request) in enumerate(zip(checked["jobs"], requests, strict=False)):
        for row in counted_findings(job):
            if row["fix"]:
                yield _make_fix(index, row, request)


def _make_fix(index: int, row: dict[str, Any], request: Request) -> Fix:
    fix = Fix(index, row)
    if Bucket(row["bucket"]) is Bucket.POSSIBLE:
        return _skip(fix, "it is a possible saving: try it in one run first")
    if not request.origin.is_inline:
        return _skip(fix, "the request is text inside the file, or has another tool's names")
    root = request.tuning_request or request
    edits = []
    for parameter in row["fix"]:
        path, new = parameter["parameter"], parameter["new"]
        if name := parameter["pipeline_parameter"]:
            return _skip(fix, f"{path} is the pipeline parameter {name}")
        if _is_placeholder(new):
            return _skip(fix, f"only you know the value of {path}")
        place = split_path(root.body, path)
        if place is None or isinstance(value_at(root.body, path), UnknownValue):
            return _skip(fix, f"{path} is not known yet")
        edit = Edit(root.origin.path_in_file(place), new)
        if row["source"] == "api":
            old = place[-1] if row["rule"] == Fault.UNKNOWN.value else value_at(root.body, path)
            new = str(new).rpartition(".")[2] if row["rule"] == Fault.UNKNOWN.value else new
            if plain_name(old) != plain_name(new):
                return _skip(fix, f"{new} may not be what you mean")
            if row["rule"] == Fault.UNKNOWN.value:
                edit = Edit(edit.place, new_key=new)
        edits.append(edit)
    return Fix(index, row, tuple(edits))


def _is_placeholder(new: object) -> bool:
    is_description = isinstance(new, str) and new.startswith("<") and new.endswith(">")
    return is_description or isinstance(mark_unknown(new), UnknownValue)


def _choose(fixes: Iterator[Fix]) -> Iterator[Fix]:
    """Skips a fix that contradicts an earlier one, or is the other way to fix the same."""
    new_by_place: dict[Path, Any] = {}
    rule_by_alternative: dict[tuple[int, str, str], str] = {}
    for fix in fixes:
        if fix.skipped_because:
            yield fix
            continue
        values = [(fix.job_index, row["parameter"], str(row["new"])) for row in fix.finding["fix"]]
        other_rule = next(filter(None, map(rule_by_alternative.get, values)), None)
        if other_rule:
            yield _skip(fix, f"the fix of {other_rule} replaces it")
            continue
        if any(new_by_place.get(edit.place, edit.new) != edit.new for edit in fix.edits):
            yield _skip(fix, "another fix sets the same parameter")
            continue
        new_by_place |= {edit.place: edit.new for edit in fix.edits}
        for row in (row for rows in fix.finding["alternatives"] for row in rows):
            key = (fix.job_index, row["parameter"], str(row["new"]))
            rule_by_alternative[key] = fix.finding["rule"]
        yield fix


def _skip(fix: Fix, reason: str) -> Fix:
    return Fix(fix.job_index, fix.finding, skipped_because=reason)
