"""`sageaudit prices`, as its users run it: rates, what is unknown, a fresh table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.prices import packaged, price_table
from sageaudit.cli.commands import prices as command
from sageaudit.cli.support.prices import live_prices
from sageaudit.domain.job.kinds import Component
from tests.fakes.command_line import Result, Run
from tests.fakes.price_lists import PricingClient, denied, product

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def prices(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`sageaudit prices` with these words, on a terminal of 120 columns and a fixed day."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(command, "_now", lambda: NOW)
    return partial(run, "prices")


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> PricingClient:
    """A Price List API instead of AWS's."""
    client = PricingClient()
    monkeypatch.setattr(live_prices, "clients", lambda _profile: lambda _endpoint: client)
    return client


def rows(done: Result) -> list[dict[str, Any]]:
    """The rates of `--output json`."""
    made: list[dict[str, Any]] = json.loads(done.stdout, parse_float=Decimal)["rates"]
    return made


def test_a_type_shows_its_rate_date_and_source(prices: Run) -> None:
    """One line where all components cost the same."""
    done = prices("ml.m5.xlarge", "--region", "eu-west-1")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "$0.257" in done.stdout
    assert "2026-05-20" in done.stdout
    assert "Training, Processing, BatchTransform" in done.stdout
    assert "packaged Price List rates (Hosting)" in done.stdout


def test_without_a_region_all_that_are_known_are_shown(prices: Run) -> None:
    """m6i has a packaged price in five, and an estimate in us-east-1."""
    done = prices("ml.m6i.large", "--component", "training", "--output", "json")
    assert done.exit_code == 0
    kinds = {row["region"]: row["kind"] for row in rows(done)}
    assert list(kinds) == [
        "ap-east-2", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7", "mx-central-1",
        "us-east-1",
    ]  # fmt: skip
    assert [region for region, kind in kinds.items() if kind == "estimate"] == ["us-east-1"]


def test_an_estimated_rate_says_about_and_how_it_was_made(prices: Run) -> None:
    """Nowhere that SageMaker sells the type."""
    done = prices("ml.m6i.large", "--region", "us-east-1")
    assert done.exit_code == 0
    said = " ".join(done.stdout.split())
    assert "about $0.1152" in said
    assert "SageMaker's rate for ml.m6i.large is not known here" in said
    assert "estimated from EC2's rate x 1.20" in said
    [row] = rows(prices("ml.m6i.large", "--region", "us-east-1", "--component", "training",
                        "--output", "json"))  # fmt: skip
    assert (row["usd_per_hour"], row["kind"]) == (Decimal("0.1152"), "estimate")


def test_a_day_between_two_known_prices_shows_both(prices: Run) -> None:
    """The other price has its own column."""
    words = ("ml.p4d.24xlarge", "--region", "us-east-1", "--on", "2025-06-15")
    assert "$37.688" in prices(*words).stdout
    done = prices(*words, "--component", "training", "--output", "json")
    [row] = rows(done)
    assert (row["usd_per_hour"], row["other_usd"]) == (Decimal("25.2512883"), Decimal("37.688"))
    assert row["note"].startswith("ambiguous: 2025-06-15 lies between two known prices")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A packaged table of one region and two types."""
    book = packaged.tables()
    row = {"ml.m5.xlarge": Decimal("0.257"), "ml.c5.xlarge": Decimal("0.23")}
    table = {**book.hourly_table, "usd_per_hour": {"eu-west-1": row}}
    made = replace(book, hourly_table=table)
    monkeypatch.setattr(packaged, "tables", lambda: made)
    monkeypatch.setattr(command, "known_regions", lambda: {"eu-west-1", "eu-west-2"})


@pytest.mark.usefixtures("small")
def test_refresh_writes_a_table_from_the_price_list(
    prices: Run, api: PricingClient, tmp_path: Path
) -> None:
    """New types and regions too; what was superseded stays with its date."""
    rates = {"ml.m5.xlarge": "0.257", "ml.c5.xlarge": "0.25", "ml.m6i.large": "0.12"}
    api.products = [
        product(name, usd, component=component)
        for name, usd in rates.items()
        for component in Component
    ]
    api.products.append(product("ml.t3.large", "0.1", region="eu-west-2"))
    path = tmp_path / "table.json"
    done = prices("refresh", "--to", str(path))
    assert (done.exit_code, done.stdout) == (0, "")
    assert "2 of 2 known prices came back, 2 are new, 1 earlier figures" in done.stderr
    table = json.loads(path.read_text("utf-8"), parse_float=Decimal)
    assert table["usd_per_hour"]["eu-west-1"]["ml.m6i.large"] == Decimal("0.12")
    assert table["usd_per_hour"]["eu-west-2"] == {"ml.t3.large": {"Training": Decimal("0.1")}}
    assert table["history"][-1]["usd"] == Decimal("0.23")
    assert table["provenance"]["as_of"] == str(date(2026, 11, 20))
    storage = json.loads((tmp_path / "storage_prices.json").read_text("utf-8"))
    assert storage["regions"]["us-east-1"]["training"] == 0.14
    assert storage["regions"]["us-east-1"]["as_of"] == "2026-11-20"


@pytest.fixture
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's data folder; what was read from it is forgotten after the test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    yield tmp_path / "sageaudit"
    packaged.renew_from(tmp_path / "gone")


def test_refreshed_tables_are_read_by_later_commands(run: Run, data_home: Path) -> None:
    """In place of older packaged ones; the source says so."""
    tables = packaged.tables()
    newer = {**tables.hourly_table["provenance"], "as_of": "2026-11-20"}
    rates = {"us-east-1": {"ml.g5.2xlarge": Decimal("9.99")}}
    data_home.mkdir()
    hourly = {**tables.hourly_table, "provenance": newer, "usd_per_hour": rates}
    (data_home / packaged.HOURLY).write_text(price_table.text_of(hourly), "utf-8")
    storage = price_table.text_of(dict(tables.storage_table))
    (data_home / packaged.STORAGE_TABLE).write_text(storage, "utf-8")
    words = ("prices", "ml.g5.2xlarge", "--region", "us-east-1", "--component", "training")
    [row] = rows(run(*words, "--output", "json"))
    assert (row["usd_per_hour"], row["as_of"]) == (Decimal("9.99"), "2026-11-20")
    assert row["source"].startswith("refreshed Price List rates")


def test_a_damaged_table_of_the_user_is_named(run: Run, data_home: Path) -> None:
    """Exit 2 with what to do: a wrong price would be worse than none."""
    data_home.mkdir()
    (data_home / packaged.HOURLY).write_text("{}")
    done = run("prices", "ml.g5.2xlarge")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is not a price table: delete it, or run `sageaudit prices refresh`" in done.stderr


@pytest.mark.usefixtures("small")
def test_refresh_writes_to_the_users_data_folder(
    prices: Run, api: PricingClient, data_home: Path
) -> None:
    """A packaged file may belong to root, and the next upgrade would replace it."""
    api.products = [
        product(name, "0.25", component=component)
        for name in ("ml.m5.xlarge", "ml.c5.xlarge")
        for component in Component
    ]
    assert prices("refresh").exit_code == 0
    assert (data_home / packaged.HOURLY).exists()
    assert (data_home / packaged.STORAGE_TABLE).exists()


@pytest.mark.usefixtures("small")
def test_refresh_without_permission_ends_at_once(
    prices: Run, api: PricingClient, tmp_path: Path
) -> None:
    """Exit 4; not a refusal for each region."""
    api.refusal = denied()
    done = prices("refresh", "--to", str(tmp_path / "table.json"))
    assert done.exit_code == 4
    assert done.stderr == "sageaudit: pricing:GetProducts is not permitted.\n"
    assert len(api.calls) == 1
