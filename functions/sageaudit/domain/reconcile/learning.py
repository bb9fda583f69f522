"""Works out own rates from the paid usage of a cost report.

A rate is what was paid, divided by what was used, so that rate times usage is the report's cost
within the report's own rounding. Where the same days have different prices, their average weighted
by usage is the rate, and its note says so.

Not a rate: credits, refunds, taxes, fees, and usage at $0. Usage that no price table knows, such as
a spot role, is listed without a rate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import reduce

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.job.ref import REGION
from sageaudit.domain.prices.own_rates import HIGHEST_USD, TYPE, OwnRate, RateBasis
from sageaudit.domain.prices.price_list import ROLES, STORAGE
from sageaudit.domain.reconcile.spend import Excluded, PaidReport, PaidUsage
from sageaudit.domain.reconcile.usage_type import parsed
from sageaudit.errors import BadUsage

LEAST_USAGE = {"hours": Decimal("0.1"), "GB-months": Decimal("0.01")}
"""Below 6 minutes, or 0.01 GB-months (a cent or less), no rate is learnt. Our choice."""
MOST_ERROR = Decimal("0.005")
"""Share of a rate that the rounding of the report's costs may amount to. Our choice."""
MOST_STRETCHES = 3
"""Prices change a few times a year: more of them in a month are a mixture. Our choice."""
_SAME_WITHIN = Decimal("0.000001")
"""Share by which two days of one price may differ beyond the report's rounding."""
_COMPARED_FROM = Decimal("0.01")
"""Less usage says little about its price."""
_QUANTITY_ERROR = Decimal("5e-11")
"""AWS writes ten decimals."""
_FEWEST_DECIMALS = 2
"""A cost of whole dollars had its zeros cut off: no report is coarser than cents."""
_COMPONENTS = {role.lower(): component for component, role in ROLES.items()}
_UNITS = {
    "hours": frozenset({"", "hrs", "hr", "hours", "hour"}),
    "GB-months": frozenset({"", "gb-mo", "gb-month", "gb-months"}),
}
_ALL_COVERED = "a Savings Plan covers all of it: --amortised counts what the plan costs"
_MOST_PLACES = 12
_SHOWN = Decimal("0.0001")
"""USD to which the ends of an average are shown."""
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Product:
    """What a rate is for: an instance type or ML storage of a component in a region."""

    what: str
    region: str
    component: Component

    @property
    def unit(self) -> str:
        """What its quantity counts: instance-hours or GB-months."""
        return "GB-months" if self.what == STORAGE else "hours"


@dataclass(frozen=True, slots=True)
class Learnt:
    """A rate, its cost, the public price that the report names, and the usage at $0 beside it."""

    rate: OwnRate
    usd: Decimal
    list_usd: Decimal | None
    free: Decimal


@dataclass(frozen=True, slots=True)
class NotLearnt:
    """A product without a rate on some days; `why` is a sentence without a full stop."""

    product: Product
    first: date
    last: date
    why: str


@dataclass(frozen=True, slots=True)
class UnpricedUsage:
    """SageMaker usage in no rate, because it is no job's or for the reason `why`."""

    usage: str
    area: str
    why: str
    quantity: Decimal
    usd: Decimal


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a report teaches, and what of it is in no rate."""

    basis: RateBasis
    learnt: tuple[Learnt, ...]
    not_learnt: tuple[NotLearnt, ...]
    unpriced: tuple[UnpricedUsage, ...]
    left_out: tuple[Excluded, ...]
    notes: tuple[str, ...]


def learn(report: PaidReport, basis: RateBasis, source: str) -> Lesson:
    """The rates of a report, which `source` names.

    Raises BadUsage for a rate above any price of AWS, naming the line of the report.
    """
    paid: dict[Product, list[PaidUsage]] = defaultdict(list)
    covered: dict[Product, list[PaidUsage]] = defaultdict(list)
    unpriced: dict[tuple[str, str, str], list[PaidUsage]] = defaultdict(list)
    for usage in report.usage:
        product = _product(usage)
        if isinstance(product, str):
            named = parsed(usage.usage_type)
            unpriced[named.text, named.area, product].append(usage)
        elif usage.covered and basis is RateBasis.NET:
            covered[product].append(usage)
        else:
            paid[product].append(usage)
    under_plan = {product: _total(usage) for product, usage in covered.items()}
    found = [*_rates(paid, source)]
    learnt = [rate for rate in found if isinstance(rate, Learnt)]
    missing = [rate for rate in found if isinstance(rate, NotLearnt)]
    missing += [
        NotLearnt(product, usage.first, usage.last, _ALL_COVERED)
        for product, usage in under_plan.items()
        if product not in paid
    ]
    return Lesson(
        basis=basis,
        learnt=tuple(sorted(learnt, key=lambda found: _order(found.rate))),
        not_learnt=tuple(sorted(missing, key=lambda found: _order(found.product))),
        unpriced=tuple(
            UnpricedUsage(*key, whole.quantity + whole.free, whole.usd)
            for key, whole in ((key, _total(usage)) for key, usage in sorted(unpriced.items()))
        ),
        left_out=report.left_out,
        notes=tuple(_notes(report, learnt, under_plan)),
    )


def _order(of: Product | OwnRate) -> tuple[str, str, str]:
    return of.what, of.region, of.component.value


def _total(parts: Sequence[PaidUsage]) -> PaidUsage:
    return reduce(PaidUsage.plus, parts)


def _product(usage: PaidUsage) -> Product | str:
    """What the usage is of, or why no rate can be made of it."""
    if usage.region is None or not REGION.fullmatch(usage.region):
        return "its region is not named"
    named = parsed(usage.usage_type)
    component, what = _COMPONENTS.get(named.role.lower()), named.what.lower()
    what = STORAGE if what == STORAGE.lower() else what
    if component is None or not (what == STORAGE or TYPE.fullmatch(what)):
        return "no price table knows it"
    product = Product(what, usage.region, component)
    if usage.unit.lower() not in _UNITS[product.unit]:
        return f"it is counted in {usage.unit[:20]}, not in {product.unit}"
    return product


def _rates(
    paid: Mapping[Product, Sequence[PaidUsage]], source: str
) -> Iterator[Learnt | NotLearnt]:
    """Each rate by product and days, or why there is none."""
    decimals = [usage.cost_decimals for of_product in paid.values() for usage in of_product]
    half_unit = Decimal("0.5").scaleb(-max([_FEWEST_DECIMALS, *decimals]))
    for product, of_product in paid.items():
        months: dict[str, list[PaidUsage]] = defaultdict(list)
        for usage in of_product:
            months[f"{usage.first:%Y-%m}"].append(usage)
        for month in months.values():
            for stretch in _stretches(month, half_unit):
                yield _rate(product, stretch, half_unit, source)


def _stretches(month: Sequence[PaidUsage], half_unit: Decimal) -> Sequence[Sequence[PaidUsage]]:
    """The usage of one product in one month, in stretches of days with the same price.

    Usage without a cost has the price of the days before it. A stretch that begins the month is
    taken to begin on its first day.
    """
    by_days: dict[tuple[date, date], list[PaidUsage]] = defaultdict(list)
    for usage in month:
        by_days[usage.first, usage.last].append(usage)
    found: list[list[PaidUsage]] = []
    for _, of_days in sorted(by_days.items()):
        if found and _same_price(_total(found[-1]), _total(of_days), half_unit):
            found[-1] += of_days
        else:
            found.append(of_days)
    if len(found) > MOST_STRETCHES or any(usage.covered for usage in month):
        found = [[usage for stretch in found for usage in stretch]]
    found[0][0] = replace(found[0][0], first=found[0][0].first.replace(day=1))
    return found


def _error(usage: PaidUsage, half_unit: Decimal) -> Decimal:
    """How far the rounding of costs and quantities moves a price, where all lines round alike."""
    return usage.lines * (half_unit + usage.price * _QUANTITY_ERROR) / usage.quantity


def _same_price(one: PaidUsage, other: PaidUsage, half_unit: Decimal) -> bool:
    """Whether rounding explains the difference of two prices, if both are known."""
    if not one.quantity or not other.quantity:
        return True
    allowed = 2 * (_error(one, half_unit) + _error(other, half_unit))
    return abs(one.price - other.price) <= allowed + _SAME_WITHIN * one.price


def _rate(
    product: Product, stretch: Sequence[PaidUsage], half_unit: Decimal, source: str
) -> Learnt | NotLearnt:
    usage, unit = _total(stretch), product.unit
    used = f"{usage.quantity.quantize(_SHOWN).normalize():f} {unit}"
    why = None
    if not usage.quantity:
        why = "all of it cost $0, and a free tier is not a rate"
    elif usage.quantity < LEAST_USAGE[unit]:
        why = f"only {used} were used, and {LEAST_USAGE[unit]} are needed"
    elif _error(usage, half_unit) > MOST_ERROR * usage.price:
        why = f"the report rounds its costs so much that {used} tell no rate"
    if why is not None:
        return NotLearnt(product, usage.first, usage.last, why)
    if usage.price > HIGHEST_USD:
        raise BadUsage(
            f"{usage.largest_line} costs ${usage.largest_usd:f}: {product.what} in {product.region}"
            f" would cost ${usage.price:.0f} per unit, and no rate is above ${HIGHEST_USD}"
        )
    rate = OwnRate(
        product.region,
        product.component,
        product.what,
        usd=_shortest(usage.price, _error(usage, half_unit)),
        first=usage.first,
        last=usage.last,
        quantity=usage.quantity,
        source=source,
        note=_mixture(stretch, usage, unit, half_unit),
    )
    return Learnt(rate, usage.usd, usage.list_rate, usage.free)


def _mixture(
    stretch: Sequence[PaidUsage], whole: PaidUsage, unit: str, half_unit: Decimal
) -> str | None:
    """What kind of average the rate is; None for a price that all usage had."""
    if whole.covered:
        share = 100 * whole.covered / whole.quantity
        return f"a Savings Plan covers {share:.0f}% of its {unit}"
    compared = [usage for usage in stretch if usage.quantity >= _COMPARED_FROM] or [whole]
    low, high = (of(compared, key=lambda usage: usage.price) for of in (min, max))
    if _same_price(low, high, half_unit):
        return None
    ends = (f"${_shortest(end.price, _SHOWN):f}" for end in (low, high))
    return f"the average of prices from {' to '.join(ends)}"


def _shortest(value: Decimal, error: Decimal) -> Decimal:
    """The number with the fewest decimals within the error: no digit that the source lacks."""
    for places in range(_MOST_PLACES):
        rounded = value.quantize(Decimal(1).scaleb(-places))
        if rounded and abs(rounded - value) <= error:
            return rounded
    return value.quantize(Decimal(1).scaleb(-_MOST_PLACES))


def _notes(
    report: PaidReport, learnt: Sequence[Learnt], under_plan: Mapping[Product, PaidUsage]
) -> Iterator[str]:
    if report.repeats:
        yield (
            f"{report.repeats:,} lines are in two of the files (two versions of one report?):"
            " each is counted once"
        )
    covered = sum((usage.covered for usage in under_plan.values()), _ZERO)
    if covered:
        yield (
            f"{covered:.2f} hours are covered by a Savings Plan and in no rate here:"
            " --amortised counts them at the plan's cost"
        )
    free = sum((found.free for found in learnt), _ZERO)
    if free:
        yield f"{free:.2f} hours or GB-months cost $0 and are in no rate: a free tier is not a rate"
    payers, accounts = (
        {getattr(usage, of) for usage in report.usage} for of in ("payer", "account")
    )
    if len(payers) > 1:
        yield (
            f"the report has lines of {len(payers)} payer accounts, which may have prices of"
            " their own: --account learns those of one account"
        )
    elif len(accounts) > 1 and any(found.rate.note is not None for found in learnt):
        yield (
            f"the report has lines of {len(accounts)} accounts: where an average is of their"
            " different prices, --account learns those of one account"
        )
