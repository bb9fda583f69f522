"""The price book: several sources in order; the first that has a rate is used.

An estimate is no rate of another day: it answers only where no source has ever seen a rate.

Later sources add their rates without a caveat as prices of other days, so that a past job is billed
at the rate of its own day. A rate from a later source notes why earlier sources had none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import cached_property

from msgspec import Struct

from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.known_prices import KnownPrices, PriceSource, Quote, day_of, rate_on
from sageaudit.domain.prices.market import InstanceType, Market, Rate
from sageaudit.domain.prices.price_list import STORAGE

_Asked = tuple[date | None, str, Component, str]
"""Day, region, component, and an instance type or the key of ML storage."""
_KEPT = 8
"""A process sees jobs of a few components, of today and of the days before."""


class PriceBook(Struct, frozen=True, dict=True):
    """Implements Prices over sources: the rates of `day`, or the newest without a day.

    What sources know never changes, so each rate is worked out once and kept in `_rates`.
    """

    sources: tuple[KnownPrices, ...]
    day: date | None = None

    @cached_property
    def _rates(self) -> dict[_Asked, Rate | None]:
        return {}

    @property
    def version(self) -> str:
        """The version of the first source that has one, else "no prices"."""
        versions = (source.version for source in self.sources)
        return next((version for version in versions if version is not None), "no prices")

    def hourly(self, region: str, component: Component, instance_type: str) -> Rate | None:
        """USD per instance-hour on the day; its `era` is "ambiguous" between two known prices."""
        return self._on(self.day, region, component, instance_type)

    def newest(self, region: str, component: Component, instance_type: str) -> Rate | None:
        """USD per instance-hour by the newest known price."""
        return self._on(None, region, component, instance_type)

    def storage(self, region: str, component: Component) -> Rate | None:
        """USD per GB-month, from one source only: these rates have no dates to compare by."""
        return self._on(self.day, region, component, STORAGE)

    def usage_type(self, region: str, component: Component, what: str) -> str | None:
        """The usage type from the first source that knows it; None if none does."""
        named = (source.usage_type(region, component, what) for source in self.sources)
        return next((usage_type for usage_type in named if usage_type is not None), None)

    def _on(self, day: date | None, region: str, component: Component, what: str) -> Rate | None:
        asked = (day, region, component, what)
        if asked not in self._rates:
            quotes = [source.quote(region, component, what) for source in self.sources]
            self._rates[asked] = self._rate(quotes, day, other_days=what != STORAGE)
        return self._rates[asked]

    def _rate(self, quotes: Sequence[Quote], day: date | None, *, other_days: bool) -> Rate | None:
        first = next((index for index, quote in enumerate(quotes) if quote.rates), None)
        if first is None:
            return None
        rates = quotes[first].rates
        undisputed = (
            known
            for quote in quotes[first + 1 :]
            for known in quote.rates
            if other_days and known.rate.note is None and known.rate.kind == rates[0].rate.kind
        )
        rate = rate_on([*undisputed, *rates], day)
        why = "; ".join(quote.why for quote in quotes[:first] if quote.why)
        if rate is not None and rate.is_estimate:
            absent = next((quote.why for quote in quotes[:first] if quote.absent), None)
            rate = rate._replace(unlisted=absent or rate.unlisted)
        if rate is None or not why:
            return rate
        fallback = f"{self.sources[first].name} {rate.as_of}: {why}"
        return rate._replace(note=" · ".join(filter(None, (fallback, rate.note))))


class PricedMarkets:
    """Implements Markets: a book over the same sources for each job.

    The last markets are kept: jobs of one day share one, as long as the sources know the same.
    """

    def __init__(self, types: Mapping[str, InstanceType], sources: Sequence[PriceSource]) -> None:
        self._types = types
        self._sources = sources
        self._kept: deque[Market] = deque(maxlen=_KEPT)

    def market(self, job: Job, now: datetime, first: KnownPrices | None = None) -> Market:
        """Types, and the prices of the job's region, component and day; missing ones are None.

        `first`: prices that were read before, to be asked before all sources.
        """
        component = job.kind.row.component
        read = (source.read(job.region, component) for source in self._sources)
        known = tuple(read) if first is None else (first, *read)
        book = PriceBook(known, day_of(job, now))
        kept = next((market for market in self._kept if market.prices == book), None)
        if kept is None:
            kept = Market(self._types, book)
            self._kept.append(kept)
        return kept
