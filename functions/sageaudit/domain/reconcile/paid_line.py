"""One line of usage in a cost report, with what was paid for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class PaidLine:
    """SageMaker usage of one account from `first` to `last` (UTC days, both included).

    `usd`: its cost on demand, after discounts where `net`, else before those that the report has as
    lines of their own. `amortised_usd`: the same with a Savings Plan's cost
    of the hours that it covers; None where the report lacks it. `covered`: a plan paid for it.
    `list_rate`: AWS's public on-demand price per unit according to the report.
    """

    account: str
    payer: str
    usage_type: str
    region: str | None
    first: date
    last: date
    quantity: Decimal
    unit: str
    usd: Decimal
    net: bool
    amortised_usd: Decimal | None
    covered: bool
    list_rate: Decimal | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A line that is no usage at a price: tax, credit, refund, fee, a plan's negation."""

    kind: str
    usd: Decimal


@dataclass(frozen=True, slots=True)
class DiscountLine:
    """A discount as a line of its own; where its payer has net costs, they have it already."""

    kind: str
    usage_type: str
    region: str | None
    day: date
    usd: Decimal
    payer: str = ""


ReportLine = PaidLine | LeftOut | DiscountLine
