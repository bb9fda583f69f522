"""The packaged table, made again from the price list."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.prices import packaged, price_table
from sageaudit.adapters.prices.packaged import PackagedPrices
from sageaudit.adapters.prices.price_book import PriceBook
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.market import Rate
from sageaudit.domain.prices.price_list import STORAGE, ListedRate, PriceListing
from sageaudit.errors import BadUsage, Unavailable
from tests.fakes.price_lists import listing

DAY = date(2026, 11, 20)
TRAINING, PROCESSING, TRANSFORM = Component
OLD = PackagedPrices(
    hourly_table={
        "provenance": {
            "component": "Hosting",
            "as_of": "2026-05-20",
            "source": "an earlier table",
            "history": "what was seen before",
            "absent": "unknown",
        },
        "exceptions": [
            {
                "region": "eu-west-1",
                "type": "ml.g4dn.xlarge",
                "component": "Training",
                "usd": Decimal("0.822"),
                "source": "a bill",
                "note": "the Hosting rate is 0.821",
            }
        ],
        "history": [],
        "usd_per_hour": {
            "eu-west-1": {
                "ml.m5.xlarge": Decimal("0.257"),
                "ml.g4dn.xlarge": Decimal("0.821"),
                "ml.c5.xlarge": Decimal("0.23"),
                "ml.p3.2xlarge": Decimal("4.131"),
                "ml.r5.large": Decimal("0.17"),
            }
        },
    },
    storage_table={"regions": {}},
    usage_table={"prefixes": {}},
)
LISTED = {
    "ml.m5.xlarge": "0.257",
    "ml.g4dn.xlarge": "0.9",
    "ml.c5.xlarge": "0.238",
    "ml.r5.large": "0.17",
    "ml.m6i.large": "0.12",
}


def read(**by_component: dict[str, str]) -> list[PriceListing]:
    """What the price list says; Training's rates everywhere by default."""
    return [
        listing(by_component.get(component.name.lower(), LISTED), component=component)
        for component in Component
    ]


def again(listings: list[PriceListing], tmp_path: Path) -> PackagedPrices:
    """The book over the written table."""
    path = tmp_path / "hourly_prices.json"
    price_table.write(price_table.text_of(price_table.refreshed(OLD, listings, DAY).table), path)
    table = json.loads(path.read_text("utf-8"), parse_float=Decimal)
    return replace(OLD, hourly_table=table)


def hourly(book: PackagedPrices, name: str, component: Component, day: date | None = None) -> Rate:
    """A rate that is there."""
    rate = PriceBook((book,), day).hourly("eu-west-1", component, name)
    assert rate is not None
    return rate


def test_what_became_of_the_rows_is_counted() -> None:
    """Four of five came back, one is new; two changed or vanished, the exception apart."""
    done = price_table.refreshed(OLD, read(), DAY)
    assert (done.known, done.came_back, done.added) == (5, 4, 1)


def test_a_new_type_gets_its_price(tmp_path: Path) -> None:
    """m6i had none."""
    rate = hourly(again(read(), tmp_path), "ml.m6i.large", TRAINING)
    assert (rate.usd, rate.as_of) == (Decimal("0.12"), "2026-11-20")


def test_a_changed_price_keeps_the_old_one_with_its_date(tmp_path: Path) -> None:
    """A job in between is ambiguous."""
    book = again(read(), tmp_path)
    assert hourly(book, "ml.c5.xlarge", TRAINING).usd == Decimal("0.238")
    between = hourly(book, "ml.c5.xlarge", TRAINING, date(2026, 8, 1))
    assert (between.usd, between.other_usd) == (Decimal("0.238"), Decimal("0.23"))
    assert hourly(book, "ml.c5.xlarge", TRAINING, date(2026, 5, 20)).usd == Decimal("0.23")


def test_a_price_that_did_not_change_leaves_no_history(tmp_path: Path) -> None:
    """Nothing to tell."""
    rows = again(read(), tmp_path).hourly_table["history"]
    assert not [row for row in rows if row["type"] == "ml.m5.xlarge"]


def test_a_type_that_did_not_come_back_keeps_its_old_date(tmp_path: Path) -> None:
    """It is not known to be gone."""
    rate = hourly(again(read(), tmp_path), "ml.p3.2xlarge", TRAINING)
    assert (rate.usd, rate.as_of) == (Decimal("4.131"), "2026-05-20")


def test_an_exception_is_kept_and_does_not_override_the_new_figure(tmp_path: Path) -> None:
    """It spoke of the earlier table; its figure is in the history."""
    book = again(read(), tmp_path)
    assert hourly(book, "ml.g4dn.xlarge", TRAINING).usd == Decimal("0.9")
    [row] = book.hourly_table["exceptions"]
    assert (row["settled"], row["usd"]) == ("2026-11-20", Decimal("0.822"))
    before = [
        (row["component"], row["usd"])
        for row in book.hourly_table["history"]
        if row["type"] == "ml.g4dn.xlarge"
    ]
    assert before == [
        ("Training", Decimal("0.822")),
        ("Processing", Decimal("0.821")),
        ("BatchTransform", Decimal("0.821")),
    ]


def test_each_component_has_its_own_figure_where_they_differ(tmp_path: Path) -> None:
    """And none where the type is not sold for it."""
    book = again(read(processing=LISTED | {"ml.m6i.large": "0.13"}, transform={
        name: usd for name, usd in LISTED.items() if name != "ml.m6i.large"
    }), tmp_path)  # fmt: skip
    assert hourly(book, "ml.m6i.large", TRAINING).usd == Decimal("0.12")
    assert hourly(book, "ml.m6i.large", PROCESSING).usd == Decimal("0.13")
    assert not book.hourly("eu-west-1", TRANSFORM, "ml.m6i.large").rates


def test_a_component_that_could_not_be_read_keeps_its_old_prices(tmp_path: Path) -> None:
    """A throttled read is no price list without transform."""
    book = again(read()[:2], tmp_path)
    rate = hourly(book, "ml.m5.xlarge", TRANSFORM)
    assert (rate.usd, rate.as_of) == (Decimal("0.257"), "2026-05-20")


def test_provenance_of_the_earlier_table_is_kept(tmp_path: Path) -> None:
    """Each table says where its figures came from."""
    provenance = again(read(), tmp_path).hourly_table["provenance"]
    assert provenance["as_of"] == "2026-11-20"
    [earlier] = provenance["earlier"]
    assert (earlier["as_of"], earlier["source"]) == ("2026-05-20", "an earlier table")


def test_too_little_is_not_written() -> None:
    """Three of five are under 80 %."""
    few = dict(list(LISTED.items())[:3])
    with pytest.raises(Unavailable, match="Only 3 of 5 known prices came back"):
        price_table.refreshed(OLD, read(training=few, processing=few, transform=few), DAY)


def test_the_order_of_listings_never_matters() -> None:
    """Regions are read one by one."""
    listings = read()
    table = price_table.refreshed(OLD, listings, DAY).table
    assert price_table.refreshed(OLD, listings[::-1], DAY).table == table


def test_refreshing_the_packaged_table_with_itself_changes_no_rate(tmp_path: Path) -> None:
    """All 2,065 rows survive the way through the file, digit by digit."""
    book = packaged.tables()
    listings = [
        listing(
            {
                name: str(rate.usd)
                for name in row
                if (rate := PriceBook((book,)).hourly(region, component, name)) is not None
            },
            region=region,
            component=component,
        )
        for region, row in book.hourly_table["usd_per_hour"].items()
        for component in Component
    ]
    done = price_table.refreshed(book, listings, DAY)
    path = tmp_path / "table.json"
    price_table.write(price_table.text_of(done.table), path)
    table = json.loads(path.read_text("utf-8"), parse_float=Decimal)
    after = replace(book, hourly_table=table)
    assert (done.known, done.came_back, done.added, done.superseded) == (2065, 2065, 0, 0)
    for region, row in book.hourly_table["usd_per_hour"].items():
        for name in row:
            for component in Component:
                before, now = (
                    PriceBook((b,)).hourly(region, component, name) for b in (book, after)
                )
                assert before is not None
                assert now is not None
                assert now.usd == before.usd


def test_the_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    """Nothing of a half-written one stays."""
    path = tmp_path / "table.json"
    path.write_text("old")
    price_table.write(price_table.text_of(price_table.refreshed(OLD, read(), DAY).table), path)
    assert [one.name for one in tmp_path.iterdir()] == ["table.json"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    """Usage, not a stack trace."""
    table: dict[str, Any] = price_table.refreshed(OLD, read(), DAY).table
    with pytest.raises(BadUsage, match="cannot be written: No such file"):
        price_table.write(price_table.text_of(table), tmp_path / "nowhere" / "table.json")


def test_no_packaged_price_is_zero_or_less() -> None:
    """Table, exceptions, history and storage."""
    book = packaged.tables()
    table = book.hourly_table
    figures = [usd for row in table["usd_per_hour"].values() for usd in row.values()]
    figures += [row["usd"] for row in [*table["history"], *table["exceptions"]] if "usd" in row]
    figures += [row["training"] for row in book.storage_table["regions"].values()]
    assert all(isinstance(usd, Decimal) and usd > 0 for usd in figures)


def test_storage_is_refreshed_where_it_is_listed_and_keeps_its_date_elsewhere() -> None:
    """A region without a figure of Training's own gets none from Processing's."""
    old = packaged.tables().storage_table
    listed = [
        _storage("eu-west-1", Component.TRAINING, "0.16"),
        _storage("eu-west-1", Component.PROCESSING, "0.12"),
        _storage("eu-west-3", Component.TRAINING, "0.163"),
        _storage("ap-east-2", Component.PROCESSING, "0.1"),
    ]
    table = price_table.storage_refreshed(old, listed, DAY)
    regions = table["regions"]
    assert (regions["eu-west-1"]["training"], regions["eu-west-1"]["processing"]) == (
        Decimal("0.16"),
        Decimal("0.12"),
    )
    assert regions["eu-west-3"]["training"] == Decimal("0.163")
    assert regions["eu-west-3"]["as_of"] == str(DAY)
    assert regions["us-east-1"]["training"] == Decimal("0.14")
    assert regions["us-east-1"]["as_of"] == old["provenance"]["as_of"]
    assert "ap-east-2" not in regions
    assert json.loads(price_table.storage_text_of(table))["regions"].keys() == regions.keys()


def _storage(region: str, component: Component, usd: str) -> PriceListing:
    rate = ListedRate(Decimal(usd), DAY, f"X-{component.value}:VolumeUsage.gp2")
    return PriceListing(region, component, {STORAGE: rate})
