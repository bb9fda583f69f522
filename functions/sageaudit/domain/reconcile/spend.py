"""SageMaker's spend as AWS reports it: a month from any source, and paid usage by days."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct

from sageaudit.domain.prices.price_list import spot_usage_types
from sageaudit.structs import replace

USAGE_TYPES = ("Usage", "DiscountedUsage", "SavingsPlanCoveredUsage")
"""Line item types (record types in Cost Explorer) that are usage, at on-demand cost.

Usage covered by a Savings Plan is included at its on-demand price; the plan's negations, credits,
refunds, taxes and fees are not usage.
"""


class AwsLine(NamedTuple):
    """Usage and cost as AWS metered them; `resource` is set if the source lists resources.

    A tuple, as a bill has hundreds of thousands.
    """

    usage_type: str
    region: str | None
    unit: str
    quantity: Decimal
    usd: Decimal
    resource: str | None = None


class Excluded(Struct, frozen=True):
    """Lines other than usage: credits, refunds, taxes, fees."""

    kind: str
    lines: int
    usd: Decimal


class AwsSpend(Struct, frozen=True):
    """The month's usage, and what was excluded from it."""

    lines: tuple[AwsLine, ...]
    excluded: tuple[Excluded, ...] = ()

    @property
    def managed_spot(self) -> tuple[str, ...]:
        """Usage types with managed-spot rates, sorted; no figure here uses them."""
        return spot_usage_types(line.usage_type for line in self.lines)


class PaidUsage(Struct, frozen=True):
    """Usage of one account and usage type from `first` to `last` (UTC days, both included).

    `lines`, `quantity` (instance-hours or GB-months) and `usd` (after discounts) are sums of the
    lines with a cost. `covered`: what a Savings Plan paid for.
    `cost_decimals`: the most that a cost has. `list_rate`: AWS's public price per unit according to
    the report. `largest_line`: where the line with the highest cost is.
    """

    account: str
    usage_type: str
    region: str | None
    unit: str
    first: date
    last: date
    cost_decimals: int
    lines: int
    quantity: Decimal
    usd: Decimal
    covered: Decimal
    list_rate: Decimal | None
    largest_usd: Decimal
    largest_line: str = ""

    @property
    def price(self) -> Decimal:
        """USD per unit; only where there is usage with a cost."""
        return self.usd / self.quantity

    def plus(self, later: PaidUsage) -> PaidUsage:
        """The sums of both, which are usage of one product."""
        largest = max(self, later, key=lambda usage: usage.largest_usd)
        return replace(
            largest,
            first=min(self.first, later.first),
            last=max(self.last, later.last),
            lines=self.lines + later.lines,
            quantity=self.quantity + later.quantity,
            usd=self.usd + later.usd,
            covered=self.covered + later.covered,
            list_rate=later.list_rate or self.list_rate,
        )


class PaidReport(Struct, frozen=True):
    """What a cost report has of SageMaker. `left_out`: its lines that are no usage at a price.

    `repeats`: lines that several files have, and that are counted once.
    """

    usage: tuple[PaidUsage, ...]
    left_out: tuple[Excluded, ...] = ()
    repeats: int = 0
