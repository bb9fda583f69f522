"""Own rates with dates: which one is valid on a day, and how a later report is added."""

from datetime import date
from decimal import Decimal

import pytest

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.known_prices import (
    OwnRate,
    OwnRates,
    RateBasis,
    group_own_rates,
    merge_own_rates,
)
from sageaudit.domain.prices.market import Rate
from sageaudit.structs import replace
from tests.fakes.jobs import not_none

OCTOBER = OwnRate(
    "us-east-1",
    Component.TRAINING,
    "ml.g5.2xlarge",
    Decimal("1.30"),
    date(2026, 10, 1),
    date(2026, 10, 31),
    Decimal(100),
    "october.csv",
)
NOVEMBER = replace(
    OCTOBER, usd=Decimal("1.20"), first=date(2026, 11, 1), last=date(2026, 11, 20), source="n.csv"
)
HALF = replace(OCTOBER, usd=Decimal("1.31"), last=date(2026, 10, 15))


def rates(*rows: OwnRate) -> OwnRates:
    """Returns these rates for all accounts."""
    return group_own_rates(RateBasis.NET, None, rows)


def rate_on_day(rates: OwnRates, day: date | None) -> Rate | None:
    """Returns the rate of the type on a day."""
    return rates.rate_for_day("us-east-1", Component.TRAINING, "ml.g5.2xlarge", day)


def test_each_day_has_the_rate_that_was_paid_then() -> None:
    """In any order of the rows. An earlier month's rate does not count as a past price."""
    own_rates = rates(NOVEMBER, OCTOBER)
    october, november = (
        not_none(rate_on_day(own_rates, date(2026, 10, 9))),
        not_none(rate_on_day(own_rates, date(2026, 11, 9))),
    )
    assert (october.usd, november.usd) == (Decimal("1.30"), Decimal("1.20"))
    assert (october.kind, october.price_age, october.learned_basis) == ("own", "today", "net")
    assert october.as_of == "2026-10-01/2026-10-31"
    assert october.source == "learnt from october.csv, net of discounts"


def test_a_rate_stays_valid_after_its_last_day_but_not_before_its_first() -> None:
    """A contract may not have existed before, so the list price applies."""
    own_rates = rates(OCTOBER, NOVEMBER)
    assert rate_on_day(own_rates, date(2026, 9, 30)) is None
    assert not_none(rate_on_day(own_rates, OCTOBER.first)).usd == OCTOBER.usd
    rate = not_none(rate_on_day(own_rates, date(2026, 12, 24)))
    assert rate.usd == Decimal("1.20")
    assert rate.note == "the newest own rate, of 2026-11-01/2026-11-20, for 2026-12-24"
    assert rate_on_day(own_rates, None) == rate._replace(note=None)


def test_between_two_different_rates_both_are_shown() -> None:
    """It is unknown on which of these days the price changed."""
    later = replace(NOVEMBER, first=date(2026, 11, 10))
    rate = not_none(rate_on_day(rates(OCTOBER, later), date(2026, 11, 5)))
    assert (str(rate.usd), str(rate.other_usd), rate.price_age) == ("1.20", "1.30", "ambiguous")


def test_other_products_have_no_rate() -> None:
    """Another region, component or type."""
    own_rates = rates(OCTOBER)
    assert own_rates.rate_for_day("eu-west-1", Component.TRAINING, "ml.g5.2xlarge", None) is None
    assert own_rates.rate_for_day("us-east-1", Component.PROCESSING, "ml.g5.2xlarge", None) is None
    assert own_rates.rate_for_day("us-east-1", Component.TRAINING, "ml.g5.4xlarge", None) is None


@pytest.mark.parametrize(
    ("before", "learnt"),
    [
        # the next month is added and keeps the one before
        ([OCTOBER], NOVEMBER),
        # the same report again changes nothing
        ([OCTOBER, NOVEMBER], OCTOBER),
        # a later version of a month replaces one that was read in the middle of it
        ([HALF, NOVEMBER], OCTOBER),
    ],
)
def test_a_later_report_is_added(before: list[OwnRate], learnt: OwnRate) -> None:
    """No rate of other days is lost."""
    assert merge_own_rates(rates(*before), rates(learnt)) == rates(OCTOBER, NOVEMBER)
