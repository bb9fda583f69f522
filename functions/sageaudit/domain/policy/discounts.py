"""Negotiated prices from the policy, in place of the list prices.

A rate for a type and region in the policy applies first, because a person wrote it. Next comes the
rate from a cost report, from its first day on. Otherwise a percentage is taken off the list price:
the instance family's, or else the component's. The two percentages are never added up. No
percentage is taken off a company's own rate, which is already net of discounts.

A Savings Plan is not a price but a commitment that is paid whether used or not. Under a plan, every
figure stays at list value, and says that its cash effect depends on the plan's utilisation.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from msgspec import Struct, field

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.money import format_rate
from sageaudit.domain.policy.table_reader import TableReader
from sageaudit.domain.prices.known_prices import SAME_PRICE_TOLERANCE, OwnRates, RateBasis
from sageaudit.domain.prices.market import Market, Prices, Rate
from sageaudit.domain.prices.price_list import STORAGE

_WHOLE = Decimal(100)


class Discounts(Struct, frozen=True):
    """The policy's discounts and rates.

    `percent` is taken off the list price, by component or instance family. `rates` are in USD per
    hour, by region and type. `savings_plan` means that a Savings Plan covers usage. `own_rates` are
    the rates from a cost report; None without a report.
    """

    percent: Mapping[str, Decimal] = field(default_factory=dict)
    rates: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)
    savings_plan: bool = False
    own_rates: OwnRates | None = None

    @property
    def has_own_prices(self) -> bool:
        """Whether any price differs from the list price."""
        return bool(self.percent or self.rates or self.own_rates)


def parse_discounts(reader: TableReader, own_rates: OwnRates | None = None) -> Discounts:
    """Reads the policy's `[discounts]`. Raises BadPolicy with the key.

    `own_rates` are the rates from the file that the key `discounts.own_rates` names.
    """
    percents, rates = reader.subtable("percent"), reader.subtable("rates")
    reader.read("own_rates", str, "")
    discounts = Discounts(
        percent={name: _percent(percents, name) for name in percents.unread_keys()},
        rates={region: _rates(rates, region) for region in rates.unread_keys()},
        # Amortised rates count a plan's cost, so what a change saves depends on the plan's use.
        savings_plan=reader.read(
            "savings_plan",
            bool,
            default=own_rates is not None and own_rates.basis is RateBasis.AMORTISED,
        ),
        own_rates=own_rates,
    )
    reader.reject_unread_keys()
    return discounts


def _percent(reader: TableReader, name: str) -> Decimal:
    value = reader.amount(name)
    if value >= _WHOLE:
        raise reader.error(name, "is not a percentage from 0 to under 100")
    return value


def _rates(reader: TableReader, region: str) -> dict[str, Decimal]:
    table = reader.subtable(region)
    rates = {name: table.amount(name) for name in table.unread_keys()}
    for name, usd in rates.items():
        if not name.startswith("ml.") or not usd:
            raise table.error(name, "is not the hourly rate of an ml. type above 0")
    return rates


class OwnPrices(Struct, frozen=True):
    """Prices with the policy's discounts, and with the own rates that apply on `day`.

    None for `day` means the newest rates.
    """

    list_prices: Prices
    discounts: Discounts
    day: date | None = None

    @property
    def version(self) -> str:
        """The version of the price list, marked as discounted."""
        return f"{self.list_prices.version}, own discounts"

    def hourly_rate(self, region: str, component: Component, instance_type: str) -> Rate | None:
        """Returns the type's own rate on `day`, else the discounted list rate."""
        listed = self.list_prices.hourly_rate(region, component, instance_type)
        return self._own_rate((region, component), instance_type, listed, self.day)

    def newest_hourly_rate(
        self, region: str, component: Component, instance_type: str
    ) -> Rate | None:
        """Returns the type's newest own rate, else the newest discounted list rate."""
        listed = self.list_prices.newest_hourly_rate(region, component, instance_type)
        return self._own_rate((region, component), instance_type, listed, None)

    def storage_rate(self, region: str, component: Component) -> Rate | None:
        """Returns the cost report's rate, else the discounted list rate."""
        listed = self.list_prices.storage_rate(region, component)
        return self._own_rate((region, component), STORAGE, listed, self.day)

    def usage_type(self, region: str, component: Component, product: str) -> str | None:
        """Returns the usage type in the price list."""
        return self.list_prices.usage_type(region, component, product)

    def absence_reason(self, region: str, component: Component, product: str) -> str | None:
        """Returns why the list rate is unknown; None if there is no reason."""
        return self.list_prices.absence_reason(region, component, product)

    def _own_rate(
        self, place: tuple[str, Component], product: str, list_rate: Rate | None, day: date | None
    ) -> Rate | None:
        region, component = place
        rates = self.discounts.own_rates
        report_rate = None if rates is None else rates.rate_for_day(region, component, product, day)
        own_usd = self.discounts.rates.get(region, {}).get(product)
        if own_usd is None:
            return report_rate or self._discounted_rate(
                list_rate, component, None if product == STORAGE else product
            )
        note = None
        if report_rate and abs(own_usd - report_rate.usd) > SAME_PRICE_TOLERANCE * own_usd:
            note = f"the cost report of {report_rate.as_of} says {format_rate(report_rate.usd)}"
        return Rate(own_usd, None, "policy: rate of this type and region", note, kind="own")

    def _discounted_rate(
        self, rate: Rate | None, component: Component, instance_type: str | None
    ) -> Rate | None:
        """Returns the rate less the policy's percentage; unchanged if there is none.

        The percentage of the type's instance family comes before the component's.
        """
        percents, part = self.discounts.percent, component.value
        family = instance_type.split(".")[1] if instance_type else part
        percent = percents.get(family, percents.get(part))
        if rate is None or not percent:
            return rate
        factor = (_WHOLE - percent) / _WHOLE
        suffix = f", less {percent.normalize():f}% by policy"
        return rate._replace(
            usd=rate.usd * factor,
            other_usd=None if rate.other_usd is None else rate.other_usd * factor,
            source=f"{rate.source}{suffix}",
            estimate_basis=f"{rate.estimate_basis}{suffix}" if rate.estimate_basis else None,
            kind="estimate" if rate.is_estimate else "own",
            is_discounted=rate.is_estimate,
        )


def with_own_prices(market: Market, discounts: Discounts, day: date | None = None) -> Market:
    """Returns the market at the company's own prices of `day`.

    If `day` is None, the newest own prices apply.
    """
    if not discounts.has_own_prices:
        return market
    return market.with_prices(OwnPrices(market.prices, discounts, day))
