"""One rule's answer, and the dollars of what it found."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from sageaudit.domain.bill import bill
from sageaudit.domain.counterfactual import SeverityLimits, settle
from sageaudit.domain.finding import Finding, Found, NotApplicable, Outcome, Unknown
from sageaudit.domain.job import Job
from sageaudit.domain.market import Market
from sageaudit.domain.measurements import Measurements
from sageaudit.rules import catalogue
from sageaudit.rules.card import JobCase
from sageaudit.rules.judge import judge
from tests.fakes.jobs import market, seen


def outcome(
    rule: str,
    job: Job,
    of: Measurements | None = None,
    *,
    limits: Mapping[str, float] | None = None,
    off: bool = False,
    on: Market | None = None,
) -> Outcome:
    """What the rule says of the job; `limits` are the policy's thresholds for it."""
    prices = on or market()
    case = JobCase(job, of or seen(job), bill(job, prices), prices)
    outcomes = judge(
        case,
        catalogue.load(),
        off=frozenset({rule} if off else ()),
        overrides={rule: limits or {}},
    )
    return next(answer for name, answer in outcomes if name.name == rule)


def found(rule: str, job: Job, of: Measurements | None = None, **more: object) -> Found:
    """The rule's finding; fails with its answer where it found nothing."""
    answer = outcome(rule, job, of, **more)  # type: ignore[arg-type]
    assert isinstance(answer, Found), answer
    return answer


def unknown(rule: str, job: Job, of: Measurements | None = None) -> str:
    """The code of the rule's Unknown."""
    answer = outcome(rule, job, of)
    assert isinstance(answer, Unknown), answer
    return answer.code


def excuse(rule: str, job: Job, of: Measurements | None = None) -> str:
    """Why the rule does not speak of the job."""
    answer = outcome(rule, job, of)
    assert isinstance(answer, NotApplicable), answer
    return answer.reason


def priced(rule: str, job: Job, of: Measurements | None = None) -> Finding:
    """The finding with its dollars, as the only one of the job."""
    name = next(card.name for card in catalogue.load() if card.name.name == rule)
    found_slice = found(rule, job, of)
    savings = settle(
        job, bill(job, market()), [(name, found_slice)], market(), SeverityLimits(), {}
    )
    return savings.findings[0]


def usd(amount: Decimal | None) -> str:
    """To the millionth of a dollar."""
    assert amount is not None
    return f"{amount:.6f}"
