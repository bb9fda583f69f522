"""The Price List API as a source of prices. Each region and component is read once a day.

Rates are searched in memory, then in the table, then read from SageMaker's current on-demand rates.
After a failed read, the price list is not read again for 10 minutes, so that audits do not wait. An
item of the table has the rates of one region and component for all Lambda functions: about 225
rates, 25 KB of JSON, in the format of recordings.

A few endpoints serve the prices of all regions of their partition, so the partition determines the
endpoint. A partition without an endpoint is never asked elsewhere: its credentials are unknown to
other partitions. boto3 is imported only in functions that call AWS, since recorded prices do not
need it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import Any

from msgspec import Struct, field

from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.adapters.history.codec import epoch_s, moment_text
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.keys import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from sageaudit.adapters.history.dynamo.table_writes import TableWrites
from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.job.ref import region_partition
from sageaudit.domain.moments import parse_moment
from sageaudit.domain.prices.known_prices import DatedRate, Quote
from sageaudit.domain.prices.market import Rate
from sageaudit.domain.prices.price_list import (
    STORAGE,
    Entry,
    InvalidPrice,
    ListedRate,
    PriceListing,
    read,
)
from sageaudit.errors import PARSE_ERRORS, AwsError, MalformedData, NoEndpoint, Unavailable

PERMISSIONS = ("pricing:GetProducts",)
"""The permission of `read_listing`. IAM cannot limit it to certain resources."""
SERVICE = "AmazonSageMaker"
_ENDPOINTS = {
    "aws": "us-east-1",
    "aws-cn": "cn-northwest-1",
    "aws-eusc": "eusc-de-east-1",
    "aws-iso": "us-iso-east-1",
    "aws-iso-b": "us-isob-east-1",
    "aws-iso-e": "eu-isoe-west-1",
    "aws-iso-f": "us-isof-south-1",
}
"""The region of each partition's Price List endpoint (botocore, endpoints.json). aws-us-gov has
none."""
_PAGE = 100
_MAX_PAGES = 30
"""The maximum number of pages to read; 225 types take three pages."""
MAX_LISTING_AGE = timedelta(days=1)
"""How long a listing is used. Rates change only a few times a year."""
RETRY_AFTER = timedelta(minutes=10)
"""The pause after a failure, so that a broken API is not called for every job."""
CACHE_READ_PERMISSIONS = ("dynamodb:GetItem",)
"""The permission of PriceCache to read the table. Its indexes need none."""
CACHE_WRITES: TableWrites = {"dynamodb:PutItem": (keys.PRICE_PREFIX,)}
"""What PriceCache writes to the table."""
CACHE_DAYS = 45
"""Days until a cached listing expires. An older one is no better than the packaged prices."""
_LISTING_SK = "LISTING"


class ListedPrices(Struct, frozen=True):
    """Implements SourcePrices for one region and component.

    `last_listing` is the newest listing that was read. If it is not today's, `unavailable_because`
    says why.
    """

    region: str | None
    component: Component
    last_listing: StoredListing | None
    unavailable_because: str | None
    name: str = "Price List API"

    @property
    def version(self) -> str | None:
        """The price list's name with the last listing's UTC date; None if nothing was read."""
        return None if self._read_on is None else f"price list {self._read_on}"

    @property
    def _read_on(self) -> date | None:
        return (
            None if self.last_listing is None else self.last_listing.read_at.astimezone(UTC).date()
        )

    def usage_type(self, region: str, component: Component, product: str) -> str | None:
        """Returns the product's usage type; None if the product has no listed rate."""
        entry = self._entry(region, component, product)
        return entry.usage_type if isinstance(entry, ListedRate) else None

    def _entry(self, region: str, component: Component, product: str) -> Entry | None:
        if self.last_listing is None or (region, component) != (self.region, self.component):
            return None
        return self.last_listing.listing.entry_by_product.get(product)

    def quote(self, region: str, component: Component, product: str) -> Quote:
        """Returns the listed rate, or why there is none."""
        entry, read_on = self._entry(region, component, product), self._read_on
        if read_on is None or (region, component) != (self.region, self.component):
            return Quote(
                absence_reason=self.unavailable_because or "the price list was not read for it"
            )
        if entry is None:
            return Quote(absence_reason=f"not in the price list of {read_on}", is_absent=True)
        if not isinstance(entry, ListedRate):
            return Quote(absence_reason=entry.reason)
        first_day = min(entry.effective_from or read_on, read_on)
        rate = Rate(entry.usd, read_on.isoformat(), self.name, self.unavailable_because)
        return Quote((DatedRate(rate, first_day, read_on),))


class PriceListSource(Struct, frozen=True):
    """Implements PriceSource. `clock` returns a time with its time zone.

    Without a `cache`, listings are kept only in memory.
    """

    price_list: PriceList
    cache: PriceCache | None
    clock: Callable[[], datetime]
    memory: dict[tuple[str, Component], tuple[ListedPrices, datetime]] = field(default_factory=dict)

    def read(self, region: str | None, component: Component) -> ListedPrices:
        """Returns today's listing, or the last listing and why today's is missing."""
        if region is None:
            return ListedPrices(None, component, None, None)
        key, now = (region, component), self.clock()
        cached = self.memory.get(key)
        if cached is None or now >= cached[1]:
            cached = self.memory[key] = self._refresh(
                region, component, now, cached[0] if cached else None
            )
        return cached[0]

    def _refresh(
        self, region: str, component: Component, now: datetime, last_prices: ListedPrices | None
    ) -> tuple[ListedPrices, datetime]:
        stored = self._read_cache(region, component) or (
            last_prices.last_listing if last_prices else None
        )
        if stored is not None and now < stored.read_at + MAX_LISTING_AGE:
            return ListedPrices(region, component, stored, None), stored.read_at + MAX_LISTING_AGE
        try:
            listing = self.price_list.read_listing(region, component)
        except AwsError as error:
            reason = str(error).rstrip(".")
            return ListedPrices(region, component, stored, reason), now + RETRY_AFTER
        new_listing = StoredListing(listing, now)
        with suppress(AwsError):  # this process has the rates; the next one reads them again
            if self.cache is not None:
                self.cache.write(new_listing)
        return ListedPrices(region, component, new_listing, None), now + MAX_LISTING_AGE

    def _read_cache(self, region: str, component: Component) -> StoredListing | None:
        with suppress(AwsError):  # the price list itself is read next
            return self.cache.read(region, component) if self.cache is not None else None
        return None


class StoredListing(Struct, frozen=True):
    """A listing and the time at which it was read."""

    listing: PriceListing
    read_at: datetime


class PriceCache:
    """Stores listings in the history's table. `client` is boto3's low-level DynamoDB client."""

    def __init__(self, client: Any, table_name: str) -> None:
        from sageaudit.adapters.history.dynamo.calls import DynamoTable  # noqa: PLC0415 - it needs boto3

        self._table = DynamoTable(client, table_name)

    def read(self, region: str, component: Component) -> StoredListing | None:
        """Returns the last listing; None if it is absent or unreadable. Raises AwsError."""
        item = self._table.get(keys.price_pk(region, component.value), _LISTING_SK)
        if item is None:
            return None
        with suppress(MalformedData, *PARSE_ERRORS):  # the price list itself is read instead
            entries = read_entries(from_json(item["rates"]))
            return StoredListing(
                PriceListing(region, component, entries), parse_moment(item["read_at"])
            )
        return None

    def write(self, stored_listing: StoredListing) -> None:
        """Stores a listing. Raises AwsError."""
        listing = stored_listing.listing
        self._table.put(
            {
                PARTITION_KEY: keys.price_pk(listing.region, listing.component.value),
                SORT_KEY: _LISTING_SK,
                "read_at": moment_text(stored_listing.read_at),
                "rates": to_json(entries_document(listing.entry_by_product)),
                TTL_ATTRIBUTE: epoch_s(stored_listing.read_at + timedelta(days=CACHE_DAYS)),
            }
        )


def entries_document(entries: Mapping[str, Entry]) -> dict[str, Any]:
    """Returns a listing's entries by product, as JSON. Rates are texts in USD."""
    return {name: _entry_document(entry) for name, entry in entries.items()}


def _entry_document(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, InvalidPrice):
        return {"refused": entry.reason}
    effective = None if entry.effective_from is None else entry.effective_from.isoformat()
    return {"usd": str(entry.usd), "effective": effective, "usage_type": entry.usage_type}


def read_entries(rates: Mapping[str, Any]) -> dict[str, Entry]:
    """Reads the entries that `entries_document` wrote. Raises MalformedData with the product."""
    return {name: _entry(name, fields.section(rates, name)) for name in rates}


def _entry(name: str, section: Mapping[str, Any]) -> Entry:
    if reason := fields.text(section, "refused"):
        return InvalidPrice(reason)
    effective = fields.text(section, "effective")
    try:
        day = date.fromisoformat(effective) if effective else None
    except ValueError as error:
        raise MalformedData(f"{name}.effective", "is not a date") from error
    with suppress(InvalidOperation):
        usd = Decimal(str(section.get("usd")))
        if usd.is_finite() and usd > 0:
            return ListedRate(usd, day, fields.text(section, "usage_type") or "")
    raise MalformedData(name, "has a rate that is not an amount")


def endpoint_region(region: str) -> str | None:
    """Returns the region of the endpoint that serves a region's prices.

    It is in the same partition. None if the partition has no Price List endpoint.
    """
    return _ENDPOINTS.get(region_partition(region))


class PriceList:
    """Reads live prices. `client_of` returns a pricing client for an endpoint's region.

    `endpoint_of` returns the endpoint's region for a region, or None if it has no endpoint.
    """

    def __init__(
        self,
        client_of: Callable[[str], Any],
        endpoint_of: Callable[[str], str | None] = endpoint_region,
    ) -> None:
        self._client_of = client_of
        self._endpoint_of = endpoint_of

    def read_listing(self, region: str, component: Component) -> PriceListing:
        """Reads all rates of a region and component, including ML storage.

        Raises AccessDenied, NoCredentials, Throttled or Unavailable. Unavailable also means that no
        instance type has a rate. NoEndpoint means that the region's partition has no endpoint.
        """
        documents = self._products(region, {"component": component.value})
        if component is not Component.TRANSFORM:
            documents = chain(documents, self._products(region, {"productFamily": "Storage"}))
        listing = read(documents, region, component)
        if not listing.rates.keys() - {STORAGE}:
            raise Unavailable(_no_rates_reason(listing))
        return listing

    def _products(self, region: str, filters: dict[str, str]) -> Iterator[object]:
        from sageaudit.adapters.aws.clients import aws_errors, parse_errors  # noqa: PLC0415

        endpoint = self._endpoint_of(region)
        if endpoint is None:
            raise NoEndpoint(f"{region_partition(region)} has no Price List endpoint.")
        client = self._client_of(endpoint)
        request: dict[str, Any] = {
            "ServiceCode": SERVICE,
            "FormatVersion": "aws_v1",
            "MaxResults": _PAGE,
            "Filters": [
                {"Type": "TERM_MATCH", "Field": name, "Value": value}
                for name, value in {"regionCode": region, **filters}.items()
            ],
        }
        for _ in range(_MAX_PAGES):
            with aws_errors("pricing"):
                answer = client.get_products(**request)
            with parse_errors("pricing"):
                texts = list(answer.get("PriceList") or ())
            yield from map(_document, texts)
            if not answer.get("NextToken"):
                return
            request["NextToken"] = answer["NextToken"]
        raise Unavailable(
            f"pricing:GetProducts returned more than {_MAX_PAGES} pages for {region}."
        )


def _document(text: object) -> object:
    """Returns a product's JSON; None if it is not JSON, so that other products count."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _no_rates_reason(listing: PriceListing) -> str:
    prices_text = f"{listing.component.value} prices of {listing.region}"
    reasons = sorted(
        entry.reason
        for entry in listing.entry_by_product.values()
        if isinstance(entry, InvalidPrice)
    )
    if reasons:
        return f"The price list has no usable {prices_text}: {reasons[0]}."
    return f"The price list has no {prices_text}."
