"""Reads rates from products of the Price List API. Doubtful products give no rate.

A product counts only if its region, component, role and unit all match. This excludes a training
plan's upfront fee, HyperPod, warm pools, free Debugger rules, serverless training, Outposts and
Local Zones. The suffix of `instanceType` varies in case, so the type is read from `instanceName`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.job.kinds import Component, JobKind

STORAGE = "VolumeUsage.gp2"
"""The key of a component's ML storage, as in the usage type of its product."""
ROLES = {
    kind.spec.component: role for kind in JobKind if (role := kind.spec.usage_role) is not None
}
"""The role of each component in usage types, such as `Train` in `EU-Train:ml.m5.large`."""
SPOT_ROLE = "TrSpt"
"""A role billed at Spot rates, which one public text of 2026-09 mentions. If a bill has the role, a
note says so, and no figure uses it."""
_SERVICE = "AmazonSageMaker"
_INSTANCES = "ML Instance"
_VOLUMES = "Storage"
_UNITS = {_INSTANCES: "Hrs", _VOLUMES: "GB-Mo"}
_AMOUNT = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,12})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MAX_SHOWN_CHARACTERS = 40


class ListedRate(Struct, frozen=True):
    """One rate in USD.

    `effective_from`: its first day according to the price list; None if not given.
    """

    usd: Decimal
    effective_from: date | None
    usage_type: str


class InvalidPrice(Struct, frozen=True):
    """Products match, but their price is invalid or ambiguous. `reason` has no full stop."""

    reason: str


Entry = ListedRate | InvalidPrice


class PriceListing(Struct, frozen=True):
    """The price list's entries of one region and component, by instance type or STORAGE."""

    region: str
    component: Component
    entry_by_product: Mapping[str, Entry]

    @property
    def rates(self) -> dict[str, ListedRate]:
        """The entries that have a valid rate."""
        return {
            name: entry
            for name, entry in self.entry_by_product.items()
            if isinstance(entry, ListedRate)
        }


def read(documents: Iterable[object], region: str, component: Component) -> PriceListing:
    """Returns the rates of a region and component in price-list documents, in any order."""
    entries: dict[str, list[Entry]] = {}
    for document in documents:
        product = _matching_product(document, region, component)
        entry = None if product is None else _entry(document, product[1], product[2])
        if product is not None and entry is not None:
            entries.setdefault(product[0], []).append(entry)
    agreed = {name: _agreed_entry(entries[name]) for name in sorted(entries)}
    return PriceListing(region, component, agreed)


def spot_usage_types(usage_types: Iterable[str]) -> tuple[str, ...]:
    """Returns the usage types at Spot rates, each once, sorted."""
    return tuple(sorted({name for name in usage_types if SPOT_ROLE.lower() in name.lower()}))


def spot_note(usage_type: str) -> str:
    """Returns a note, without a full stop, that a usage type at Spot rates was seen."""
    return (
        f"usage type {_shorten(usage_type)} seen: managed-spot rates; not used for any figure here"
    )


def _matching_product(
    document: object, region: str, component: Component
) -> tuple[str, str, str] | None:
    """Returns name, usage type and unit of a matching product; None for any other product."""
    product = _mapping(_mapping(document).get("product"))
    attributes = _mapping(product.get("attributes"))
    place = attributes.get("regionCode"), attributes.get("locationType")
    if attributes.get("servicecode", _SERVICE) != _SERVICE or place != (region, "AWS Region"):
        return None
    family, usage_type = str(product.get("productFamily")), attributes.get("usagetype")
    name = attributes.get("instanceName") if family == _INSTANCES else STORAGE
    if family not in _UNITS or not isinstance(name, str) or not isinstance(usage_type, str):
        return None
    if family == _INSTANCES and not _is_instance_product(attributes, name, component):
        return None
    role, _, resource = usage_type.partition(":")
    if resource != name or role.rpartition("-")[2] != ROLES[component]:
        return None
    return name, usage_type, _UNITS[family]


def _is_instance_product(attributes: Mapping[str, object], name: str, component: Component) -> bool:
    type_text = attributes.get("instanceType", name)
    suffix = str(type_text).removeprefix(name).lower()
    is_suffix_known = suffix in {"", f"-{component.value.lower()}"}
    return (
        attributes.get("component") == component.value
        and name.startswith("ml.")
        and is_suffix_known
    )


def _entry(document: object, usage_type: str, unit: str) -> Entry | None:
    """Returns a product's entry; None if all its prices are 0, as a free tier is not a rate."""
    on_demand = _mapping(_mapping(_mapping(document).get("terms")).get("OnDemand"))
    terms = [_mapping(term) for term in on_demand.values()]
    dimensions = [
        _mapping(dimension)
        for term in terms
        for dimension in _mapping(term.get("priceDimensions")).values()
    ]
    if not dimensions:
        return InvalidPrice(f"{_shorten(usage_type)} has no price")
    rates: set[Decimal] = set()
    for dimension in dimensions:
        if dimension.get("unit") != unit:
            return InvalidPrice(
                f"{_shorten(usage_type)} is priced per {_shorten(dimension.get('unit'))}"
            )
        amount = _amount(_mapping(dimension.get("pricePerUnit")), usage_type)
        if isinstance(amount, InvalidPrice):
            return amount
        rates.add(amount)
    rates.discard(Decimal(0))
    if not rates:
        return None
    if len(rates) > 1:
        return _conflicting_prices(rates)
    days = [day for term in terms if (day := _day(term.get("effectiveDate"))) is not None]
    return ListedRate(rates.pop(), max(days, default=None), usage_type)


def _amount(prices: Mapping[str, object], usage_type: str) -> Decimal | InvalidPrice:
    if "USD" not in prices:
        currencies = ", ".join(sorted(map(_shorten, prices))) or "no currency"
        return InvalidPrice(f"{_shorten(usage_type)} is priced in {currencies}, not in USD")
    text = prices["USD"]
    if not isinstance(text, str) or not _AMOUNT.fullmatch(text):
        return InvalidPrice(
            f"{_shorten(usage_type)} has a price that is not an amount: {_shorten(text)}"
        )
    whole, _, decimals = text.partition(".")
    return Decimal(f"{whole}.{decimals.rstrip('0')}")


def _agreed_entry(entries: list[Entry]) -> Entry:
    refusal_reasons = sorted(entry.reason for entry in entries if isinstance(entry, InvalidPrice))
    if refusal_reasons:
        return InvalidPrice(refusal_reasons[0])
    listed_rates = [entry for entry in entries if isinstance(entry, ListedRate)]
    rates = {entry.usd for entry in listed_rates}
    if len(rates) > 1:
        return _conflicting_prices(rates)
    days = [entry.effective_from for entry in listed_rates if entry.effective_from is not None]
    return ListedRate(
        rates.pop(), max(days, default=None), min(entry.usage_type for entry in listed_rates)
    )


def _conflicting_prices(rates: Iterable[Decimal]) -> InvalidPrice:
    amounts = " and ".join(f"${usd}" for usd in sorted(rates))
    return InvalidPrice(f"the price list has several rates: {amounts}")


def _day(text: object) -> date | None:
    match = _DAY.match(text) if isinstance(text, str) else None
    try:
        return date.fromisoformat(match[0]) if match else None
    except ValueError:
        return None


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _shorten(value: object) -> str:
    return str(value)[:_MAX_SHOWN_CHARACTERS]
