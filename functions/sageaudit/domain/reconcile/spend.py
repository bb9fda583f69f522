"""One month of SageMaker spend as AWS reports it, from any source."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.prices.price_list import spot_usage_types

USAGE_TYPES = ("Usage", "DiscountedUsage", "SavingsPlanCoveredUsage")
"""Line item types (record types in Cost Explorer) that are usage, at on-demand cost.

Usage covered by a Savings Plan is included at its on-demand price; the plan's negations, credits,
refunds, taxes and fees are not usage.
"""


@dataclass(frozen=True, slots=True)
class AwsLine:
    """Usage and cost as AWS metered them; `resource` is set if the source lists resources."""

    usage_type: str
    region: str | None
    unit: str
    quantity: Decimal
    usd: Decimal
    resource: str | None = None


@dataclass(frozen=True, slots=True)
class Excluded:
    """Lines other than usage: credits, refunds, taxes, fees. `lines` is None where not counted."""

    kind: str
    lines: int | None
    usd: Decimal


@dataclass(frozen=True, slots=True)
class AwsSpend:
    """The month's usage, what was excluded from it, and whether AWS may still change it."""

    lines: tuple[AwsLine, ...]
    excluded: tuple[Excluded, ...] = ()
    estimated: bool = False

    @property
    def managed_spot(self) -> tuple[str, ...]:
        """Usage types with managed-spot rates, sorted; no figure here uses them."""
        return spot_usage_types(line.usage_type for line in self.lines)
