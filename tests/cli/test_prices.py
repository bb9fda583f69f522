"""`sageaudit prices`, as its users run it: rates, what is unknown, coverage, a fresh table."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.cli import main
from sageaudit.cli.commands import prices as command
from sageaudit.cli.sources import live_prices
from sageaudit.domain.job.kinds import Component
from tests.fakes.price_lists import PricingClient, denied, product

Run = Callable[..., tuple[int, str, str]]
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The console script: exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(command, "_now", lambda: NOW)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sageaudit", "prices", *words])
        with pytest.raises(SystemExit) as stopped:
            main.main()
        out, err = capsys.readouterr()
        return int(str(stopped.value.code)), out, err

    return call


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> PricingClient:
    """A Price List API instead of AWS's."""
    client = PricingClient()
    monkeypatch.setattr(live_prices, "clients", lambda _profile: lambda _endpoint: client)
    return client


def rows(out: str) -> list[dict[str, Any]]:
    """The rates of `--output json`."""
    made: list[dict[str, Any]] = json.loads(out, parse_float=Decimal)
    return made


def test_a_type_shows_its_rate_date_and_source(run: Run) -> None:
    """One line where all components cost the same."""
    code, out, err = run("ml.m5.xlarge", "--region", "eu-west-1")
    assert (code, err) == (0, "")
    assert "$0.257" in out
    assert "2026-05-20" in out
    assert "Training, Processing, BatchTransform" in out
    assert "packaged Price List rates (Hosting)" in out


def test_without_a_region_all_that_are_known_are_shown(run: Run) -> None:
    """m6i has a packaged price in five."""
    code, out, _ = run("ml.m6i.large", "--component", "training", "--output", "json")
    assert code == 0
    assert [row["region"] for row in rows(out)] == [
        "ap-east-2", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7", "mx-central-1",
    ]  # fmt: skip


def test_a_day_between_two_known_prices_shows_both(run: Run) -> None:
    """The other price has its own column."""
    words = ("ml.p4d.24xlarge", "--region", "us-east-1", "--on", "2025-06-15")
    code, out, _ = run(*words)
    assert code == 0
    assert "$25.251288" in out
    assert "$37.688" in out
    _, out, _ = run(*words, "--component", "training", "--output", "json")
    [row] = rows(out)
    assert (row["usd_per_hour"], row["other_usd"]) == (Decimal("25.2512883"), Decimal("37.688"))
    assert row["note"].startswith("ambiguous: 2025-06-15 lies between two known prices")


def test_a_type_without_a_price_is_unknown_and_not_zero(run: Run) -> None:
    """Exit 3, nothing on stdout."""
    code, out, err = run("ml.m6i.large", "--region", "us-east-1")
    assert (code, out) == (3, "")
    assert err == (
        "sageaudit: no price is known for ml.m6i.large in us-east-1: it is unknown, not 0\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ml.foo.xlarge"], "ml.foo.xlarge is no instance type"),
        (["m5.xlarge"], "m5.xlarge is no instance type"),
        (["-1"], "No such option"),
        (["NaN"], "NaN is no instance type"),
        (["ml.m5.xlarge", "--region", "eu-west-9"], "eu-west-9 is no AWS region"),
        (["ml.m5.xlarge", "--component", "cooking"], "'cooking' is not one of"),
        (["ml.m5.xlarge", "--on", "2026-13-01"], "does not match the format"),
        (["ml.m5.xlarge", "--on", "2027-01-01"], "2027-01-01 lies in the future"),
        (["ml.m5.xlarge", "--live"], "--live asks for one region"),
        (["\x1b[31mred"], "is no instance type"),
    ],
)
def test_words_that_are_off_are_one_sentence_and_exit_2(
    run: Run, words: list[str], said: str
) -> None:
    """Never a stack trace, never an escape sequence."""
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert "\x1b" not in err


def test_a_region_of_aws_without_any_price_is_unknown(run: Run) -> None:
    """It exists; its prices are in another currency."""
    code, _, err = run("ml.m5.xlarge", "--region", "cn-north-1")
    assert code == 3
    assert "is unknown, not 0" in err


def test_live_rates_come_from_the_price_list(run: Run, api: PricingClient) -> None:
    """With today's date, for each component that lists the type."""
    api.products = [product("ml.m6i.large", "0.12", region="us-east-1")]
    code, out, _ = run("ml.m6i.large", "--region", "us-east-1", "--live", "--output", "json")
    assert code == 0
    assert [(row["component"], row["usd_per_hour"], row["as_of"]) for row in rows(out)] == [
        ("Training", Decimal("0.12"), "2026-11-20")
    ]


def test_a_newer_type_can_be_asked_for_live(run: Run, api: PricingClient) -> None:
    """The price list may know what this version does not."""
    api.products = [product("ml.m99.large", "0.5", region="us-east-1")]
    code, out, _ = run("ml.m99.large", "--region", "us-east-1", "--live")
    assert code == 0
    assert "$0.50" in out


def test_without_permission_the_packaged_rate_is_shown_and_the_exit_says_so(
    run: Run, api: PricingClient
) -> None:
    """Exit 4: a script that asked for live prices did not get them."""
    api.refusal = denied()
    code, out, err = run("ml.m5.xlarge", "--region", "eu-west-1", "--live", "--output", "json")
    assert code == 4
    assert {row["note"] for row in rows(out)} == {
        "packaged 2026-05-20: pricing:GetProducts is not permitted"
    }
    assert "pricing:GetProducts is not permitted." in err


def test_a_day_of_the_past_is_read_from_the_list_that_was_in_force(
    run: Run, api: PricingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is said which."""
    arn = "arn:aws:pricing:::price-list/aws/AmazonSageMaker/USD/20250128120000/us-east-1"
    lists = {"PriceLists": [{"PriceListArn": arn, "RegionCode": "us-east-1"}]}
    url = {"Url": "https://pricing.us-east-1.amazonaws.com/x.csv"}
    for name, answer in {"list_price_lists": lists, "get_price_list_file_url": url}.items():
        monkeypatch.setattr(api, name, lambda answer=answer, **_asked: answer, raising=False)
    content = (
        "SKU,TermType,EffectiveDate,Unit,PricePerUnit,Currency,Product Family,Location Type,"
        "usageType,Instance Name,Component\n"
        "S,OnDemand,2025-01-01,Hrs,37.6885,USD,ML Instance,AWS Region,USE1-Train:ml.p4d.24xlarge,"
        "ml.p4d.24xlarge,Training\n"
    )
    monkeypatch.setattr(live_prices, "open_https", lambda _url: io.BytesIO(content.encode()))
    code, out, err = run(
        "ml.p4d.24xlarge", "--region", "us-east-1", "--component", "training", "--live",
        "--on", "2025-03-01", "--output", "json",
    )  # fmt: skip
    assert code == 0
    [row] = rows(out)
    assert (row["usd_per_hour"], row["as_of"]) == (Decimal("37.6885"), "2025-03-01")
    assert "on 2025-03-01 the price list of 2025-01-28 was in force in us-east-1" in err


def test_coverage_counts_what_a_job_can_ask_for(run: Run) -> None:
    """The counts of the packaged table, by region and component."""
    code, out, err = run("coverage", "--output", "json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["types"]["Training"] == 225
    assert found["priced"]["us-east-1"]["Training"] == 114
    assert found["priced"]["eu-west-1"]["Training"] == 93
    assert len(found["priced"]) == 37


def test_coverage_is_a_table_for_people(run: Run) -> None:
    """With the date on stderr."""
    code, out, err = run("coverage")
    assert code == 0
    assert "114 of 225" in out
    assert "packaged prices of 2026-05-20" in err


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
    run: Run, api: PricingClient, tmp_path: Path
) -> None:
    """New types and regions too; what was superseded stays with its date."""
    prices = {"ml.m5.xlarge": "0.257", "ml.c5.xlarge": "0.25", "ml.m6i.large": "0.12"}
    api.products = [
        product(name, usd, component=component)
        for name, usd in prices.items()
        for component in Component
    ]
    api.products.append(product("ml.t3.large", "0.1", region="eu-west-2"))
    path = tmp_path / "table.json"
    code, out, err = run("refresh", "--to", str(path))
    assert (code, out) == (0, "")
    assert "2 of 2 known prices came back, 2 are new, 1 earlier figures" in err
    table = json.loads(path.read_text("utf-8"), parse_float=Decimal)
    assert table["usd_per_hour"]["eu-west-1"]["ml.m6i.large"] == Decimal("0.12")
    assert table["usd_per_hour"]["eu-west-2"] == {"ml.t3.large": {"Training": Decimal("0.1")}}
    assert table["history"][-1]["usd"] == Decimal("0.23")
    assert table["provenance"]["as_of"] == str(date(2026, 11, 20))
    storage = json.loads((tmp_path / "storage_prices.json").read_text("utf-8"))
    assert storage["regions"]["us-east-1"]["training"] == 0.14
    assert storage["regions"]["us-east-1"]["as_of"] == "2026-11-20"


@pytest.mark.usefixtures("small")
def test_refresh_writes_nothing_from_half_a_list(
    run: Run, api: PricingClient, tmp_path: Path
) -> None:
    """One of two rows is under 80 %: exit 5."""
    api.products = [product()]
    path = tmp_path / "table.json"
    code, _, err = run("refresh", "--to", str(path))
    assert code == 5
    assert "Only 1 of 2 known prices came back: nothing is written." in err
    assert not path.exists()


@pytest.mark.usefixtures("small")
def test_refresh_without_permission_ends_at_once(
    run: Run, api: PricingClient, tmp_path: Path
) -> None:
    """Exit 4; not a refusal for each region."""
    api.refusal = denied()
    code, _, err = run("refresh", "--to", str(tmp_path / "table.json"))
    assert code == 4
    assert err == "sageaudit: pricing:GetProducts is not permitted.\n"
    assert len(api.calls) == 1


@pytest.mark.parametrize("words", [[], ["--help"], ["show", "--help"], ["refresh", "--help"]])
def test_help_needs_no_account(run: Run, words: list[str]) -> None:
    """And says how it is used."""
    _, out, err = run(*words)
    assert "Usage: sageaudit prices" in out + err
