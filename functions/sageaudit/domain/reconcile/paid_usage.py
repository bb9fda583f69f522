"""Paid usage in a cost report, summed by account, usage type and days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from sageaudit.domain.reconcile.spend import Excluded

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class UsageSums:
    """Sums of the lines from `first` to `last` (UTC days, both included).

    `lines`, `quantity` (instance-hours or GB-months) and `usd` are those with a cost. `covered`:
    what of the quantity a Savings Plan paid for. `free`: the quantity at $0. `list_rate`: AWS's
    public price per unit according to the report. `largest_line` has the highest cost.
    """

    first: date
    last: date
    lines: int = 0
    quantity: Decimal = _ZERO
    usd: Decimal = _ZERO
    covered: Decimal = _ZERO
    free: Decimal = _ZERO
    list_rate: Decimal | None = None
    largest_usd: Decimal = _ZERO
    largest_line: str = ""

    @property
    def price(self) -> Decimal:
        """USD per unit; only where there is usage with a cost."""
        return self.usd / self.quantity

    def plus(self, later: UsageSums) -> UsageSums:
        """The sums of both."""
        largest = max(self, later, key=lambda sums: sums.largest_usd)
        return UsageSums(
            min(self.first, later.first),
            max(self.last, later.last),
            self.lines + later.lines,
            self.quantity + later.quantity,
            self.usd + later.usd,
            self.covered + later.covered,
            self.free + later.free,
            later.list_rate or self.list_rate,
            largest.largest_usd,
            largest.largest_line,
        )


@dataclass(frozen=True, slots=True)
class PaidUsage:
    """Usage of one account and usage type in some days, at its cost after discounts.

    `covered`: a Savings Plan paid for it. `cost_decimals`: the most that a cost of it has.
    """

    sums: UsageSums
    account: str
    payer: str
    usage_type: str
    region: str | None
    unit: str
    covered: bool
    cost_decimals: int


@dataclass(frozen=True, slots=True)
class PaidReport:
    """What a cost report has of SageMaker. `left_out`: its lines that are no usage at a price.

    `repeats`: lines that several files have, and that are counted once.
    """

    usage: tuple[PaidUsage, ...]
    left_out: tuple[Excluded, ...] = ()
    repeats: int = 0
