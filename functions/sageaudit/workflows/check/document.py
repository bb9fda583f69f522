"""The document of `sageaudit check` about one file: schema 1 of its --output json.

Keys are always present and only ever added. Money is USD, rounded to 6 decimals. Unknown values are
null. `guides` is present only if requested. Other outputs show this document too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from operator import getitem
from typing import Any, TypedDict, cast

from msgspec import Struct, field
from msgspec.structs import asdict

from sageaudit.domain.audit.finding_document import other_outcomes, round_usd
from sageaudit.domain.bill.finding import Bucket, Confidence, Finding, Parameter, Severity
from sageaudit.domain.request.forecast import DurationBasis, FamilyForecast, MaxCost
from sageaudit.domain.request.recognise import ParsedFile
from sageaudit.domain.request.request import Path, Request, resolve_path
from sageaudit.domain.request.terraform import TUNING_ARGUMENT_PREFIX
from sageaudit.domain.request.validity import Fault, Problem
from sageaudit.output.text.words import count_text
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.check.request import CheckedRequest, fix_parameters, is_rejected_by_aws

SCHEMA = 1
_SNAKE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
LineNumbers = Mapping[Path, int]
"""The line of each key in a file, by the key's path."""


class CheckFinding(Struct, frozen=True, kw_only=True):
    """One finding. `source` is `api` (AWS's service model), `rules`, or `history`.

    `refused` means that AWS would reject the request. `not_counted` says why --fail-on ignores the
    finding: an exemption, or another finding that covers it.
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
    def sort_key(self) -> tuple[bool, bool, bool, Decimal, int, int, str]:
        """The key of the order in which every output lists findings, the most important first.

        Findings that do not count are last, and refusals by AWS are first. Then avoidable or lost
        dollars come before possible ones, and those before none. Then the saving, the severity and
        the line decide.
        """
        usd = self.saving_usd or Decimal(0)
        return (
            self.not_counted is not None,
            not self.refused,
            usd <= 0 or not Bucket(self.bucket).is_counted,
            -usd,
            -Severity(self.severity).rank,
            self.line or 0,
            self.rule,
        )

    @property
    def types(self) -> dict[str, Any]:
        """The instance types that the finding's fix sets, by parameter."""
        new_values = {fix["parameter"]: fix["new"] for fix in self.fix}
        return {path: new for path, new in new_values.items() if path.endswith("InstanceType")}


class CheckedFile(TypedDict):
    """The document of one file. `api` is the SDK whose model of AWS's API was used."""

    schema: int
    file: str
    form: str
    form_text: str
    api: str
    jobs: list[dict[str, Any]]
    not_checked: list[str]


def document(
    name: str,
    parsed_file: ParsedFile,
    api: str,
    checked: Sequence[CheckedRequest],
    lines: LineNumbers,
) -> CheckedFile:
    """Returns the document of one file. `lines` has the line of each key in the file."""
    return {
        "schema": SCHEMA,
        "file": name,
        "form": parsed_file.format.value,
        "form_text": parsed_file.format.label,
        "api": api,
        "jobs": [_job(request, lines) for request in checked],
        "not_checked": list(parsed_file.unchecked_sentences),
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
        "findings": [asdict(finding) for finding in sort_findings(_findings(checked, lines))],
        "not_known": [
            {"path": request.path_text(path), "why": value.reason}
            for path, value in request.unknown_values.items()
        ],
        "unreadable": checked.unreadable,
        **other_outcomes(checked.outcomes),
        "notes": list(checked.notes),
        **({} if checked.guides is None else {"guides": list(checked.guides)}),
    }


def _cost(cost: MaxCost | None, checked: CheckedRequest) -> dict[str, Any]:
    bill_at_limit = cost.bill_at_limit if cost else None
    rates = (
        [line.rate for line in bill_at_limit.lines if line.rate is not None]
        if bill_at_limit
        else []
    )
    return {
        "at_most_usd": round_usd(cost.usd) if cost else None,
        "why_not_known": cost.unknown_because if cost else checked.unreadable,
        "hourly_usd": round_usd(cost.hourly_usd) if cost else None,
        "volumes_usd": round_usd(bill_at_limit.volumes_usd) if bill_at_limit else None,
        "attempts": cost.attempts if cost else 1,
        "limit_s": cost.limit.seconds if cost else None,
        "limit_is_default": cost.limit.is_default if cost else False,
        "jobs": cost.job_count if cost else 1,
        "missing": list(bill_at_limit.gaps) if bill_at_limit else [],
        "estimated": list(bill_at_limit.estimated) if bill_at_limit else [],
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
            fix=_suggested_fix(problem, path, request),
        )
    for finding in checked.findings:
        yield _rule_finding(finding, checked, lines)
    for unfollowed in checked.unfollowed:
        stored_finding = unfollowed.finding
        path = stored_finding["fix"][0]["parameter"]
        fix = [Parameter(row["parameter"], row["old"], row["new"]) for row in stored_finding["fix"]]
        others = count_text(unfollowed.runs - 1, "other recent run")
        other_runs = f" (and of {others})" if unfollowed.runs > 1 else ""
        yield CheckFinding(
            rule=stored_finding["rule"],
            id=stored_finding["id"],
            source="history",
            severity=stored_finding["severity"],
            bucket=stored_finding["bucket"],
            summary=(
                f"It does not follow the recommendation of {unfollowed.run}{other_runs}:"
                f" {stored_finding['summary']}"
            ),
            path=_full_path(request, path),
            line=_line(request, resolve_path(request.body, path), lines),
            fix=_parameters(fix, request),
            saving_usd=round_usd(unfollowed.usd),
            saving_basis=DurationBasis.EARLIER.value if unfollowed.usd is not None else None,
            reported_for_run=unfollowed.run,
        )


def sort_findings(findings: Iterable[CheckFinding]) -> list[CheckFinding]:
    """Returns the findings sorted by `sort_key`.

    If several set a parameter to different instance types, only the first of them counts.
    """
    type_and_rule_by_path: dict[str, tuple[Any, str]] = {}
    sorted_findings = []
    for finding in sorted(findings, key=lambda finding: finding.sort_key):
        other_rule = (
            None if finding.not_counted else _rule_with_other_type(finding, type_and_rule_by_path)
        )
        if finding.not_counted is None and other_rule is None:
            type_and_rule_by_path |= {
                path: (new, finding.rule) for path, new in finding.types.items()
            }
        sorted_findings.append(
            replace(finding, not_counted=f"{other_rule} names another type")
            if other_rule
            else finding
        )
    return sorted(sorted_findings, key=lambda finding: finding.sort_key)


def sort_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns findings of documents, also of several jobs, sorted by `sort_key`."""
    return sorted(rows, key=lambda row: CheckFinding(**row).sort_key)


def _rule_with_other_type(
    finding: CheckFinding, type_and_rule_by_path: Mapping[str, tuple[Any, str]]
) -> str | None:
    for path, instance_type in finding.types.items():
        earlier_type, rule = type_and_rule_by_path.get(path, (instance_type, ""))
        if earlier_type != instance_type:
            return rule
    return None


def _suggested_fix(problem: Problem, path: str, request: Request) -> list[dict[str, Any]]:
    """Returns what was probably meant. Only a value of a wrong type has its old value."""
    if problem.suggestion is None:
        return []
    new_value = problem.suggestion
    if problem.fault is Fault.UNKNOWN:
        new_value = request.path_text((*problem.path[:-1], new_value))
    is_type = problem.fault is Fault.TYPE
    old_value = reduce(getitem, problem.path, cast(Any, request.body)) if is_type else None
    fix = {"parameter": path, "old": old_value, "new": new_value}
    return [fix | {"pipeline_parameter": request.parameters.get(problem.path), "argument": None}]


def _rule_finding(finding: Finding, checked: CheckedRequest, lines: LineNumbers) -> CheckFinding:
    detection, request, saving_range = finding.detection, checked.request, finding.range_usd
    fix = fix_parameters(detection.fix, request)
    path = fix[0].path if fix else _read_path(finding, request)
    return CheckFinding(
        rule=finding.rule.name,
        id=finding.rule.id,
        source="rules",
        severity=finding.severity.value,
        confidence=detection.confidence.value,
        bucket=detection.bucket.value,
        summary=detection.summary,
        path=_full_path(request, path),
        line=_line(request, resolve_path(request.body, path), lines),
        fix=_parameters(fix, request),
        alternatives=[
            _parameters(fix_parameters(alternative, request), request)
            for alternative in detection.alternatives
        ],
        caution=detection.caution,
        saving_usd=round_usd(finding.alone_usd),
        saving_range_usd=saving_range and [round_usd(end) or Decimal(0) for end in saving_range],
        saving_basis=_basis(finding, checked),
        refused=is_rejected_by_aws(finding),
        reported_for_run=finding.reported_for_run,
        not_counted=_not_counted_because(finding),
    )


def _basis(finding: Finding, checked: CheckedRequest) -> str | None:
    """Returns which run time the finding's dollars are based on; None without dollars.

    The run time is EARLIER if no change of the request was billed.
    """
    if finding.alone_usd is None:
        return None
    return (DurationBasis.EARLIER if finding.detection.change is None else checked.basis).value


def _read_path(finding: Finding, request: Request) -> str:
    """Returns the first parameter that the rule reads and the request has; "" if there is none."""
    required_parameters = next(
        (rule.required_parameters for rule in catalogue.load() if rule.info == finding.rule), ()
    )
    return next(
        (path for path in required_parameters if "[]" not in path and request.value(path)), ""
    )


def _not_counted_because(finding: Finding) -> str | None:
    if finding.exempt is not None:
        return f"exempt by {finding.exempt.by}: {finding.exempt.reason}"
    covering_rule = finding.superseded_by or finding.subsumed_by
    return f"{covering_rule} covers it" if covering_rule else None


def _parameters(parameters: Iterable[Parameter], request: Request) -> list[dict[str, Any]]:
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
        for parameter in parameters
    ]


def _argument(request: Request, path: str) -> str | None:
    """Returns the parameter's name in Terraform; None in every other format."""
    if not request.origin.is_terraform:
        return None
    steps = filter(None, re.split(r"[.\[\]]+", _full_path(request, path)))
    return _SNAKE.sub("_", ".".join(steps)).lower().replace(TUNING_ARGUMENT_PREFIX, "")


def _full_path(request: Request, path: str) -> str:
    # A trial is inside its tuning job's request.
    if request.tuning_request is None:
        return path
    tuning_path = request.tuning_request.path_text(request.prefix)
    return f"{tuning_path}.{path}" if path else tuning_path


def _line(request: Request, request_path: Path, lines: LineNumbers) -> int | None:
    """Returns the line of a path, or of the nearest enclosing part that has a line."""
    path = request.origin.path_in_file(request_path)
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)
