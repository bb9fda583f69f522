"""The document of `sageaudit check` about one file: schema 1 of its --output json.

Keys are always present and only ever added. Money is USD, rounded to 6 decimals; unknown values
are null; `guides` is present only if it is requested. The other outputs show this document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypedDict

from msgspec import Struct, field
from msgspec.structs import asdict

from sageaudit.domain.audit.finding_document import other_outcomes, round_usd
from sageaudit.domain.bill.finding import Bucket, Confidence, Finding, Parameter, Severity
from sageaudit.domain.request.forecast import DurationBasis, FamilyForecast, MaxCost
from sageaudit.domain.request.recognise import ParsedFile
from sageaudit.domain.request.request import Path, Request, resolve_path
from sageaudit.domain.request.sources import TUNING_ARGUMENT_PREFIX
from sageaudit.domain.request.validity import Fault, Problem
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.check.request import CheckedRequest, fix_parameters, is_rejected_by_aws

SCHEMA = 1
_SNAKE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
LineNumbers = Mapping[Path, int]
"""The line of each key of a file."""


class CheckFinding(Struct, frozen=True, kw_only=True):
    """One finding. `source`: `api` (its model), `rules`, or `history`.

    `refused`: AWS would reject the request. `not_counted`: why --fail-on ignores it: exempt, or
    covered by another finding.
    """

    rule: str
    id: str | None = None
    source: str
    severity: str = Severity.HIGH.value
    confidence: str = Confidence.MEASURED.value
    bucket: str = Bucket.NONE.value
    summary: str
    path: str
    line: int | None
    fix: list[dict[str, Any]]
    alternatives: list[list[dict[str, Any]]] = field(default_factory=list)
    caution: str | None = None
    saving_usd: Decimal | None = None
    saving_range_usd: list[Decimal] | None = None
    saving_basis: str | None = None
    refused: bool = False
    reported_for_run: str | None = None
    not_counted: str | None = None

    @property
    def sort_key(self) -> tuple[bool, bool, Decimal, int, int, str]:
        """Rejected first, then the largest saving, then the most severe, in the file's order."""
        severity = -Severity(self.severity).rank
        usd = -(self.saving_usd or Decimal(0))
        aside = self.not_counted is not None
        return aside, not self.refused, usd, severity, self.line or 0, self.rule

    @property
    def types(self) -> dict[str, Any]:
        """The instance types that its fix names, by parameter."""
        named = {fix["parameter"]: fix["new"] for fix in self.fix}
        return {path: new for path, new in named.items() if path.endswith("InstanceType")}


class CheckedFile(TypedDict):
    """One file. `api`: the SDK whose model of AWS's API the requests were compared with."""

    schema: int
    file: str
    form: str
    form_said: str
    api: str
    jobs: list[dict[str, Any]]
    not_checked: list[str]


def document(
    name: str, found: ParsedFile, api: str, checked: Sequence[CheckedRequest], lines: LineNumbers
) -> CheckedFile:
    """The document of one file; `lines` are those of its keys."""
    return {
        "schema": SCHEMA,
        "file": name,
        "form": found.format.value,
        "form_said": found.format.label,
        "api": api,
        "jobs": [_job(request, lines) for request in checked],
        "not_checked": list(found.unchecked_sentences),
    }


def _job(checked: CheckedRequest, lines: LineNumbers) -> dict[str, Any]:
    request, job = checked.request, checked.job
    return {
        "label": request.label,
        "name": request.name,
        "kind": request.kind.value,
        "line": _line(request, (), lines),
        "account": request.account,
        "region": job.region if job else None,
        "family": checked.family,
        "instances": job.instances if job else None,
        "note": request.note,
        "trial": request.tuning_request is not None,
        "cost": _cost(checked.cost, checked),
        "history": _history(checked.forecast),
        "findings": [asdict(found) for found in sort_findings(_findings(checked, lines))],
        "not_known": [
            {"path": request.path_text(place), "why": value.reason}
            for place, value in request.unknown_values.items()
        ],
        "unreadable": checked.unreadable,
        **other_outcomes(checked.outcomes),
        "notes": list(checked.notes),
        **({} if checked.guides is None else {"guides": list(checked.guides)}),
    }


def _cost(cost: MaxCost | None, checked: CheckedRequest) -> dict[str, Any]:
    billed = cost.bill_at_limit if cost else None
    rates = [line.rate for line in billed.lines if line.rate is not None] if billed else []
    return {
        "at_most_usd": round_usd(cost.usd) if cost else None,
        "why_not_known": cost.unknown_because if cost else checked.unreadable,
        "hourly_usd": round_usd(cost.hourly_usd) if cost else None,
        "limit_s": cost.limit.seconds if cost else None,
        "limit_is_default": cost.limit.is_default if cost else False,
        "jobs": cost.job_count if cost else 1,
        "missing": list(billed.gaps) if billed else [],
        "estimated": list(billed.estimated) if billed else [],
        "price_as_of": min((rate.as_of for rate in rates if rate.as_of), default=None),
        "price_source": rates[0].source if rates else None,
    }


def _history(forecast: FamilyForecast | None) -> dict[str, Any] | None:
    if forecast is None:
        return None
    usd, seconds = (
        {name: round_usd(value) for name, value in asdict(span).items()} if span else None
        for span in (forecast.usd, forecast.seconds)
    )
    return {
        "runs": forecast.runs,
        "failed_runs": forecast.failed_runs,
        "first_run": forecast.runs == 0,
        "compared_runs": forecast.comparable_runs,
        "usd": usd,
        "seconds": seconds,
        "last_run": forecast.newest_run,
        "last_ended_at": forecast.last_ended_at,
    }


def _findings(checked: CheckedRequest, lines: LineNumbers) -> Iterator[CheckFinding]:
    request = checked.request
    for problem in checked.problems:
        path = request.path_text(problem.path)
        yield CheckFinding(
            rule=problem.fault.value,
            source="api",
            refused=True,
            summary=f"{path} {problem.sentence}.".replace("?.", "?"),
            path=path,
            line=_line(request, problem.path, lines),
            fix=_did_you_mean_fix(problem, path, request),
        )
    for finding in checked.findings:
        yield _rule_finding(finding, checked, lines)
    for item in checked.ignored:
        stored, path = item.finding, item.finding["fix"][0]["parameter"]
        fix = [Parameter(row["parameter"], row["old"], row["new"]) for row in stored["fix"]]
        times = f", and in {item.runs - 1} more of its last audits" if item.runs > 1 else ""
        yield CheckFinding(
            rule=stored["rule"],
            id=stored["id"],
            source="history",
            severity=stored["severity"],
            bucket=stored["bucket"],
            summary=f"The advice for {item.run} is not followed{times}: {stored['summary']}",
            path=_full_path(request, path),
            line=_line(request, resolve_path(request.body, path), lines),
            fix=_parameters(fix, request),
            saving_usd=round_usd(item.usd),
            saving_basis=DurationBasis.EARLIER.value if item.usd is not None else None,
            reported_for_run=item.run,
        )


def sort_findings(found: Iterable[CheckFinding]) -> list[CheckFinding]:
    """Sorts findings. If several name different types for one path, only the first counts."""
    named: dict[str, tuple[Any, str]] = {}
    rows = []
    for row in sorted(found, key=lambda row: row.sort_key):
        rule = None if row.not_counted else _rule_with_other_type(row, named)
        if row.not_counted is None and rule is None:
            named |= {path: (new, row.rule) for path, new in row.types.items()}
        rows.append(replace(row, not_counted=f"{rule} names another type") if rule else row)
    return sorted(rows, key=lambda row: row.sort_key)


def _rule_with_other_type(row: CheckFinding, named: Mapping[str, tuple[Any, str]]) -> str | None:
    """The earlier rule that names another type for the same path."""
    for path, new in row.types.items():
        new_type, rule = named.get(path, (new, ""))
        if new_type != new:
            return rule
    return None


def _did_you_mean_fix(problem: Problem, path: str, request: Request) -> list[dict[str, Any]]:
    if problem.suggestion is None:
        return []
    new = problem.suggestion
    if problem.fault is Fault.UNKNOWN:
        new = request.path_text((*problem.path[:-1], new))
    fix = {"parameter": path, "old": None, "new": new}
    return [fix | {"pipeline_parameter": None, "argument": None}]


def _rule_finding(finding: Finding, checked: CheckedRequest, lines: LineNumbers) -> CheckFinding:
    found, request, ends = finding.detection, checked.request, finding.range_usd
    fix = fix_parameters(finding, request)
    path = fix[0].path if fix else _read_path(finding, request)
    return CheckFinding(
        rule=finding.rule.name,
        id=finding.rule.id,
        source="rules",
        severity=finding.severity.value,
        confidence=found.confidence.value,
        bucket=found.bucket.value,
        summary=found.summary,
        path=_full_path(request, path),
        line=_line(request, resolve_path(request.body, path), lines),
        fix=_parameters(fix, request),
        alternatives=[_parameters(way, request) for way in found.alternatives],
        caution=found.caution,
        saving_usd=round_usd(finding.alone_usd),
        saving_range_usd=ends and [round_usd(end) or Decimal(0) for end in ends],
        saving_basis=_basis(finding, checked),
        refused=is_rejected_by_aws(finding),
        reported_for_run=finding.reported_for_run,
        not_counted=_not_counted_because(finding),
    )


def _basis(finding: Finding, checked: CheckedRequest) -> str | None:
    """The basis of its dollars; an earlier run if only that has them."""
    if finding.alone_usd is None:
        return None
    return (DurationBasis.EARLIER if finding.detection.change is None else checked.basis).value


def _read_path(finding: Finding, request: Request) -> str:
    """The first parameter that the rule reads and the request has."""
    reads = next(
        (rule.required_parameters for rule in catalogue.load() if rule.info == finding.rule), ()
    )
    return next((path for path in reads if "[]" not in path and request.value(path)), "")


def _not_counted_because(finding: Finding) -> str | None:
    if finding.exempt is not None:
        return f"exempt by {finding.exempt.by}: {finding.exempt.reason}"
    covering_rule = finding.superseded_by or finding.subsumed_by
    return f"{covering_rule} covers it" if covering_rule else None


def _parameters(fix: Iterable[Parameter], request: Request) -> list[dict[str, Any]]:
    return [
        {
            "parameter": _full_path(request, parameter.path),
            "old": parameter.old,
            "new": parameter.new,
            "pipeline_parameter": request.parameters.get(
                resolve_path(request.body, parameter.path)
            ),
            "argument": _argument(request, parameter.path),
        }
        for parameter in fix
    ]


def _argument(request: Request, path: str) -> str | None:
    """The parameter as Terraform names it; None in every other form."""
    if not request.origin.is_terraform:
        return None
    steps = filter(None, re.split(r"[.\[\]]+", _full_path(request, path)))
    return _SNAKE.sub("_", ".".join(steps)).lower().replace(TUNING_ARGUMENT_PREFIX, "")


def _full_path(request: Request, path: str) -> str:
    """The path in the request that is sent; a trial is inside its tuning job's request."""
    if request.tuning_request is None:
        return path
    around = request.tuning_request.path_text(request.prefix)
    return f"{around}.{path}" if path else around


def _line(request: Request, place: Path, lines: LineNumbers) -> int | None:
    """The line of the nearest part of the file that has one."""
    path = request.origin.path_in_file(place)
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)
