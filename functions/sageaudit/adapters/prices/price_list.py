"""The Price List API: the on-demand rates of SageMaker as they are now.

Its endpoints are in few regions and serve the prices of all of them, so the endpoint follows the
partition and never the job's region. One paged read brings a whole region and component.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from sageaudit.adapters.aws.clients import aws_errors
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_list import STORAGE, Listing, Refused, read
from sageaudit.errors import Unavailable

PERMISSIONS = ("pricing:GetProducts",)
"""The API has no resources to name."""
SERVICE = "AmazonSageMaker"
ENDPOINT, CHINA_ENDPOINT = "us-east-1", "cn-northwest-1"
_PAGE = 100
_MOST_PAGES = 30
"""225 types make three pages; an answer with more pages than this is refused."""


def endpoint_of(region: str) -> str:
    """The region of the endpoint that serves the prices of a region."""
    return CHINA_ENDPOINT if region.startswith("cn-") else ENDPOINT


class PriceList:
    """Reads live prices. `clients` makes a pricing client for an endpoint's region."""

    def __init__(self, clients: Callable[[str], Any]) -> None:
        self._clients = clients

    def listing(
        self, region: str, component: Component, instance_type: str | None = None
    ) -> Listing:
        """All rates of a region and component, or of one type only; its ML storage with them.

        Raises AccessDenied, NoCredentials, Throttled or Unavailable, also when nothing is listed.
        """
        wanted = {"component": component.value}
        if instance_type is not None:
            wanted["instanceName"] = instance_type
        documents = self._products(region, wanted)
        if component is not Component.TRANSFORM and instance_type is None:
            documents = chain(documents, self._products(region, {"productFamily": "Storage"}))
        listing = read(documents, region, component)
        if instance_type is None and not listing.rates.keys() - {STORAGE}:
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
            for text in answer.get("PriceList") or ():
                yield _document(text)
            if not answer.get("NextToken"):
                return
            asked["NextToken"] = answer["NextToken"]
        raise Unavailable(f"pricing:GetProducts gave more than {_MOST_PAGES} pages for {region}.")


def _document(text: object) -> object:
    """The product; None when it cannot be read, so that the others of the page still count."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _why_nothing(listing: Listing) -> str:
    where = f"{listing.component.value} prices of {listing.region}"
    reasons = sorted(e.reason for e in listing.entries.values() if isinstance(e, Refused))
    if reasons:
        return f"The price list has no usable {where}: {reasons[0]}."
    return f"The price list has no {where}."
