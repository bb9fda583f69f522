from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.text.money import rate, share, usd


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
