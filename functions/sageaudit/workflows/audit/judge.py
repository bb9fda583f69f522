"""The pure core of Lambda and CLI: makes an audit from a job, its usage and its prices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.audit import rollup
from sageaudit.domain.audit.audit import Audit, WasteOutcome, judgement
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.family_runs import summary_of_run
from sageaudit.domain.audit.finding_document import Outcomes
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.trials import allocate_trial_savings, trial_from_document
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.bill_facts import facts
from sageaudit.domain.bill.billed_job import mark_estimated
from sageaudit.domain.bill.change import SetType
from sageaudit.domain.bill.counterfactual import Savings, Severities, allocate_savings
from sageaudit.domain.bill.finding import Detection, Finding, RuleInfo
from sageaudit.domain.bill.idle_capacity import idle_capacity
from sageaudit.domain.job.course import failure_class
from sageaudit.domain.job.family import family
from sageaudit.domain.job.job import Job
from sageaudit.domain.policy.discounts import with_own_prices
from sageaudit.domain.policy.policy import Policy, exemptions
from sageaudit.domain.prices.known_prices import pricing_day
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.judged_use import PooledRuns
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from sageaudit.rules.card import AccountCase, FamilyCase, RollUpCase, Rule, Ruleset
from sageaudit.rules.judge import judge
from sageaudit.structs import replace

_AFTER_ALL_DATES = "9999"
"""Sorts trials without an end time last."""


def audit_job(
    job: Job,
    usage: Measurements,
    market: Market,
    policy: Policy,
    ruleset: Ruleset,
    *,
    now: datetime,
    earlier_runs: tuple[AuditSummary, ...] | None = None,
    pool: PooledRuns | None = None,
) -> Audit:
    """Bills one job, applies the rules and computes the savings.

    `market` has AWS's list prices; the policy's discounts are applied here. `earlier_runs` are the
    family's, newest first; None if no history was read. `pool` has the minutes of the newest ones,
    for a run too short to be judged alone; each run counts only its own dollars.
    """
    market = with_own_prices(market, policy.discounts, pricing_day(job, now)).relative_to(job)
    billed = bill(job, market)
    plan = policy.discounts.savings_plan
    name = family(job, policy.family_tag)
    policy = policy.for_job(job.account, name, job.tags)
    exempt, warnings = exemptions(policy, name, job.tags, _names(ruleset), now.date())
    active = usage.active_part()
    case = FamilyCase(job, active, usage, billed, market, earlier_runs, policy=policy, pool=pool)
    outcomes = judge(case, ruleset.rules)
    estimated = bool(billed.estimated) or any(run.estimated for run in earlier_runs or ())
    founds = _founds(outcomes, allow_estimates=estimated)
    savings = allocate_savings(
        job, billed, founds, market, _severities(policy), exempt, has_savings_plan=plan
    )
    savings = _mark_reported_earlier(savings, ruleset, earlier_runs or ())
    idle = idle_capacity(job, usage, billed, market, savings)
    if isinstance(idle, Missing) and job.finished:
        warnings = [*warnings, f"idle capacity: {idle.reason}"]
    waste = _waste_outcomes(outcomes, ruleset, policy, usage)
    judged = judgement(job, billed, usage, waste, savings, pool)
    warm_pool_ends_at = _warm_pool_ends_at(job, now)
    return Audit(
        job=job,
        family=name,
        owner=policy.owner(job.tags),
        bill=billed,
        bill_facts=facts(job, billed, market, savings_plan=plan),
        usage=usage,
        outcomes=tuple(outcomes),
        savings=judged.without_unknown_sums(savings),
        judgement=judged,
        is_settled=job.finished and warm_pool_ends_at is None,
        due_at=warm_pool_ends_at,
        ruleset=ruleset.version,
        policy=policy.version,
        notes=tuple(warnings),
        idle_capacity=None if isinstance(idle, Missing) else idle,
        pool=pool if pool and pool.has_enough_minutes else None,
        pool_avoidable_usd=_pooled_usd(pool, earlier_runs),
        tags=policy.cost_tags(job.tags),
        smallest_types=case.smallest_types,
        costlier_steps=case.costlier_steps,
    )


def _pooled_usd(pool: PooledRuns | None, earlier: Sequence[AuditSummary] | None) -> Decimal | None:
    """The avoidable dollars of a pool's earlier runs; runs that were not judged count as 0."""
    if pool is None or earlier is None:
        return None
    counted = [run.avoidable_usd for run in earlier if run.job in pool.names]
    return sum((usd for usd in counted if usd is not None), Decimal(0))


def _mark_reported_earlier(
    savings: Savings, ruleset: Ruleset, earlier: Sequence[AuditSummary]
) -> Savings:
    """Marks findings that were reported for an earlier run of the family.

    Counted dollars are reported for every run, unless the rule itself names an earlier run.
    """
    once = {rule.info.name for rule in ruleset.rules if rule.report_once_per_family}
    findings = tuple(
        replace(finding, reported_for_run=reported_for_run)
        if (reported_for_run := _reported_for_run(finding, once, earlier)) is not None
        else finding
        for finding in savings.findings
    )
    return replace(savings, findings=findings)


def _reported_for_run(
    finding: Finding, once: Collection[str], earlier: Sequence[AuditSummary]
) -> str | None:
    if finding.rule.name not in once or finding.detection.bucket.is_counted:
        return finding.detection.reported_for_run
    return _oldest_run_with_rule(finding.rule.name, earlier)


def _oldest_run_with_rule(rule: str, earlier: Sequence[AuditSummary]) -> str | None:
    """The oldest run with the rule, whose audit has the text; `earlier` has the newest first."""
    return next((run.job for run in reversed(earlier) if rule in run.rules_with_findings), None)


def _sees_gpus(rule: Rule, usage: Measurements) -> bool:
    return Metric.GPU in rule.required_metrics or bool(usage.by_type and not rule.required_metrics)


def _waste_outcomes(
    outcomes: Outcomes, ruleset: Ruleset, policy: Policy, usage: Measurements
) -> list[WasteOutcome]:
    """The outcomes of enabled rules that look for waste in the use of the hosts.

    On hosts with GPUs, only rules that read GPUUtilization see the expensive devices. A rule on
    hosts of several types requires no common metric, but reads those of each type.
    """
    rules = {rule.info.name: rule for rule in ruleset.rules if rule.finds_waste}
    return [
        WasteOutcome(outcome, sees_devices=usage.gpus == 0 or _sees_gpus(rules[name.name], usage))
        for name, outcome in outcomes
        if name.name in rules and name.name not in policy.disabled_rules
    ]


def run_summary(audit: Audit) -> AuditSummary:
    """The summary that later runs of the family are compared with."""
    findings, job = audit.savings.findings, audit.job
    rules = [one.rule.name for one in findings if one.is_standing and one.rule.compared]
    failure = None if job.status == "Completed" else failure_class(job)
    changes = (one.detection.change for one in findings if one.is_standing)
    new_type = next((move.instance_type for move in changes if isinstance(move, SetType)), None)
    summary = summary_of_run(job, reason=failure, rules_with_findings=rules, usage=audit.usage)
    return replace(
        summary,
        recommended_type=new_type,
        smallest_types=audit.smallest_types,
        costlier_steps=audit.costlier_steps or None,
    )


class Child(Struct, frozen=True):
    """A job that a roll-up launched: its audit and the last value of each of its metrics."""

    document: AuditDocument
    final_metrics: Mapping[str, Decimal]


def audit_roll_up(
    job: Job | None,
    children: Sequence[Child],
    policy: Policy,
    ruleset: Ruleset,
    *,
    now: datetime,
    launched_count: int | None = None,
) -> Audit:
    """Sums the audits of a roll-up's children and applies the rules on roll-ups.

    `job` is None for a recording without its own Describe answer; its name and family then come
    from the children. `launched_count`: how many children it launched; None if not known.
    """
    documents = [child.document for child in children]
    named = job or rollup.rollup_job_from_children(documents)
    family, owner = named.arn or named.name, policy.owner(named.tags)
    tags = policy.cost_tags(named.tags)
    if job is None:
        child = documents[0]["job"]
        family, owner, tags = child["family"], child["owner"], child["tags"]
    policy = policy.for_job(named.account, family, named.tags)
    exempt, warnings = exemptions(policy, family, named.tags, _names(ruleset), now.date())
    severities = _severities(policy)
    objective = named.tuning.objective if named.tuning else None
    trials = [
        trial_from_document(child.document, child.final_metrics, objective) for child in children
    ]
    trials.sort(
        key=lambda trial: trial.ended_at.isoformat() if trial.ended_at else _AFTER_ALL_DATES
    )
    case = RollUpCase(job, tuple(trials), kind=named.kind, policy=policy)
    outcomes = judge(case, ruleset.rules)
    founds = _founds(outcomes, allow_estimates=any(trial.estimated for trial in trials))
    audit = rollup.roll_up(
        named,
        documents,
        family=family,
        owner=owner,
        launched_count=launched_count,
        severities=severities,
        ruleset=ruleset.version,
        policy=policy.version,
        outcomes=tuple(outcomes),
        own_savings=allocate_trial_savings(founds, trials, severities, exempt),
    )
    return replace(audit, notes=(*audit.notes, *warnings), tags=tags)


class AccountAudit(Struct, frozen=True):
    """The outcomes of the account rules, whose findings belong to no single job's bill."""

    outcomes: Outcomes
    findings: tuple[Finding, ...]


def audit_account(
    runs: Sequence[AuditSummary], days: int, policy: Policy, ruleset: Ruleset
) -> AccountAudit:
    """Applies the account rules to the runs of the last `days` days, newest first."""
    outcomes = judge(AccountCase(tuple(runs), days, policy=policy), ruleset.rules)
    severities = _severities(policy)
    estimated = any(run.estimated for run in runs)
    findings = [
        Finding(
            rule=name,
            detection=found,
            severity=severities.severity_for(
                name, found.bucket, None, is_priced=found.change is not None
            ),
            saving_usd=None,
            alone_usd=None,
            range_usd=None,
            estimated=estimated,
        )
        for name, found in _founds(outcomes, allow_estimates=estimated)
    ]
    return AccountAudit(outcomes, tuple(findings))


def _founds(outcomes: Outcomes, *, allow_estimates: bool) -> list[tuple[RuleInfo, Detection]]:
    """The findings among the outcomes; `allow_estimates`: their dollars may be estimates."""
    founds = [(name, found) for name, found in outcomes if isinstance(found, Detection)]
    return [(name, mark_estimated(found)) for name, found in founds] if allow_estimates else founds


def _severities(policy: Policy) -> Severities:
    return Severities(policy.severity, policy.severities)


def _names(ruleset: Ruleset) -> list[RuleInfo]:
    return [rule.info for rule in ruleset.rules]


def _warm_pool_ends_at(job: Job, now: datetime) -> datetime | None:
    """When the warm pool ends if its retained seconds may still grow; None otherwise.

    A requested pool without a status after its keep-alive never existed (a quota of 0).
    """
    pool = job.warm_pool
    if pool is None or pool.is_final or job.ended_at is None:
        return None
    ends_at = job.ended_at + timedelta(seconds=pool.keep_alive_s or 0)
    return None if pool.status is None and now >= ends_at else ends_at
