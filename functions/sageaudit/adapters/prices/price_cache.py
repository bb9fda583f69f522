"""Rates read from the Price List API, cached in the history table for all Lambda functions.

One item for each region and component: some 225 rates, 25 KB of JSON, in the form of recordings.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from msgspec import Struct

from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.adapters.history.codec import epoch_s, moment_text, read_moment
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.keys import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_list import Entry, ListedRate, PriceListing, Refused
from sageaudit.errors import UNREADABLE, Malformed

PERMISSIONS = ("dynamodb:GetItem", "dynamodb:PutItem")
"""Needed on the table only, not on its indexes."""
KEPT_DAYS = 45
"""Days until a cached rate expires: an older one is no better than the packaged price."""
_LISTING_SK = "LISTING"


class Stored(Struct, frozen=True):
    """A listing and the time at which it was read."""

    listing: PriceListing
    read_at: datetime


class PriceCache:
    """`client` is boto3's low-level DynamoDB client."""

    def __init__(self, client: Any, table_name: str) -> None:
        from sageaudit.adapters.history.dynamo.calls import Dynamo  # noqa: PLC0415 - it needs boto3

        self._table = Dynamo(client, table_name)

    def read(self, region: str, component: Component) -> Stored | None:
        """The last read; None when there is none, or none that can be read. Raises AwsError."""
        item = self._table.get(keys.price_pk(region, component.value), _LISTING_SK)
        if item is None:
            return None
        with suppress(Malformed, *UNREADABLE):  # the price list itself is read instead
            entries = read_entries(from_json(item["rates"]))
            return Stored(PriceListing(region, component, entries), read_moment(item["read_at"]))
        return None

    def write(self, stored: Stored) -> None:
        """Stores a read. Raises AwsError."""
        listing = stored.listing
        self._table.put(
            {
                PARTITION_KEY: keys.price_pk(listing.region, listing.component.value),
                SORT_KEY: _LISTING_SK,
                "read_at": moment_text(stored.read_at),
                "rates": to_json(entries_document(listing.entries)),
                TTL_ATTRIBUTE: epoch_s(stored.read_at + timedelta(days=KEPT_DAYS)),
            }
        )


def entries_document(entries: Mapping[str, Entry]) -> dict[str, Any]:
    """The entries of a listing by name, as JSON; rates are texts in USD."""
    return {name: _entry_document(entry) for name, entry in entries.items()}


def _entry_document(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, Refused):
        return {"refused": entry.reason}
    effective = None if entry.effective is None else entry.effective.isoformat()
    return {"usd": str(entry.usd), "effective": effective, "usage_type": entry.usage_type}


def read_entries(rates: Mapping[str, Any]) -> dict[str, Entry]:
    """The entries of what `entries_document` made. Raises Malformed with the name."""
    return {name: _entry(name, fields.section(rates, name)) for name in rates}


def _entry(name: str, section: Mapping[str, Any]) -> Entry:
    if reason := fields.text(section, "refused"):
        return Refused(reason)
    effective = fields.text(section, "effective")
    try:
        day = date.fromisoformat(effective) if effective else None
    except ValueError as error:
        raise Malformed(f"{name}.effective", "is not a date") from error
    with suppress(InvalidOperation):
        usd = Decimal(str(section.get("usd")))
        if usd.is_finite() and usd > 0:
            return ListedRate(usd, day, fields.text(section, "usage_type") or "")
    raise Malformed(name, "has a rate that is not an amount")
