"""The packaged estimates: what they predict, what they leave unknown, and what wins over them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.prices import packaged, sources
from sageaudit.adapters.prices.estimates import estimates
from sageaudit.adapters.prices.listed_prices import ListedPrices
from sageaudit.adapters.prices.price_book import PriceBook
from sageaudit.adapters.prices.price_cache import Stored
from sageaudit.domain.job.kinds import BILLED_KINDS, Component
from sageaudit.domain.policy.discounts import Discounts, OwnPrices
from sageaudit.domain.prices.market import Rate
from tests.fakes.price_lists import listing

pytestmark = pytest.mark.money

REGION, TRAINING = "us-east-1", Component.TRAINING
M6I, P4D, M5 = "ml.m6i.large", "ml.p4d.24xlarge", "ml.m5.large"
TYPES = packaged.types()
READ_AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


def offline(name: str, component: Component = TRAINING, region: str = REGION) -> Rate | None:
    """The newest rate without any network call."""
    return sources.offline_book(region, component, None).hourly(region, component, name)


def known(rate: Rate | None) -> Rate:
    """The rate, which must be known."""
    assert rate is not None
    return rate


def listed(rates: dict[str, str]) -> ListedPrices:
    """The live price list of the region with these rates alone."""
    return ListedPrices(REGION, TRAINING, Stored(listing(rates, region=REGION), READ_AT), None)


def test_every_known_rate_is_predicted() -> None:
    """All us-east-1 rates of the packaged table lie within 0.5% of EC2's rate times the factor.

    The factors were read off such rates, so this holds the data together. What was predicted
    without them, 60 of 60 rates of another region within 0.5%, may not be packaged.
    """
    table, compared = packaged.tables(), 0
    for name in estimates().table["ec2_usd_per_hour"][REGION]:
        seen = table.present(REGION, TRAINING, name)
        if seen is not None:
            [known] = estimates().hourly(REGION, TRAINING, name).rates
            guess = known.rate
            assert abs(guess.usd - seen.rate.usd) <= Decimal("0.005") * seen.rate.usd, name
            compared += 1
    assert compared == 114


@pytest.mark.parametrize(
    ("component", "seen", "guessed", "unknown"),
    [
        (TRAINING, 114, 68, 43),
        (Component.PROCESSING, 106, 59, 42),
        (Component.TRANSFORM, 90, 18, 3),
    ],
)
def test_how_many_types_have_a_rate(
    component: Component, seen: int, guessed: int, unknown: int
) -> None:
    """In us-east-1, of the types that the kind of job can use."""
    [kind] = (kind for kind in BILLED_KINDS if kind.row.component is component)
    rates = [offline(name, component) for name, row in TYPES.items() if kind in row.kinds]
    guesses = [rate for rate in rates if rate is not None and rate.is_estimate]
    assert (len(guesses), rates.count(None)) == (guessed, unknown)
    assert len(rates) - len(guesses) - rates.count(None) == seen


@pytest.mark.parametrize(
    "name",
    ["ml.p5e.48xlarge", "ml.trn2.48xlarge", "ml.p6e-gb200.36xlarge", "ml.p6-b300.48xlarge",
     "ml.g7.2xlarge", "ml.m7i-flex.large", "ml.c7i-flex.xlarge", "ml.m8i-flex.large",
     "ml.c8i-flex.xlarge", "ml.r8i-flex.large"],
)  # fmt: skip
def test_what_was_never_tested_or_has_no_ec2_rate_stays_unknown(name: str) -> None:
    """A factor by analogy is no factor."""
    assert name in TYPES
    assert offline(name) is None


def test_a_rate_that_was_tested_for_one_component_is_no_rate_of_another() -> None:
    """p2's factor rests on a training rate; m6i's on Hosting too, which stands in for all."""
    assert known(offline("ml.p2.xlarge")).usd == Decimal("1.125")
    assert offline("ml.p2.xlarge", Component.PROCESSING) is None
    assert known(offline("ml.m6i.xlarge", Component.TRANSFORM)).is_estimate


@pytest.mark.parametrize("region", sorted({*packaged.tables().regions} - {REGION}))
def test_another_region_has_no_estimate(region: str) -> None:
    """EC2's rates there have no source with a licence."""
    rates = [offline(name, TRAINING, region) for name in TYPES]
    assert not any(rate.is_estimate for rate in rates if rate is not None)


def test_sources_and_licences_are_named() -> None:
    """Of the EC2 rates; every factor has at least one pair of rates behind it."""
    table = estimates().table
    assert "aws/karpenter-provider-aws (Apache-2.0)" in table["provenance"]["source"]
    assert all(sum(row["pairs"].values()) > 0 for row in table["factors"])
    rate = known(offline(M6I))
    assert (rate.usd, rate.as_of) == (Decimal("0.1152"), table["provenance"]["as_of"])
    assert "aws/karpenter-provider-aws (Apache-2.0)" in rate.source


@given(st.dates(date(2019, 1, 1), date(2030, 1, 1)), st.sampled_from(sorted(TYPES)))
def test_an_estimate_never_displaces_an_observed_rate_of_any_day(day: date, name: str) -> None:
    """With and without estimates the book has the same rate wherever a rate was ever seen."""
    alone = PriceBook((packaged.tables(),), day).hourly(REGION, TRAINING, name)
    rate = sources.offline_book(REGION, TRAINING, day).hourly(REGION, TRAINING, name)
    if alone is not None:
        assert rate == alone
    else:
        assert rate is None or rate.is_estimate


def test_the_price_list_wins_over_the_estimate() -> None:
    """Where it has the type."""
    rate = known(
        sources.offline_book(REGION, TRAINING, None)
        .after(listed({M6I: "0.12"}))
        .hourly(REGION, TRAINING, M6I)
    )
    assert (rate.usd, rate.kind) == (Decimal("0.12"), "list")


def test_a_price_list_that_lacks_the_type_leaves_an_estimate_that_says_so() -> None:
    """The job ran on it all the same; as an alternative it is not sold."""
    book = sources.offline_book(REGION, TRAINING, None).after(listed({M5: "0.115"}))
    rate = known(book.hourly(REGION, TRAINING, M6I))
    assert (rate.kind, rate.unlisted) == ("estimate", "not in the price list of 2026-11-20")
    assert (rate.note or "").startswith("estimate of 2026-07-20: not in the price list of")


def test_a_price_list_that_was_not_read_does_not_say_that_the_type_is_not_sold() -> None:
    """Its reason is a note."""
    unread = ListedPrices(REGION, TRAINING, None, "pricing:GetProducts is not permitted")
    rate = known(
        sources.offline_book(REGION, TRAINING, None).after(unread).hourly(REGION, TRAINING, M6I)
    )
    assert (rate.kind, rate.unlisted) == ("estimate", None)
    assert "pricing:GetProducts is not permitted" in (rate.note or "")


def test_a_family_that_a_price_list_lacked_says_so() -> None:
    """r6i was in no training or processing product; its Hosting rates stand in for transform."""
    assert "price list of 2026-09-24" in (known(offline("ml.r6i.large")).unlisted or "")
    assert known(offline("ml.r6i.large", Component.TRANSFORM)).unlisted is None


def test_own_rates_win_over_the_estimate() -> None:
    """A rate of the type as it is; a percentage leaves an estimate, lowered."""
    book = sources.offline_book(REGION, TRAINING, None)
    own = OwnPrices(book, Discounts(rates={REGION: {M6I: Decimal("0.1")}}))
    assert known(own.hourly(REGION, TRAINING, M6I)).kind == "own"
    less = known(OwnPrices(book, Discounts(percent={"Training": Decimal(10)})).hourly(
        REGION, TRAINING, M6I))  # fmt: skip
    assert (less.usd, less.kind, less.negotiated) == (Decimal("0.10368"), "estimate", True)
    assert (less.estimated or "").endswith("x 1.20, less 10% by policy")
