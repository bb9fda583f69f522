"""Negotiated prices from the policy, in place of the list prices.

A rate for a type and region applies first; otherwise a percentage off: that of the instance family,
or else that of the component. Percentages are never added up. A Savings Plan is not a price but a
commitment that is paid whether used or not: under one, every figure stays at list value and says
that its cash effect depends on the utilisation of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.policy.table_reader import TableReader
from sageaudit.domain.prices.market import Market, Prices, Rate

_WHOLE = Decimal(100)


@dataclass(frozen=True, slots=True)
class Discounts:
    """`percent` off by component or instance family; `rates` in USD per hour by region and type."""

    percent: Mapping[str, Decimal] = field(default_factory=dict)
    rates: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)
    savings_plan: bool = False

    @property
    def any(self) -> bool:
        """Whether any price differs from the list price."""
        return bool(self.percent or self.rates)


def parse(reader: TableReader) -> Discounts:
    """Reads the policy's `[discounts]`. Raises BadPolicy naming the key."""
    percents, rates = reader.within("percent"), reader.within("rates")
    found = Discounts(
        percent={name: _percent(percents, name) for name in percents.rest()},
        rates={region: _rates(rates, region) for region in rates.rest()},
        savings_plan=reader.take("savings_plan", bool, default=False),
    )
    reader.done()
    return found


def _percent(reader: TableReader, name: str) -> Decimal:
    value = reader.usd(name)
    if value >= _WHOLE:
        raise reader.refusal(name, "is not a percentage from 0 to under 100")
    return value


def _rates(reader: TableReader, region: str) -> dict[str, Decimal]:
    table = reader.within(region)
    rates = {name: table.usd(name) for name in table.rest()}
    for name, usd in rates.items():
        if not name.startswith("ml.") or not usd:
            raise table.refusal(name, "is not the hourly rate of an ml. type above 0")
    return rates


@dataclass(frozen=True, slots=True)
class OwnPrices:
    """Implements Prices: list prices less the negotiated discounts."""

    listed: Prices
    discounts: Discounts

    @property
    def version(self) -> str:
        """The version of the price list, marked as discounted."""
        return f"{self.listed.version}, own discounts"

    def hourly(self, region: str, component: Component, instance_type: str) -> Rate | None:
        """The policy's rate for the type, or the list rate less the percentage."""
        listed = self.listed.hourly(region, component, instance_type)
        return self._own(region, instance_type) or self._less(listed, component, instance_type)

    def newest(self, region: str, component: Component, instance_type: str) -> Rate | None:
        """The policy's rate for the type, or the newest list rate less the percentage."""
        listed = self.listed.newest(region, component, instance_type)
        return self._own(region, instance_type) or self._less(listed, component, instance_type)

    def storage(self, region: str, component: Component) -> Rate | None:
        """The list rate less the percentage of the component."""
        return self._less(self.listed.storage(region, component), component, None)

    def usage_type(self, region: str, component: Component, what: str) -> str | None:
        """The usage type of the price list."""
        return self.listed.usage_type(region, component, what)

    def _own(self, region: str, instance_type: str) -> Rate | None:
        own = self.discounts.rates.get(region, {}).get(instance_type)
        if own is None:
            return None
        return Rate(own, None, "policy: rate of this type and region", kind="own")

    def _less(
        self, rate: Rate | None, component: Component, instance_type: str | None
    ) -> Rate | None:
        family = instance_type.split(".")[1] if instance_type else component.value
        percent = self.discounts.percent.get(family, self.discounts.percent.get(component.value))
        if rate is None or not percent:
            return rate
        left = (_WHOLE - percent) / _WHOLE
        less = f", less {percent.normalize():f}% by policy"
        return replace(
            rate,
            usd=rate.usd * left,
            other_usd=None if rate.other_usd is None else rate.other_usd * left,
            source=f"{rate.source}{less}",
            estimated=f"{rate.estimated}{less}" if rate.estimated else None,
            kind="estimate" if rate.is_estimate else "own",
            discounted=rate.is_estimate,
        )


def own(market: Market, discounts: Discounts) -> Market:
    """The same market at negotiated prices."""
    return replace(market, prices=OwnPrices(market.prices, discounts)) if discounts.any else market
