"""Rates that nobody has read: EC2's on-demand rate times the factor of the instance family.

SageMaker's rate over EC2's is one constant for a family, sometimes with another one for a size: of
2,186 pairs of rates in 37 regions 98.6% lie within 1% of their family's constant, and it predicted
60 of 60 Training rates that nobody had looked at within 0.5%. A family without a pair has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_history import KnownRate

STANDS_FOR_ALL = "Hosting"
"""Its rates stand in for Training, Processing and Transform, as in the packaged table."""


@dataclass(frozen=True, slots=True)
class Factor:
    """SageMaker's rate over EC2's, and the pairs of rates by component on which it was tested.

    `size` is None for all sizes of the family that have no factor of their own. `lowest` and
    `highest` are the ends of the pairs' ratios.
    """

    family: str
    size: str | None
    factor: Decimal
    pairs: Mapping[str, int]
    lowest: Decimal
    highest: Decimal

    def tested_for(self, component: Component) -> bool:
        """True if a pair of this component, or of one that stands in for it, was compared."""
        return any(self.pairs.get(name, 0) > 0 for name in (component.value, STANDS_FOR_ALL))


def factor_of(
    instance_type: str, component: Component, factors: Mapping[tuple[str, str | None], Factor]
) -> Factor | None:
    """The factor of a type by its size, else by its family; None if none was tested."""
    _, _, name = instance_type.partition(".")
    family, _, size = name.partition(".")
    factor = factors.get((family, size)) or factors.get((family, None))
    return factor if factor is not None and factor.tested_for(component) else None


def estimated(
    instance_type: str, ec2_usd: Decimal, factor: Factor, as_of: str, source: str
) -> KnownRate:
    """The rate of a type, of the day on which EC2's rate was read. Pure."""
    times = f"x {factor.factor:.2f}"
    tested = sum(factor.pairs.values())
    compared = "1 pair of rates" if tested == 1 else f"{tested} pairs of rates"
    note = (
        f"EC2's ${ec2_usd:f} {times}; {compared} of its family: "
        f"{factor.lowest:f} to {factor.highest:f}"
    )
    seen = KnownRate.seen(ec2_usd * factor.factor, as_of, source, note)
    return replace(
        seen,
        kind="estimate",
        estimated=f"SageMaker's rate for {instance_type} is not known here; "
        f"estimated from EC2's rate {times}",
    )
