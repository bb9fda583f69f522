"""Own rates with dates: which one holds on a day, and how a later report is added."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.market import Rate
from sageaudit.domain.prices.own_rates import OwnRate, OwnRates, RateBasis, merged, own_rates

OCTOBER = OwnRate(
    "us-east-1", Component.TRAINING, "ml.g5.2xlarge", Decimal("1.30"),
    date(2026, 10, 1), date(2026, 10, 31), Decimal(100), "october.csv",
)  # fmt: skip
NOVEMBER = replace(
    OCTOBER, usd=Decimal("1.20"), first=date(2026, 11, 1), last=date(2026, 11, 20), source="n.csv"
)


def rates(*known: OwnRate, basis: RateBasis = RateBasis.NET) -> OwnRates:
    """These rates, of all accounts."""
    return own_rates(basis, None, known)


def on(known: OwnRates, day: date | None) -> Rate | None:
    """The rate of the type on a day."""
    return known.on("us-east-1", Component.TRAINING, "ml.g5.2xlarge", day)


def test_each_day_has_the_rate_that_was_paid_then() -> None:
    """Whatever order the rows have; an earlier month's rate is not a past price to be compared."""
    known = rates(NOVEMBER, OCTOBER)
    october, november = on(known, date(2026, 10, 9)), on(known, date(2026, 11, 9))
    assert october is not None
    assert november is not None
    assert (october.usd, november.usd) == (Decimal("1.30"), Decimal("1.20"))
    assert (october.kind, october.era, october.learnt) == ("own", "today", "net")
    assert october.as_of == "2026-10-01/2026-10-31"
    assert october.source == "learnt from october.csv, net of discounts"


def test_before_the_first_day_nothing_is_known() -> None:
    """A contract may not have existed yet: the list price applies."""
    assert on(rates(OCTOBER), date(2026, 9, 30)) is None


def test_after_the_last_day_the_newest_rate_goes_on_and_says_so() -> None:
    """Until a later report is read."""
    rate = on(rates(OCTOBER, NOVEMBER), date(2026, 12, 24))
    assert rate is not None
    assert rate.usd == Decimal("1.20")
    assert rate.note == "the newest own rate, of 2026-11-01/2026-11-20, for 2026-12-24"
    assert on(rates(OCTOBER, NOVEMBER), None) == replace(rate, note=None)


def test_between_two_different_rates_both_are_shown() -> None:
    """Nobody knows on which of these days the price changed."""
    later = replace(NOVEMBER, first=date(2026, 11, 10))
    rate = on(rates(OCTOBER, later), date(2026, 11, 5))
    assert rate is not None
    assert (rate.usd, rate.other_usd, rate.era) == (
        Decimal("1.20"), Decimal("1.30"), "ambiguous",
    )  # fmt: skip


def test_other_products_have_no_rate() -> None:
    """Another region, component or type."""
    known = rates(OCTOBER)
    assert known.on("eu-west-1", Component.TRAINING, "ml.g5.2xlarge", None) is None
    assert known.on("us-east-1", Component.PROCESSING, "ml.g5.2xlarge", None) is None
    assert known.on("us-east-1", Component.TRAINING, "ml.g5.4xlarge", None) is None


def test_the_next_month_is_added_and_keeps_the_one_before() -> None:
    """No rate is lost."""
    both = merged(rates(OCTOBER), rates(NOVEMBER))
    assert both.rates.rows == [OCTOBER, NOVEMBER]
    assert (both.added, both.replaced) == ((NOVEMBER,), ())


def test_the_same_report_again_changes_nothing() -> None:
    """So a run can be repeated."""
    again = merged(rates(OCTOBER, NOVEMBER), rates(OCTOBER))
    assert again.rates == rates(OCTOBER, NOVEMBER)
    assert (again.added, again.replaced) == ((), ())


def test_a_later_version_of_the_month_stands_in_place_of_the_earlier_and_is_named() -> None:
    """The first was read in the middle of the month."""
    half = replace(OCTOBER, usd=Decimal("1.31"), last=date(2026, 10, 15))
    done = merged(rates(half, NOVEMBER), rates(OCTOBER))
    assert done.rates.rows == [OCTOBER, NOVEMBER]
    assert (done.added, done.replaced) == ((), ((half, OCTOBER),))
