"""How a recorded job was read: at which moment, at which prices, and what could not be read.

With it an audit of the recording is the audit that the live job got at that moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from sageaudit.adapters.prices.listed_prices import (
    ListedPrices,
    Stored,
    entries_document,
    read_entries,
)
from sageaudit.domain.audit.finding_document import iso
from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_list import PriceListing
from sageaudit.domain.usage.measurements import Missing
from sageaudit.errors import Malformed

_PRICES = "prices"


class AsRead(Struct, frozen=True):
    """`as_of`: when the job was read, the `now` of its audits.

    `absent`: why a metric without points has none. `metric_notes`, `notes`: sentences on what else
    could not be read, of the metrics and of the job. `prices`: the price list of that day; None
    where it was not asked for.
    """

    as_of: datetime
    absent: Missing
    metric_notes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    prices: ListedPrices | None = None


def of_document(document: Mapping[str, Any], shared: ListedPrices | None) -> AsRead | None:
    """What a recording's JSON says of its reading; None without a moment. Raises Malformed."""
    as_of = fields.parsed_time(document.get("as_of"), "as_of")
    if as_of is None:
        return None
    metrics = fields.section(document, "metrics")
    return AsRead(
        as_of=as_of,
        absent=_absent(fields.section(metrics, "absent")),
        metric_notes=_sentences(metrics, "notes"),
        notes=_sentences(document, "notes"),
        prices=prices_of(document) or shared,
    )


def _absent(section: Mapping[str, Any]) -> Missing:
    code, reason = fields.text(section, "code"), fields.text(section, "reason")
    return Missing(
        code or "metric_missing",
        reason or "the recording lacks these metrics of this job",
        fields.text(section, "advice"),
    )


def _sentences(section: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = section.get(key) or []
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise Malformed(key, "is not a list of sentences")
    return tuple(found)


def prices_document(prices: ListedPrices) -> dict[str, Any]:
    """The price list of a region and component, as a recording has it; rates are texts in USD."""
    return {
        "region": prices.region,
        "component": prices.component.value,
        "read_at": iso(prices.stored.read_at) if prices.stored else None,
        "why": prices.why,
        "rates": entries_document(prices.stored.listing.entries if prices.stored else {}),
    }


def prices_of(document: Mapping[str, Any]) -> ListedPrices | None:
    """The price list in a recording's JSON; None where there is none. Raises Malformed."""
    section = fields.section(document, _PRICES)
    if not section:
        return None
    region, named = fields.text(section, "region"), fields.text(section, "component")
    try:
        component = Component(named)
    except ValueError as error:
        raise Malformed(f"{_PRICES}.component", "is not a component of the price list") from error
    read_at = fields.time(section, "read_at")
    stored = None
    if read_at is not None and region is not None:
        rates = fields.section(section, "rates")
        try:
            entries = read_entries(rates)
        except Malformed as error:
            raise Malformed(f"{_PRICES}.rates.{error.key}", error.reason) from error
        stored = Stored(PriceListing(region, component, entries), read_at)
    return ListedPrices(region, component, stored, fields.text(section, "why"))
