from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from sageaudit.domain.bill.type_rate import PricedType, cluster_usd_per_hour, small_type
from sageaudit.domain.job.job import Hints, InstanceGroup
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from tests.fakes.jobs import FixedPrices, gpu_type, instance_type, job, market

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


def small(name: str, market: Market = HERE, **changes: object) -> str | None:
    """The small type for a type, by name."""
    found = small_type(replace(job(name), **changes), market, BELOW)  # type: ignore[arg-type]
    return found.name if found else None


def test_all_instances_of_all_groups_are_billed_by_the_hour() -> None:
    """2 x $0.23 + $1.515; unknown with one rate unknown, without groups, without a region."""
    groups = (InstanceGroup("ml.m5.xlarge", 2), InstanceGroup("ml.g5.2xlarge", 1))
    assert cluster_usd_per_hour(job(groups=groups), market()) == Decimal("1.975")
    unpriced = (*groups, InstanceGroup("ml.unpriced.xlarge", 1))
    assert cluster_usd_per_hour(job(groups=unpriced), market()) is None
    assert cluster_usd_per_hour(job(groups=()), market()) is None
    assert cluster_usd_per_hour(job(region=None), market()) is None


def test_the_same_gpu_goes_before_a_cheaper_one() -> None:
    """The T4 costs half as much and is another GPU."""
    assert small_type(job("ml.g5.12xlarge"), HERE, BELOW) == PricedType(
        "ml.g5.xlarge", Decimal("1.408")
    )


def test_without_a_small_one_of_its_gpu_the_cheapest_other_one_will_do() -> None:
    """No A100 is cheap; bf16 rules the T4 out, which is too old for it."""
    assert small("ml.p4d.24xlarge") == "ml.g4dn.xlarge"
    assert small("ml.p4d.24xlarge", hints=Hints(mixed_precision=True)) == "ml.g5.xlarge"


def test_a_cpu_type_stays_in_its_family() -> None:
    """c5 has half the memory a vCPU, though it is cheaper."""
    assert small("ml.m5.24xlarge") == "ml.m5.large"


def test_only_types_under_the_rate_that_the_kind_may_use_are_small() -> None:
    """Exactly the rate is not under it; an accelerator of another maker runs no such code."""
    assert small_type(job("ml.g5.12xlarge"), HERE, Decimal("0.736")) is None
    barred = {
        name: replace(kind, kinds=frozenset({JobKind.PROCESSING}))
        for name, kind in HERE.types.items()
    }
    assert small("ml.g5.12xlarge", Market(barred, HERE.prices)) is None
    assert small("ml.trn1.2xlarge") is None


def test_an_old_generation_is_offered_only_to_an_old_one() -> None:
    """Another rule would move it away again."""
    old = {**HERE.types, "ml.g5.xlarge": replace(HERE.types["ml.g5.xlarge"], legacy=True)}
    assert small("ml.g5.12xlarge", Market(old, HERE.prices)) == "ml.g4dn.xlarge"
    both = {**old, "ml.g5.12xlarge": replace(HERE.types["ml.g5.12xlarge"], legacy=True)}
    assert small("ml.g5.12xlarge", Market(both, HERE.prices)) == "ml.g5.xlarge"


def test_an_unknown_type_or_a_mixed_cluster_has_no_small_one() -> None:
    """What its code needs is not known."""
    assert small("ml.strange.xlarge") is None
    groups = (InstanceGroup("ml.g5.12xlarge", 1), InstanceGroup("ml.m5.large", 1))
    assert small("ml.g5.12xlarge", groups=groups) is None
