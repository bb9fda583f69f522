"""One rule's answer, and the dollars of what it found."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.counterfactual import Savings, Severities, allocate
from sageaudit.domain.bill.finding import Finding, Found, NotApplicable, Outcome, Unknown
from sageaudit.domain.job.job import Job
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.rules import catalogue
from sageaudit.rules.card import FamilyCase, Rule
from sageaudit.rules.judge import judge
from sageaudit.structs import replace
from tests.fakes.jobs import market, usage


def outcome(
    rule: str,
    job: Job,
    of: Measurements | Callable[[Job], Measurements] | None = None,
    *,
    limits: Mapping[str, float] | None = None,
    off: bool = False,
    on: Market | None = None,
    earlier: Sequence[AuditSummary] | None = None,
    policy: Policy | None = None,
) -> Outcome:
    """What the rule says of the job; `limits` are the policy's thresholds for it.

    `earlier` are the family's runs before it, newest first; None: no history was read.
    """
    set_by = replace(
        policy or Policy(rules_on=frozenset({rule})),
        rules_off=frozenset({rule} if off else ()),
        thresholds={rule: limits or {}},
    )
    measured = of(job) if callable(of) else of
    [(_, answer)] = judge(case(job, measured, on=on, earlier=earlier, policy=set_by), [card(rule)])
    return answer


def card(rule: str) -> Rule:
    """A rule by its name."""
    return next(one for one in catalogue.load() if one.name.name == rule)


def case(
    job: Job,
    of: Measurements | None = None,
    *,
    on: Market | None = None,
    earlier: Sequence[AuditSummary] | None = None,
    policy: Policy | None = None,
) -> FamilyCase:
    """A job as rules see it."""
    prices, whole = on or market(), of or usage(job)
    runs = None if earlier is None else tuple(earlier)
    billed = bill(job, prices)
    return FamilyCase(job, whole.active(), whole, billed, prices, runs, policy=policy or Policy())


def found(rule: str, job: Job, *of: Any, **more: Any) -> Found:
    """The rule's finding; fails with its answer where it found nothing."""
    answer = outcome(rule, job, *of, **more)
    assert isinstance(answer, Found), answer
    return answer


def unknown(rule: str, job: Job, *of: Any, **more: Any) -> str:
    """The code of the rule's Unknown."""
    answer = outcome(rule, job, *of, **more)
    assert isinstance(answer, Unknown), answer
    return answer.code


def not_applicable(rule: str, job: Job, *of: Any, **more: Any) -> str:
    """The reason why the rule does not apply to the job."""
    answer = outcome(rule, job, *of, **more)
    assert isinstance(answer, NotApplicable), answer
    return answer.reason


def together(rules: Sequence[str], job: Job, *of: Any, **more: Any) -> Savings:
    """What these rules find in a job, and what that saves together."""
    return _saved(job, {rule: found(rule, job, *of, **more) for rule in rules}, more.get("on"))


def _saved(job: Job, founds: Mapping[str, Found], on: Market | None) -> Savings:
    pairs = [(card(rule).name, one) for rule, one in founds.items()]
    prices = on or market()
    return allocate(job, bill(job, prices), pairs, prices, Severities(), {})


def answer(rule: str, job: Job, *of: Any, **more: Any) -> Finding | Outcome:
    """The rule's outcome; a finding with its dollars, as the only one of the job."""
    said = outcome(rule, job, *of, **more)
    if not isinstance(said, Found):
        return said
    return _saved(job, {rule: said}, more.get("on")).findings[0]


def priced(rule: str, job: Job, *of: Any, **more: Any) -> Finding:
    """The finding with its dollars; fails with its answer where it found nothing."""
    said = answer(rule, job, *of, **more)
    assert isinstance(said, Finding), said
    return said


def usd(amount: Decimal | None) -> str:
    """To the millionth of a dollar."""
    assert amount is not None
    return f"{amount:.6f}"
