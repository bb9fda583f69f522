"""A month of SageMaker as AWS bills it, wherever it was read."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

USAGE_TYPES = ("Usage", "DiscountedUsage", "SavingsPlanCoveredUsage")
"""Line item types (record types in Cost Explorer) that are usage, at what it costs on demand.

What a savings plan covers is here at its on-demand price; its negation, credits, refunds, taxes and
fees are not usage.
"""


@dataclass(frozen=True, slots=True)
class AwsLine:
    """What AWS metered of one usage type; `resource` where the source tells resources apart."""

    usage_type: str
    region: str | None
    unit: str
    quantity: Decimal
    usd: Decimal
    resource: str | None = None


@dataclass(frozen=True, slots=True)
class Excluded:
    """Lines that are no usage: credits, refunds, taxes, fees. `lines` None where not counted."""

    kind: str
    lines: int | None
    usd: Decimal


@dataclass(frozen=True, slots=True)
class AwsSpend:
    """AWS's month: its usage, what was left out of it, and whether it may still change."""

    lines: tuple[AwsLine, ...]
    excluded: tuple[Excluded, ...] = ()
    estimated: bool = False
