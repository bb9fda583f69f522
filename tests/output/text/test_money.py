from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.output.text.money import (
    at_least,
    between,
    rate,
    rough_low,
    roughly,
    share,
    up_to,
    usd,
)


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0", "$0.00"),
        ("1234.56", "$1,234.56"),
        ("1234567.005", "$1,234,567.01"),
        ("412", "$412.00"),
        ("0.01", "$0.01"),
        ("0.0035", "$0.0035"),
        ("0.00351239", "$0.003512"),
        ("0.009999999", "$0.01"),
        ("0.0000004", "$0.000001"),
        ("-2", "-$2.00"),
        ("-0.0035", "-$0.0035"),
    ],
)
def test_usd(amount: str, shown: str) -> None:
    """Cents always; four digits that count under one cent, so that little is not nothing."""
    assert usd(Decimal(amount)) == shown


def test_unknown_is_said() -> None:
    """What is not known is never shown as zero."""
    assert usd(None) == "unknown"
    assert rate(None) == "unknown"


@pytest.mark.parametrize(
    ("amount", "shown"), [("1.515", "$1.515"), ("2", "$2.00"), ("0.1384", "$0.1384")]
)
def test_rate(amount: str, shown: str) -> None:
    """A price keeps all its decimals, so that quantity times rate can be done by hand."""
    assert rate(Decimal(amount)) == shown


@pytest.mark.parametrize(
    ("part", "shown"),
    [("0", "0%"), ("0.51", "77%"), ("0.66", "100%"), ("0.001", "<1%"), ("0.659", ">99%")],
)
def test_share(part: str, shown: str) -> None:
    """Something is never 0% and less than all never 100%."""
    assert share(Decimal(part), Decimal("0.66")) == shown


@given(st.decimals(min_value=Decimal("0.01"), max_value=Decimal(10) ** 9, places=2))
def test_cents_read_back(amount: Decimal) -> None:
    """A sum in cents is shown exactly."""
    assert Decimal(usd(amount).replace("$", "").replace(",", "")) == amount


AMOUNTS = st.decimals(min_value=Decimal("0.000001"), max_value=Decimal(10) ** 9, places=6)


def figure(shown: str) -> Decimal:
    """The amount that a reader takes from a text; less than a cent is half of one."""
    if shown == "<$0.01":
        return Decimal("0.005")
    return Decimal(shown.replace("$", "").replace(",", ""))


@pytest.mark.parametrize(
    ("amount", "low", "high"),
    [
        ("1234.56", "$1,200", "$1,300"),
        ("245.1", "$240", "$250"),
        ("99.2", "$99", "$100"),
        ("9.87", "$9.80", "$9.90"),
        ("0.516", "$0.51", "$0.52"),
        ("0.0999", "$0.09", "$0.10"),
        ("0.004", "<$0.01", "<$0.01"),
        ("0", "$0.00", "$0.00"),
    ],
)
def test_an_estimate_has_two_digits(amount: str, low: str, high: str) -> None:
    """A low end is rounded down and an upper end up, at least to the cent."""
    assert (at_least(Decimal(amount)), up_to(Decimal(amount))) == (low, high)


def test_an_upper_end_stays_within_the_bill() -> None:
    """Rounding makes no bound that is above the whole."""
    assert up_to(Decimal("244.9"), Decimal("245.1")) == "$245.10"
    assert up_to(Decimal("245.1"), Decimal("245.1")) == "$245.10"
    assert up_to(Decimal(230), Decimal("245.1")) == "$230"


def test_ranges_and_sentences() -> None:
    """Two ends that look alike are one figure; an unknown amount is none."""
    assert between(Decimal("700.4"), Decimal("829.9")) == "$700 to $830"
    assert between(Decimal(700), Decimal(700)) == "$700"
    assert rough_low(Decimal("1234.56")) == "about $1,200"
    assert (roughly(Decimal("8105.2")), roughly(Decimal("89.5"))) == ("about $8,100", "about $90")
    assert (rough_low(Decimal("0.001")), rough_low(None), up_to(None)) == (
        "<$0.01",
        "unknown",
        "unknown",
    )


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_rounding_keeps_order_and_makes_no_zero(one: Decimal, two: Decimal, whole: Decimal) -> None:
    """Low <= exact <= high; a smaller amount is never shown as more; the bill is the most."""
    low, high = min(one, two), max(one, two)
    if one >= Decimal("0.01"):
        assert 0 < figure(at_least(one)) <= one <= figure(up_to(one))
    assert figure(at_least(low)) <= figure(at_least(high))
    assert figure(up_to(low)) <= figure(up_to(high))
    assert figure(at_least(low)) <= figure(up_to(high))
    if Decimal("0.01") <= one <= whole:
        assert figure(up_to(one, whole)) <= max(figure(usd(whole)), one)
    for shown in (at_least(one), up_to(one), rough_low(one)):
        assert any(digit in "123456789" for digit in shown)
