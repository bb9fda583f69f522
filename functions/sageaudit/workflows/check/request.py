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
from sageaudit.domain.bill.counterfactual import Severities, allocate
from sageaudit.domain.bill.finding import Exemption, Finding, Found, Parameter, Severity
from sageaudit.domain.guides import GuideDocument, chosen, of_request
from sageaudit.domain.job.family import family
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.settings import path_of
from sageaudit.domain.policy.discounts import own
from sageaudit.domain.policy.policy import Policy, exemptions
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.request.forecast import (
    DEFAULT_LIMIT_S,
    HOUR_S,
    Basis,
    Cost,
    FamilyForecast,
    Ignored,
    RunLimit,
    cost_of,
    cost_of_search,
    dearest,
    ignored,
    limit_of,
    of_family,
)
from sageaudit.domain.request.request import NotKnown, Request, planned
from sageaudit.domain.request.validity import ApiModel, Problem
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Missing
from sageaudit.rules.card import FamilyCase, RequestCase, Ruleset, TuningCase
from sageaudit.rules.judge import judge_request
from sageaudit.structs import replace

_EXPOSED_USD = Decimal(100)
"""What a hung job may cost, from which a finding about its limit is medium."""
_EXPOSED_HIGH_USD = Decimal(1000)
"""The same, from which it is high."""
REFUSES = "AWS refuses"
_NOT_RUN = Missing("not_run", "the job has not run")


class PlannedJob(Struct, frozen=True):
    """A request as a job: in the family and region under which its history is asked for."""

    request: Request
    job: Job
    family: str


class FamilyHistory(Struct, frozen=True):
    """The family's earlier runs, newest first; the last audits, on the same instances first."""

    runs: tuple[AuditSummary, ...]
    audits: tuple[AuditDocument, ...]


class Checked(Struct, frozen=True):
    """One request, judged. `unreadable`: why nothing could be concluded from it, or None.

    `forecast` is None where no history was read. `basis`: what the dollars of findings rest on.
    `guides` is None where they are not asked for.
    """

    request: Request
    problems: tuple[Problem, ...]
    job: Job | None = None
    family: str | None = None
    outcomes: Outcomes = ()
    findings: tuple[Finding, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    basis: Basis = Basis.HOUR
    cost: Cost | None = None
    forecast: FamilyForecast | None = None
    notes: tuple[str, ...] = ()
    guides: Sequence[GuideDocument] | None = None
    unreadable: str | None = None


def problems_of(request: Request, model: ApiModel) -> tuple[Problem, ...]:
    """What AWS would refuse by its service model; of a trial, its tuning request says it."""
    if request.trial_of is not None:
        return ()
    later = (request.name_key,) if request.named_later else ()
    return model.problems(request.shape, request.body, later)


def prepare(
    request: Request, problems: Sequence[Problem], region: str | None, policy: Policy
) -> PlannedJob:
    """The request without what AWS refuses, as a job. Raises Malformed."""
    wrong = {place for problem in problems for place in problem.places}
    if request.trial_of is not None:
        size = len(request.prefix)
        wrong = {at[size:] for at in wrong if at[:size] == request.prefix}
    request = replace(request, invalid=frozenset(place for place in wrong if place))
    job = planned(request, region)(HOUR_S, _EPOCH)
    return PlannedJob(request, job, family(job, policy.family_tag))


_EPOCH = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
"""Stands for a start where only the settings of the job are asked for."""


def check(
    one: PlannedJob,
    problems: Sequence[Problem],
    market: Market,
    policy: Policy,
    ruleset: Ruleset,
    *,
    now: datetime,
    history: FamilyHistory | None,
    trials: Sequence[Cost] = (),
) -> Checked:
    """Judges one request. `market` has the list prices; `trials`: the costs of a tuning job's
    definitions, from which its own is worked out.
    """
    request, runs = one.request, history.runs if history else None
    market = own(market, policy.discounts, now.date()).relative_to(one.job)
    lasting = planned(request, one.job.region)
    forecast = of_family(one.job, runs) if runs is not None else None
    limit = limit_of(request)
    basis, seconds = _basis(forecast, limit)
    job = lasting(seconds, now)
    if limit.default:
        job = replace(job, max_runtime_s=DEFAULT_LIMIT_S)
    at_limit = lasting(limit.seconds, now) if limit.seconds is not None else None
    cost = _cost(request, at_limit, job, market, trials)
    billed = bill(job, market)
    local = policy.for_job(job.account, one.family, job.tags)
    names = [rule.name for rule in ruleset.rules]
    exempt, warnings = exemptions(local, one.family, job.tags, names, now.date())
    asked = RequestCase(request, job, billed, market, cost, runs, policy=local, before_run=basis)
    outcomes = judge_request(asked, _case(asked), ruleset.rules)
    findings = _findings(asked, outcomes, exempt, ruleset)
    advice = ignored(request, history.audits) if history else ()
    said = {item.finding["rule"]: item for item in advice}
    judged = {finding.rule.name for finding in findings} | local.rules_off | exempt.keys()
    return Checked(
        request=request,
        job=job,
        family=one.family,
        problems=tuple(problems),
        outcomes=tuple(outcomes),
        findings=tuple(_as_before(one, said.get(one.rule.name)) for one in findings),
        ignored=tuple(item for item in advice if item.finding["rule"] not in judged),
        basis=basis,
        cost=cost,
        forecast=forecast,
        notes=tuple(warnings),
    )


def guides_of(
    one: PlannedJob, history: FamilyHistory | None, types: Mapping[str, InstanceType]
) -> list[GuideDocument]:
    """The guides of a request, with what its family's runs say."""
    runs, audits = (history.runs, history.audits) if history else ((), ())
    newest = max(audits, key=lambda audit: audit["job"]["ended_at"] or "", default=None)
    isolated = _isolated(one.request)
    return chosen(of_request(one.job, runs, newest, types, isolated=isolated))


def _isolated(request: Request) -> bool | None:
    """EnableNetworkIsolation; AWS's default is false. None where it is not known yet."""
    path = path_of(request.kind, "EnableNetworkIsolation")
    value = request.value(path) if path else None
    return None if isinstance(value, NotKnown) else bool(value)


def _cost(
    request: Request, at_limit: Job | None, job: Job, market: Market, trials: Sequence[Cost]
) -> Cost:
    """The most that it costs, on the dearest of the types that it prefers."""
    if request.kind.row.rollup:
        return cost_of_search(request, trials)
    most = None if at_limit is None else dearest(at_limit, request, market)
    return cost_of(request, most, dearest(job, request, market), market)


def _basis(forecast: FamilyForecast | None, limit: RunLimit) -> tuple[Basis, Decimal]:
    """What the job's length rests on: its family's median, else its limit, else an hour."""
    if forecast is not None and forecast.seconds is not None and forecast.seconds.median > 0:
        return Basis.HISTORY, forecast.seconds.median
    if limit.seconds is not None:
        return Basis.LIMIT, limit.seconds
    return Basis.HOUR, HOUR_S


def _case(asked: RequestCase) -> FamilyCase | TuningCase:
    """The request as the case of a job that ran, for rules that judge both."""
    job, policy, basis = asked.job, asked.policy, asked.before_run
    if job.kind.row.rollup:
        return TuningCase(job, (), policy=policy, before_run=basis)
    usage = measure(job, (), asked.market.types, absent=_NOT_RUN)
    of = (job, usage.active(), usage, asked.bill, asked.market, asked.earlier)
    return FamilyCase(*of, policy=policy, before_run=basis)


def _findings(
    asked: RequestCase, outcomes: Outcomes, exempt: Mapping[str, Exemption], ruleset: Ruleset
) -> tuple[Finding, ...]:
    """What the rules found, each with what it alone would save.

    The severity is the card's, but for dollars that rest on runs and for what the policy sets.
    """
    founds = [(name, found) for name, found in outcomes if isinstance(found, Found)]
    local = asked.policy
    severities = Severities(local.severity, local.severities)
    plan = local.discounts.savings_plan
    savings = allocate(
        asked.job, asked.bill, founds, asked.market, severities, exempt, savings_plan=plan
    )
    cards = {rule.name.name: rule.before_run for rule in ruleset.rules}
    by_runs = asked.before_run is Basis.HISTORY
    return tuple(
        finding
        if (severity := cards[finding.rule.name]) is None
        or finding.rule.name in local.severities
        or (by_runs and finding.alone_usd is not None)
        else replace(finding, severity=_of_exposure(finding) or severity)
        for finding in savings.findings
    )


def _as_before(finding: Finding, item: Ignored | None) -> Finding:
    """The finding with the earlier run that had it; its dollars there, where it has none itself."""
    if item is None:
        return finding
    known = finding.alone_usd if finding.found.change is not None else item.usd
    return replace(finding, reported_for_run=item.run, alone_usd=known)


def refused(finding: Finding) -> bool:
    """Whether AWS does not take the request, as the sentence of a grave finding says then."""
    return finding.severity is Severity.HIGH and REFUSES in finding.found.summary


def _of_exposure(finding: Finding) -> Severity | None:
    """By the most that a request can cost, where that is what the finding is about."""
    usd = finding.found.evidence.get("exposed_usd")
    if not isinstance(usd, Decimal):
        return None
    if usd >= _EXPOSED_HIGH_USD:
        return Severity.HIGH
    return Severity.MEDIUM if usd >= _EXPOSED_USD else Severity.LOW


def fixes_of(finding: Finding, request: Request) -> tuple[Parameter, ...]:
    """The finding's fix, with the values that the request has as old ones."""
    fixed = []
    for parameter in finding.found.fix:
        value = request.value(parameter.path)
        plain = value if isinstance(value, str | int | bool) else None
        shown = plain if plain is not None else (parameter.old if value is not None else None)
        fixed.append(Parameter(parameter.path, shown, parameter.new))
    return tuple(fixed)
