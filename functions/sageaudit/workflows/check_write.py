"""Plans which fixes of a checked file can be written into it, and what the file then says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct

from sageaudit.adapters.files import request_file, text_file
from sageaudit.adapters.files.request_edit import Edit, EditableFile, edit_json
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.request.aws_names import plain_name
from sageaudit.domain.request.placeholders import mark_unknown
from sageaudit.domain.request.recognise import FileFormat, recognise, reject_non_request
from sageaudit.domain.request.request import Path as Place
from sageaudit.domain.request.request import Request, UnknownValue, split_path, value_at
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

    The changed file is checked: a fix is skipped if its finding remains, or if AWS would then
    refuse the request. Raises BadUsage for a file that cannot be changed in place.
    """
    if path == text_file.STDIN or not Path(path).is_file():
        raise BadUsage(f"--write needs a file: {text_file.display_name(path)} cannot be changed")
    request = request_file.read(path, reject_non_request)
    if checked["form"] == FileFormat.TERRAFORM.value:
        raise BadUsage(f"{path}: is a plan: change the arguments in your Terraform code")
    if not request.text:
        raise BadUsage(f"{path}: was not changed: --write changes only JSON")
    if repeated := request.line_numbers()[1]:
        raise BadUsage(f"{path}: was not changed: the key {repeated[0][-1]} appears twice")
    file = EditableFile.read(path, request.text)
    parsed = recognise(
        request.document, checker.model, form=checker.form, pipeline=checker.pipeline
    )
    candidates = list(_choose(_fixes(checked, parsed.requests)))
    trial = _Trial(checker, path, request.text, checked)
    accepted = trial.accept([fix for fix in candidates if fix.skipped_because is None])
    after, checked_after = trial.apply(accepted) if accepted else (request.text, checked)
    return FixPlan(
        file=file,
        before=request.text,
        after=after,
        fixes=tuple(accepted),
        skipped=tuple(
            fix
            if fix.skipped_because
            else _skip(fix, "the finding would remain, or AWS would refuse the request")
            for fix in candidates
            if fix not in accepted
        ),
        checked=checked_after,
    )


class _Trial(Struct, frozen=True):
    """Tries fixes on a file's text."""

    checker: RequestChecker
    path: str
    text: str
    checked: CheckedFile

    def accept(self, fixes: Sequence[Fix], accepted: Sequence[Fix] = ()) -> list[Fix]:
        """Returns the accepted fixes, and those of `fixes` that help together with them.

        If not all do, each half is tried, so that a few bad ones of many cost few checks.
        """
        together = [*accepted, *fixes]
        if not fixes or self._is_improved_by(together):
            return together
        if len(fixes) == 1:
            return list(accepted)
        middle = len(fixes) // 2
        return self.accept(fixes[middle:], self.accept(fixes[:middle], accepted))

    def apply(self, fixes: Sequence[Fix]) -> tuple[str, CheckedFile]:
        """Returns the changed text and its check. Raises MalformedData if it has no request."""
        after = edit_json(self.text, [edit for fix in fixes for edit in fix.edits])
        return after, self.checker.check_file(self.path, json.loads(after), lambda: ({}, ()))

    def _is_improved_by(self, fixes: Sequence[Fix]) -> bool:
        """Returns whether the findings are gone after their fixes, and AWS refuses nothing new."""
        try:
            _, checked = self.apply(fixes)
        except MalformedData:
            return False
        rows = _counted(checked)
        known_keys = {key for key, _ in _counted(self.checked)}
        fixed_keys = {_key(fix.job_index, fix.finding) for fix in fixes}
        return (
            len(checked["jobs"]) == len(self.checked["jobs"])
            and fixed_keys.isdisjoint(key for key, _ in rows)
            and known_keys.issuperset(key for key, row in rows if row["refused"])
        )


_Key = tuple[int, str, str]


def _counted(checked: CheckedFile) -> list[tuple[_Key, dict[str, Any]]]:
    """Returns the counted findings of a file, each with a key."""
    return [
        (_key(index, row), row)
        for index, job in enumerate(checked["jobs"])
        for row in counted_findings(job)
    ]


def _key(job_index: int, row: dict[str, Any]) -> _Key:
    return job_index, row["rule"], row["path"]


def _fixes(checked: CheckedFile, requests: Sequence[Request]) -> Iterator[Fix]:
    for index, (job, request) in enumerate(zip(checked["jobs"], requests, strict=False)):
        for row in counted_findings(job):
            yield _make_fix(index, row, request)


def _make_fix(index: int, row: dict[str, Any], request: Request) -> Fix:
    fix = Fix(index, row)
    if not row["fix"]:
        return _skip(fix, "no single change fixes it")
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
            return _skip(fix, f"choose {path} yourself")
        place = split_path(root.body, path)
        if place is None or isinstance(value_at(root.body, path), UnknownValue):
            return _skip(fix, f"{path} is not known yet")
        old, edit = value_at(root.body, path), Edit(root.origin.path_in_file(place), new)
        if row["rule"] == Fault.UNKNOWN.value:
            old, new = place[-1], str(new).rpartition(".")[2]
            edit = Edit(edit.place, new_key=new)
        is_guess = row["source"] == "api" and row["rule"] != Fault.TYPE.value
        if is_guess and plain_name(old) != plain_name(new):
            return _skip(fix, f"{new} may not be what you mean")
        edits.append(edit)
    return Fix(index, row, tuple(edits))


def _is_placeholder(new: object) -> bool:
    is_description = isinstance(new, str) and new.startswith("<") and new.endswith(">")
    return is_description or isinstance(mark_unknown(new), UnknownValue)


def _choose(fixes: Iterator[Fix]) -> Iterator[Fix]:
    """Skips a fix that contradicts an earlier one, or is the other way to fix the same."""
    new_by_place: dict[Place, Any] = {}
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
        for row in chain.from_iterable(fix.finding["alternatives"]):
            key = (fix.job_index, row["parameter"], str(row["new"]))
            rule_by_alternative[key] = fix.finding["rule"]
        yield fix


def _skip(fix: Fix, reason: str) -> Fix:
    return Fix(fix.job_index, fix.finding, skipped_because=reason)
