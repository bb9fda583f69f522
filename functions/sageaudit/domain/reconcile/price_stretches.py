"""From sums of usage and cost to dated rates: one for each stretch of days with the same price."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

LEAST_USAGE = {"hours": Decimal("0.1"), "GB-months": Decimal("0.01")}
"""Below 6 minutes, or 0.01 GB-months (a cent or less), no rate is learnt. Our choice."""
MOST_ERROR = Decimal("0.005")
"""Share of a rate that the rounding of the report's costs may amount to. Our choice."""
MOST_STRETCHES = 3
"""Prices change a few times a year: more of them in a month are a mixture. Our choice."""
_SAME_WITHIN = Decimal("0.000001")
"""Share by which two days of one price may differ beyond the report's rounding."""
_SPREAD_FROM = Decimal("0.01")
"""A line of less usage says little about its price."""
_FINEST = 10
"""Decimals that AWS writes at most; more are the noise of binary numbers."""
_EXACT_BELOW = 6
"""Quantities with fewer decimals in the whole report were not rounded; costs may have been."""
_MOST_PLACES = 12
_SHOWN = Decimal("0.0001")
"""USD to which the ends of an average are shown."""
_HALF = Decimal("0.5")
_ZERO = Decimal(0)


@dataclass(slots=True)
class ReportPrecision:
    """The decimals of the report's costs and quantities, from which their rounding follows.

    A cost of whole dollars had its zeros cut off: no report is coarser than cents.
    """

    cost: int = 2
    quantity: int = 0

    def see(self, quantity: Decimal, usd: Decimal) -> None:
        """Takes note of one line."""
        self.cost = max(self.cost, _places(usd))
        self.quantity = max(self.quantity, _places(quantity))

    @property
    def half_cent(self) -> Decimal:
        """Half of the last decimal of a cost, in USD."""
        return _HALF.scaleb(-self.cost)

    def error(self, price: Decimal, quantity: Decimal, rows: int = 1) -> Decimal:
        """How far rounding moves the price of `rows` lines with this quantity together.

        Lines of the same usage are all rounded the same way, so small errors are added up; those
        of a report in cents are as large as costs themselves, and cancel each other out.
        """
        fine = self.cost >= _EXACT_BELOW
        of_cost = self.half_cent * (rows if fine else Decimal(rows).sqrt())
        of_quantity = rows * _HALF.scaleb(-self.quantity) if self.quantity >= _EXACT_BELOW else 0
        return (of_cost + price * of_quantity) / quantity


@dataclass(slots=True)
class Span:
    """Sums of the lines of some days. Quantities are instance-hours or GB-months.

    `covered`: paid for by a Savings Plan. `free`: at $0, the largest such line being `most_free`.
    `low` and `high`: the prices of lines that are not tiny, the smallest of them being `least`.
    """

    first: date
    last: date
    quantity: Decimal = _ZERO
    usd: Decimal = _ZERO
    rows: int = 0
    covered: Decimal = _ZERO
    free: Decimal = _ZERO
    most_free: Decimal = _ZERO
    low: Decimal | None = None
    high: Decimal | None = None
    least: Decimal | None = None
    list_rate: Decimal | None = None

    @property
    def price(self) -> Decimal:
        """USD per unit; only where there is usage with a cost."""
        return self.usd / self.quantity

    def add(self, quantity: Decimal, usd: Decimal) -> None:
        """Counts one line."""
        if not usd:
            self.free += quantity
            self.most_free = max(self.most_free, quantity)
            return
        self.quantity += quantity
        self.usd += usd
        self.rows += 1
        if quantity >= _SPREAD_FROM:
            price = usd / quantity
            self._spread(price, price, quantity)

    def join(self, other: Span) -> None:
        """Counts another span's lines; `other` is the later one."""
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.quantity += other.quantity
        self.usd += other.usd
        self.rows += other.rows
        self.covered += other.covered
        self.free += other.free
        self.most_free = max(self.most_free, other.most_free)
        self.list_rate = other.list_rate or self.list_rate
        if other.low is not None and other.high is not None and other.least is not None:
            self._spread(other.low, other.high, other.least)

    def _spread(self, low: Decimal, high: Decimal, least: Decimal) -> None:
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
        self.least = least if self.least is None else min(self.least, least)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of days with its rate, or why it has none. `note`: what kind of average it is."""

    first: date
    last: date
    quantity: Decimal
    usd: Decimal
    rate: Decimal | None
    why_not: str | None = None
    note: str | None = None
    list_rate: Decimal | None = None
    free: Decimal = field(default=_ZERO)


def stretches(
    spans: Iterable[Span],
    precision: ReportPrecision,
    unit: str,
    *,
    paid_share: Decimal = Decimal(1),
) -> Iterator[Stretch]:
    """The rates of one product in one month, by day. `paid_share`: what discounts leave of 1.

    A stretch that begins the month is taken to begin on its first day.
    """
    ordered = sorted(spans, key=lambda span: (span.first, span.last))
    joined: list[Span] = []
    for span in ordered:
        if joined and (not span.quantity or _same_price(joined[-1], span, precision)):
            joined[-1].join(span)
        else:
            joined.append(span)
    if len(joined) > MOST_STRETCHES or any(span.covered for span in joined):
        for span in joined[1:]:
            joined[0].join(span)
        del joined[1:]
    joined[0].first = joined[0].first.replace(day=1)
    for span in joined:
        yield _stretch(span, precision, unit, paid_share)


def _same_price(span: Span, other: Span, precision: ReportPrecision) -> bool:
    """Whether rounding explains the difference; a span without cost takes the next one's price."""
    if not span.quantity:
        return True
    allowed = sum(
        (2 * precision.error(one.price, one.quantity, one.rows) for one in (span, other)), _ZERO
    )
    return abs(span.price - other.price) <= allowed + _SAME_WITHIN * span.price


def _stretch(span: Span, precision: ReportPrecision, unit: str, paid_share: Decimal) -> Stretch:
    if not span.quantity:
        nothing = "all of it cost $0, and a free tier is not a rate"
        return Stretch(span.first, span.last, _ZERO, _ZERO, None, nothing, free=span.free)
    free = span.free
    if span.most_free * span.price <= precision.half_cent:  # a cost that was rounded to 0
        span.quantity, free = span.quantity + free, _ZERO
    usd, error = span.usd * paid_share, precision.error(span.price, span.quantity, span.rows)
    rate: Decimal | None = None
    why: str | None = None
    if paid_share <= 0:
        why = "a discount takes all of its cost"
    elif span.quantity < LEAST_USAGE[unit]:
        least = LEAST_USAGE[unit]
        why = f"only {_amount(span.quantity)} {unit} were used, and {least} are needed"
    elif error > MOST_ERROR * span.price:
        why = (
            f"the report rounds its costs so much that {_amount(span.quantity)} {unit} tell no rate"
        )
    else:
        rate = _shortest(usd / span.quantity, error * paid_share)
    notes = (_mixture(span, precision, unit, paid_share), _discounted(paid_share))
    note = "; ".join(filter(None, notes)) or None
    return Stretch(span.first, span.last, span.quantity, usd, rate, why, note, span.list_rate, free)


def _mixture(span: Span, precision: ReportPrecision, unit: str, paid_share: Decimal) -> str | None:
    if span.covered:
        share = 100 * span.covered / span.quantity
        return f"a Savings Plan covers {share:.0f}% of its {unit}"
    if span.low is None or span.high is None or span.least is None:
        return None
    rounding = 4 * precision.error(span.high, span.least)
    if span.high - span.low <= rounding + _SAME_WITHIN * span.high:
        return None
    ends = (_shortest(end * paid_share, max(rounding, _SHOWN)) for end in (span.low, span.high))
    return f"the average of prices from {' to '.join(f'${end:f}' for end in ends)}"


def _discounted(paid_share: Decimal) -> str | None:
    if paid_share == 1:
        return None
    return f"less {100 * (1 - paid_share):.1f}% that the report has as lines of their own"


def _shortest(value: Decimal, error: Decimal) -> Decimal:
    """The number with the fewest decimals within the error: no digit that the source lacks."""
    for places in range(_MOST_PLACES):
        rounded = value.quantize(Decimal(1).scaleb(-places))
        if rounded and abs(rounded - value) <= error:
            return rounded
    return value.quantize(Decimal(1).scaleb(-_MOST_PLACES))


def _places(number: Decimal) -> int:
    """Its decimals as written, at most `_FINEST`."""
    return min(max(-int(number.as_tuple().exponent), 0), _FINEST)


def _amount(quantity: Decimal) -> str:
    return f"{quantity.quantize(Decimal('0.0001')).normalize():f}"
