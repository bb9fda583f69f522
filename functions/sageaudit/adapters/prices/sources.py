"""All sources of prices, in the order in which they are used."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING

from sageaudit.adapters.prices import packaged, sources
from sageaudit.adapters.prices.listed_prices import PriceCache, PriceListSource
from sageaudit.adapters.prices.sources import PriceBook, PricedMarkets
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.known_prices import PriceSource

if TYPE_CHECKING:  # recorded prices need no boto3
    from sageaudit.adapters.prices.price_list import PriceList


def offline() -> tuple[PriceSource, ...]:
    """Sources without network calls: for recordings, replays, and after the live price list."""
    return (packaged.tables(), sources.estimates())


def offline_book(region: str, component: Component, day: date | None) -> PriceBook:
    """The price book of a region and component from the offline sources only."""
    return PriceBook(tuple(source.read(region, component) for source in offline()), day)


@cache
def offline_markets() -> PricedMarkets:
    """Implements Markets without network calls: each job at the known prices of its day.

    One for each process, whose jobs share price books.
    """
    return PricedMarkets(packaged.types(), offline())


def live_markets(
    price_list: PriceList, cache: PriceCache | None, clock: Callable[[], datetime]
) -> PricedMarkets:
    """Implements Markets: the live price list first, then the offline sources."""
    return PricedMarkets(packaged.types(), (PriceListSource(price_list, cache, clock), *offline()))
