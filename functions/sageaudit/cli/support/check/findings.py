"""What `sageaudit check` found as rows of its document: by the API's model, rules and history."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypedDict

from sageaudit.domain.audit.document import rounded
from sageaudit.domain.bill.finding import Bucket, Confidence, Finding, Parameter, Severity
from sageaudit.domain.request.advice import Ignored
from sageaudit.domain.request.forecast import Basis
from sageaudit.domain.request.request import Request
from sageaudit.domain.request.validity import Problem
from sageaudit.domain.request.values import Path, place_of
from sageaudit.rules import catalogue
from sageaudit.workflows.check.run import Checked, fixes_of

_SNAKE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
Lines = Mapping[Path, int]
"""The line of each key of a file."""


class FindingRow(TypedDict):
    """One finding. `source`: `api` (AWS would refuse it), `rules`, or `history`."""

    rule: str
    id: str | None
    source: str
    severity: str
    confidence: str
    bucket: str
    summary: str
    path: str
    line: int | None
    fix: list[dict[str, Any]]
    alternatives: list[list[dict[str, Any]]]
    caution: str | None
    saving_usd: Decimal | None
    saving_range_usd: list[Decimal] | None
    saving_basis: str | None
    said_of: str | None
    not_counted: str | None
    """Why it does not count for --fail-on: exempt, or covered by another finding."""


def findings(one: Checked, lines: Lines) -> list[FindingRow]:
    """The most severe first, then in the order of the file."""
    rows = [
        *(_of_api(problem, one.request, lines) for problem in one.problems),
        *(_of_rule(finding, one, lines) for finding in one.findings),
        *(_of_history(item, one.request, lines) for item in one.ignored),
    ]
    return sorted(
        rows,
        key=lambda row: (
            row["not_counted"] is not None,
            -Severity(row["severity"]).rank,
            row["line"] or 0,
            row["rule"],
        ),
    )


def _of_api(problem: Problem, request: Request, lines: Lines) -> FindingRow:
    path = request.said(problem.place)
    fix = []
    if problem.near is not None:
        new = problem.near
        if problem.fault.value == "unknown-parameter":
            new = request.said((*problem.place[:-1], problem.near))
        fix = [
            {
                "parameter": path,
                "old": None,
                "new": new,
                "pipeline_parameter": None,
                "argument": None,
            }
        ]
    return {
        "rule": problem.fault.value,
        "id": None,
        "source": "api",
        "severity": Severity.HIGH.value,
        "confidence": Confidence.MEASURED.value,
        "bucket": Bucket.NONE.value,
        "summary": f"{path} {problem.sentence}.".replace("?.", "?"),
        "path": path,
        "line": line_of(request, problem.place, lines),
        "fix": fix,
        "alternatives": [],
        "caution": None,
        "saving_usd": None,
        "saving_range_usd": None,
        "saving_basis": None,
        "said_of": None,
        "not_counted": None,
    }


def _of_rule(finding: Finding, one: Checked, lines: Lines) -> FindingRow:
    found, request = finding.found, one.request
    fix = fixes_of(finding, request)
    path = fix[0].path if fix else _read_path(finding, request)
    low_high = finding.range_usd
    return {
        "rule": finding.rule.name,
        "id": finding.rule.id,
        "source": "rules",
        "severity": finding.severity.value,
        "confidence": found.confidence.value,
        "bucket": found.bucket.value,
        "summary": found.summary,
        "path": _whole(request, path),
        "line": line_of(request, place_of(request.body, path), lines),
        "fix": [_parameter(parameter, request) for parameter in fix],
        "alternatives": [
            [_parameter(parameter, request) for parameter in way] for way in found.alternatives
        ],
        "caution": found.caution,
        "saving_usd": rounded(finding.alone_usd),
        "saving_range_usd": None if low_high is None else [_exact(end) for end in low_high],
        "saving_basis": one.basis.value if finding.alone_usd is not None else None,
        "said_of": finding.said_of,
        "not_counted": _not_counted(finding),
    }


def _read_path(finding: Finding, request: Request) -> str:
    """The first parameter that the rule reads and the request has."""
    reads = next((rule.reads for rule in catalogue.load() if rule.name == finding.rule), ())
    return next((path for path in reads if "[]" not in path and request.value(path)), "")


def _exact(usd: Decimal) -> Decimal:
    return rounded(usd) or Decimal(0)


def _of_history(item: Ignored, request: Request, lines: Lines) -> FindingRow:
    path = item.fix[0].path
    times = f", and in {item.runs - 1} more of its last audits" if item.runs > 1 else ""
    return {
        "rule": item.rule,
        "id": item.id,
        "source": "history",
        "severity": item.severity.value,
        "confidence": Confidence.MEASURED.value,
        "bucket": item.bucket.value,
        "summary": f"The advice for {item.run} is not followed{times}: {item.summary}",
        "path": _whole(request, path),
        "line": line_of(request, place_of(request.body, path), lines),
        "fix": [_parameter(parameter, request) for parameter in item.fix],
        "alternatives": [],
        "caution": None,
        "saving_usd": rounded(item.usd),
        "saving_range_usd": None,
        "saving_basis": Basis.HISTORY.value if item.usd is not None else None,
        "said_of": item.run,
        "not_counted": None,
    }


def _not_counted(finding: Finding) -> str | None:
    if finding.exempt is not None:
        return f"exempt by {finding.exempt.by}: {finding.exempt.reason}"
    other = finding.superseded_by or finding.subsumed_by
    return f"{other} covers it" if other else None


def _parameter(parameter: Parameter, request: Request) -> dict[str, Any]:
    return {
        "parameter": _whole(request, parameter.path),
        "old": parameter.old,
        "new": parameter.new,
        "pipeline_parameter": request.parameters.get(place_of(request.body, parameter.path)),
        "argument": _argument(request, parameter.path),
    }


def _argument(request: Request, path: str) -> str | None:
    """The parameter as Terraform names it; None in every other form."""
    if not request.origin.exact:
        return None
    known = place_of(request.body, path)
    whole = request.trial_of or request
    there = request.origin.in_file(known)[len(whole.origin.base) :]
    named = [step for step in there if isinstance(step, str)]
    asked = [step for step in re.split(r"[.\[\]]+", path) if step]
    rest = asked[len(known) :]
    return ".".join([*named, *(_SNAKE.sub("_", step).lower() for step in rest)])


def _whole(request: Request, path: str) -> str:
    """The path in the request that is sent: a trial's is inside its tuning job's."""
    if request.trial_of is None:
        return path
    around = request.trial_of.said(request.prefix)
    return f"{around}.{path}" if path else around


def line_of(request: Request, place: Path, lines: Lines) -> int | None:
    """The line of the nearest part of the file that has one."""
    found = request.origin.in_file(place)
    while found and found not in lines:
        found = found[:-1]
    return lines.get(found)
