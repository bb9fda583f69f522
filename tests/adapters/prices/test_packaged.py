"""The packaged market: types, rates with date and source, and what is not known."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.kinds import Component

MARKET = packaged.market()
PRICES = MARKET.prices


@pytest.mark.parametrize(
    ("region", "component", "instance", "usd"),
    [
        ("us-east-1", Component.TRAINING, "ml.g5.2xlarge", "1.515"),
        ("us-east-1", Component.TRAINING, "ml.g4dn.2xlarge", "0.94"),
        ("us-east-1", Component.TRAINING, "ml.m5.4xlarge", "0.922"),
        ("eu-west-1", Component.TRAINING, "ml.g4dn.xlarge", "0.822"),
        ("eu-west-1", Component.PROCESSING, "ml.g4dn.xlarge", "0.821"),
        ("eu-west-1", Component.TRANSFORM, "ml.g4dn.xlarge", "0.821"),
        ("us-west-1", Component.TRAINING, "ml.g4dn.xlarge", "0.8832"),
        ("us-west-1", Component.PROCESSING, "ml.g4dn.xlarge", "0.736"),
    ],
)
def test_a_rate_is_that_of_region_component_and_type(
    region: str, component: Component, instance: str, usd: str
) -> None:
    """Exceptions first; every rate carries its date and source."""
    rate = PRICES.hourly(region, component, instance)
    assert rate is not None
    assert rate.usd == Decimal(usd)
    assert rate.as_of == "2026-05-20"
    assert rate.source


@pytest.mark.parametrize(
    ("region", "instance"),
    [
        ("us-west-1", "ml.g4dn.2xlarge"),
        ("us-gov-east-1", "ml.m5.xlarge"),
        ("eu-south-2", "ml.c7i.xlarge"),
        ("eu-central-1", "ml.g6e.xlarge"),
    ],
)
def test_a_disputed_rate_says_so(region: str, instance: str) -> None:
    """The figure stands, with what speaks against it."""
    rate = PRICES.hourly(region, Component.PROCESSING, instance)
    assert rate is not None
    assert rate.note is not None


def test_a_neighbour_of_a_disputed_rate_does_not() -> None:
    """Only where it holds."""
    rate = PRICES.hourly("us-east-1", Component.TRAINING, "ml.g4dn.2xlarge")
    assert rate is not None
    assert rate.note is None


@pytest.mark.parametrize(
    ("region", "instance"),
    [
        ("us-east-1", "ml.p5e.48xlarge"),
        ("us-east-1", "ml.trn2.48xlarge"),
        ("us-east-1", "ml.nonsense.large"),
        ("xx-nowhere-1", "ml.m5.large"),
        ("cn-northwest-1", "ml.p3.2xlarge"),
    ],
)
def test_a_rate_that_is_not_listed_is_unknown(region: str, instance: str) -> None:
    """Never 0, never a neighbour's."""
    assert PRICES.hourly(region, Component.TRAINING, instance) is None


@pytest.mark.parametrize(
    ("region", "component", "usd"),
    [
        ("us-east-1", Component.TRAINING, "0.14"),
        ("us-east-1", Component.PROCESSING, "0.10"),
        ("eu-west-1", Component.TRAINING, "0.154"),
        ("eu-west-1", Component.PROCESSING, "0.11"),
        ("eu-north-1", Component.TRAINING, "0.146"),
        ("sa-east-1", Component.TRAINING, "0.266"),
    ],
)
def test_storage_has_its_own_rates(region: str, component: Component, usd: str) -> None:
    """Processing at the plain EBS price: observed, or training / 1.4."""
    rate = PRICES.storage(region, component)
    assert rate is not None
    assert round(rate.usd, 4) == Decimal(usd)


@pytest.mark.parametrize("region", ["us-west-1", "ca-west-1", "xx-nowhere-1"])
def test_a_region_without_storage_rate_is_unknown(region: str) -> None:
    """us-west-1 is disputed and left out."""
    assert PRICES.storage(region, Component.TRAINING) is None


@pytest.mark.parametrize(
    ("region", "component", "what", "usage_type"),
    [
        ("us-east-1", Component.TRAINING, "ml.m5.large", "USE1-Train:ml.m5.large"),
        ("us-east-1", Component.PROCESSING, "ml.m5.large", "USE1-Processing:ml.m5.large"),
        ("eu-west-1", Component.TRAINING, "ml.m5.large", "EU-Train:ml.m5.large"),
        ("ap-south-1", Component.TRANSFORM, "ml.m5.large", "APS3-Tsform:ml.m5.large"),
        ("us-east-1", Component.TRAINING, "VolumeUsage.gp2", "USE1-Train:VolumeUsage.gp2"),
        ("us-west-2", Component.TRAINING, "ml.m5.large", None),
        ("ap-southeast-3", Component.TRAINING, "ml.m5.large", None),
    ],
)
def test_usage_types_come_from_observed_prefixes(
    region: str, component: Component, what: str, usage_type: str | None
) -> None:
    """They are irregular: no prefix is ever built by rule."""
    assert PRICES.usage_type(region, component, what) == usage_type


def test_the_catalogue_has_all_types_of_the_api() -> None:
    """225, each with vCPU and memory; EBS known for all but one."""
    assert len(MARKET.types) == 225
    assert all(kind.vcpu > 0 and kind.memory_gib > 0 for kind in MARKET.types.values())
    assert [k.name for k in MARKET.types.values() if k.ebs_billed is None] == [
        "ml.p6e-gb200.36xlarge"
    ]


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
    assert (kind.vcpu, kind.memory_gib, kind.gpus, kind.ebs_billed) == (vcpu, memory, gpus, ebs)


def test_no_rate_passed_through_a_float() -> None:
    """0.1 stays 0.1: every rate has few digits."""
    for instance in MARKET.types:
        rate = PRICES.hourly("us-east-1", Component.TRAINING, instance)
        if rate is not None:
            assert isinstance(rate.usd, Decimal)
            assert len(str(rate.usd)) <= 12


def test_the_price_book_names_its_date() -> None:
    """For the audit's record."""
    assert PRICES.version == "packaged 2026-05-20"
