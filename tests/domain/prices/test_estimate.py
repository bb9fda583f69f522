"""Rates made from EC2's: which factor applies, and what the estimate says of itself."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.known_prices import Factor, estimated, factor_of


def factor(family: str, usd: str, size: str | None = None, **pairs: int) -> Factor:
    """A factor with its pairs of rates by component."""
    return Factor(family, size, Decimal(usd), pairs, Decimal("1.19"), Decimal("1.21"))


G4DN, G4DN_XLARGE = factor("g4dn", "1.25", Hosting=9), factor("g4dn", "1.40", "xlarge", Hosting=3)
C5N, UNTESTED = factor("c5n", "1.20", Training=5), factor("g7", "1.25", Hosting=0)
FACTORS = {(one.family, one.size): one for one in (G4DN, G4DN_XLARGE, C5N, UNTESTED)}


@pytest.mark.parametrize(
    ("name", "component", "expected"),
    [
        ("ml.g4dn.xlarge", Component.TRAINING, G4DN_XLARGE),
        ("ml.g4dn.2xlarge", Component.TRAINING, G4DN),
        ("ml.g4dn.2xlarge", Component.TRANSFORM, G4DN),
        ("ml.c5n.large", Component.TRAINING, C5N),
        ("ml.c5n.large", Component.PROCESSING, None),
        ("ml.g7.2xlarge", Component.TRAINING, None),
        ("ml.g4.xlarge", Component.TRAINING, None),
        ("ml.c5n-flex.large", Component.TRAINING, None),
        ("odd", Component.TRAINING, None),
    ],
)
def test_a_factor_is_of_the_size_or_family_and_was_tested_for_the_component(
    name: str, component: Component, expected: Factor | None
) -> None:
    """Hosting stands in for every component; a family without a pair has no factor."""
    assert factor_of(name, component, FACTORS) == expected


def test_an_estimate_is_a_kind_of_its_own_and_says_how_it_was_made() -> None:
    """It never says that SageMaker sells the type."""
    rate = estimated("ml.c5n.large", Decimal("0.108"), C5N, "2026-07-20", "EC2").rate
    assert (rate.usd, rate.kind, rate.as_of) == (Decimal("0.1296"), "estimate", "2026-07-20")
    assert rate.estimated == (
        "SageMaker's rate for ml.c5n.large is not known here; estimated from EC2's rate x 1.20"
    )
    assert rate.note == "EC2's $0.108 x 1.20; 5 pairs of rates of its family: 1.19 to 1.21"
