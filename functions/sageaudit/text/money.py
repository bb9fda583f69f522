"""Formats dollars: always with cents, so that a figure can be compared with the bill.

In a bill, four significant digits are shown below one cent ("$0.003512"): a job of a few seconds is
not "$0.00". A sum in a message is "<$0.01" then. An unknown amount is "unknown".
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

_CENT = Decimal("0.01")
_MICRO = Decimal("0.000001")
_ALMOST_NONE = Decimal("0.01")
_ALMOST_ALL = Decimal("0.99")
_DIGITS = 4


def usd(amount: Decimal | None) -> str:
    """`$1,234.56`, `$0.0035`, `-$2.00` or `unknown`."""
    if amount is None:
        return "unknown"
    sign = "-" if amount < 0 else ""
    size = abs(amount)
    if 0 < size < _CENT:
        return f"{sign}${_small(size)}"
    return f"{sign}${size.quantize(_CENT, ROUND_HALF_UP):,}"


def cents(amount: Decimal | None) -> str:
    """The same for a sum in a message, where nobody acts on less than a cent: `<$0.01`."""
    if amount is not None and 0 < abs(amount) < _CENT:
        return "<$0.01"
    return usd(amount)


def rate(amount: Decimal | None) -> str:
    """A price with two to six decimals: `$1.408`."""
    if amount is None:
        return "unknown"
    return f"${_decimals(amount.quantize(_MICRO, ROUND_HALF_UP))}"


def share(part: Decimal, whole: Decimal) -> str:
    """`77%`; "<1%" and ">99%" keep a small part from being 0% and nearly all from being 100%."""
    ratio = part / whole
    if 0 < ratio < _ALMOST_NONE:
        return "<1%"
    if _ALMOST_ALL < ratio < 1:
        return ">99%"
    return f"{(ratio * 100).quantize(Decimal(1), ROUND_HALF_UP)}%"


def _small(size: Decimal) -> str:
    places = min(-size.adjusted() + _DIGITS - 1, -int(_MICRO.as_tuple().exponent))
    rounded = size.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return _decimals(rounded) if rounded else "0.000001"


def _decimals(amount: Decimal) -> str:
    whole, _, decimals = f"{amount:,f}".partition(".")
    return f"{whole}.{decimals.rstrip('0'):0<2}"
