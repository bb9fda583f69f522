"""Writes dollars for people, each figure alike in every view; JSON and CSV have it exact.

| a figure | is written | because |
|---|---|---|
| of the bill, or counted of it | to the cent: `$1,234.56` | it adds up to the bill |
| on an estimated rate | `about $1,234.56` | SageMaker's rate is not known |
| with a part that is not known | `$1,234.56 or more` | the rest would add to it |
| of a spot run without billable seconds | `up to $1,234.56` | all its seconds are billed |
| of a lower and an upper bound | `about $1,234.56` | the sum is neither |
| between two ends | `$2.00 to $4.50`, from 0 on `up to $4.50` | the lower end counts |
| of a possible saving | two digits, down: `about $1,200` | "saved 60 to 70%" says no more |
| of idle hours | two digits: `about $31` | it rests on means of use |
| of nothing that is known | `unknown`, `not judged` | that is not $0.00 |
| under one cent | `<$0.01` | it is not nothing, and nobody acts on it |
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal

from msgspec import Struct

from sageaudit.domain.audit.bill_document import (
    SpendQualifier,
    qualify_amount,
    qualify_change,
)

UNKNOWN = "unknown"
ROUND_DOWN = ROUND_FLOOR
ROUND_NEAREST = ROUND_HALF_UP
"""Of a rough figure: a promise is not rounded up."""
_CENT = Decimal("0.01")
_LESS_THAN_CENT = f"<${_CENT}"
_MICRO = Decimal("0.000001")
_ALMOST_NONE = Decimal("0.01")
_ALMOST_ALL = Decimal("0.99")


class Figure(Struct, frozen=True):
    """Dollars with what is certain of them; `str` writes both.

    `usd` is what counts; None is not known, and `absent` says so. `most_usd` is the upper end of
    what lies in a range. `estimated`: it rests on an estimated rate. `at_least`: a part of it is
    not known. `at_most`: it is an upper bound. `rough`: its source has two digits, to which it is
    rounded DOWN or to the NEAREST.
    """

    usd: Decimal | None
    upper_usd: Decimal | None = None
    estimated: bool = False
    at_least: bool = False
    at_most: bool = False
    rounding: str | None = None
    absent: str = UNKNOWN

    def __str__(self) -> str:
        if self.usd is None:
            return self.absent
        low = self._digits(self.usd, self.rounding)
        high = self._digits(self.upper_end or self.usd, ROUND_NEAREST) if self._is_range else low
        if high in {low, _LESS_THAN_CENT}:
            return _with_bound(self._about(high), at_least=self.at_least, at_most=self.at_most)
        whole = f"{self._about(low)} to {high}" if self.usd else f"up to {self._about(high)}"
        return _with_bound(whole, at_least=self.at_least, at_most=False)

    @property
    def upper_end(self) -> Decimal | None:
        """The upper end, or the amount itself where it is no range."""
        return self.upper_usd if self._is_range else self.usd

    @property
    def qualifier(self) -> SpendQualifier:
        """How exactly the amount is known, whether it is a range or not."""
        return qualify_amount(
            known=self.usd is not None,
            lower_bound=self.at_least,
            upper_bound=self.at_most,
            estimated=self.estimated or bool(self.rounding),
        )

    @property
    def _is_range(self) -> bool:
        return self.usd is not None and self.upper_usd is not None and self.upper_usd > self.usd

    def _digits(self, amount: Decimal, rounding: str | None) -> str:
        if not self.rounding or amount < _CENT:
            return format_usd(amount)
        step = max(Decimal(1).scaleb(amount.adjusted() - 1), _CENT)
        return f"${amount.quantize(step, rounding):,.{0 if step >= 1 else 2}f}"

    def _about(self, shown: str) -> str:
        between = self.at_least and self.at_most
        return about_text(
            shown, estimated=bool((self.estimated or self.rounding or between) and self.upper_end)
        )


def _with_bound(shown: str, *, at_least: bool, at_most: bool) -> str:
    """A bound in words; a sum of both kinds is none."""
    if at_least == at_most:
        return shown
    return f"{shown} or more" if at_least else f"up to {shown}"


def sum_figures(figures: Iterable[Figure]) -> Figure:
    """The sum of figures. What is not known of one makes it "or more", or unknown if it is 0."""
    parts = tuple(figures)
    known = [part for part in parts if part.usd is not None]
    total = sum((part.usd or Decimal(0) for part in known), Decimal(0))
    missing = [part.absent for part in parts if part.usd is None]
    return Figure(
        None if missing and not total else total,
        upper_usd=sum((part.upper_end or Decimal(0) for part in known), Decimal(0)),
        estimated=any(part.estimated and part.upper_end for part in known),
        at_least=bool(missing) or any(part.at_least for part in known),
        at_most=any(part.at_most for part in known),
        absent=missing[0] if missing else UNKNOWN,
    )


def format_usd(amount: Decimal | None) -> str:
    """`$1,234.56`, `-$2.00`, `<$0.01` or `unknown`: an amount of which nothing more is known."""
    if amount is None:
        return UNKNOWN
    size = abs(amount)
    if 0 < size < _CENT:
        return _LESS_THAN_CENT
    return f"{'-' if amount < 0 else ''}${size.quantize(_CENT, ROUND_HALF_UP):,}"


def format_signed_usd(amount: Decimal, qualifier: SpendQualifier = SpendQualifier.EXACT) -> str:
    """A difference: `+$2.00`, `-$2.00 or more`, `$0.00`; the qualifier is of its size."""
    shown = f"+{format_usd(amount)}" if amount >= _CENT else format_usd(amount)
    return _with_bound(
        about_text(shown, estimated=qualifier is SpendQualifier.ABOUT and bool(amount)),
        at_least=qualifier is SpendQualifier.AT_LEAST,
        at_most=qualifier is SpendQualifier.UP_TO,
    )


def difference_text(now: Figure, before: Figure) -> str | None:
    """How much more it is than before: `-$2.00 or more`, `$0.00 to +$4.50`; None if not known."""
    if now.usd is None or before.usd is None:
        return None
    low = now.usd - (before.upper_end or before.usd)
    high = (now.upper_end or now.usd) - before.usd
    if low != high:
        return f"{format_signed_usd(low)} to {format_signed_usd(high)}"
    return format_signed_usd(
        low, qualify_change(now.qualifier, before.qualifier, has_fallen=low < 0)
    )


def percent_change_text(now: Figure, before: Figure, places: int = 1) -> str | None:
    """`+12.5%`, "about" unless both are exact; None if one is unknown, or before was nothing."""
    if now.usd is None or not before.usd:
        return None
    exact = {now.qualifier, before.qualifier} == {SpendQualifier.EXACT}
    exact = exact and now.upper_end == now.usd and before.upper_end == before.usd
    return about_text(
        f"{100 * (now.usd - before.usd) / before.usd:+,.{places}f}%", estimated=not exact
    )


def about_text(shown: str, *, estimated: bool) -> str:
    """`about $0.66`; the text itself at known rates, and for a bound such as "<$0.01"."""
    return f"about {shown}" if estimated and not shown.startswith("<") else shown


def format_rate(amount: Decimal | None) -> str:
    """A price with two to six decimals: `$1.408`."""
    if amount is None:
        return UNKNOWN
    whole, _, decimals = f"{amount.quantize(_MICRO, ROUND_HALF_UP):,f}".partition(".")
    return f"${whole}.{decimals.rstrip('0'):0<2}"


def percent_text(part: Decimal, whole: Decimal) -> str:
    """`77%`; "<1%" and ">99%" keep a small part from being 0% and nearly all from being 100%."""
    ratio = part / whole
    if 0 < ratio < _ALMOST_NONE:
        return "<1%"
    if _ALMOST_ALL < ratio < 1:
        return ">99%"
    return f"{(ratio * 100).quantize(Decimal(1), ROUND_HALF_UP)}%"
