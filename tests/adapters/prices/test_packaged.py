"""The packaged market: types, rates with date and source, and what is not known."""

from decimal import Decimal

import pytest

from sageaudit.domain.job.kinds import Component
from tests.fakes.jobs import not_none
from tests.fakes.packaged_prices import packaged_market

MARKET = packaged_market()
PRICES = MARKET.prices
TRAINING, PROCESSING, TRANSFORM = Component


@pytest.mark.parametrize(
    ("region", "component", "instance", "usd"),
    [
        ("us-east-1", TRAINING, "ml.g5.2xlarge", "1.515"),
        ("us-east-1", TRAINING, "ml.g4dn.2xlarge", "0.94"),
        ("us-east-1", TRAINING, "ml.m5.4xlarge", "0.922"),
        ("eu-west-1", TRAINING, "ml.g4dn.xlarge", "0.822"),
        ("eu-west-1", PROCESSING, "ml.g4dn.xlarge", "0.821"),
        ("eu-west-1", TRANSFORM, "ml.g4dn.xlarge", "0.821"),
        ("us-west-1", TRAINING, "ml.g4dn.xlarge", "0.8832"),
        ("us-west-1", PROCESSING, "ml.g4dn.xlarge", "0.736"),
        # what is not listed is unknown: never 0, never a neighbour's
        ("us-east-1", TRAINING, "ml.p5e.48xlarge", None),
        ("us-east-1", TRAINING, "ml.trn2.48xlarge", None),
        ("us-east-1", TRAINING, "ml.nonsense.large", None),
        ("xx-nowhere-1", TRAINING, "ml.m5.large", None),
        ("cn-northwest-1", TRAINING, "ml.p3.2xlarge", None),
    ],
)
def test_a_rate_is_that_of_region_component_and_type(
    region: str, component: Component, instance: str, usd: str | None
) -> None:
    """Exceptions first; every rate carries its date and source."""
    rate = PRICES.hourly_rate(region, component, instance)
    assert (rate and rate.usd) == (None if usd is None else Decimal(usd))
    assert rate is None or (rate.as_of == "2026-05-20" and rate.source)


@pytest.mark.parametrize(
    ("region", "instance", "disputed"),
    [
        ("us-west-1", "ml.g4dn.2xlarge", True),
        ("us-gov-east-1", "ml.m5.xlarge", True),
        ("eu-south-2", "ml.c7i.xlarge", True),
        ("eu-central-1", "ml.g6e.xlarge", True),
        ("us-east-1", "ml.g4dn.2xlarge", False),
    ],
)
def test_a_disputed_rate_says_so(region: str, instance: str, *, disputed: bool) -> None:
    """The figure stands, with what speaks against it; its neighbours have no note."""
    assert bool(not_none(PRICES.hourly_rate(region, PROCESSING, instance)).note) is disputed


@pytest.mark.parametrize(
    ("region", "component", "usd"),
    [
        ("us-east-1", TRAINING, "0.14"),
        ("us-east-1", PROCESSING, "0.10"),
        ("eu-west-1", TRAINING, "0.154"),
        ("eu-west-1", PROCESSING, "0.11"),
        ("eu-north-1", TRAINING, "0.146"),
        ("sa-east-1", TRAINING, "0.266"),
        # us-west-1 is disputed and left out
        *((region, TRAINING, None) for region in ("us-west-1", "ca-west-1", "xx-nowhere-1")),
    ],
)
def test_storage_has_its_own_rates(region: str, component: Component, usd: str | None) -> None:
    """Processing at the plain EBS price: observed, or training / 1.4."""
    rate = PRICES.storage_rate(region, component)
    assert (rate and round(rate.usd, 4)) == (None if usd is None else Decimal(usd))


@pytest.mark.parametrize(
    ("region", "component", "what", "usage_type"),
    [
        ("us-east-1", TRAINING, "ml.m5.large", "USE1-Train:ml.m5.large"),
        ("us-east-1", PROCESSING, "ml.m5.large", "USE1-Processing:ml.m5.large"),
        ("eu-west-1", TRAINING, "ml.m5.large", "EU-Train:ml.m5.large"),
        ("ap-south-1", TRANSFORM, "ml.m5.large", "APS3-Tsform:ml.m5.large"),
        ("us-east-1", TRAINING, "VolumeUsage.gp2", "USE1-Train:VolumeUsage.gp2"),
        ("us-west-2", TRAINING, "ml.m5.large", None),
        ("ap-southeast-3", TRAINING, "ml.m5.large", None),
    ],
)
def test_usage_types_come_from_observed_prefixes(
    region: str, component: Component, what: str, usage_type: str | None
) -> None:
    """They are irregular: no prefix is ever built by rule."""
    assert PRICES.usage_type(region, component, what) == usage_type


@pytest.mark.parametrize(
    ("name", "vcpu", "memory", "gpus", "ebs"),
    [
        ("ml.m5.xlarge", 4, 16, 0, True),
        ("ml.g4dn.12xlarge", 48, 192, 4, False),
        ("ml.p3.2xlarge", 8, 61, 1, True),
        ("ml.p4d.24xlarge", 96, 1152, 8, False),
        ("ml.c5.18xlarge", 72, 144, 0, True),
        ("ml.trn1.2xlarge", 8, 32, 0, False),
    ],
)
def test_a_type_is_what_aws_says_it_is(
    name: str, vcpu: int, memory: int, gpus: int, ebs: bool
) -> None:
    """vCPU, GiB, GPUs, and whether an EBS volume is billed."""
    kind = MARKET.types[name]
    assert (kind.vcpu, kind.memory_gib, kind.gpus, kind.is_ebs_billed) == (vcpu, memory, gpus, ebs)


def test_the_catalogue_has_all_types_of_the_api() -> None:
    """225, each with vCPU and memory, EBS known for all but one; no rate passed through a float."""
    kinds = MARKET.types.values()
    assert len(kinds) == 225
    assert all(kind.vcpu > 0 and kind.memory_gib > 0 for kind in kinds)
    assert [kind.name for kind in kinds if kind.is_ebs_billed is None] == ["ml.p6e-gb200.36xlarge"]
    rates = [PRICES.hourly_rate("us-east-1", TRAINING, name) for name in MARKET.types]
    usd = [rate.usd for rate in rates if rate]
    assert all(isinstance(amount, Decimal) and len(str(amount)) <= 12 for amount in usd)
    assert PRICES.version == "packaged 2026-05-20"
