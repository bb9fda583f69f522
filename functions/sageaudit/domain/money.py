"""Formats dollars and prices for people: the only rounding of an exact amount.

`output/text/money.py` adds how exactly an amount is known. `check_figure` refuses numbers that
cannot be rounded.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

UNKNOWN = "unknown"
CENT = Decimal("0.01")
LESS_THAN_CENT = f"<${CENT}"
_MICRO = Decimal("0.000001")
_MAX_EXPONENT = 20
"""No amount of a job has more digits."""
_MAX_FIGURE_EXPONENT = 24
"""Stored figures with more digits, before or after the point, could not be rounded."""


def check_figure(number: Decimal) -> Decimal:
    """Returns the number. Raises ValueError if no figure of a job can be so large or small."""
    if not number.is_finite() or abs(number.adjusted()) > _MAX_FIGURE_EXPONENT:
        raise ValueError(f"{number} is not a figure of a job")
    return number


def format_usd(amount: Decimal | None) -> str:
    """Returns `$1,234.56`, `-$2.00`, `<$0.01` or `unknown`."""
    if amount is None or amount.adjusted() > _MAX_EXPONENT:
        return UNKNOWN
    size = abs(amount)
    if 0 < size < CENT:
        return LESS_THAN_CENT
    return f"{'-' if amount < 0 else ''}${size.quantize(CENT, ROUND_HALF_UP):,}"


def format_rate(amount: Decimal | None) -> str:
    """Returns a price, such as that of an hour, with two to six decimals: `$1.408`."""
    if amount is None or amount.adjusted() > _MAX_EXPONENT:
        return UNKNOWN
    integer, _, decimals = f"{amount.quantize(_MICRO, ROUND_HALF_UP):,f}".partition(".")
    return f"${integer}.{decimals.rstrip('0'):0<2}"
