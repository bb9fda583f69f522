from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.money import format_rate, format_usd
from sageaudit.output.text.money import (
    ROUND_DOWN,
    ROUND_NEAREST,
    Figure,
    difference_text,
    format_signed_usd,
    percent_change_text,
    percent_text,
    sum_figures,
)

pytestmark = pytest.mark.money

AMOUNTS = st.decimals(min_value=Decimal("0.000001"), max_value=Decimal(10) ** 9, places=6)


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        ("0", "$0.00"),
        ("1234.56", "$1,234.56"),
        ("1234567.005", "$1,234,567.01"),
        ("0.01", "$0.01"),
        ("0.009999999", "<$0.01"),
        ("0.0000004", "<$0.01"),
        ("-2", "-$2.00"),
    ],
)
def test_an_amount_has_cents(amount: str, expected: str) -> None:
    """An amount under one cent is not shown as $0.00."""
    assert format_usd(Decimal(amount)) == str(Figure(Decimal(amount))) == expected


@pytest.mark.parametrize(
    ("amount", "uncertainty", "expected"),
    [
        ("4.55", {"estimated": True}, "about $4.55"),
        ("4.55", {"at_least": True}, "$4.55 or more"),
        ("4.55", {"estimated": True, "at_least": True}, "about $4.55 or more"),
        ("0", {"estimated": True, "at_least": True}, "$0.00 or more"),
        ("4.55", {"at_most": True}, "up to $4.55"),
        ("4.55", {"estimated": True, "at_most": True}, "up to about $4.55"),
        ("4.55", {"at_least": True, "at_most": True}, "about $4.55"),
        ("1", {"upper_usd": "4.55", "at_least": True}, "$1.00 to $4.55 or more"),
        ("0.001", {"estimated": True}, "<$0.01"),
        ("0", {"upper_usd": "4.55"}, "up to $4.55"),
        ("0", {"upper_usd": "4.55", "estimated": True}, "up to about $4.55"),
        ("0", {"upper_usd": "0.004"}, "<$0.01"),
        ("0", {"upper_usd": "0"}, "$0.00"),
        ("1", {"upper_usd": "4.55"}, "$1.00 to $4.55"),
        ("1", {"upper_usd": "4.55", "estimated": True}, "about $1.00 to $4.55"),
        ("1", {"upper_usd": "0.5"}, "$1.00"),
        ("1234.56", {"rounding": ROUND_DOWN}, "about $1,200"),
        ("9.87", {"rounding": ROUND_DOWN}, "about $9.80"),
        ("0.0999", {"rounding": ROUND_DOWN}, "about $0.09"),
        ("0.004", {"rounding": ROUND_DOWN}, "<$0.01"),
        ("0", {"rounding": ROUND_DOWN}, "$0.00"),
        ("700.4", {"upper_usd": "829.9", "rounding": ROUND_DOWN}, "about $700 to $830"),
        ("700", {"upper_usd": "704", "rounding": ROUND_DOWN}, "about $700"),
        ("0", {"upper_usd": "9.87", "rounding": ROUND_DOWN}, "up to about $9.90"),
        ("15.6", {"rounding": ROUND_NEAREST}, "about $16"),
        (None, {"estimated": True, "rounding": ROUND_DOWN, "upper_usd": "3"}, "unknown"),
        (None, {"absent": "not judged"}, "not judged"),
    ],
)
def test_a_figure_shows_how_exact_it_is(
    amount: str | None, uncertainty: dict[str, Any], expected: str
) -> None:
    """0, unknown amounts and amounts under a cent are never "about"."""
    if "upper_usd" in uncertainty:
        uncertainty = {**uncertainty, "upper_usd": Decimal(uncertainty["upper_usd"])}
    assert str(Figure(None if amount is None else Decimal(amount), **uncertainty)) == expected


@given(AMOUNTS, AMOUNTS)
def test_rounding_keeps_order_and_promises_no_more(first: Decimal, second: Decimal) -> None:
    """A rough amount is at most the exact one, not 0, and never more than a larger one is."""
    low, high = (str(Figure(amount, rounding=ROUND_DOWN)) for amount in sorted((first, second)))
    assert read_amount(low) <= read_amount(high)
    if first >= Decimal("0.01"):
        assert 0 < read_amount(str(Figure(first, rounding=ROUND_DOWN))) <= first
        assert read_amount(format_usd(first)) == first.quantize(Decimal("0.01"), "ROUND_HALF_UP")


def read_amount(expected: str) -> Decimal:
    """Returns the amount in a text; less than a cent is half a cent."""
    plain = expected.removeprefix("about ").replace("$", "").replace(",", "")
    return Decimal("0.005") if plain.startswith("<") else Decimal(plain)


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ((Figure(Decimal(1)), Figure(Decimal(2))), "$3.00"),
        ((Figure(Decimal(1), estimated=True), Figure(Decimal(2))), "about $3.00"),
        ((Figure(Decimal(0), estimated=True), Figure(Decimal(2))), "$2.00"),
        ((Figure(Decimal(1)), Figure(Decimal(0), Decimal(4))), "$1.00 to $5.00"),
        ((Figure(Decimal(1)), Figure(None)), "$1.00 or more"),
        ((Figure(Decimal(1), at_most=True), Figure(Decimal(2))), "up to $3.00"),
        ((Figure(Decimal(1), at_most=True), Figure(None)), "about $1.00"),
        ((Figure(None, absent="not judged"), Figure(Decimal(0), Decimal(4))), "not judged"),
        ((Figure(Decimal(0)), Figure(Decimal(0))), "$0.00"),
    ],
)
def test_a_sum_is_as_exact_as_its_parts(figures: tuple[Figure, ...], expected: str) -> None:
    """An unknown part is not 0."""
    assert str(sum_figures(figures)) == expected


@pytest.mark.parametrize(
    ("amount", "expected"), [("2", "+$2.00"), ("-2", "-$2.00"), ("0", "$0.00"), ("0.001", "<$0.01")]
)
def test_a_difference_has_its_sign(amount: str, expected: str) -> None:
    """Amounts under a cent have none."""
    assert format_signed_usd(Decimal(amount)) == expected


EXACT_FOUR, ABOUT_FOUR = Figure(Decimal(4)), Figure(Decimal(4), estimated=True)
AT_LEAST_FOUR, AT_MOST_FOUR = Figure(Decimal(4), at_least=True), Figure(Decimal(4), at_most=True)
UP_TO_FOUR_RANGE = Figure(Decimal(0), Decimal(4))
EXACT_ONE, EXACT_SEVEN = Figure(Decimal(1)), Figure(Decimal(7))


@pytest.mark.parametrize(
    ("current", "previous", "expected", "percent"),
    [
        (EXACT_FOUR, EXACT_ONE, "+$3.00", "+300.0%"),
        (ABOUT_FOUR, EXACT_ONE, "about +$3.00", "about +300.0%"),
        (AT_LEAST_FOUR, EXACT_ONE, "+$3.00 or more", "about +300.0%"),
        (AT_MOST_FOUR, EXACT_ONE, "up to +$3.00", "about +300.0%"),
        (AT_LEAST_FOUR, EXACT_SEVEN, "up to -$3.00", "about -42.9%"),
        (AT_MOST_FOUR, EXACT_SEVEN, "-$3.00 or more", "about -42.9%"),
        (EXACT_SEVEN, AT_LEAST_FOUR, "up to +$3.00", "about +75.0%"),
        (EXACT_SEVEN, AT_MOST_FOUR, "+$3.00 or more", "about +75.0%"),
        (EXACT_ONE, AT_LEAST_FOUR, "-$3.00 or more", "about -75.0%"),
        (EXACT_ONE, AT_MOST_FOUR, "up to -$3.00", "about -75.0%"),
        (AT_LEAST_FOUR, AT_LEAST_FOUR, "$0.00", "about +0.0%"),
        (UP_TO_FOUR_RANGE, EXACT_ONE, "-$1.00 to +$3.00", "about -100.0%"),
        (UP_TO_FOUR_RANGE, Figure(Decimal(0)), "$0.00 to +$4.00", None),
        (Figure(None), EXACT_ONE, None, None),
        (EXACT_ONE, Figure(None), None, None),
    ],
)
def test_a_difference_is_as_exact_as_its_amounts(
    current: Figure, previous: Figure, expected: str | None, percent: str | None
) -> None:
    """Bounds apply to the size: a fall of three dollars or more is "-$3.00 or more"."""
    assert difference_text(current, previous) == expected
    assert percent_change_text(current, previous) == percent


@pytest.mark.parametrize(
    ("amount", "expected"), [("1.515", "$1.515"), ("2", "$2.00"), ("0.1384", "$0.1384")]
)
def test_a_rate_keeps_its_decimals(amount: str, expected: str) -> None:
    """Quantity times rate can then be checked by hand."""
    assert format_rate(Decimal(amount)) == expected
    assert format_rate(None) == format_usd(None) == "unknown"


@pytest.mark.parametrize(
    ("part", "expected"),
    [("0", "0%"), ("0.51", "77%"), ("0.66", "100%"), ("0.001", "<1%"), ("0.659", ">99%")],
)
def test_a_share_is_0_or_100_percent_only_if_exact(part: str, expected: str) -> None:
    """A small part is "<1%", and nearly all is ">99%"."""
    assert percent_text(Decimal(part), Decimal("0.66")) == expected
