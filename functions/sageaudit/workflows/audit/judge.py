"""Makes an audit from a job, its usage and its prices. Lambda and the command line use it."""

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
from sageaudit.domain.usage.measurements import Measurements, Metric, MissingMetrics
from sageaudit.rules.card import AccountCase, FamilyCase, RollUpCase, Rule, Ruleset
from sageaudit.rules.judge import judge
from sageaudit.structs import replace

_AFTER_ALL_DATES = "9999"
"""The sort key of trials without an end time. It sorts after all dates."""


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
    """Returns the audit of one job: its bill, findings and savings.

    `market` has AWS's list prices; the policy's discounts are applied here. `earlier_runs` are the
    family's, newest first; None if no history was read. `pool` adds earlier runs' minutes to a
    short run. Each run still counts only its own dollars.
    """
    market = with_own_prices(market, policy.discounts, pricing_day(job, now)).relative_to(job)
    job_bill = bill(job, market)
    has_savings_plan = policy.discounts.savings_plan
    family_name = family(job, policy.family_tag)
    policy = policy.for_job(job.account, family_name, job.tags)
    exemption_by_rule, warnings = exemptions(
        policy, family_name, job.tags, _rule_infos(ruleset), now.date()
    )
    active_usage = usage.active_part()
    case = FamilyCase(
        job, active_usage, usage, job_bill, market, earlier_runs, policy=policy, pool=pool
    )
    outcomes = judge(case, ruleset.rules)
    is_estimated = bool(job_bill.estimated) or any(run.estimated for run in earlier_runs or ())
    detections = _detections(outcomes, as_estimates=is_estimated)
    savings = allocate_savings(
        job,
        job_bill,
        detections,
        market,
        _severities(policy),
        exemption_by_rule,
        has_savings_plan=has_savings_plan,
    )
    savings = _mark_reported_earlier(savings, ruleset, earlier_runs or ())
    idle_capacity_result = idle_capacity(job, usage, job_bill, market, savings)
    if isinstance(idle_capacity_result, MissingMetrics) and job.finished:
        warnings = [*warnings, f"idle capacity: {idle_capacity_result.reason}"]
    waste = _waste_outcomes(outcomes, ruleset, policy, usage)
    judged = judgement(job, job_bill, usage, waste, savings, pool)
    warm_pool_ends_at = _warm_pool_ends_at(job, now)
    return Audit(
        job=job,
        family=family_name,
        owner=policy.owner(job.tags),
        bill=job_bill,
        bill_facts=facts(job, job_bill, market, savings_plan=has_savings_plan),
        usage=usage,
        outcomes=tuple(outcomes),
        savings=judged.without_unknown_sums(savings),
        judgement=judged,
        is_settled=job.finished and warm_pool_ends_at is None,
        due_at=warm_pool_ends_at,
        ruleset=ruleset.version,
        policy=policy.version,
        notes=tuple(warnings),
        idle_capacity=None
        if isinstance(idle_capacity_result, MissingMetrics)
        else idle_capacity_result,
        pool=pool if pool and pool.has_enough_minutes else None,
        pool_avoidable_usd=_pooled_usd(pool, earlier_runs),
        tags=policy.cost_tags(job.tags),
        smallest_types=case.smallest_types,
        costlier_steps=case.costlier_steps,
    )


def _pooled_usd(
    pool: PooledRuns | None, earlier_runs: Sequence[AuditSummary] | None
) -> Decimal | None:
    # Unjudged runs count as 0. Returns None without a pool or a history.
    if pool is None or earlier_runs is None:
        return None
    amounts = [run.avoidable_usd for run in earlier_runs if run.job in pool.names]
    return sum((usd for usd in amounts if usd is not None), Decimal(0))


def _mark_reported_earlier(
    savings: Savings, ruleset: Ruleset, earlier_runs: Sequence[AuditSummary]
) -> Savings:
    # A finding with counted dollars is marked only if its rule names an earlier run.
    rules_reported_once = {rule.info.name for rule in ruleset.rules if rule.report_once_per_family}
    findings = tuple(
        replace(finding, reported_for_run=reported_for_run)
        if (reported_for_run := _reported_for_run(finding, rules_reported_once, earlier_runs))
        is not None
        else finding
        for finding in savings.findings
    )
    return replace(savings, findings=findings)


def _reported_for_run(
    finding: Finding, rules_reported_once: Collection[str], earlier_runs: Sequence[AuditSummary]
) -> str | None:
    if finding.rule.name not in rules_reported_once or finding.detection.bucket.is_counted:
        return finding.detection.reported_for_run
    return _oldest_run_with_rule(finding.rule.name, earlier_runs)


def _oldest_run_with_rule(rule: str, earlier_runs: Sequence[AuditSummary]) -> str | None:
    # `earlier_runs` are sorted newest first.
    return next(
        (run.job for run in reversed(earlier_runs) if rule in run.rules_with_findings), None
    )


def _can_see_gpus(rule: Rule, usage: Measurements) -> bool:
    return Metric.GPU in rule.required_metrics or bool(usage.by_type and not rule.required_metrics)


def _waste_outcomes(
    outcomes: Outcomes, ruleset: Ruleset, policy: Policy, usage: Measurements
) -> list[WasteOutcome]:
    # A rule for hosts of several types has no `required_metrics`, but reads each type's metrics.
    rules = {rule.info.name: rule for rule in ruleset.rules if rule.finds_waste}
    return [
        WasteOutcome(
            outcome, sees_devices=usage.gpus == 0 or _can_see_gpus(rules[rule_info.name], usage)
        )
        for rule_info, outcome in outcomes
        if rule_info.name in rules and rule_info.name not in policy.disabled_rules
    ]


def run_summary(audit: Audit) -> AuditSummary:
    """Returns the run's summary, with which later runs of the family are compared."""
    findings, job = audit.savings.findings, audit.job
    rules = [
        finding.rule.name for finding in findings if finding.is_standing and finding.rule.compared
    ]
    failure = None if job.status == "Completed" else failure_class(job)
    changes = (finding.detection.change for finding in findings if finding.is_standing)
    new_type = next(
        (change.instance_type for change in changes if isinstance(change, SetType)), None
    )
    summary = summary_of_run(job, reason=failure, rules_with_findings=rules, usage=audit.usage)
    return replace(
        summary,
        recommended_type=new_type,
        smallest_types=audit.smallest_types,
        costlier_steps=audit.costlier_steps or None,
    )


class Child(Struct, frozen=True):
    """A job that a roll-up launched: its audit and the final values of its training metrics."""

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
    """Returns the audit of a roll-up: its children's sums, and findings of the rules for roll-ups.

    `job` is None for a recording without the roll-up's Describe answer. Then the children supply
    its name and family. `launched_count` is None if unknown.
    """
    documents = [child.document for child in children]
    rollup_job = job or rollup.rollup_job_from_children(documents)
    family, owner = rollup_job.arn or rollup_job.name, policy.owner(rollup_job.tags)
    tags = policy.cost_tags(rollup_job.tags)
    if job is None:
        first_job = documents[0]["job"]
        family, owner, tags = first_job["family"], first_job["owner"], first_job["tags"]
    policy = policy.for_job(rollup_job.account, family, rollup_job.tags)
    exemption_by_rule, warnings = exemptions(
        policy, family, rollup_job.tags, _rule_infos(ruleset), now.date()
    )
    severities = _severities(policy)
    objective = rollup_job.tuning.objective if rollup_job.tuning else None
    trials = [
        trial_from_document(child.document, child.final_metrics, objective) for child in children
    ]
    trials.sort(
        key=lambda trial: trial.ended_at.isoformat() if trial.ended_at else _AFTER_ALL_DATES
    )
    case = RollUpCase(job, tuple(trials), kind=rollup_job.kind, policy=policy)
    outcomes = judge(case, ruleset.rules)
    detections = _detections(outcomes, as_estimates=any(trial.estimated for trial in trials))
    audit = rollup.roll_up(
        rollup_job,
        documents,
        family=family,
        owner=owner,
        launched_count=launched_count,
        severities=severities,
        ruleset=ruleset.version,
        policy=policy.version,
        outcomes=tuple(outcomes),
        own_savings=allocate_trial_savings(detections, trials, severities, exemption_by_rule),
    )
    return replace(audit, notes=(*audit.notes, *warnings), tags=tags)


class AccountAudit(Struct, frozen=True):
    """The outcomes and findings of the rules about the whole account."""

    outcomes: Outcomes
    findings: tuple[Finding, ...]


def audit_account(
    runs: Sequence[AuditSummary], days: int, policy: Policy, ruleset: Ruleset
) -> AccountAudit:
    """Returns what the account rules found in `runs`: the runs of the last `days` days, newest
    first.
    """
    outcomes = judge(AccountCase(tuple(runs), days, policy=policy), ruleset.rules)
    severities = _severities(policy)
    is_estimated = any(run.estimated for run in runs)
    findings = [
        Finding(
            rule=rule_info,
            detection=detection,
            severity=severities.severity_for(
                rule_info, detection.bucket, None, is_priced=detection.change is not None
            ),
            saving_usd=None,
            alone_usd=None,
            range_usd=None,
            estimated=is_estimated,
        )
        for rule_info, detection in _detections(outcomes, as_estimates=is_estimated)
    ]
    return AccountAudit(outcomes, tuple(findings))


def _detections(outcomes: Outcomes, *, as_estimates: bool) -> list[tuple[RuleInfo, Detection]]:
    # `as_estimates` marks the detections' dollars as estimates.
    detections = [
        (rule_info, detection)
        for rule_info, detection in outcomes
        if isinstance(detection, Detection)
    ]
    return (
        [(rule_info, mark_estimated(detection)) for rule_info, detection in detections]
        if as_estimates
        else detections
    )


def _severities(policy: Policy) -> Severities:
    return Severities(policy.severity, policy.severities)


def _rule_infos(ruleset: Ruleset) -> list[RuleInfo]:
    return [rule.info for rule in ruleset.rules]


def _warm_pool_ends_at(job: Job, now: datetime) -> datetime | None:
    """Returns when the warm pool should end; None if its billed seconds cannot grow any more.

    A requested pool that has no status after its keep-alive never existed (a quota of 0).
    """
    pool = job.warm_pool
    if pool is None or pool.is_final or job.ended_at is None:
        return None
    ends_at = job.ended_at + timedelta(seconds=pool.keep_alive_s or 0)
    return None if pool.status is None and now >= ends_at else ends_at
