"""The pure heart: from what ran and what it did to an audit. Every path runs these lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from sageaudit.domain.audit import rollup
from sageaudit.domain.audit.audit import Audit, Outcomes
from sageaudit.domain.audit.document import AuditDocument, JobDocument
from sageaudit.domain.audit.earlier import EarlierRun, RunFacts, facts_of
from sageaudit.domain.audit.trial import trial_of
from sageaudit.domain.audit.tuning_savings import settle_trials
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.bill_facts import facts
from sageaudit.domain.bill.counterfactual import settle, severity
from sageaudit.domain.bill.finding import Finding, Found
from sageaudit.domain.job.failure import reason_class
from sageaudit.domain.job.family import family
from sageaudit.domain.job.job import Job
from sageaudit.domain.policy.discounts import own
from sageaudit.domain.policy.exemption import exemptions
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.rules.card import AccountCase, FamilyCase, Ruleset, TuningCase
from sageaudit.rules.judge import judge, judge_account, judge_tuning

_LAST = "9999"
"""Sorts a trial without an end behind all others."""


def audit_job(
    job: Job,
    usage: Measurements,
    market: Market,
    policy: Policy,
    ruleset: Ruleset,
    *,
    now: datetime,
    earlier: tuple[EarlierRun, ...] | None = None,
) -> Audit:
    """Bill, rules and savings of one job.

    `market` has AWS's list prices; the policy's discounts are taken off here. `earlier` are the
    family's runs before this one, newest first; None where no history was read.
    """
    market = own(market, policy.discounts)
    billed = bill(job, market)
    plan = policy.discounts.savings_plan
    name = family(job, policy.family_tag)
    policy = policy.for_job(job.account, name, job.tags)
    held, warnings = exemptions(policy, name, job.tags, _names(ruleset), now.date())
    case = FamilyCase(job, usage.active(), usage, billed, market, earlier, policy=policy)
    outcomes = judge(case, ruleset.rules)
    founds = [(rule, outcome) for rule, outcome in outcomes if isinstance(outcome, Found)]
    due_at = _pool_due_at(job, now)
    return Audit(
        job=job,
        family=name,
        owner=policy.owner(job.tags),
        bill=billed,
        facts=facts(job, billed, market, savings_plan=plan),
        usage=usage,
        outcomes=tuple(outcomes),
        savings=settle(
            job,
            billed,
            founds,
            market,
            policy.severity,
            held,
            savings_plan=plan,
            severities=policy.severities,
        ),
        settled=job.finished and due_at is None,
        due_at=due_at,
        ruleset=ruleset.version,
        policy=policy.version,
        notes=tuple(warnings),
    )


def run_facts(audit: Audit) -> RunFacts:
    """What the family's next runs will know of this one."""
    standing = [one.rule.name for one in audit.savings.findings if one.stands]
    job = audit.job
    failed = None if job.status == "Completed" else reason_class(job)
    return facts_of(job, reason_class=failed, found=standing)


@dataclass(frozen=True, slots=True)
class Child:
    """A training job of a tuning job: its audit, and the last values that it reported."""

    document: AuditDocument
    final_metrics: Mapping[str, Decimal]


def audit_tuning(
    job: Job | None,
    named: JobDocument,
    children: Sequence[Child],
    policy: Policy,
    ruleset: Ruleset,
    *,
    now: datetime,
) -> AuditDocument:
    """Adds a tuning job's children up, and judges it by what they cost and reached.

    `job` is None for a recorded set without its tuning job's own answer; `named` says which it is.
    """
    tags = job.tags if job else {}
    launched = job.tuning.launched if job and job.tuning else None
    policy = policy.for_job(named["account"], named["family"], tags)
    held, _ = exemptions(policy, named["family"], tags, _names(ruleset), now.date())
    objective = job.tuning.objective if job and job.tuning else None
    trials = [trial_of(child.document, child.final_metrics, objective) for child in children]
    trials.sort(key=lambda trial: trial.ended_at.isoformat() if trial.ended_at else _LAST)
    outcomes = judge_tuning(TuningCase(job, tuple(trials), policy=policy), ruleset.rules)
    founds = [(rule, outcome) for rule, outcome in outcomes if isinstance(outcome, Found)]
    return rollup.roll_up(
        named,
        [child.document for child in children],
        launched=launched,
        limits=policy.severity,
        ruleset=ruleset.version,
        policy=policy.version,
        outcomes=outcomes,
        own=settle_trials(founds, trials, policy.severity, held, policy.severities),
    )


@dataclass(frozen=True, slots=True)
class AccountAudit:
    """What the account rules say of its runs. Their findings have no share of one job's bill."""

    outcomes: Outcomes
    findings: tuple[Finding, ...]


def audit_account(
    runs: Sequence[EarlierRun], days: int, policy: Policy, ruleset: Ruleset
) -> AccountAudit:
    """Judges an account by its runs of so many days, newest first."""
    outcomes = judge_account(AccountCase(tuple(runs), days, policy=policy), ruleset.rules)
    findings = [
        Finding(
            rule=name,
            found=found,
            severity=policy.severities.get(name.name)
            or severity(found, None, None, policy.severity),
            saving_usd=None,
            alone_usd=None,
            range_usd=None,
        )
        for name, found in outcomes
        if isinstance(found, Found)
    ]
    return AccountAudit(outcomes, tuple(findings))


def _names(ruleset: Ruleset) -> list[str]:
    return [rule.name.name for rule in ruleset.rules]


def _pool_due_at(job: Job, now: datetime) -> datetime | None:
    """The end of the keep-alive while the pool's seconds may still grow.

    A pool that was asked for and has no status by then was never kept (a quota of 0).
    """
    pool = job.warm_pool
    if pool is None or pool.settled or job.ended_at is None:
        return None
    due_at = job.ended_at + timedelta(seconds=pool.keep_alive_s or 0)
    return None if pool.status is None and now >= due_at else due_at
