"""Renews the packaged price tables from the Price List API: `python -m tools.hourly_prices`.

It reads the prices with your AWS credentials. A changed price goes into the table's history, with
the date of this reading. Nothing is written if AWS returns fewer than 80% of the known prices.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import boto3

from sageaudit.adapters.aws.clients import client, known_regions
from sageaudit.adapters.files.exact_json import to_json
from sageaudit.adapters.files.local_files import write_text
from sageaudit.adapters.prices import packaged
from sageaudit.adapters.prices.packaged import PackagedPrices
from sageaudit.adapters.prices.price_list import PriceList
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.known_prices import SAME_PRICE_TOLERANCE, DatedRate
from sageaudit.domain.prices.price_list import STORAGE, PriceListing
from sageaudit.errors import AccessDenied, AwsError, NoCredentials, Unavailable

LEAST_SHARE = Decimal("0.8")
"""If AWS returns less than this share of the known rows, the price list is incomplete."""
_ENDPOINT = "us-east-1"
_SOURCE = "AWS Price List API (GetProducts), read by tools.hourly_prices"
_BY_TYPE = frozenset({"usd_per_hour", "ec2_usd_per_hour"})
"""The parts of packaged tables that have prices by region and type."""
TableRow = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """The new table, with counts of rows. A row is one instance type in one region."""

    table: TableRow
    known_rows: int
    returned_rows: int
    new_rows: int
    superseded_rows: int


def refresh_hourly(
    old_prices: PackagedPrices, listings: list[PriceListing], day: date
) -> RefreshResult:
    """Returns the hourly table as of `day`.

    Raises Unavailable if fewer than 80% of the known rows came back.
    """
    prices = _by_region(listings)
    known_rows = [(r, t) for r, row in old_prices.hourly_table["usd_per_hour"].items() for t in row]
    returned_rows = sum(name in prices.get(region, {}) for region, name in known_rows)
    if returned_rows < LEAST_SHARE * len(known_rows):
        raise Unavailable(
            f"Only {returned_rows:,} of {len(known_rows):,} known prices came back:"
            " nothing is written."
        )
    read = {(listing.region, listing.component) for listing in listings}
    superseded = [
        row
        for region, name in known_rows
        for row in _superseded(old_prices, region, name, prices, read)
    ]
    table = {
        "provenance": _provenance(old_prices, day),
        "exceptions": [
            {"settled": str(day), **row} for row in old_prices.hourly_table["exceptions"]
        ],
        "history": [*old_prices.hourly_table["history"], *superseded],
        "usd_per_hour": {
            region: {name: _figure(rates) for name, rates in sorted(row.items())}
            for region, row in sorted(prices.items())
        },
    }
    added = sum(len(row) for row in prices.values()) - returned_rows
    return RefreshResult(table, len(known_rows), returned_rows, added, len(superseded))


def refresh_storage(
    old_table: Mapping[str, Any], listings: list[PriceListing], day: date
) -> TableRow:
    """Returns the storage table with the listed rates. Other rows keep their price and date."""
    regions = {region: dict(row) for region, row in old_table["regions"].items()}
    for row in regions.values():
        row.setdefault("as_of", old_table["provenance"]["as_of"])
    for listing in sorted(
        listings, key=lambda listing: listing.component is not Component.TRAINING
    ):
        rate, part = listing.rates.get(STORAGE), listing.component.value.lower()
        if rate is None or listing.component is Component.TRANSFORM:
            continue
        if listing.component is Component.TRAINING or listing.region in regions:
            row = regions.setdefault(listing.region, {})
            row |= {part: rate.usd, "basis": "observed: Price List API", "as_of": str(day)}
    return {"provenance": old_table["provenance"], "regions": dict(sorted(regions.items()))}


def table_text(table: Mapping[str, Any]) -> str:
    """Returns a packaged table as JSON with one row per line, so that a diff shows changed
    prices.
    """
    parts = [
        f' "{name}": {_regions(rows) if name in _BY_TYPE else _lines(rows, "  ")}'
        for name, rows in table.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _regions(rows: Mapping[str, Any]) -> str:
    """Returns prices by region and type, with a line for each type."""
    body = ",\n".join(f"  {to_json(region)}: {_lines(row)}" for region, row in rows.items())
    return f"{{\n{body}\n }}"


def _lines(rows: Mapping[str, object] | list[TableRow], indent: str = "   ") -> str:
    if isinstance(rows, Mapping):
        lines = [f"{to_json(key)}: {to_json(value)}" for key, value in rows.items()]
        opened, closed = "{", "}"
    else:
        lines = [to_json(row) for row in rows]
        opened, closed = "[", "]"
    body = ",\n".join(f"{indent}{line}" for line in lines)
    return f"{opened}\n{body}\n{indent[:-1]}{closed}" if lines else f"{opened}{closed}"


def _by_region(listings: list[PriceListing]) -> dict[str, dict[str, dict[str, Decimal]]]:
    prices: dict[str, dict[str, dict[str, Decimal]]] = {}
    for listing in listings:
        for name, rate in listing.rates.items():
            if name != STORAGE:
                types = prices.setdefault(listing.region, {})
                types.setdefault(name, {})[listing.component.value] = rate.usd
    return prices


def _figure(rates: Mapping[str, Decimal]) -> Decimal | Mapping[str, Decimal]:
    """Returns one figure if all components have the same, otherwise a figure per component."""
    figures = set(rates.values())
    return figures.pop() if len(figures) == 1 and len(rates) == len(Component) else rates


def _superseded(
    old_prices: PackagedPrices,
    region: str,
    name: str,
    prices: Mapping[str, Mapping[str, Mapping[str, Decimal]]],
    read: AbstractSet[tuple[str, Component]],
) -> Iterator[TableRow]:
    """Yields the old prices that the new table lacks or changes, in one row if all components
    agree.
    """
    rates = prices.get(region, {}).get(name)
    rows = []
    for component in Component:
        before = old_prices.current_rate(region, component, name)
        now = None if rates is None else rates.get(component.value)
        missed = rates is None or (region, component) not in read
        differs = (
            before and now is not None and abs(now - before.rate.usd) > SAME_PRICE_TOLERANCE * now
        )
        if before is not None and (missed or differs):
            rows.append((component, before))
    if len(rows) == len(Component) and len({dated_rate for _, dated_rate in rows}) == 1:
        yield _history_row(region, name, rows[0][1])
        return
    for component, before in rows:
        yield _history_row(region, name, before) | {"component": component.value}


def _history_row(region: str, name: str, dated_rate: DatedRate) -> TableRow:
    rate = dated_rate.rate
    row = {"region": region, "type": name, "usd": rate.usd, "seen": rate.as_of}
    row["source"] = rate.source
    return row if rate.note is None else row | {"note": rate.note}


def _provenance(old_prices: PackagedPrices, day: date) -> TableRow:
    before = dict(old_prices.hourly_table["provenance"])
    earlier = before.pop("earlier", [])
    return {
        "component": ", ".join(component.value for component in Component),
        "what": "On-demand USD per instance-hour by region and type; one figure where all"
        " components share it, else one for each component that has the type",
        "as_of": str(day),
        "source": _SOURCE,
        "history": before["history"],
        "absent": before["absent"],
        "earlier": [*earlier, before],
    }


def listings(
    price_list: PriceList, regions: Sequence[str], report: Callable[[str], None]
) -> Iterator[PriceListing]:
    """Yields the price list of every region and component.

    A list that cannot be read is passed to `report`. Raises AccessDenied or NoCredentials.
    """
    for region in regions:
        for component in Component:
            try:
                yield price_list.read_listing(region, component)
            except (AccessDenied, NoCredentials):
                raise
            except AwsError as error:
                report(f"{region}, {component.value}: {error}")


def renew(price_list: PriceList, regions: Iterable[str], day: date, folder: Path) -> None:
    """Writes both tables. Raises AccessDenied, NoCredentials or Unavailable."""
    old_prices = packaged.packaged_prices()
    price_listings = list(listings(price_list, sorted({*old_prices.regions, *regions}), print))
    hourly = refresh_hourly(old_prices, price_listings, day)
    storage = refresh_storage(old_prices.storage_table, price_listings, day)
    write_text(folder / packaged.HOURLY_TABLE, table_text(hourly.table))
    write_text(folder / packaged.STORAGE_TABLE, table_text(storage))
    print(
        f"{hourly.returned_rows:,} of {hourly.known_rows:,} known prices came back,"
        f" {hourly.new_rows:,} are"
        f" new, {hourly.superseded_rows:,} earlier figures went to the history"
    )


def main() -> None:
    """Rewrites the packaged tables."""
    session = boto3.Session()
    # The commercial price list also has the prices of aws-us-gov.
    prices = PriceList(
        cache(lambda endpoint: client(session, "pricing", endpoint)), lambda _: _ENDPOINT
    )
    folder = Path(str(resources.files("sageaudit.data")))
    try:
        renew(prices, known_regions(), datetime.now(UTC).date(), folder)
    except AwsError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
