"""Rates from price-list products: every trap, with the reconstructed documents and variations."""

import copy
import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_list import STORAGE, InvalidPrice, ListedRate, PriceListing, read
from tests.fakes.price_lists import DOCUMENTS, dimension_of, product, recorded_document, volume

pytestmark = pytest.mark.money

ALL = {path.stem: json.loads(path.read_text("utf-8")) for path in DOCUMENTS.glob("*.json")}
TRAPS = {
    "cluster_hyperpod_us-east-1_ml.p4d.24xlarge": "HyperPod is another component",
    "debugger_free_tier_zero_price": "free, and another role",
    "hosting_eu-west-1_ml.m5.xlarge": "another component",
    "hosting_us-east-1_ml.g7e.2xlarge_lowercase_suffix": "another component",
    "notebook_eu-west-1_ml.t3.medium": "another component",
    "serverless_training_finetuning_TRAP": "no instance name",
    "studio_jupyterlab_us-west-2_ml.g6.24xlarge": "another component",
    "training_plan_upfront_fee_TRAP": "no component, cheaper than the true rate",
    "warmpool_eu-west-1_ml.m5.xlarge": "another role",
}
REGIONS = ("eu-west-1", "us-east-1", "us-west-2")


def rates(documents: list[Any], region: str, component: Component) -> dict[str, str]:
    """Returns the rate of each type."""
    return {name: str(one.usd) for name, one in read(documents, region, component).rates.items()}


def entry(*documents: Any, name: str = "ml.m5.xlarge") -> object:
    """Returns what is read for one type."""
    return read(documents, "eu-west-1", Component.TRAINING).entry_by_product.get(name)


@pytest.mark.parametrize(
    ("region", "component", "expected"),
    [
        (
            "eu-west-1",
            Component.TRAINING,
            {"ml.g4dn.xlarge": "0.822", "ml.m5.xlarge": "0.257", STORAGE: "0.154"},
        ),
        ("eu-west-1", Component.PROCESSING, {"ml.m5.xlarge": "0.257", STORAGE: "0.11"}),
        ("eu-west-1", Component.TRANSFORM, {"ml.m5.xlarge": "0.257"}),
        (
            "us-east-1",
            Component.TRAINING,
            {"ml.g5.2xlarge": "1.515", "ml.m5.large": "0.115", "ml.p4d.24xlarge": "25.251"},
        ),
        ("us-west-2", Component.TRAINING, {}),
    ],
)
def test_all_documents_together_give_the_observed_rates(
    region: str, component: Component, expected: dict[str, str]
) -> None:
    """25.251 for ml.p4d.24xlarge: not the plan's 13.57, not the cluster's 25.91.

    Each of the 18 documents says that it is reconstructed.
    """
    assert [item["_fixture"]["reconstructed"] for item in ALL.values()] == [True] * 18
    assert rates(list(ALL.values()), region, component) == expected


@pytest.mark.parametrize("name", TRAPS)
def test_a_trap_gives_no_rate_for_any_component(name: str) -> None:
    """It is ignored, not refused."""
    for region in REGIONS:
        for component in Component:
            assert not read([ALL[name]], region, component).entry_by_product


def test_a_rate_has_its_usage_type_and_first_day() -> None:
    """Prefixes are irregular, so the product's own one is used."""
    assert entry(recorded_document("training_eu-west-1_ml.m5.xlarge")) == ListedRate(
        Decimal("0.257"), date(2026, 5, 1), "EU-Train:ml.m5.xlarge"
    )


@pytest.mark.parametrize(
    "attributes",
    [
        # lower case on newer products, and some have none
        *({"instanceType": f"ml.m5.xlarge{suffix}"} for suffix in ("-Training", "-training", "")),
        # some regions have no prefix
        {"usagetype": "Train:ml.m5.xlarge"},
    ],
)
def test_an_instance_type_and_a_usage_type_may_be_of_any_age(attributes: dict[str, Any]) -> None:
    """Older and newer forms give the same rate."""
    assert isinstance(entry(product(**attributes)), ListedRate)


@pytest.mark.parametrize(
    "attributes",
    [
        {"instanceType": "ml.m5.xlarge-trainingplaninuse"},
        {"instanceType": "ml.m5.xlarge-TrainDebugFreeTier"},
        {"usagetype": "EU-TrainWarmPool:ml.m5.xlarge"},
        {"usagetype": "EU-TrainingPlanInUse:ml.m5.xlarge"},
        {"usagetype": "EU-Train:ml.m5.2xlarge"},
        {"usagetype": "EU-Train"},
        {"locationType": "AWS Outposts"},
        {"locationType": "AWS Local Zone", "regionCode": "us-east-1-atl-1"},
        {"regionCode": "eu-west-2"},
        {"component": "Hosting"},
        {"component": "training"},
        {"servicecode": "AmazonEC2"},
        {"instanceName": "m5.xlarge", "usagetype": "EU-Train:m5.xlarge"},
    ],
)
def test_one_attribute_that_disagrees_excludes_a_product(attributes: dict[str, str]) -> None:
    """A doubtful product gives no rate."""
    document = product()
    document["product"]["attributes"] |= attributes
    assert entry(document) is None


@pytest.mark.parametrize("missing", ["component", "instanceName", "regionCode", "locationType"])
def test_a_product_without_an_attribute_is_ignored(missing: str) -> None:
    """An attribute is never guessed from another one."""
    document = product()
    del document["product"]["attributes"][missing]
    assert entry(document) is None


@pytest.mark.parametrize(
    "usd",
    ["NaN", "-0.1", "", "Infinity", "1e3", "0x1", "٣", " 1", "1,5", "9" * 40, None, 0.257, 1, []],
)
def test_an_invalid_price_is_refused_with_one_sentence(usd: object) -> None:
    """It is never 0 and never guessed."""
    result = entry(product(usd=usd))
    assert isinstance(result, InvalidPrice)
    assert result.reason.startswith("XX1-Train:ml.m5.xlarge has a price that is not an amount:")
    assert "\n" not in result.reason


def changed(**dimension: Any) -> Any:
    """Returns a product with another price dimension, or without terms."""
    document = product()
    dimension_of(document).update(dimension)
    return document


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        # China's prices are in CNY; an upfront fee is sold by quantity
        (changed(pricePerUnit={"CNY": "1.7"}), "is priced in CNY, not in USD"),
        (changed(unit="Quantity"), "is priced per Quantity"),
        # it has no price; it is not free
        ({**product(), "terms": {}}, "has no price"),
    ],
)
def test_a_product_that_is_not_priced_in_usd_an_hour_is_refused(document: Any, reason: str) -> None:
    """With the reason."""
    assert entry(document) == InvalidPrice(f"XX1-Train:ml.m5.xlarge {reason}")


def with_free_tier() -> Any:
    """Returns a product with a second dimension of $0."""
    document = product()
    [term] = document["terms"]["OnDemand"].values()
    free = copy.deepcopy(dimension_of(document)) | {"pricePerUnit": {"USD": "0.0000000000"}}
    term["priceDimensions"]["free"] = free
    return document


SEVERAL = InvalidPrice("the price list has several rates: $0.25 and $0.3")


@pytest.mark.parametrize(
    ("documents", "result"),
    [
        # a free tier says nothing of what the rest costs
        *(([product(usd=zero)], None) for zero in ("0", "0.0000000000")),
        ([product(usd="0"), product()], entry(product())),
        ([with_free_tier()], entry(product())),
        # neither the first nor the cheapest is taken; a duplicate changes nothing
        ([product(usd="0.3"), product(usd="0.25")], SEVERAL),
        ([product(), product()], entry(product())),
    ],
)
def test_products_of_one_type_are_one_rate_or_none(documents: list[Any], result: object) -> None:
    """A product at $0 gives no rate."""
    assert entry(*documents) == result


def test_a_refused_product_affects_its_type_only() -> None:
    """It is unknown which of both is billed."""
    documents = [product(), product(usd="-1"), product("ml.c5.xlarge")]
    result = read(documents, "eu-west-1", Component.TRAINING)
    assert isinstance(result.entry_by_product["ml.m5.xlarge"], InvalidPrice)
    assert list(result.rates) == ["ml.c5.xlarge"]


def test_each_component_has_its_own_storage_rate() -> None:
    """Processing volumes are cheaper than Training's. Transform jobs have none."""
    documents = [
        volume("0.154", component=Component.TRAINING),
        volume("0.11", component=Component.PROCESSING),
    ]
    assert [rates(documents, "eu-west-1", component) for component in Component] == [
        {STORAGE: "0.154"},
        {STORAGE: "0.11"},
        {},
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)
DAMAGED = st.tuples(st.sampled_from(sorted(ALL)), st.lists(st.integers(0, 9), max_size=6), JSON)


def damaged(name: str, path: list[int], value: object) -> object:
    """Returns a recorded document with another value at one of its paths."""
    document = copy.deepcopy(ALL[name])
    place: Any = document
    for step in path:
        keys = [key for key in place if key != "_fixture"] if isinstance(place, dict) else []
        if not keys:
            break
        key = keys[step % len(keys)]
        if not isinstance(place[key], dict) or step == path[-1]:
            place[key] = value
            break
        place = place[key]
    return document


def readings(documents: list[Any]) -> list[PriceListing]:
    """Returns everything that can be read from the documents."""
    return [read(documents, region, component) for region in REGIONS for component in Component]


@given(st.lists(DAMAGED, max_size=6), st.lists(JSON, max_size=3))
def test_every_rate_is_positive(
    parts: list[tuple[str, list[int], object]], other_document: list[object]
) -> None:
    """And no document makes the reader fail."""
    for reading in readings([*(damaged(*part) for part in parts), *other_document]):
        assert all(rate.usd.is_finite() and rate.usd > 0 for rate in reading.rates.values())


PRICES = st.sampled_from(["0.257", "0.2570", "0.3", "0", "-1", "NaN"])
TYPES = st.sampled_from(["ml.m5.xlarge", "ml.c5.xlarge"])
DATES = st.sampled_from(["2026-05-01", "2026-06-01T00:00:00Z", "", "2026-99-99"])


@given(st.lists(st.tuples(TYPES, PRICES, DATES), max_size=7), st.randoms(use_true_random=False))
def test_the_order_of_products_never_matters(
    rows: list[tuple[str, str, str]], shuffler: Any
) -> None:
    """Pages may come in any order."""
    documents = [product(name, usd, effective=day) for name, usd, day in rows]
    mixed = list(documents)
    shuffler.shuffle(mixed)
    first = read(documents, "eu-west-1", Component.TRAINING)
    assert read(mixed, "eu-west-1", Component.TRAINING) == first
