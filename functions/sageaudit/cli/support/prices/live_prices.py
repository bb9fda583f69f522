"""Reads prices from AWS with the user's own credentials."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError

from sageaudit.adapters.aws.clients import client
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
