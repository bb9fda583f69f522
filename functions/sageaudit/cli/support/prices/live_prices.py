"""Reads prices from AWS with the user's own credentials."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time
from functools import cache
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError

from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.prices import sources
from sageaudit.adapters.prices.listed_prices import ListedPrices
from sageaudit.adapters.prices.price_book import PriceBook
from sageaudit.adapters.prices.price_cache import Stored
from sageaudit.adapters.prices.price_files import PriceFiles, open_https
from sageaudit.adapters.prices.price_list import PriceList
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_list import PriceListing
from sageaudit.errors import AccessDenied, AwsError, NoCredentials, Unavailable


def clients(profile: str | None) -> Callable[[str], Any]:
    """Returns a function from an endpoint's region to a pricing client."""

    @cache
    def client_of(endpoint: str) -> Any:
        try:
            return client(boto3.Session(profile_name=profile), "pricing", endpoint)
        except BotoCoreError as error:
            raise NoCredentials(f"No usable AWS credentials: {error}") from error

    return client_of


def book(
    instance_type: str,
    region: str,
    component: Component,
    clients: Callable[[str], Any],
    *,
    day: date | None,
    now: datetime,
    say: Callable[[str], None],
) -> tuple[PriceBook, AwsError | None]:
    """The price book of a region and component, from AWS's price list of now or of a past day.

    When AWS returns no prices, the book has the offline sources only, its rates note the reason,
    and the error is returned too.
    """
    offline = sources.offline_book(region, component, day)
    try:
        if day is None or day == now.date():
            listing, read_at = PriceList(clients).listing(region, component, instance_type), now
        else:
            listing, read_at = _past(PriceFiles(clients, open_https), region, component, day, say)
    except AwsError as error:
        listed = ListedPrices(region, component, None, str(error).rstrip("."))
        return offline.after(listed), error
    listed = ListedPrices(region, component, Stored(listing, read_at), None)
    return offline.after(listed), None


def listings(
    clients: Callable[[str], Any], regions: Sequence[str], say: Callable[[str], None]
) -> Iterator[PriceListing]:
    """The price list of every region and component; one that cannot be read is reported by `say`.

    Raises AccessDenied or NoCredentials.
    """
    for region in regions:
        for component in Component:
            try:
                yield PriceList(clients).listing(region, component)
            except (AccessDenied, NoCredentials):
                raise
            except AwsError as error:
                say(f"{region}, {component.value}: {error}")


def _past(
    files: PriceFiles, region: str, component: Component, day: date, say: Callable[[str], None]
) -> tuple[PriceListing, datetime]:
    """The listing in force on `day`, and the start of that day (UTC). Raises AwsError."""
    past = files.in_force(region, day)
    if past is None:
        raise Unavailable(f"pricing:ListPriceLists returned no price list of {region} for {day}.")
    say(f"on {day} the price list of {past.published} was in force in {region}: reading its file")
    return files.listing(past, component), datetime.combine(day, time(), UTC)
