"""Prices for a job: the live list where it can be read, the packaged table with its date where not.

Memory, then the table's rows of the last day, then one paged read of the price list, then what is
packaged. No audit waits for a price twice: a list that cannot be read is left alone for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Protocol

from sageaudit.adapters.prices.packaged import PackagedPrices
from sageaudit.adapters.prices.price_cache import Stored
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.market import InstanceType, Market, Rate
from sageaudit.domain.prices.price_history import KnownRate, day_of, rate_on
from sageaudit.domain.prices.price_list import STORAGE, Entry, ListedRate, Listing
from sageaudit.errors import AwsError

FRESH_FOR = timedelta(days=1)
"""Rates change a few times a year."""
ASK_AGAIN_AFTER = timedelta(minutes=10)
"""After a failure, so that a broken API is not asked for every job."""
_SOURCE = "Price List API"


class Listings(Protocol):
    """The live price list."""

    def listing(self, region: str, component: Component) -> Listing:
        """Everything that is listed for a region and component. Raises AwsError."""


class Cache(Protocol):
    """Rates that were read before."""

    def read(self, region: str, component: Component) -> Stored | None:
        """The last whole read. Raises AwsError."""

    def write(self, stored: Stored) -> None:
        """Keeps a whole read. Raises AwsError."""


@dataclass(frozen=True, slots=True)
class LiveBook:
    """Implements Prices for one region, component and day; elsewhere the packaged table answers.

    `why` says why there is no listing of today: then the last one that was read answers, if any.
    """

    packaged: PackagedPrices
    region: str
    component: Component
    stored: Stored | None
    why: str | None

    @property
    def version(self) -> str:
        """Names source and date, for the audit's record."""
        return self.packaged.version if self._read_on is None else f"price list {self._read_on}"

    @property
    def _read_on(self) -> date | None:
        return None if self.stored is None else self.stored.read_at.astimezone(UTC).date()

    def hourly(self, region: str, component: Component, instance_type: str) -> Rate | None:
        """The listed rate of the job's day, else the packaged one, which then says why."""
        listed = self._listed(region, component, instance_type)
        if isinstance(listed, str):
            return self._fallback(self.packaged.hourly(region, component, instance_type), listed)
        # A disputed figure of the packaged table is no known price beside a listed one.
        past = self.packaged.known(region, component, instance_type)
        return rate_on([*(one for one in past if one.note is None), listed], self.packaged.day)

    def storage(self, region: str, component: Component) -> Rate | None:
        """USD per GB-month of ML storage, as listed or as packaged."""
        listed = self._listed(region, component, STORAGE)
        if isinstance(listed, str):
            return self._fallback(self.packaged.storage(region, component), listed)
        return rate_on([listed], self.packaged.day)

    def usage_type(self, region: str, component: Component, what: str) -> str | None:
        """As the product itself names it, else by the prefixes that were observed."""
        entry = self._entry(region, component, what)
        if isinstance(entry, ListedRate):
            return entry.usage_type
        return self.packaged.usage_type(region, component, what)

    def _entry(self, region: str, component: Component, what: str) -> Entry | None:
        if self.stored is None or (region, component) != (self.region, self.component):
            return None
        return self.stored.listing.entries.get(what)

    def _listed(self, region: str, component: Component, what: str) -> KnownRate | str:
        """The listed rate, or why there is none."""
        entry, read_on = self._entry(region, component, what), self._read_on
        if read_on is None or (region, component) != (self.region, self.component):
            return self.why or "the price list was not read for it"
        if entry is None:
            return f"not in the price list of {read_on}"
        if not isinstance(entry, ListedRate):
            return entry.reason
        first = min(entry.effective or read_on, read_on)
        return KnownRate(entry.usd, first, read_on, read_on.isoformat(), _SOURCE, self.why)

    def _fallback(self, rate: Rate | None, why: str) -> Rate | None:
        if rate is None:
            return None
        notes = " · ".join(filter(None, (f"packaged {rate.as_of}: {why}", rate.note)))
        return replace(rate, note=notes)


@dataclass(frozen=True, slots=True)
class _Held:
    """What memory holds of a region and component, until it is looked up again."""

    until: datetime
    stored: Stored | None
    why: str | None


class LiveMarkets:
    """Implements Markets. `clock` gives the time, with its zone; `cache` may be absent."""

    def __init__(
        self,
        types: Mapping[str, InstanceType],
        packaged: PackagedPrices,
        price_list: Listings,
        cache: Cache | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._types = types
        self._packaged = packaged
        self._price_list = price_list
        self._cache = cache
        self._clock = clock
        self._held: dict[tuple[str, Component], _Held] = {}

    def market(self, job: Job, now: datetime) -> Market:
        """The book of the job's region, component and day. Never raises for a price."""
        packaged = replace(self._packaged, day=day_of(job, now))
        if job.region is None:
            return Market(self._types, packaged)
        component = job.kind.row.component
        held = self._current(job.region, component)
        book = LiveBook(packaged, job.region, component, held.stored, held.why)
        return Market(self._types, book)

    def _current(self, region: str, component: Component) -> _Held:
        key, now = (region, component), self._clock()
        held = self._held.get(key)
        if held is None or now >= held.until:
            held = self._look_up(region, component, now, None if held is None else held.stored)
            self._held[key] = held
        return held

    def _look_up(
        self, region: str, component: Component, now: datetime, known: Stored | None
    ) -> _Held:
        stored = self._cached(region, component) or known
        if stored is not None and now < stored.read_at + FRESH_FOR:
            return _Held(stored.read_at + FRESH_FOR, stored, None)
        try:
            listing = self._price_list.listing(region, component)
        except AwsError as error:
            return _Held(now + ASK_AGAIN_AFTER, stored, str(error).rstrip("."))
        fresh = Stored(listing, now)
        if self._cache is not None:
            with suppress(AwsError):  # the rates are known all the same; the next one reads again
                self._cache.write(fresh)
        return _Held(now + FRESH_FOR, fresh, None)

    def _cached(self, region: str, component: Component) -> Stored | None:
        if self._cache is None:
            return None
        try:
            return self._cache.read(region, component)
        except AwsError:
            return None  # the price list itself may answer
