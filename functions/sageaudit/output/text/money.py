"""Formats dollars for people; JSON has every figure exact, to 6 decimals.

| figure | shown | because |
|---|---|---|
| the bill, and what is counted of it | to the cent: `$1,234.56` | it adds up to the bill |
| a possible saving | two digits, down: `about $1,200` | its source has two: "saved 60 to 70%" |
| the low end of a range that is not counted | two digits, down | no promise is rounded up |
| the list value of idle hours | two digits: `about $31` | it rests on means of use |
| an upper end ("up to", "at best") | two digits, up, at most the bill | it stays a bound |

So a range keeps its order, no figure above 0 becomes 0, and an unknown amount is "unknown". In a
bill, four significant digits are shown below one cent ("$0.003512"): a job of a few seconds is not
"$0.00". A sum in a message is "<$0.01" then.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal

_CENT = Decimal("0.01")
_MICRO = Decimal("0.000001")
_ALMOST_NONE = Decimal("0.01")
_ALMOST_ALL = Decimal("0.99")
_DIGITS = 4
_ROUGH_DIGITS = 2


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


def at_least(amount: Decimal | None) -> str:
    """A figure that is no more than an estimate, rounded down: `$1,200`, `$0.35`, `<$0.01`."""
    return _rough(amount, ROUND_FLOOR)


def rough_low(amount: Decimal | None) -> str:
    """The same in a sentence: `about $1,200`; nothing is added to "<$0.01", "$0.00", "unknown"."""
    rough = amount is not None and abs(amount) >= _CENT
    return f"about {at_least(amount)}" if rough else at_least(amount)


def roughly(amount: Decimal | None) -> str:
    """An estimate that is no bound, to two digits: `about $1,200`."""
    shown = _rough(amount, ROUND_HALF_UP)
    return f"about {shown}" if amount is not None and abs(amount) >= _CENT else shown


def up_to(amount: Decimal | None, whole: Decimal | None = None) -> str:
    """An upper end, rounded up: `$1,300`; no more than the whole bill, where it is known."""
    if amount is not None and whole is not None and _ceiling(amount) > whole >= amount:
        return cents(whole)
    return _rough(amount, ROUND_CEILING)


def between(low: Decimal, high: Decimal, whole: Decimal | None = None) -> str:
    """`$700 to $830`; one figure where both ends look alike."""
    first, last = at_least(low), up_to(high, whole)
    return first if first == last else f"{first} to {last}"


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


def _rough(amount: Decimal | None, rounding: str) -> str:
    if amount is None or not amount or abs(amount) < _CENT:
        return cents(amount)
    rounded = amount.quantize(_step(amount), rounding)
    return f"{'-' if rounded < 0 else ''}${abs(rounded):,{'.0f' if _step(amount) >= 1 else '.2f'}}"


def _ceiling(amount: Decimal) -> Decimal:
    return amount.quantize(_step(amount), ROUND_CEILING) if amount else amount


def _step(amount: Decimal) -> Decimal:
    """The unit of the last digit that is shown, a cent at least."""
    return max(Decimal(1).scaleb(amount.adjusted() - _ROUGH_DIGITS + 1), _CENT)


def _small(size: Decimal) -> str:
    places = min(-size.adjusted() + _DIGITS - 1, -int(_MICRO.as_tuple().exponent))
    rounded = size.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return _decimals(rounded) if rounded else "0.000001"


def _decimals(amount: Decimal) -> str:
    whole, _, decimals = f"{amount:,f}".partition(".")
    return f"{whole}.{decimals.rstrip('0'):0<2}"
