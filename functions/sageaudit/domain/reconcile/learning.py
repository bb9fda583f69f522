"""Derives the customer's own rates from the paid usage of a cost report.

A rate is the cost of a month divided by the usage. So rate times usage is the report's cost, within
the report's own rounding. If a month has different prices, the rate is their average weighted by
usage, and its note says so.

Credits, refunds, taxes, fees and usage at $0 give no rate. Usage of jobs that no price table has,
such as a Spot role, is listed without a rate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from functools import reduce

from msgspec import Struct

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.job.ref import REGION
from sageaudit.domain.money import format_rate
from sageaudit.domain.prices.known_prices import MAX_RATE_USD, TYPE, OwnRate, RateBasis
from sageaudit.domain.prices.price_list import ROLES, STORAGE
from sageaudit.domain.reconcile.lines import (
    JOBS,
    MANAGED_SPOT,
    OTHER,
    PaidReport,
    PaidUsage,
    parse_usage_type,
)
from sageaudit.errors import BadUsage

MIN_USAGE = {"hours": Decimal("0.1"), "GB-months": Decimal("0.01")}
"""The minimum usage from which a rate is derived, by unit: 6 minutes, or at most a cent of storage.
Our choice."""
MAX_ROUNDING_ERROR = Decimal("0.005")
"""No rate is derived if the rounding of the report's costs may change it by more than this share.
Our choice."""
_JOB_AREAS = frozenset({JOBS, MANAGED_SPOT, OTHER})
"""The areas whose usage belongs, or may belong, to jobs."""
_SAME_PRICE_TOLERANCE = Decimal("0.000001")
"""Prices of two days count as equal if they differ by at most this share, beyond rounding
errors."""
_MIN_COMPARED_USAGE = Decimal("0.01")
"""If usage is below this quantity, its price is not compared with the prices of other days."""
_QUANTITY_ERROR = Decimal("5e-11")
"""The rounding error of a quantity: AWS writes ten decimals."""
_MIN_COST_DECIMALS = 2
"""The minimum number of decimals assumed for the costs of a report. A cost in whole dollars is
written without zeros, but is not rounded to dollars."""
_COMPONENTS = {role.lower(): component for component, role in ROLES.items()}
_UNITS = {
    "hours": frozenset({"", "hrs", "hr", "hours", "hour"}),
    "GB-months": frozenset({"", "gb-mo", "gb-month", "gb-months"}),
}
_MAX_DECIMALS = 12
_SHOWN_PRECISION = Decimal("0.0001")
"""The precision of prices (USD) and quantities in texts for people."""


class Product(Struct, frozen=True):
    """A product that has a rate: an instance type or ML storage of a component in a region."""

    name: str
    region: str
    component: Component

    @property
    def unit(self) -> str:
        """The unit of the product's quantity: instance-hours or GB-months."""
        return "GB-months" if self.name == STORAGE else "hours"


class DerivedRate(Struct, frozen=True):
    """A rate derived from a cost report. `list_usd` is the report's public price, or None."""

    rate: OwnRate
    list_usd: Decimal | None


class UsageWithoutRate(Struct, frozen=True):
    """Usage of jobs without a rate. `reason` is a sentence without a full stop."""

    name: str
    reason: str


def derive_rates(
    report: PaidReport, basis: RateBasis, source: str
) -> list[DerivedRate | UsageWithoutRate]:
    """Returns the rates of a report and the usage without a rate, by name.

    `source` is the report's name. Raises BadUsage, with the report's line, for a rate above any AWS
    price.
    """
    paid: dict[tuple[Product, date], list[PaidUsage]] = defaultdict(list)
    results: dict[str, DerivedRate | UsageWithoutRate] = {}
    for usage in report.usage:
        product, parsed = _product(usage), parse_usage_type(usage.usage_type)
        if isinstance(product, str):
            if parsed.area in _JOB_AREAS:
                results[f"{parsed.text} {product}"] = UsageWithoutRate(parsed.text, product)
        elif usage.covered_quantity and basis is RateBasis.NET:
            reason = (
                "hours under a Savings Plan are not in it: --amortised counts what the plan costs"
            )
            results[f"{_name(product)}, covered"] = UsageWithoutRate(_name(product), reason)
        else:
            paid[product, usage.first_day.replace(day=1)].append(usage)
    decimals = [usage.cost_decimals for usages in paid.values() for usage in usages]
    half_unit = Decimal("0.5").scaleb(-max([_MIN_COST_DECIMALS, *decimals]))
    for (product, month), usages in paid.items():
        rate = _rate(product, month, usages, half_unit, source)
        results[f"{_name(product)} {month}"] = rate
    return [row for _, row in sorted(results.items())]


def _name(product: Product) -> str:
    return f"{product.name}, {product.component.value}, {product.region}"


def _product(usage: PaidUsage) -> Product | str:
    """Returns a text that says why no rate can be derived, instead of a product."""
    if usage.region is None or not REGION.fullmatch(usage.region):
        return "its region is not named"
    parsed = parse_usage_type(usage.usage_type)
    component, resource = _COMPONENTS.get(parsed.role.lower()), parsed.resource.lower()
    resource = STORAGE if resource == STORAGE.lower() else resource
    if component is None or not (resource == STORAGE or TYPE.fullmatch(resource)):
        return "no price table knows it"
    product = Product(resource, usage.region, component)
    if usage.unit.lower() not in _UNITS[product.unit]:
        return f"it is counted in {usage.unit[:20]}, not in {product.unit}"
    return product


def _price_error(usage: PaidUsage, half_unit: Decimal) -> Decimal:
    """Returns the largest error of a price from the rounding of costs and quantities.

    `half_unit`: half of the last decimal of the costs. In the worst case, the rounding of all lines
    has the same sign.
    """
    return usage.line_count * (half_unit + usage.price * _QUANTITY_ERROR) / usage.quantity


def _rate(
    product: Product, month: date, usages: Sequence[PaidUsage], half_unit: Decimal, source: str
) -> DerivedRate | UsageWithoutRate:
    """Returns the rate of a product from its usages, or why they give no rate.

    The rate is valid from the first day of `month`. `half_unit`: see `_price_error`. `source`: the
    name of the cost report. Raises BadUsage for a rate above MAX_RATE_USD.
    """
    usage, unit = reduce(PaidUsage.combined_with, usages), product.unit
    amount = f"{usage.quantity.quantize(_SHOWN_PRECISION).normalize():f} {unit}"
    reason = None
    if not usage.quantity:
        reason = "all of it cost $0, and a free tier is not a rate"
    elif usage.quantity < MIN_USAGE[unit]:
        reason = f"only {amount} were used, and {MIN_USAGE[unit]} are needed"
    elif _price_error(usage, half_unit) > MAX_ROUNDING_ERROR * usage.price:
        reason = f"the report rounds its costs so much that {amount} give no rate"
    if reason is not None:
        return UsageWithoutRate(_name(product), reason)
    if usage.price > MAX_RATE_USD:
        raise BadUsage(
            f"{usage.largest_line} costs ${usage.largest_usd:f}: {product.name} in {product.region}"
            f" would cost ${usage.price:.0f} per unit, and no rate is above ${MAX_RATE_USD}"
        )
    rate = OwnRate(
        product.region,
        product.component,
        product.name,
        usd=_round_within_error(usage.price, _price_error(usage, half_unit)),
        first=month,
        last=usage.last_day,
        quantity=usage.quantity,
        source=source,
        note="; ".join(_average_notes(usages, usage, unit, half_unit)) or None,
    )
    return DerivedRate(rate, usage.list_rate)


def _average_notes(
    usages: Sequence[PaidUsage], usage_sum: PaidUsage, unit: str, half_unit: Decimal
) -> Iterator[str]:
    """Yields notes on an average rate; nothing if all usage has one price."""
    if usage_sum.covered_quantity:
        covered_percent = 100 * usage_sum.covered_quantity / usage_sum.quantity
        yield f"a Savings Plan covers {covered_percent:.0f}% of its {unit}"
        return
    compared_usages = [usage for usage in usages if usage.quantity >= _MIN_COMPARED_USAGE] or [
        usage_sum
    ]
    lowest, highest = (
        choose(compared_usages, key=lambda usage: usage.price) for choose in (min, max)
    )
    allowed_difference = 2 * (_price_error(lowest, half_unit) + _price_error(highest, half_unit))
    if highest.price - lowest.price > allowed_difference + _SAME_PRICE_TOLERANCE * lowest.price:
        price_texts = (format_rate(end.price) for end in (lowest, highest))
        yield f"the average of prices from {' to '.join(price_texts)}"
        if accounts := len({usage.account for usage in usages}) - 1:
            yield f"of {accounts + 1} accounts: --account learns those of one"


def _round_within_error(value: Decimal, error: Decimal) -> Decimal:
    """Returns the number with the fewest decimals that is within `error` of `value`."""
    for places in range(_MAX_DECIMALS):
        rounded = value.quantize(Decimal(1).scaleb(-places))
        if rounded and abs(rounded - value) <= error:
            return rounded
    return value.quantize(Decimal(1).scaleb(-_MAX_DECIMALS))
