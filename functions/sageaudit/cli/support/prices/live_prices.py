"""Reads prices from AWS with the user's own credentials."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError

from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.prices import sources
from sageaudit.adapters.prices.listed_prices import ListedPrices
from sageaudit.adapters.prices.price_book import PriceBook
from sageaudit.adapters.prices.price_cache import Stored
from sageaudit.adapters.prices.price_list import PriceList
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_list import PriceListing
from sageaudit.errors import AccessDenied, AwsError, NoCredentials


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
    now: datetime,
) -> tuple[PriceBook, AwsError | None]:
    """The price book of a region and component, from AWS's price list of now.

    When AWS returns no prices, the book has the offline sources only, its rates note the reason,
    and the error is returned too.
    """
    offline = sources.offline_book(region, component, None)
    try:
        listing = PriceList(clients).listing(region, component, instance_type)
    except AwsError as error:
        listed = ListedPrices(region, component, None, str(error).rstrip("."))
        return offline.after(listed), error
    listed = ListedPrices(region, component, Stored(listing, now), None)
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
