from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.type_rate import (
    cluster_usd_per_hour,
    share_beside_cpu_type,
    small_type,
)
from sageaudit.domain.job.job import Hints, InstanceGroup
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from tests.fakes.jobs import FixedPrices, gpu_type, instance_type, job, known, market

BELOW = Decimal(3)
DEAR = gpu_type("ml.p4d.24xlarge", 96, 1152, 8, "A100")
SMALL = (
    gpu_type("ml.g4dn.xlarge", 4, 16, 1, "T4"),
    gpu_type("ml.g5.xlarge", 4, 16, 1, "A10G"),
    gpu_type("ml.g5.12xlarge", 48, 192, 4, "A10G"),
    instance_type("ml.trn1.2xlarge", 8, 32, accelerator="neuron"),
    instance_type("ml.c5.large", 2, 4),
    instance_type("ml.m5.large", 2, 8),
    instance_type("ml.m5.24xlarge", 96, 384),
)
RATES = {
    "ml.p4d.24xlarge": "37.688",
    "ml.g4dn.xlarge": "0.736",
    "ml.g5.xlarge": "1.408",
    "ml.g5.12xlarge": "7.09",
    "ml.trn1.2xlarge": "1.545",
    "ml.c5.large": "0.10",
    "ml.m5.large": "0.115",
    "ml.m5.24xlarge": "5.53",
}
HERE = Market({kind.name: kind for kind in (DEAR, *SMALL)}, FixedPrices(RATES))

MIXED = (InstanceGroup("ml.g5.12xlarge", 1), InstanceGroup("ml.m5.large", 1))


def small(name: str, market: Market = HERE, **changes: Any) -> str | None:
    """The small type for a type, by name."""
    found = small_type(replace(job(name), **changes), market, BELOW)
    return found.name if found else None


def test_all_instances_of_all_groups_are_billed_by_the_hour() -> None:
    """2 x $0.23 + $1.515; unknown with one rate unknown, without groups, without a region."""
    groups = (InstanceGroup("ml.m5.xlarge", 2), InstanceGroup("ml.g5.2xlarge", 1))
    assert cluster_usd_per_hour(job(groups=groups), market()) == Decimal("1.975")
    unpriced = (*groups, InstanceGroup("ml.unpriced.xlarge", 1))
    assert cluster_usd_per_hour(job(groups=unpriced), market()) is None
    assert cluster_usd_per_hour(job(groups=()), market()) is None
    assert cluster_usd_per_hour(job(region=None), market()) is None


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        # the T4 costs half as much and is another GPU than the A10G
        ("ml.g5.12xlarge", {}, "ml.g5.xlarge"),
        # no A100 is cheap; bf16 rules the T4 out, which is too old for it
        ("ml.p4d.24xlarge", {}, "ml.g4dn.xlarge"),
        ("ml.p4d.24xlarge", {"hints": Hints(mixed_precision=True)}, "ml.g5.xlarge"),
        # a CPU type stays in its family: c5 has half the memory a vCPU, though it is cheaper
        ("ml.m5.24xlarge", {}, "ml.m5.large"),
        # an accelerator of another maker runs no such code
        ("ml.trn1.2xlarge", {}, None),
        # what the code of an unknown type or a mixed cluster needs is not known
        ("ml.strange.xlarge", {}, None),
        ("ml.g5.12xlarge", {"groups": MIXED}, None),
    ],
)
def test_a_small_type_runs_the_same_code(
    name: str, changes: dict[str, Any], expected: str | None
) -> None:
    """The same GPU goes before a cheaper one; without one the cheapest other one will do."""
    assert small(name, **changes) == expected
    if expected is not None:
        found = known(small_type(replace(job(name), **changes), HERE, BELOW))
        assert found.hourly_usd == Decimal(RATES[expected])


def test_only_types_under_the_rate_that_the_kind_may_use_are_small() -> None:
    """Exactly the rate is not under it."""
    assert small_type(job("ml.g5.12xlarge"), HERE, Decimal("0.736")) is None
    barred = {
        name: replace(kind, kinds=frozenset({JobKind.PROCESSING}))
        for name, kind in HERE.types.items()
    }
    assert small("ml.g5.12xlarge", Market(barred, HERE.prices)) is None


def test_an_old_generation_is_offered_only_to_an_old_one() -> None:
    """Another rule would move it away again."""
    old = {**HERE.types, "ml.g5.xlarge": replace(HERE.types["ml.g5.xlarge"], legacy=True)}
    assert small("ml.g5.12xlarge", Market(old, HERE.prices)) == "ml.g4dn.xlarge"
    both = {**old, "ml.g5.12xlarge": replace(HERE.types["ml.g5.12xlarge"], legacy=True)}
    assert small("ml.g5.12xlarge", Market(both, HERE.prices)) == "ml.g5.xlarge"


@pytest.mark.parametrize(
    ("cores", "memory_gib", "beside_usd"),
    [
        # with a fifth above: one c5.large; an m5.large for its memory; so many of the cheapest
        (1.25, 3, "0.10"),
        (1.25, 6, "0.115"),
        (1.25, 230, "4.025"),
        (40, 3, "2.40"),
    ],
)
def test_cpu_types_hold_the_cores_and_the_memory(
    cores: float, memory_gib: float, beside_usd: str
) -> None:
    """Of two hosts as many each; what is left of $75.376 an hour."""
    on_two = job(groups=(InstanceGroup(DEAR.name, 2),))
    share = known(share_beside_cpu_type(on_two, HERE, cores, memory_gib))
    assert share == 1 - 2 * Decimal(beside_usd) / Decimal("75.376")
    assert share_beside_cpu_type(on_two, market(), cores, memory_gib) is None
