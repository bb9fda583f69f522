"""The Price List API as a source of prices: each region and component is read once a day.

Looks in memory first, then in the table's rows of the last day, then reads the price list itself.
After a failed read, the price list is not read again for 10 minutes, so that audits do not wait.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct

from sageaudit.adapters.prices.listed_prices import PriceCache, Stored
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.known_prices import KnownRate, Quote
from sageaudit.domain.prices.market import Rate
from sageaudit.domain.prices.price_list import Entry, ListedRate
from sageaudit.errors import AwsError

if TYPE_CHECKING:  # recorded prices need no boto3
    from sageaudit.adapters.prices.price_list import PriceList

FRESH_FOR = timedelta(days=1)
"""Rates change only a few times a year."""
ASK_AGAIN_AFTER = timedelta(minutes=10)
"""Pause after a failure, so that a broken API is not called for every job."""


class ListedPrices(Struct, frozen=True):
    """Implements KnownPrices for one region and component.

    `why` is the reason when there is no listing of today; `stored` is then the last one, if any.
    """

    region: str | None
    component: Component
    stored: Stored | None
    why: str | None
    name: str = "Price List API"

    @property
    def version(self) -> str | None:
        """The day of the read (UTC); None when nothing was read."""
        return None if self._read_on is None else f"price list {self._read_on}"

    @property
    def _read_on(self) -> date | None:
        return None if self.stored is None else self.stored.read_at.astimezone(UTC).date()

    def usage_type(self, region: str, component: Component, what: str) -> str | None:
        """The product's own usage type; None without a listed rate."""
        entry = self._entry(region, component, what)
        return entry.usage_type if isinstance(entry, ListedRate) else None

    def _entry(self, region: str, component: Component, what: str) -> Entry | None:
        if self.stored is None or (region, component) != (self.region, self.component):
            return None
        return self.stored.listing.entries.get(what)

    def quote(self, region: str, component: Component, what: str) -> Quote:
        """The listed rate, or why there is none."""
        entry, read_on = self._entry(region, component, what), self._read_on
        if read_on is None or (region, component) != (self.region, self.component):
            return Quote(why=self.why or "the price list was not read for it")
        if entry is None:
            return Quote(why=f"not in the price list of {read_on}", absent=True)
        if not isinstance(entry, ListedRate):
            return Quote(why=entry.reason)
        first = min(entry.effective or read_on, read_on)
        rate = Rate(entry.usd, read_on.isoformat(), self.name, self.why)
        return Quote((KnownRate(rate, first, read_on),))


class PriceListSource:
    """Implements PriceSource. `clock` returns the time with its zone; `cache` may be None."""

    def __init__(
        self, price_list: PriceList, cache: PriceCache | None, clock: Callable[[], datetime]
    ) -> None:
        self._price_list = price_list
        self._cache = cache
        self._clock = clock
        self._memory: dict[tuple[str, Component], tuple[ListedPrices, datetime]] = {}

    def read(self, region: str | None, component: Component) -> ListedPrices:
        """Today's listing, or the last one read with the reason why there is none of today."""
        if region is None:
            return ListedPrices(None, component, None, None)
        key, now = (region, component), self._clock()
        kept = self._memory.get(key)
        if kept is None or now >= kept[1]:
            kept = self._memory[key] = self._look_up(
                region, component, now, kept[0] if kept else None
            )
        return kept[0]

    def _look_up(
        self, region: str, component: Component, now: datetime, known: ListedPrices | None
    ) -> tuple[ListedPrices, datetime]:
        """What is known now, and until when it is kept in memory."""
        stored = self._cached(region, component) or (known.stored if known else None)
        if stored is not None and now < stored.read_at + FRESH_FOR:
            return ListedPrices(region, component, stored, None), stored.read_at + FRESH_FOR
        try:
            listing = self._price_list.listing(region, component)
        except AwsError as error:
            why = str(error).rstrip(".")
            return ListedPrices(region, component, stored, why), now + ASK_AGAIN_AFTER
        fresh = Stored(listing, now)
        with suppress(AwsError):  # the rates are known; the next process reads again
            if self._cache is not None:
                self._cache.write(fresh)
        return ListedPrices(region, component, fresh, None), now + FRESH_FOR

    def _cached(self, region: str, component: Component) -> Stored | None:
        with suppress(AwsError):  # the price list itself is read next
            return self._cache.read(region, component) if self._cache is not None else None
        return None
