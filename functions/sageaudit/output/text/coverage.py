"""How much of the SageMaker bill was audited, and what of it are no jobs, in sentences."""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.reconcile.coverage import Coverage
from sageaudit.output.text.money import usd

_WHOLE = Decimal(100)
_NAMED = 4


def coverage_headline(covered: Coverage) -> str:
    """One sentence: how much of the bill was audited."""
    days = f"{covered.since}..{covered.until}"
    if covered.percent is None:
        return f"AWS shows no SageMaker bill of {days}; {usd(covered.audited_usd)} was audited"
    bill = f"{usd(covered.bill_usd)} SageMaker bill of {days}"
    return f"{usd(covered.audited_usd)} of the {bill} was audited ({_share(covered.percent)})"


def outside_words(covered: Coverage) -> str:
    """`Not audited: endpoints $300.00, notebooks $20.00.`; empty where all of it are jobs."""
    named = [f"{one.name} {usd(one.usd)}" for one in covered.outside[:_NAMED]]
    if rest := covered.outside[_NAMED:]:
        named.append(f"other usage {usd(sum((one.usd for one in rest), Decimal(0)))}")
    return f"Not audited: {', '.join(named)}." if named else ""


def _share(percent: Decimal) -> str:
    if 0 < percent < 1:
        return "under 1%"
    if _WHOLE - 1 < percent < _WHOLE:
        return "over 99%"
    return f"{percent:.0f}%"
