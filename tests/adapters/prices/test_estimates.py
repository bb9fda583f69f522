"""The packaged estimates: what they predict, what they leave unknown, and what wins over them."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.prices import packaged, sources
from sageaudit.adapters.prices.price_list import ListedPrices, StoredListing
from sageaudit.adapters.prices.sources import EstimatedPrices, PriceBook, estimated_prices
from sageaudit.domain.job.kinds import BILLED_KINDS, Component
from sageaudit.domain.policy.discounts import Discounts, OwnPrices
from sageaudit.domain.prices.market import Rate
from sageaudit.structs import replace
from tests.fakes.jobs import not_none
from tests.fakes.price_lists import listing

pytestmark = pytest.mark.money

REGION, TRAINING, TRANSFORM = "us-east-1", Component.TRAINING, Component.TRANSFORM
M6I, M5 = "ml.m6i.large", "ml.m5.large"
TYPES = packaged.instance_types()
BOOK = sources.offline_book(REGION, TRAINING, None)
KARPENTER = "aws/karpenter-provider-aws (Apache-2.0)"


def offline(name: str, component: Component = TRAINING, region: str = REGION) -> Rate | None:
    """The newest rate without any network call."""
    return sources.offline_book(region, component, None).hourly_rate(region, component, name)


def listed(rates: dict[str, str]) -> ListedPrices:
    """The live price list of the region with these rates alone."""
    read_at = datetime(2026, 11, 20, 12, tzinfo=UTC)
    return ListedPrices(
        REGION, TRAINING, StoredListing(listing(rates, region=REGION), read_at), None
    )


FACTORS = [
    {
        "family": family,
        "size": size,
        "factor": factor,
        "pairs": pairs,
        "lowest": "1.19",
        "highest": "1.21",
    }
    for family, size, factor, pairs in (
        ("g4dn", None, "1.25", {"Hosting": 9}),
        ("g4dn", "xlarge", "1.40", {"Hosting": 3}),
        ("c5n", None, "1.20", {"Training": 5}),
        ("g7", None, "1.25", {"Hosting": 0}),
    )
]


@pytest.mark.parametrize(
    ("name", "component", "factor"),
    [
        ("ml.g4dn.xlarge", TRAINING, "1.40"),
        ("ml.g4dn.2xlarge", TRAINING, "1.25"),
        ("ml.g4dn.2xlarge", TRANSFORM, "1.25"),
        ("ml.c5n.large", TRAINING, "1.20"),
        ("ml.c5n.large", Component.PROCESSING, None),
        ("ml.g7.2xlarge", TRAINING, None),
        ("ml.g4.xlarge", TRAINING, None),
        ("ml.c5n-flex.large", TRAINING, None),
        ("odd", TRAINING, None),
    ],
)
def test_a_factor_is_of_the_size_or_family_and_was_tested_for_the_component(
    name: str, component: Component, factor: str | None
) -> None:
    """Hosting stands in for every component; a family without a pair has no factor."""
    found = EstimatedPrices({"factors": FACTORS}).factor(name, component)
    assert (None if found is None else found["factor"]) == factor


def test_an_estimate_is_a_kind_of_its_own_and_says_how_it_was_made() -> None:
    """Of the day on which EC2's rate was read; it never says that SageMaker sells the type."""
    rates = {REGION: {"ml.c5n.large": Decimal("0.108")}}
    provenance = {"as_of": "2026-07-20", "source": "EC2"}
    table = {"factors": FACTORS, "ec2_usd_per_hour": rates, "provenance": provenance}
    [dated_rate] = (
        EstimatedPrices({**table, "unlisted": []}).quote(REGION, TRAINING, "ml.c5n.large").rates
    )
    assert dated_rate.rate == Rate(
        Decimal("0.1296"),
        "2026-07-20",
        f"1.20 times EC2's on-demand rate in {REGION}: EC2",
        "EC2's $0.108 x 1.20; 5 pairs of rates of its family: 1.19 to 1.21",
        "estimate",
        estimate_basis=(
            "SageMaker's rate for ml.c5n.large is not known here; estimated from EC2's rate x 1.20"
        ),
    )


def test_every_known_rate_is_predicted() -> None:
    """All us-east-1 rates of the packaged table lie within 0.5% of EC2's rate times the factor.

    The factors were read off such rates, so this holds the data together. What was predicted
    without them, 60 of 60 rates of another region within 0.5%, may not be packaged.
    """
    table, compared = packaged.packaged_prices(), 0
    for name in estimated_prices().table["ec2_usd_per_hour"][REGION]:
        seen = table.current_rate(REGION, TRAINING, name)
        if seen is not None:
            [guess] = estimated_prices().quote(REGION, TRAINING, name).rates
            assert abs(guess.rate.usd / seen.rate.usd - 1) <= Decimal("0.005"), name
            compared += 1
    assert compared == 114


@pytest.mark.parametrize(
    ("component", "seen", "guessed", "unknown"),
    [(TRAINING, 114, 68, 43), (Component.PROCESSING, 106, 59, 42), (TRANSFORM, 90, 18, 3)],
)
def test_how_many_types_have_a_rate(
    component: Component, seen: int, guessed: int, unknown: int
) -> None:
    """In us-east-1, of the types that the kind of job can use."""
    [kind] = (kind for kind in BILLED_KINDS if kind.spec.component is component)
    rates = [offline(name, component) for name, row in TYPES.items() if kind in row.kinds]
    guesses = [rate for rate in rates if rate is not None and rate.is_estimate]
    assert (len(guesses), rates.count(None)) == (guessed, unknown)
    assert len(rates) - len(guesses) - rates.count(None) == seen


@pytest.mark.parametrize(
    "name",
    [
        "ml.p5e.48xlarge",
        "ml.trn2.48xlarge",
        "ml.p6e-gb200.36xlarge",
        "ml.p6-b300.48xlarge",
        "ml.g7.2xlarge",
        "ml.m7i-flex.large",
        "ml.c7i-flex.xlarge",
        "ml.m8i-flex.large",
        "ml.c8i-flex.xlarge",
        "ml.r8i-flex.large",
    ],
)
def test_what_was_never_tested_or_has_no_ec2_rate_stays_unknown(name: str) -> None:
    """A factor by analogy is no factor."""
    assert name in TYPES
    assert offline(name) is None


def test_a_rate_that_was_tested_for_one_component_is_no_rate_of_another() -> None:
    """p2's factor rests on a training rate; m6i's on Hosting too, which stands in for all.

    r6i was in no training or processing product of a price list, and so it says.
    """
    assert not_none(offline("ml.p2.xlarge")).usd == Decimal("1.125")
    assert offline("ml.p2.xlarge", Component.PROCESSING) is None
    assert not_none(offline("ml.m6i.xlarge", TRANSFORM)).is_estimate
    assert "price list of 2026-09-24" in (not_none(offline("ml.r6i.large")).unlisted_reason or "")
    assert not_none(offline("ml.r6i.large", TRANSFORM)).unlisted_reason is None


@pytest.mark.parametrize("region", sorted({*packaged.packaged_prices().regions} - {REGION}))
def test_another_region_has_no_estimate(region: str) -> None:
    """EC2's rates there have no source with a licence."""
    rates = [offline(name, TRAINING, region) for name in TYPES]
    assert not any(rate.is_estimate for rate in rates if rate is not None)


def test_sources_and_licences_are_named() -> None:
    """Of the EC2 rates; every factor has at least one pair of rates behind it."""
    table = estimated_prices().table
    assert KARPENTER in table["provenance"]["source"]
    assert all(sum(row["pairs"].values()) > 0 for row in table["factors"])
    rate = not_none(offline(M6I))
    assert (rate.usd, rate.as_of) == (Decimal("0.1152"), table["provenance"]["as_of"])
    assert KARPENTER in rate.source


@given(st.dates(date(2019, 1, 1), date(2030, 1, 1)), st.sampled_from(sorted(TYPES)))
def test_an_estimate_never_displaces_an_observed_rate_of_any_day(day: date, name: str) -> None:
    """With and without estimates the book has the same rate wherever a rate was ever seen."""
    alone = PriceBook((packaged.packaged_prices(),), day).hourly_rate(REGION, TRAINING, name)
    rate = sources.offline_book(REGION, TRAINING, day).hourly_rate(REGION, TRAINING, name)
    assert rate == alone or (alone is None and rate and rate.is_estimate)


@pytest.mark.parametrize(
    ("first", "kind", "unlisted", "note"),
    [
        pytest.param(listed({M6I: "0.12"}), "list", None, None, id="the price list has the type"),
        # the job ran on it all the same; as an alternative it is not sold
        pytest.param(
            listed({M5: "0.115"}),
            "estimate",
            "not in the price list of 2026-11-20",
            "estimate of 2026-07-20: not in the price list of",
            id="the job ran on a type that is not sold as an alternative",
        ),
        pytest.param(
            ListedPrices(REGION, TRAINING, None, "pricing:GetProducts is not permitted"),
            "estimate",
            None,
            "estimate of 2026-07-20: pricing:GetProducts is not permitted",
            id="a list that was not read does not say that the type is not sold",
        ),
    ],
)
def test_the_price_list_wins_over_the_estimate_where_it_has_the_type(
    first: ListedPrices, kind: str, unlisted: str | None, note: str | None
) -> None:
    """Else the estimate says why there is no rate."""
    book = replace(BOOK, sources=(first, *BOOK.sources))
    rate = not_none(book.hourly_rate(REGION, TRAINING, M6I))
    assert (rate.kind, rate.unlisted_reason) == (kind, unlisted)
    assert (rate.note or "").startswith(note or "")


def test_own_rates_win_over_the_estimate() -> None:
    """A rate of the type as it is; a percentage leaves an estimate, lowered."""
    own = OwnPrices(BOOK, Discounts(rates={REGION: {M6I: Decimal("0.1")}}))
    assert not_none(own.hourly_rate(REGION, TRAINING, M6I)).kind == "own"
    less = OwnPrices(BOOK, Discounts(percent={"Training": Decimal(10)}))
    rate = not_none(less.hourly_rate(REGION, TRAINING, M6I))
    assert (rate.usd, rate.kind, rate.is_negotiated) == (Decimal("0.10368"), "estimate", True)
    assert (rate.estimate_basis or "").endswith("x 1.20, less 10% by policy")
