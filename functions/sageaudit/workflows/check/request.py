"""Judges one request before its job runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from sageaudit.domain.usage.measurements import Missing
from sageaudit.rules.card import FamilyCase, RequestCase, RollUpCase, Ruleset
from sageaudit.rules.judge import judge_request
from sageaudit.structs import replace

_EXPOSURE_MEDIUM_USD = Decimal(100)
"""The cost of a hung job from which a finding about its limit is medium."""
_EXPOSURE_HIGH_USD = Decimal(1000)
"""The cost of a hung job from which the finding is high."""
REJECTED_PREFIX = "AWS refuses"
_HAS_NOT_RUN = Missing("not_run", "the job has not run")


class PlannedJob(Struct, frozen=True):
    """A request as a job, with the family under which its history is read."""

    request: Request
    job: Job
    family: str


class FamilyHistory(Struct, frozen=True):
    """The family's earlier runs, newest first; the last audits, on the same instances first."""

    runs: tuple[AuditSummary, ...]
    audits: tuple[AuditDocument, ...]


class CheckedRequest(Struct, frozen=True):
    """One judged request. `unreadable`: why it could not be judged, or None.

    `forecast` is None if no history was read. `basis`: what the findings' dollars rest on.
    `guides` is None if they were not requested.
    """

    request: Request
    problems: tuple[Problem, ...]
    job: Job | None = None
    family: str | None = None
    outcomes: Outcomes = ()
    findings: tuple[Finding, ...] = ()
    ignored: tuple[UnfollowedFinding, ...] = ()
    basis: DurationBasis = DurationBasis.HOUR
    cost: MaxCost | None = None
    forecast: FamilyForecast | None = None
    notes: tuple[str, ...] = ()
    guides: Sequence[GuideDocument] | None = None
    unreadable: str | None = None


def find_problems(request: Request, model: ApiModel) -> tuple[Problem, ...]:
    """What AWS would reject by its service model; a trial's problems are its tuning job's."""
    if request.tuning_request is not None:
        return ()
    later = (request.name_key,) if request.name_source else ()
    return model.problems(request.shape, request.body, later)


def plan_job(
    request: Request, problems_to_remove: Sequence[Problem], region: str | None, policy: Policy
) -> PlannedJob:
    """The request as a job, without what AWS rejects. Raises MalformedData."""
    wrong = {place for problem in problems_to_remove for place in problem.unjudged_paths}
    if request.tuning_request is not None:
        size = len(request.prefix)
        wrong = {at[size:] for at in wrong if at[:size] == request.prefix}
    request = replace(request, invalid_paths=frozenset(place for place in wrong if place))
    job = make_job_planner(request, region)(HOUR_S, _EPOCH)
    return PlannedJob(request, job, family(job, policy.family_tag))


_EPOCH = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
"""A placeholder start if only the settings of the job matter."""


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
    """Judges one request. `market` has the list prices; `trial_costs`: the costs of a tuning job's
    definitions, from which its own cost is computed.
    """
    request, runs = planned_job.request, history.runs if history else None
    market = with_own_prices(market, policy.discounts, now.date()).relative_to(planned_job.job)
    lasting = make_job_planner(request, planned_job.job.region)
    forecast = forecast_family(planned_job.job, runs) if runs is not None else None
    limit = run_limit(request)
    basis, seconds = _basis(forecast, limit)
    job = lasting(seconds, now)
    if limit.is_default:
        job = replace(job, max_runtime_s=DEFAULT_LIMIT_S)
    at_limit = lasting(limit.seconds, now) if limit.seconds is not None else None
    cost = _cost(request, at_limit, job, market, trial_costs)
    billed = bill(job, market)
    local = policy.for_job(job.account, planned_job.family, job.tags)
    names = [rule.info for rule in ruleset.rules]
    exempt, warnings = exemptions(local, planned_job.family, job.tags, names, now.date())
    asked = RequestCase(
        request, job, billed, market, cost, runs, policy=local, duration_basis=basis
    )
    outcomes = judge_request(asked, _case(asked), ruleset.rules)
    findings = _findings(asked, outcomes, exempt, ruleset)
    unfollowed = find_unfollowed(request, history.audits) if history else ()
    by_rule = {item.finding["rule"]: item for item in unfollowed}
    judged = {finding.rule.name for finding in findings} | local.disabled_rules | exempt.keys()
    return CheckedRequest(
        request=request,
        job=job,
        family=planned_job.family,
        problems=tuple(problems),
        outcomes=tuple(outcomes),
        findings=tuple(_with_earlier_run(one, by_rule.get(one.rule.name)) for one in findings),
        ignored=tuple(item for item in unfollowed if item.finding["rule"] not in judged),
        basis=basis,
        cost=cost,
        forecast=forecast,
        notes=tuple(warnings),
    )


def request_guides(
    planned_job: PlannedJob, history: FamilyHistory | None, types: Mapping[str, InstanceType]
) -> list[GuideDocument]:
    """The guides of a request, by its settings and its family's runs."""
    runs, audits = (history.runs, history.audits) if history else ((), ())
    newest = max(audits, key=lambda audit: audit["job"]["ended_at"] or "", default=None)
    isolated = _is_network_isolated(planned_job.request)
    return select_guides(
        traits_of_request(planned_job.job, runs, newest, types, is_isolated=isolated)
    )


def _is_network_isolated(request: Request) -> bool | None:
    """EnableNetworkIsolation; AWS's default is false. None if not known yet."""
    path = setting_path(request.kind, "EnableNetworkIsolation")
    value = request.value(path) if path else None
    return None if isinstance(value, UnknownValue) else bool(value)


def _cost(
    request: Request, job_at_limit: Job | None, job: Job, market: Market, trials: Sequence[MaxCost]
) -> MaxCost:
    """The maximum cost, on the most expensive of its preferred types."""
    if request.kind.spec.rollup:
        return max_search_cost(request, trials)
    most = None if job_at_limit is None else on_most_expensive_type(job_at_limit, request, market)
    return max_cost(request, most, on_most_expensive_type(job, request, market), market)


def _basis(forecast: FamilyForecast | None, limit: RunLimit) -> tuple[DurationBasis, Decimal]:
    """The job's duration and its basis: the family's median, else its limit, else an hour."""
    if forecast is not None and forecast.seconds is not None and forecast.seconds.median > 0:
        return DurationBasis.HISTORY, forecast.seconds.median
    if limit.seconds is not None:
        return DurationBasis.LIMIT, limit.seconds
    return DurationBasis.HOUR, HOUR_S


def _case(request_case: RequestCase) -> FamilyCase | RollUpCase:
    """The request as the case of a job that ran, for rules that judge both."""
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
    asked: RequestCase, outcomes: Outcomes, exempt: Mapping[str, Exemption], ruleset: Ruleset
) -> tuple[Finding, ...]:
    """The findings of the rules, each with what it alone would save.

    The severity is the rule's, unless the policy sets one or the dollars rest on runs.
    """
    founds = [(name, found) for name, found in outcomes if isinstance(found, Detection)]
    local = asked.policy
    severities = Severities(local.severity, local.severities)
    plan = local.discounts.savings_plan
    savings = allocate_savings(
        asked.job, asked.bill, founds, asked.market, severities, exempt, has_savings_plan=plan
    )
    cards = {rule.info.name: rule.request_severity for rule in ruleset.rules}
    by_runs = asked.duration_basis is DurationBasis.HISTORY
    return tuple(
        finding
        if (severity := cards[finding.rule.name]) is None
        or finding.rule.name in local.severities
        or (by_runs and finding.alone_usd is not None)
        else replace(finding, severity=_severity_by_exposure(finding) or severity)
        for finding in savings.findings
    )


def _with_earlier_run(finding: Finding, item: UnfollowedFinding | None) -> Finding:
    if item is None:
        return finding
    usd = finding.alone_usd if finding.detection.change is not None else item.usd
    return replace(finding, reported_for_run=item.run, alone_usd=usd)


def is_rejected_by_aws(finding: Finding) -> bool:
    """Whether AWS rejects the request: then a high finding's sentence says so."""
    return finding.severity is Severity.HIGH and REJECTED_PREFIX in finding.detection.summary


def _severity_by_exposure(finding: Finding) -> Severity | None:
    """The severity by a request's maximum cost; None if the finding is not about that."""
    usd = finding.detection.evidence.get("exposed_usd")
    if not isinstance(usd, Decimal):
        return None
    if usd >= _EXPOSURE_HIGH_USD:
        return Severity.HIGH
    return Severity.MEDIUM if usd >= _EXPOSURE_MEDIUM_USD else Severity.LOW


def fix_parameters(finding: Finding, request: Request) -> tuple[Parameter, ...]:
    """The finding's fix, with the request's values as old values."""
    fixed = []
    for parameter in finding.detection.fix:
        value = request.value(parameter.path)
        plain = value if isinstance(value, str | int | bool) else None
        shown = plain if plain is not None else (parameter.old if value is not None else None)
        fixed.append(Parameter(parameter.path, shown, parameter.new))
    return tuple(fixed)
