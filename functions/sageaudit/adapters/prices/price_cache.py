"""Rates read from the Price List API, cached in the history table for all Lambda functions.

One item per region, component and type, and one HEAD item with the time and number of entries of
the last complete read. HEAD is written last, so an interrupted write is never taken as complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

from sageaudit.adapters.history.codec import Item
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.calls import Dynamo
from sageaudit.adapters.history.dynamo.table import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from sageaudit.adapters.history.moments import epoch_s, moment_text, read_moment
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_list import Entry, ListedRate, PriceListing, Refused, Stored
from sageaudit.errors import UNREADABLE

PERMISSIONS = ("dynamodb:BatchWriteItem", "dynamodb:Query")
"""Needed on the table only, not on its indexes."""
KEPT_DAYS = 45
"""Days until a cached rate expires: an older one is no better than the packaged price."""
_HEAD = "HEAD"
_MOST_PAGES = 5
"""A page holds some thousand rates, and a region has hundreds. Pages without end would take the
time of the audit, which has other sources of prices."""


class PriceCache:
    """`client` is boto3's low-level DynamoDB client."""

    def __init__(self, client: Any, table_name: str) -> None:
        self._table = Dynamo(client, table_name)

    def read(self, region: str, component: Component) -> Stored | None:
        """The last complete read; None when there is none, or none that can be read.

        Raises AwsError.
        """
        pages = self._table.pages(
            KeyConditionExpression=f"{PARTITION_KEY} = :pk",
            ExpressionAttributeValues={":pk": keys.price_pk(region, component.value)},
        )
        items = [item for page in islice(pages, _MOST_PAGES) for item in page]
        try:
            return _read(items, region, component)
        except UNREADABLE:
            return None  # the price list itself is read instead

    def write(self, stored: Stored) -> None:
        """Stores a complete read. Raises AwsError."""
        listing = stored.listing
        shared: Item = {
            PARTITION_KEY: keys.price_pk(listing.region, listing.component.value),
            "read_at": moment_text(stored.read_at),
            TTL_ATTRIBUTE: epoch_s(stored.read_at + timedelta(days=KEPT_DAYS)),
        }
        self._table.put_all(
            [
                {**shared, SORT_KEY: name, **dict(_attributes(entry))}
                for name, entry in listing.entries.items()
            ]
        )
        head: Item = {**shared, SORT_KEY: _HEAD, "entries": len(listing.entries)}
        self._table.put_all([head])


def _read(items: list[Item], region: str, component: Component) -> Stored | None:
    head = next((item for item in items if item[SORT_KEY] == _HEAD), None)
    if head is None:
        return None
    entries = {
        item[SORT_KEY]: _read_entry(item)
        for item in items
        if item is not head and item.get("read_at") == head["read_at"]
    }
    if len(entries) != head["entries"]:
        return None
    listing = PriceListing(region, component, entries)
    return Stored(listing, read_moment(head["read_at"]))


def _attributes(entry: Entry) -> Iterator[tuple[str, object]]:
    if isinstance(entry, Refused):
        yield "refused", entry.reason
    else:
        yield "usd", entry.usd
        yield "usage_type", entry.usage_type
        if entry.effective is not None:
            yield "effective", entry.effective.isoformat()


def _read_entry(item: Item) -> Entry:
    if "refused" in item:
        return Refused(item["refused"])
    usd = item.get("usd")
    if not isinstance(usd, Decimal) or usd <= 0:
        return Refused("the stored price is not an amount")
    effective = item.get("effective")
    day = None if effective is None else date.fromisoformat(effective)
    return ListedRate(usd, day, item["usage_type"])
