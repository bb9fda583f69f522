"""Judges one request before its job runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import Outcomes
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.counterfactual import Severities, allocate_savings
from sageaudit.domain.bill.finding import Detection, Exemption, Finding, Parameter, Severity
from sageaudit.domain.guides import GuideDocument, select_guides, traits_of_request
from sageaudit.domain.job.family import family
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.settings import setting_path
from sageaudit.domain.policy.discounts import with_own_prices
from sageaudit.domain.policy.policy import Policy, exemptions
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.request.forecast import (
    DEFAULT_LIMIT_S,
    HOUR_S,
    DurationBasis,
    FamilyForecast,
    MaxCost,
    RunLimit,
    UnfollowedFinding,
    find_unfollowed,
    forecast_family,
    max_cost,
    max_search_cost,
    on_most_expensive_type,
    run_limit,
)
from sageaudit.domain.request.request import Request, UnknownValue, make_job_planner
from sageaudit.domain.request.validity import ApiModel, Problem
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import MissingMetrics
from sageaudit.rules.card import FamilyCase, RequestCase, RollUpCase, Ruleset
from sageaudit.rules.judge import judge_request
from sageaudit.structs import replace

_EXPOSURE_MEDIUM_USD = Decimal(100)
"""A missing run limit has medium severity if a hung job could cost at least this much."""
_EXPOSURE_HIGH_USD = Decimal(1000)
"""A missing run limit has high severity if a hung job could cost at least this much."""
REJECTED_PREFIX = "AWS refuses"
_HAS_NOT_RUN = MissingMetrics("not_run", "the job has not run")


class PlannedJob(Struct, frozen=True):
    """The job that a request would start, and its family."""

    request: Request
    job: Job
    family: str


class FamilyHistory(Struct, frozen=True):
    """A family's earlier runs, newest first, and its last audits, those on the same instances
    first.
    """

    runs: tuple[AuditSummary, ...]
    audits: tuple[AuditDocument, ...]


class CheckedRequest(Struct, frozen=True):
    """One checked request. `unreadable` says why it could not be checked.

    `forecast` is None if no history was read. `unfollowed` are earlier findings that the request
    does not follow. `basis` is the run time for the findings' dollars. `guides` is None if not
    requested.
    """

    request: Request
    problems: tuple[Problem, ...]
    job: Job | None = None
    family: str | None = None
    outcomes: Outcomes = ()
    findings: tuple[Finding, ...] = ()
    unfollowed: tuple[UnfollowedFinding, ...] = ()
    basis: DurationBasis = DurationBasis.HOUR
    cost: MaxCost | None = None
    forecast: FamilyForecast | None = None
    notes: tuple[str, ...] = ()
    guides: Sequence[GuideDocument] | None = None
    unreadable: str | None = None


def find_problems(request: Request, model: ApiModel) -> tuple[Problem, ...]:
    """Returns the parts of a request that AWS's service model rejects.

    A trial's problems are reported for its tuning job's request.
    """
    if request.tuning_request is not None:
        return ()
    keys_set_later = (request.name_key,) if request.name_source else ()
    return model.problems(request.shape, request.body, keys_set_later)


def plan_job(
    request: Request, problems_to_remove: Sequence[Problem], region: str | None, policy: Policy
) -> PlannedJob:
    """Returns a request's job, without the parameters that AWS rejects. Raises MalformedData."""
    invalid_paths = {path for problem in problems_to_remove for path in problem.unjudged_paths}
    if request.tuning_request is not None:
        size = len(request.prefix)
        invalid_paths = {path[size:] for path in invalid_paths if path[:size] == request.prefix}
    request = replace(request, invalid_paths=frozenset(path for path in invalid_paths if path))
    job = make_job_planner(request, region)(HOUR_S, _EPOCH)
    return PlannedJob(request, job, family(job, policy.family_tag))


_EPOCH = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
"""A placeholder for the start of a job of which only the settings matter."""


def check_request(
    planned_job: PlannedJob,
    problems: Sequence[Problem],
    market: Market,
    policy: Policy,
    ruleset: Ruleset,
    *,
    now: datetime,
    history: FamilyHistory | None,
    trial_costs: Sequence[MaxCost] = (),
) -> CheckedRequest:
    """Judges one request, and returns its findings and forecast.

    `market` has the list prices. `trial_costs` are the costs of a tuning job's training job
    definitions.
    """
    request, runs = planned_job.request, history.runs if history else None
    market = with_own_prices(market, policy.discounts, now.date()).relative_to(planned_job.job)
    job_lasting = make_job_planner(request, planned_job.job.region)
    forecast = forecast_family(planned_job.job, runs) if runs is not None else None
    limit = run_limit(request)
    basis, seconds = _basis(forecast, limit)
    job = job_lasting(seconds, now)
    if limit.is_default:
        job = replace(job, max_runtime_s=DEFAULT_LIMIT_S)
    job_at_limit = job_lasting(limit.seconds, now) if limit.seconds is not None else None
    cost = _cost(request, job_at_limit, job, market, trial_costs)
    job_bill = bill(job, market)
    job_policy = policy.for_job(job.account, planned_job.family, job.tags)
    rule_infos = [rule.info for rule in ruleset.rules]
    exemption_by_rule, warnings = exemptions(
        job_policy, planned_job.family, job.tags, rule_infos, now.date()
    )
    request_case = RequestCase(
        request, job, job_bill, market, cost, runs, policy=job_policy, duration_basis=basis
    )
    outcomes = judge_request(request_case, _case(request_case), ruleset.rules)
    findings = _findings(request_case, outcomes, exemption_by_rule, ruleset)
    unfollowed = find_unfollowed(request, history.audits) if history else ()
    unfollowed_by_rule = {item.finding["rule"]: item for item in unfollowed}
    judged_rules = (
        {finding.rule.name for finding in findings}
        | job_policy.disabled_rules
        | exemption_by_rule.keys()
    )
    return CheckedRequest(
        request=request,
        job=job,
        family=planned_job.family,
        problems=tuple(problems),
        outcomes=tuple(outcomes),
        findings=tuple(
            _with_earlier_run(finding, unfollowed_by_rule.get(finding.rule.name))
            for finding in findings
        ),
        unfollowed=tuple(item for item in unfollowed if item.finding["rule"] not in judged_rules),
        basis=basis,
        cost=cost,
        forecast=forecast,
        notes=tuple(warnings),
    )


def guides_for_request(
    planned_job: PlannedJob, history: FamilyHistory | None, types: Mapping[str, InstanceType]
) -> list[GuideDocument]:
    """Returns the guides for a request, chosen by its settings and its family's runs."""
    runs, audits = (history.runs, history.audits) if history else ((), ())
    newest_audit = max(audits, key=lambda audit: audit["job"]["ended_at"] or "", default=None)
    is_isolated = _is_network_isolated(planned_job.request)
    return select_guides(
        traits_of_request(planned_job.job, runs, newest_audit, types, is_isolated=is_isolated)
    )


def _is_network_isolated(request: Request) -> bool | None:
    """Returns True if the request isolates the job's network; None if that is not known yet.

    AWS's default is false.
    """
    path = setting_path(request.kind, "EnableNetworkIsolation")
    value = request.value(path) if path else None
    return None if isinstance(value, UnknownValue) else bool(value)


def _cost(
    request: Request,
    job_at_limit: Job | None,
    job: Job,
    market: Market,
    trial_costs: Sequence[MaxCost],
) -> MaxCost:
    # Uses the most expensive of the request's preferred types.
    if request.kind.spec.rollup:
        return max_search_cost(request, trial_costs)
    costliest_job_at_limit = (
        None if job_at_limit is None else on_most_expensive_type(job_at_limit, request, market)
    )
    return max_cost(
        request, costliest_job_at_limit, on_most_expensive_type(job, request, market), market
    )


def _basis(forecast: FamilyForecast | None, limit: RunLimit) -> tuple[DurationBasis, Decimal]:
    # Uses the history's duration, else the limit, else an hour.
    if forecast is not None and forecast.seconds is not None and forecast.seconds.median > 0:
        return DurationBasis.HISTORY, forecast.seconds.median
    if limit.seconds is not None:
        return DurationBasis.LIMIT, limit.seconds
    return DurationBasis.HOUR, HOUR_S


def _case(request_case: RequestCase) -> FamilyCase | RollUpCase:
    job, policy, basis = request_case.job, request_case.policy, request_case.duration_basis
    if job.kind.spec.rollup:
        return RollUpCase(job, (), policy=policy, duration_basis=basis)
    usage = measure(job, (), request_case.market.types, missing_reason=_HAS_NOT_RUN)
    arguments = (
        job,
        usage.active_part(),
        usage,
        request_case.bill,
        request_case.market,
        request_case.family_history,
    )
    return FamilyCase(*arguments, policy=policy, duration_basis=basis)


def _findings(
    request_case: RequestCase,
    outcomes: Outcomes,
    exemption_by_rule: Mapping[str, Exemption],
    ruleset: Ruleset,
) -> tuple[Finding, ...]:
    """Returns the findings, each with the saving of its own fix.

    The severity is the rule's severity for requests, unless the policy sets one, or earlier runs
    determine the dollars.
    """
    detections = [
        (rule_info, detection)
        for rule_info, detection in outcomes
        if isinstance(detection, Detection)
    ]
    policy = request_case.policy
    severities = Severities(policy.severity, policy.severities)
    has_savings_plan = policy.discounts.savings_plan
    savings = allocate_savings(
        request_case.job,
        request_case.bill,
        detections,
        request_case.market,
        severities,
        exemption_by_rule,
        has_savings_plan=has_savings_plan,
    )
    request_severity_by_rule = {rule.info.name: rule.request_severity for rule in ruleset.rules}
    is_from_runs = request_case.duration_basis is DurationBasis.HISTORY
    return tuple(
        finding
        if (severity := request_severity_by_rule[finding.rule.name]) is None
        or finding.rule.name in policy.severities
        or (is_from_runs and finding.alone_usd is not None)
        else replace(finding, severity=_severity_by_exposure(finding) or severity)
        for finding in savings.findings
    )


def _with_earlier_run(finding: Finding, unfollowed: UnfollowedFinding | None) -> Finding:
    if unfollowed is None:
        return finding
    usd = finding.alone_usd if finding.detection.change is not None else unfollowed.usd
    return replace(finding, reported_for_run=unfollowed.run, alone_usd=usd)


def is_rejected_by_aws(finding: Finding) -> bool:
    """Returns True if the finding is about a value for which AWS would reject the request.

    The summary of such a finding contains REJECTED_PREFIX.
    """
    return finding.severity is Severity.HIGH and REJECTED_PREFIX in finding.detection.summary


def _severity_by_exposure(finding: Finding) -> Severity | None:
    """Returns the severity by what a hung job could cost; None if there is no such amount."""
    usd = finding.detection.evidence.get("exposed_usd")
    if not isinstance(usd, Decimal):
        return None
    if usd >= _EXPOSURE_HIGH_USD:
        return Severity.HIGH
    return Severity.MEDIUM if usd >= _EXPOSURE_MEDIUM_USD else Severity.LOW


_RESOURCES = "ResourceConfig."
_TUNING_RESOURCES = "HyperParameterTuningResourceConfig"


def _path_in_request(path: str, request: Request) -> str:
    """Returns where the request has a setting that a rule names as in a plain training request.

    Its instances may be in the resources of a tuning job, or in a list of preferred types.
    """
    if not path.startswith(_RESOURCES):
        return path
    if request.is_set(_TUNING_RESOURCES) and not request.is_set("ResourceConfig"):
        path = path.replace("ResourceConfig", _TUNING_RESOURCES, 1)
    section, _, key = path.partition(".")
    listed = (f"{section}.{name}[0].{key}" for name in ("InstancePreferences", "InstanceConfigs"))
    return next(filter(request.is_set, listed), path)


def fix_parameters(fix: Iterable[Parameter], request: Request) -> tuple[Parameter, ...]:
    """Returns a fix of a rule with the request's own paths and old values."""
    parameters = []
    for parameter in fix:
        path = _path_in_request(parameter.path, request)
        value = request.value(path)
        simple_value = value if isinstance(value, str | int | bool) else None
        old_value = (
            simple_value
            if simple_value is not None
            else (parameter.old if value is not None else None)
        )
        parameters.append(Parameter(path, old_value, parameter.new))
    return tuple(parameters)
