"""Formats amounts in USD for people, the same way in every view; JSON and CSV have exact values.

| amount | text | reason |
|---|---|---|
| of the bill, or counted | to the cent: `$1,234.56` | amounts add up to the bill |
| at an estimated rate | `about $1,234.56` | SageMaker's rate is unknown |
| with an unknown part | `$1,234.56 or more` | the unknown part adds to it |
| of a spot run without billable seconds | `up to $1,234.56` | as if every second was billed |
| a sum of lower and upper bounds | `about $1,234.56` | the sum is neither bound |
| a range | `$2.00 to $4.50`; from 0: `up to $4.50` | the lower end is counted |
| a possible saving | two digits, rounded down: `about $1,200` | its source is as rough |
| idle hours | two digits: `about $31` | they are computed from average use |
| unknown | `unknown`, `not judged` | that is not $0.00 |
| under one cent | `<$0.01` | it is not 0 |
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
from sageaudit.domain.money import CENT, LESS_THAN_CENT, UNKNOWN, format_usd

ROUND_DOWN = ROUND_FLOOR
"""The rounding of possible savings, so that they never promise more than was found."""
ROUND_NEAREST = ROUND_HALF_UP
"""The rounding of all other approximate amounts."""
_ALMOST_NONE = Decimal("0.01")
_ALMOST_ALL = Decimal("0.99")


class Figure(Struct, frozen=True):
    """An amount in USD and how exactly it is known. `str` formats both.

    `usd`: the counted amount; for None the text is `absent`. `upper_usd`: the upper end of a range.
    `estimated`: a rate is estimated. `at_least`: a part is unknown. `at_most`: the amount is an
    upper bound.

    `rounding`: `ROUND_DOWN` or `ROUND_NEAREST` to two digits. None rounds to the cent.
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
        low = self._format(self.usd, self.rounding)
        high = self._format(self.upper_end or self.usd, ROUND_NEAREST) if self._is_range else low
        if high in {low, LESS_THAN_CENT}:
            return _with_bound(self._about(high), at_least=self.at_least, at_most=self.at_most)
        range_text = f"{self._about(low)} to {high}" if self.usd else f"up to {self._about(high)}"
        return _with_bound(range_text, at_least=self.at_least, at_most=False)

    @property
    def upper_end(self) -> Decimal | None:
        """The upper end of a range, or the amount itself."""
        return self.upper_usd if self._is_range else self.usd

    @property
    def qualifier(self) -> SpendQualifier:
        """How exactly the amount is known. A range counts as exact."""
        return qualify_amount(
            is_known=self.usd is not None,
            lower_bound=self.at_least,
            upper_bound=self.at_most,
            estimated=self.estimated or bool(self.rounding),
        )

    @property
    def _is_range(self) -> bool:
        return self.usd is not None and self.upper_usd is not None and self.upper_usd > self.usd

    def _format(self, amount: Decimal, rounding: str | None) -> str:
        if not self.rounding or amount < CENT:
            return format_usd(amount)
        step = max(Decimal(1).scaleb(amount.adjusted() - 1), CENT)
        return f"${amount.quantize(step, rounding):,.{0 if step >= 1 else 2}f}"

    def _about(self, amount_text: str) -> str:
        has_both_bounds = self.at_least and self.at_most
        is_rough = self.estimated or self.rounding or has_both_bounds
        return about_text(amount_text, estimated=bool(is_rough and self.upper_end))


def _with_bound(amount_text: str, *, at_least: bool, at_most: bool) -> str:
    """Returns `$1 or more` or `up to $1`. With both bounds or none, the text is unchanged."""
    if at_least == at_most:
        return amount_text
    return f"{amount_text} or more" if at_least else f"up to {amount_text}"


def sum_figures(figures: Iterable[Figure]) -> Figure:
    """Returns the sum of the known figures.

    If a figure is unknown, the sum is a lower bound. A lower bound of 0 becomes unknown.
    """
    summands = tuple(figures)
    known_figures = [figure for figure in summands if figure.usd is not None]
    total_usd = sum((figure.usd or Decimal(0) for figure in known_figures), Decimal(0))
    absent_texts = [figure.absent for figure in summands if figure.usd is None]
    return Figure(
        None if absent_texts and not total_usd else total_usd,
        upper_usd=sum((figure.upper_end or Decimal(0) for figure in known_figures), Decimal(0)),
        estimated=any(figure.estimated and figure.upper_end for figure in known_figures),
        at_least=bool(absent_texts) or any(figure.at_least for figure in known_figures),
        at_most=any(figure.at_most for figure in known_figures),
        absent=absent_texts[0] if absent_texts else UNKNOWN,
    )


def format_signed_usd(amount: Decimal, qualifier: SpendQualifier = SpendQualifier.EXACT) -> str:
    """Returns a difference with its sign: `+$2.00`, `-$2.00 or more`, `$0.00`.

    `qualifier`: how exactly the size of the difference is known.
    """
    signed_text = f"+{format_usd(amount)}" if amount >= CENT else format_usd(amount)
    return _with_bound(
        about_text(signed_text, estimated=qualifier is SpendQualifier.ABOUT and bool(amount)),
        at_least=qualifier is SpendQualifier.AT_LEAST,
        at_most=qualifier is SpendQualifier.UP_TO,
    )


def difference_text(current: Figure, previous: Figure) -> str | None:
    """Returns the change, such as `-$2.00 or more`, or None if an amount is unknown."""
    if current.usd is None or previous.usd is None:
        return None
    low_usd = current.usd - (previous.upper_end or previous.usd)
    high_usd = (current.upper_end or current.usd) - previous.usd
    if low_usd != high_usd:
        return f"{format_signed_usd(low_usd)} to {format_signed_usd(high_usd)}"
    return format_signed_usd(
        low_usd, qualify_change(current.qualifier, previous.qualifier, has_fallen=low_usd < 0)
    )


def percent_change_text(current: Figure, previous: Figure, places: int = 1) -> str | None:
    """Returns `+12.5%`, with "about" unless both amounts are exact.

    None if an amount is unknown or `previous` is 0.
    """
    if current.usd is None or not previous.usd:
        return None
    is_exact = {current.qualifier, previous.qualifier} == {SpendQualifier.EXACT}
    is_exact = is_exact and current.upper_end == current.usd
    is_exact = is_exact and previous.upper_end == previous.usd
    percent = 100 * (current.usd - previous.usd) / previous.usd
    return about_text(f"{percent:+,.{places}f}%", estimated=not is_exact)


def about_text(amount_text: str, *, estimated: bool) -> str:
    """Returns `about $0.66` if the amount is estimated. A bound such as "<$0.01" is unchanged."""
    is_about = estimated and not amount_text.startswith("<")
    return f"about {amount_text}" if is_about else amount_text


def percent_text(part: Decimal, whole: Decimal) -> str:
    """Returns `77%`. A share near 0% or 100% is "<1%" or ">99%", and a share of nothing unknown."""
    if not whole:
        return UNKNOWN
    ratio = part / whole
    if 0 < ratio < _ALMOST_NONE:
        return "<1%"
    if _ALMOST_ALL < ratio < 1:
        return ">99%"
    return f"{(ratio * 100).quantize(Decimal(1), ROUND_HALF_UP)}%"
