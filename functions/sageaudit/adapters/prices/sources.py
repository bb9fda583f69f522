"""All sources of prices in their order, and the price book that combines them.

The first source that has a rate is used. Later sources add undisputed rates of other days, so that
a past job is billed at the rate of its own day. An estimate is used only if no source has a rate. A
rate from a later source has a note that says why earlier sources had none.

An estimate is EC2's on-demand rate times a factor of the instance family. SageMaker's rate divided
by EC2's is constant in a family, except for some sizes. Of 2,186 pairs of rates in 37 regions,
98.6% are within 1% of their family's constant. Of 60 Training rates that were not used for the
constants, all are within 0.5% of the prediction. A family without a pair has no estimate. SageMaker
may not sell a type that has an estimate; `unlisted_reason` says so if a price list is known to lack
it. `python -m tools.ec2_rates` renews the EC2 rates.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cache, cached_property
from importlib import resources
from typing import Any

from msgspec import Struct

from sageaudit.adapters.prices import packaged
from sageaudit.adapters.prices.price_list import PriceCache, PriceList, PriceListSource
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.money import format_rate
from sageaudit.domain.prices.known_prices import (
    DatedRate,
    PriceSource,
    Quote,
    SourcePrices,
    pricing_day,
    rate_on,
)
from sageaudit.domain.prices.market import InstanceType, Market, Rate
from sageaudit.domain.prices.price_list import STORAGE
from sageaudit.structs import replace

ESTIMATES_TABLE = "estimated_prices.json"
_REFERENCE_COMPONENT = "Hosting"
"""Its rates are used for Training, Processing and Transform, as in the packaged table."""


def offline_sources() -> tuple[PriceSource, ...]:
    """Returns the sources that need no network. They are also the live price list's fallback."""
    return (packaged.packaged_prices(), estimated_prices())


def offline_book(region: str, component: Component, day: date | None) -> PriceBook:
    """Returns a price book of a region and component without network calls.

    It has the rates of `day`, or the newest rates if `day` is None.
    """
    return PriceBook(tuple(source.read(region, component) for source in offline_sources()), day)


@cache
def offline_markets() -> PricedMarkets:
    """Returns the process's only Markets without network calls. All jobs share its price books."""
    return PricedMarkets(packaged.instance_types(), offline_sources())


def live_markets(
    price_list: PriceList, cache: PriceCache | None, clock: Callable[[], datetime]
) -> PricedMarkets:
    """Returns Markets that use the live price list first, then the offline sources."""
    return PricedMarkets(
        packaged.instance_types(), (PriceListSource(price_list, cache, clock), *offline_sources())
    )


class EstimatedPrices(Struct, frozen=True, dict=True):
    """Implements PriceSource and SourcePrices with a table of estimates."""

    table: Mapping[str, Any]
    name: str = "estimate of"
    version: None = None
    """Estimates have no version. Audits name another source's version."""

    @cached_property
    def _quotes(self) -> dict[tuple[str, Component, str], Quote]:
        # A cache, since jobs of many days need the same quotes.
        return {}

    def read(self, region: str | None, component: Component) -> EstimatedPrices:
        """Returns itself, since the table covers every region."""
        del region, component
        return self

    def factor(self, instance_type: str, component: Component) -> Mapping[str, Any] | None:
        """Returns the tested factors of a type's size, or else of its family; None if there are
        none.

        A factor is tested if it has a pair of rates of this component or of Hosting.
        """
        family, _, size = instance_type.partition(".")[2].partition(".")
        rows = {row.get("size"): row for row in self.table["factors"] if row["family"] == family}
        row = rows.get(size) or rows.get(None)
        is_tested = row and (
            row["pairs"].get(component.value) or row["pairs"].get(_REFERENCE_COMPONENT)
        )
        return row if is_tested else None

    def quote(self, region: str, component: Component, product: str) -> Quote:
        """Returns an estimate. It is an empty quote if EC2's rate or a tested factor is missing."""
        key = region, component, product
        if key not in self._quotes:
            self._quotes[key] = self._estimate(*key)
        return self._quotes[key]

    def _estimate(self, region: str, component: Component, product: str) -> Quote:
        ec2_usd = self.table["ec2_usd_per_hour"].get(region, {}).get(product)
        row = self.factor(product, component)
        if ec2_usd is None or row is None:
            return Quote()
        provenance, usd, factor = self.table["provenance"], Decimal(ec2_usd), Decimal(row["factor"])
        factor_text, pair_count = f"x {factor:.2f}", sum(row["pairs"].values())
        pairs_text = "1 pair of rates" if pair_count == 1 else f"{pair_count} pairs of rates"
        range_text = f"{Decimal(row['lowest']):f} to {Decimal(row['highest']):f}"
        source = f"{factor:.2f} times EC2's on-demand rate in {region}: {provenance['source']}"
        note = f"EC2's {format_rate(usd)} {factor_text}; {pairs_text} of its family: {range_text}"
        explanation = (
            f"SageMaker's rate for {product} is not known here; estimated from EC2's rate"
            f" {factor_text}"
        )
        dated_rate = DatedRate.from_observation(usd * factor, provenance["as_of"], source, note)
        unlisted_reason = self._not_sold_reason(region, component, row["family"])
        rate = dated_rate.rate._replace(
            kind="estimate", estimate_basis=explanation, unlisted_reason=unlisted_reason
        )
        return Quote((replace(dated_rate, rate=rate),))

    def usage_type(self, region: str, component: Component, product: str) -> str | None:
        """Returns None, as an estimate has no product."""
        del region, component, product
        return None

    def _not_sold_reason(self, region: str, component: Component, family: str) -> str | None:
        for row in self.table["unlisted"]:
            is_named = (row["region"], row["family"]) == (region, family)
            if is_named and component.value in row["components"]:
                return str(row["why"])
        return None


@cache
def estimated_prices() -> EstimatedPrices:
    """Returns the packaged estimates."""
    text = resources.files("sageaudit.data").joinpath(ESTIMATES_TABLE).read_text(encoding="utf-8")
    return EstimatedPrices(json.loads(text, parse_float=Decimal))


_RateKey = tuple[date | None, str, Component, str]
"""Day, region, component, and the instance type or the key of ML storage."""
_CACHED_MARKETS = 8
"""How many markets are cached. A process needs a few components and a few days."""


class PriceBook(Struct, frozen=True, dict=True):
    """Implements Prices with several sources.

    It has the rates of `day`, or the newest ones if it is None. Each rate is computed once, since
    sources do not change.
    """

    sources: tuple[SourcePrices, ...]
    day: date | None = None

    @cached_property
    def _rates(self) -> dict[_RateKey, Rate | None]:
        return {}

    @property
    def version(self) -> str:
        """The version of the first source that has a version, else "no prices"."""
        versions = (source.version for source in self.sources)
        return next((version for version in versions if version is not None), "no prices")

    def hourly_rate(self, region: str, component: Component, instance_type: str) -> Rate | None:
        """Returns USD per instance-hour on the book's day.

        A rate between two different prices is "ambiguous".
        """
        return self._rate_on_day(self.day, region, component, instance_type)

    def newest_hourly_rate(
        self, region: str, component: Component, instance_type: str
    ) -> Rate | None:
        """Returns USD per instance-hour by the newest known price."""
        return self._rate_on_day(None, region, component, instance_type)

    def storage_rate(self, region: str, component: Component) -> Rate | None:
        """Returns USD per GB-month from a single source, as these rates have no dates."""
        return self._rate_on_day(self.day, region, component, STORAGE)

    def usage_type(self, region: str, component: Component, product: str) -> str | None:
        """Returns the usage type from the first source that knows it; None if none does."""
        usage_types = (source.usage_type(region, component, product) for source in self.sources)
        return next((usage_type for usage_type in usage_types if usage_type is not None), None)

    def absence_reason(self, region: str, component: Component, product: str) -> str | None:
        """Returns the sources' reasons for an unknown rate; None if they have none.

        A complete price list without the product is not a reason: it changes with the list's date.
        """
        quotes = (source.quote(region, component, product) for source in self.sources)
        reasons = (quote.absence_reason for quote in quotes if not quote.is_absent)
        return "; ".join(filter(None, reasons)) or None

    def _rate_on_day(
        self, day: date | None, region: str, component: Component, product: str
    ) -> Rate | None:
        key = (day, region, component, product)
        if key not in self._rates:
            quotes = [source.quote(region, component, product) for source in self.sources]
            self._rates[key] = self._rate(quotes, day, allow_other_days=product != STORAGE)
        return self._rates[key]

    def _rate(
        self, quotes: Sequence[Quote], day: date | None, *, allow_other_days: bool
    ) -> Rate | None:
        first_index = next((index for index, quote in enumerate(quotes) if quote.rates), None)
        if first_index is None:
            return None
        rates = quotes[first_index].rates
        undisputed_rates = (
            dated
            for quote in quotes[first_index + 1 :]
            for dated in quote.rates
            if allow_other_days
            and dated.rate.note is None
            and dated.rate.kind == rates[0].rate.kind
        )
        rate = rate_on([*undisputed_rates, *rates], day)
        reason = "; ".join(
            quote.absence_reason for quote in quotes[:first_index] if quote.absence_reason
        )
        if rate is not None and rate.is_estimate:
            absence_reason = next(
                (quote.absence_reason for quote in quotes[:first_index] if quote.is_absent), None
            )
            rate = rate._replace(unlisted_reason=absence_reason or rate.unlisted_reason)
        if rate is None or not reason:
            return rate
        source_note = f"{self.sources[first_index].name} {rate.as_of}: {reason}"
        return rate._replace(note=" · ".join(filter(None, (source_note, rate.note))))


class PricedMarkets:
    """Implements Markets. Each job gets a price book of the same sources.

    Recent markets are cached. Jobs of one day share a market, as long as the prices do not change.
    Threads may share it: one of them reads a price list, and the others wait for it.
    """

    def __init__(self, types: Mapping[str, InstanceType], sources: Sequence[PriceSource]) -> None:
        self._types = types
        self._sources = sources
        self._cached_markets: deque[Market] = deque(maxlen=_CACHED_MARKETS)
        self._lock = threading.Lock()

    def market(
        self, job: Job, now: datetime, recorded_prices: SourcePrices | None = None
    ) -> Market:
        """Returns the instance types, and the prices of the job's region, component and day.

        `recorded_prices` are used before the prices of all sources.
        """
        with self._lock:
            return self._market(job, now, recorded_prices)

    def _market(self, job: Job, now: datetime, recorded_prices: SourcePrices | None) -> Market:
        component = job.kind.spec.component
        source_prices = (source.read(job.region, component) for source in self._sources)
        known_prices = (
            tuple(source_prices) if recorded_prices is None else (recorded_prices, *source_prices)
        )
        book = PriceBook(known_prices, pricing_day(job, now))
        cached_market = next(
            (market for market in self._cached_markets if market.prices == book), None
        )
        if cached_market is None:
            cached_market = Market(self._types, book)
            self._cached_markets.append(cached_market)
        return cached_market
