"""The packaged price tables, rewritten from the price list."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.adapters.prices.packaged import PackagedPrices
from sageaudit.adapters.prices.price_list import PriceList
from sageaudit.adapters.prices.sources import PriceBook
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.market import Rate
from sageaudit.domain.prices.price_list import STORAGE, ListedRate, PriceListing
from sageaudit.errors import AccessDenied, Unavailable
from sageaudit.structs import replace
from tests.fakes.jobs import not_none
from tests.fakes.price_lists import PricingClient, denied_error, listing, product
from tools import hourly_prices

DAY = date(2026, 11, 20)
TRAINING, PROCESSING, TRANSFORM = Component
EXCEPTION = {
    "region": "eu-west-1",
    "type": "ml.g4dn.xlarge",
    "component": "Training",
    "usd": Decimal("0.822"),
    "source": "a bill",
    "note": "the Hosting rate is 0.821",
}
KNOWN_RATES = {
    "ml.m5.xlarge": Decimal("0.257"),
    "ml.g4dn.xlarge": Decimal("0.821"),
    "ml.c5.xlarge": Decimal("0.23"),
    "ml.p3.2xlarge": Decimal("4.131"),
    "ml.r5.large": Decimal("0.17"),
}
PROVENANCE = {
    "component": "Hosting",
    "as_of": "2026-05-20",
    "source": "an earlier table",
    "history": "what was seen before",
    "absent": "unknown",
}
HOURLY = {"exceptions": [EXCEPTION], "history": [], "usd_per_hour": {"eu-west-1": KNOWN_RATES}}
OLD_PRICES = PackagedPrices({"provenance": PROVENANCE, **HOURLY}, {"regions": {}}, {"prefixes": {}})
LISTED_RATES = {
    "ml.m5.xlarge": "0.257",
    "ml.g4dn.xlarge": "0.9",
    "ml.c5.xlarge": "0.238",
    "ml.r5.large": "0.17",
    "ml.m6i.large": "0.12",
}


def read(**by_component: dict[str, str]) -> list[PriceListing]:
    """Returns what the price list says, by default Training's rates for every component."""
    return [
        listing(by_component.get(component.name.lower(), LISTED_RATES), component=component)
        for component in Component
    ]


def reread_prices(listings: list[PriceListing], tmp_path: Path) -> PackagedPrices:
    """Returns the prices of the table after it was written and read."""
    path = tmp_path / "hourly_prices.json"
    path.write_text(
        hourly_prices.table_text(hourly_prices.refresh_hourly(OLD_PRICES, listings, DAY).table),
        "utf-8",
    )
    table = json.loads(path.read_text("utf-8"), parse_float=Decimal)
    return replace(OLD_PRICES, hourly_table=table)


def hourly(book: PackagedPrices, name: str, component: Component, day: date | None = None) -> Rate:
    """Returns a rate that must exist."""
    return not_none(PriceBook((book,), day).hourly_rate("eu-west-1", component, name))


@pytest.mark.parametrize(
    ("name", "component", "day", "usd", "as_of"),
    [
        # m6i had none; the exception spoke of the earlier table
        ("ml.m6i.large", TRAINING, None, "0.12", "2026-11-20"),
        ("ml.g4dn.xlarge", TRAINING, None, "0.9", "2026-11-20"),
        # a changed price keeps the old one with its date, and a job in between is ambiguous
        ("ml.c5.xlarge", TRAINING, None, "0.238", "2026-11-20"),
        ("ml.c5.xlarge", TRAINING, date(2026, 8, 1), "0.238 or 0.23", "2026-11-20"),
        ("ml.c5.xlarge", TRAINING, date(2026, 5, 20), "0.23", "2026-05-20"),
        # what did not come back is not known to be gone
        ("ml.p3.2xlarge", TRAINING, None, "4.131", "2026-05-20"),
        # each component has its own figure where they differ
        ("ml.m6i.large", PROCESSING, None, "0.13", "2026-11-20"),
    ],
)
def test_a_new_table_has_the_listed_rates_and_the_old_ones_as_history(
    tmp_path: Path, name: str, component: Component, day: date | None, usd: str, as_of: str
) -> None:
    listings = read(processing=LISTED_RATES | {"ml.m6i.large": "0.13"})
    rate = hourly(reread_prices(listings, tmp_path), name, component, day)
    known_usd = [
        str(usd_or_none) for usd_or_none in (rate.usd, rate.other_usd) if usd_or_none is not None
    ]
    assert (" or ".join(known_usd), rate.as_of) == (usd, as_of)


def test_a_component_without_the_type_or_that_could_not_be_read(tmp_path: Path) -> None:
    """If a type is not sold for a component, it has no rate. If a list was not read, the old rate
    stays.
    """
    none = {name: usd for name, usd in LISTED_RATES.items() if name != "ml.m6i.large"}
    book = reread_prices(read(transform=none), tmp_path)
    assert not book.quote("eu-west-1", TRANSFORM, "ml.m6i.large").rates
    rate = hourly(reread_prices(read()[:2], tmp_path), "ml.m5.xlarge", TRANSFORM)
    assert (rate.usd, rate.as_of) == (Decimal("0.257"), "2026-05-20")


def test_history_exceptions_and_provenance_are_kept(tmp_path: Path) -> None:
    """A price that did not change leaves no history. The figure of an exception is in the
    history.
    """
    result = hourly_prices.refresh_hourly(OLD_PRICES, read(), DAY)
    assert (result.known_rows, result.returned_rows, result.new_rows) == (5, 4, 1)
    table = reread_prices(read(), tmp_path).hourly_table
    [row] = table["exceptions"]
    assert (row["settled"], row["usd"]) == ("2026-11-20", Decimal("0.822"))
    rows = [(row["type"], row.get("component"), str(row["usd"])) for row in table["history"]]
    assert rows == [
        ("ml.g4dn.xlarge", "Training", "0.822"),
        ("ml.g4dn.xlarge", "Processing", "0.821"),
        ("ml.g4dn.xlarge", "BatchTransform", "0.821"),
        ("ml.c5.xlarge", None, "0.23"),
        ("ml.p3.2xlarge", None, "4.131"),
    ]
    assert table["provenance"]["as_of"] == "2026-11-20"
    [earlier] = table["provenance"]["earlier"]
    assert (earlier["as_of"], earlier["source"]) == ("2026-05-20", "an earlier table")


def test_too_little_is_not_written() -> None:
    """Three of five are under 80%."""
    three_rates = dict(list(LISTED_RATES.items())[:3])
    with pytest.raises(Unavailable, match="Only 3 of 5 known prices came back"):
        hourly_prices.refresh_hourly(
            OLD_PRICES,
            read(training=three_rates, processing=three_rates, transform=three_rates),
            DAY,
        )


def test_the_order_of_listings_never_matters() -> None:
    listings = read()
    table = hourly_prices.refresh_hourly(OLD_PRICES, listings, DAY).table
    assert hourly_prices.refresh_hourly(OLD_PRICES, listings[::-1], DAY).table == table


def test_refreshing_the_packaged_table_with_itself_changes_no_rate(tmp_path: Path) -> None:
    """All 2,065 rows have the same digits after they were written and read."""
    book = packaged.packaged_prices()

    def rates(prices_: PackagedPrices, region: str, component: Component) -> dict[str, str]:
        prices, names = PriceBook((prices_,)), book.hourly_table["usd_per_hour"][region]
        rates_or_none = {name: prices.hourly_rate(region, component, name) for name in names}
        return {name: str(rate.usd) for name, rate in rates_or_none.items() if rate is not None}

    places = [(region, component) for region in book.regions for component in Component]
    listings = [
        listing(rates(book, *place), region=place[0], component=place[1]) for place in places
    ]
    result = hourly_prices.refresh_hourly(book, listings, DAY)
    path = tmp_path / "table.json"
    path.write_text(hourly_prices.table_text(result.table), "utf-8")
    after = replace(book, hourly_table=json.loads(path.read_text("utf-8"), parse_float=Decimal))
    assert (
        result.known_rows,
        result.returned_rows,
        result.new_rows,
        result.superseded_rows,
    ) == (2065, 2065, 0, 0)
    assert all(rates(after, *place) == rates(book, *place) for place in places)


def test_no_packaged_price_is_zero_or_less() -> None:
    """This includes exceptions, history and storage."""
    book = packaged.packaged_prices()
    table = book.hourly_table
    figures = [usd for row in table["usd_per_hour"].values() for usd in row.values()]
    figures += [row["usd"] for row in [*table["history"], *table["exceptions"]] if "usd" in row]
    figures += [row["training"] for row in book.storage_table["regions"].values()]
    assert all(isinstance(usd, Decimal) and usd > 0 for usd in figures)


def test_storage_is_refreshed_where_it_is_listed_and_keeps_its_date_elsewhere() -> None:
    """A region without a Training figure gets none from Processing's."""
    old_table = packaged.packaged_prices().storage_table
    listings = [
        PriceListing(
            region, component, {STORAGE: ListedRate(Decimal(usd), DAY, "X:VolumeUsage.gp2")}
        )
        for region, component, usd in (
            ("eu-west-1", TRAINING, "0.16"),
            ("eu-west-1", PROCESSING, "0.12"),
            ("eu-west-3", TRAINING, "0.163"),
            ("ap-east-2", PROCESSING, "0.1"),
        )
    ]
    table = hourly_prices.refresh_storage(old_table, listings, DAY)
    regions = table["regions"]
    rates = [str(regions["eu-west-1"][part]) for part in ("training", "processing")]
    assert rates == ["0.16", "0.12"]
    listed_row, unlisted_row = regions["eu-west-3"], regions["us-east-1"]
    assert (listed_row["training"], listed_row["as_of"]) == (Decimal("0.163"), str(DAY))
    assert (unlisted_row["training"], unlisted_row["as_of"]) == (
        Decimal("0.14"),
        old_table["provenance"]["as_of"],
    )
    assert "ap-east-2" not in regions
    assert json.loads(hourly_prices.table_text(table))["regions"].keys() == regions.keys()


def test_both_tables_are_written_from_the_price_list(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """New types and regions are added. Superseded prices stay with their date."""
    row = {"ml.m5.xlarge": Decimal("0.257"), "ml.c5.xlarge": Decimal("0.23")}
    book = packaged.packaged_prices()
    small = replace(book, hourly_table={**book.hourly_table, "usd_per_hour": {"eu-west-1": row}})
    monkeypatch.setattr(packaged, "packaged_prices", lambda: small)
    api = PricingClient()
    rates = {"ml.m5.xlarge": "0.257", "ml.c5.xlarge": "0.25", "ml.m6i.large": "0.12"}
    api.products = [
        product(name, usd, component=component)
        for name, usd in rates.items()
        for component in Component
    ]
    api.products.append(product("ml.t3.large", "0.1", region="eu-west-2"))
    price_list = PriceList(lambda _endpoint: api)
    hourly_prices.renew(price_list, ["eu-west-2"], DAY, tmp_path)
    output = capsys.readouterr().out
    assert "2 of 2 known prices came back, 2 are new, 1 earlier figures" in output
    table = json.loads((tmp_path / "hourly_prices.json").read_text("utf-8"), parse_float=Decimal)
    assert table["usd_per_hour"]["eu-west-1"]["ml.m6i.large"] == Decimal("0.12")
    assert table["usd_per_hour"]["eu-west-2"] == {"ml.t3.large": {"Training": Decimal("0.1")}}
    assert table["history"][-1]["usd"] == Decimal("0.23")
    storage = json.loads((tmp_path / "storage_prices.json").read_text("utf-8"))
    assert storage["regions"]["us-east-1"]["as_of"] == "2026-11-20"
    api.refusal, api.calls = denied_error(), []
    with pytest.raises(AccessDenied):  # at once, not for each region
        hourly_prices.renew(price_list, ["eu-west-2"], DAY, tmp_path)
    assert len(api.calls) == 1
