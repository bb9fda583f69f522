"""Runs one rule on a job, and computes the dollars of its findings."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.counterfactual import Savings, Severities, allocate_savings
from sageaudit.domain.bill.finding import Detection, Finding, Outcome, Unknown
from sageaudit.domain.job.job import Job
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.rules import catalogue
from sageaudit.rules.card import FamilyCase, Rule
from sageaudit.rules.judge import judge
from sageaudit.structs import replace
from tests.fakes import jobs


def outcome(
    rule: str,
    job: Job,
    usage: Measurements | Callable[[Job], Measurements] | None = None,
    *,
    limits: Mapping[str, float] | None = None,
    off: bool = False,
    market: Market | None = None,
    earlier: Sequence[AuditSummary] | None = None,
    policy: Policy | None = None,
) -> Outcome:
    """Returns the rule's outcome for the job; `limits` set the rule's thresholds.

    `earlier` are the family's runs before it, newest first; None: no history was read.
    """
    set_by = replace(
        policy or Policy(enabled_rules=frozenset({rule})),
        disabled_rules=frozenset({rule} if off else ()),
        thresholds={rule: limits or {}},
    )
    measured = usage(job) if callable(usage) else usage
    judged = case(job, measured, market=market, earlier=earlier, policy=set_by)
    [(_, answer)] = judge(judged, [rule_named(rule)])
    return answer


def rule_named(rule: str) -> Rule:
    """Returns a rule by its name."""
    return next(loaded for loaded in catalogue.load() if loaded.info.name == rule)


def case(
    job: Job,
    usage: Measurements | None = None,
    *,
    market: Market | None = None,
    earlier: Sequence[AuditSummary] | None = None,
    policy: Policy | None = None,
) -> FamilyCase:
    """Returns the case that rules judge for this job."""
    prices, whole = market or jobs.market(), usage or jobs.usage(job)
    runs = None if earlier is None else tuple(earlier)
    billed = bill(job, prices)
    return FamilyCase(
        job, whole.active_part(), whole, billed, prices, runs, policy=policy or Policy()
    )


def expect_detection(rule: str, job: Job, *usage: Any, **more: Any) -> Detection:
    """Returns the rule's detection; fails with the outcome if it is not one."""
    answer = outcome(rule, job, *usage, **more)
    assert isinstance(answer, Detection), answer
    return answer


def unknown_code(rule: str, job: Job, *usage: Any, **more: Any) -> str:
    """Returns the code of the rule's Unknown."""
    answer = outcome(rule, job, *usage, **more)
    assert isinstance(answer, Unknown), answer
    return answer.code


def savings_of(rules: Sequence[str], job: Job, *usage: Any, **more: Any) -> Savings:
    """Returns the savings of what these rules detect in a job, allocated together."""
    founds = {rule: expect_detection(rule, job, *usage, **more) for rule in rules}
    return _saved(job, founds, more.get("market"))


def _saved(job: Job, founds: Mapping[str, Detection], market: Market | None) -> Savings:
    pairs = [(rule_named(rule).info, detection) for rule, detection in founds.items()]
    prices = market or jobs.market()
    return allocate_savings(job, bill(job, prices), pairs, prices, Severities(), {})


def answer(rule: str, job: Job, *usage: Any, **more: Any) -> Finding | Outcome:
    """Returns the rule's outcome; a detection as a finding with its dollars."""
    answered = outcome(rule, job, *usage, **more)
    if not isinstance(answered, Detection):
        return answered
    return _saved(job, {rule: answered}, more.get("market")).findings[0]


def usd(amount: Decimal | None) -> str:
    """Formats an amount with six decimals."""
    assert amount is not None
    return f"{amount:.6f}"
