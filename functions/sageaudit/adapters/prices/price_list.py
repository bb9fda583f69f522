"""The Price List API: SageMaker's current on-demand rates.

A few endpoints serve the prices of all regions, so the endpoint is chosen by partition, not by the
job's region. One paged read returns all types of a region and component.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from sageaudit.adapters.aws.clients import aws_errors, parsing
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_list import STORAGE, PriceListing, Refused, read
from sageaudit.errors import Unavailable

PERMISSIONS = ("pricing:GetProducts",)
"""The API has no resource-level permissions."""
SERVICE = "AmazonSageMaker"
ENDPOINT = "us-east-1"
CHINA_ENDPOINT = "cn-northwest-1"
_PAGE = 100
_MOST_PAGES = 30
"""225 types take three pages; reading stops with an error after this many."""


def endpoint_of(region: str) -> str:
    """The region of the endpoint that serves the prices of a region."""
    return CHINA_ENDPOINT if region.startswith("cn-") else ENDPOINT


class PriceList:
    """Reads live prices. `clients` returns a pricing client for an endpoint's region."""

    def __init__(self, clients: Callable[[str], Any]) -> None:
        self._clients = clients

    def listing(self, region: str, component: Component) -> PriceListing:
        """All rates of a region and component, ML storage included.

        Raises AccessDenied, NoCredentials, Throttled or Unavailable; Unavailable also when no
        instance type has a rate.
        """
        documents = self._products(region, {"component": component.value})
        if component is not Component.TRANSFORM:
            documents = chain(documents, self._products(region, {"productFamily": "Storage"}))
        listing = read(documents, region, component)
        if not listing.rates.keys() - {STORAGE}:
            raise Unavailable(_why_nothing(listing))
        return listing

    def _products(self, region: str, wanted: dict[str, str]) -> Iterator[object]:
        client = self._clients(endpoint_of(region))
        asked: dict[str, Any] = {
            "ServiceCode": SERVICE,
            "FormatVersion": "aws_v1",
            "MaxResults": _PAGE,
            "Filters": [
                {"Type": "TERM_MATCH", "Field": field, "Value": value}
                for field, value in {"regionCode": region, **wanted}.items()
            ],
        }
        for _ in range(_MOST_PAGES):
            with aws_errors("pricing"):
                answer = client.get_products(**asked)
            with parsing("pricing"):
                texts = list(answer.get("PriceList") or ())
            yield from map(_document, texts)
            if not answer.get("NextToken"):
                return
            asked["NextToken"] = answer["NextToken"]
        raise Unavailable(
            f"pricing:GetProducts returned more than {_MOST_PAGES} pages for {region}."
        )


def _document(text: object) -> object:
    """The product; None when it is not JSON, so that the page's other products still count."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _why_nothing(listing: PriceListing) -> str:
    where = f"{listing.component.value} prices of {listing.region}"
    reasons = sorted(e.reason for e in listing.entries.values() if isinstance(e, Refused))
    if reasons:
        return f"The price list has no usable {where}: {reasons[0]}."
    return f"The price list has no {where}."
