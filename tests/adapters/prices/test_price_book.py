"""Prices for a job: live, kept, or packaged with its date and the reason why."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.adapters.prices.listed_prices import ASK_AGAIN_AFTER, FRESH_FOR
from sageaudit.adapters.prices.price_book import PricedMarkets
from sageaudit.adapters.prices.price_cache import PriceCache
from sageaudit.adapters.prices.price_list import PriceList
from sageaudit.adapters.prices.sources import live_markets, offline_markets
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import Component, JobKind
from sageaudit.domain.prices.market import Market, Rate
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.jobs import ran
from tests.fakes.price_lists import PricingClient, denied, product, volume

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
M5, G4DN, M6I = "ml.m5.xlarge", "ml.g4dn.xlarge", "ml.m6i.large"


class World:
    """A Price List API, a clock and a table, and the markets over them."""

    def __init__(self, table_client: Any) -> None:
        self.api = PricingClient(
            [
                product(M5, "0.26"),
                product(G4DN, "0.83"),
                product(M6I, "0.12"),
                product("ml.c5.xlarge", "0.2"),
                product("ml.c5.xlarge", "0.3"),
                product("ml.g5.xlarge", "-1"),
                product(M5, "0.261", component=Component.PROCESSING),
                volume("0.155", component=Component.TRAINING),
            ]
        )
        self.now = NOW
        self.dynamodb = table_client
        self.table = new_table(table_client)
        self.markets = self.start()

    def start(self, *, cached: bool = True) -> PricedMarkets:
        """Another process over the same table."""
        cache = PriceCache(self.dynamodb, self.table) if cached else None
        price_list = PriceList(lambda _endpoint: self.api)
        return live_markets(price_list, cache, lambda: self.now)

    def market(self, **changes: Any) -> Market:
        """Of a job that started today in eu-west-1."""
        return self.markets.market(job(**changes), self.now)

    def hourly(self, name: str = M5, **changes: Any) -> Rate | None:
        """The rate of a type for such a job."""
        asked = job(**changes)
        prices = self.markets.market(asked, self.now).prices
        return prices.hourly(asked.region or "", asked.kind.row.component, name)


def job(at: datetime = NOW, region: str | None = "eu-west-1", **changes: Any) -> Job:
    """An hour of ml.m5.xlarge."""
    return ran(3600, M5, at=at, region=region, **changes)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A DynamoDB of moto's."""
    with dynamodb() as made:
        yield made


@pytest.fixture
def world(client: Any) -> World:
    """A new table and a new process."""
    return World(client)


def test_a_live_rate_comes_with_its_date_and_source(world: World) -> None:
    """And with the product's own usage type."""
    prices = world.market().prices
    rate = prices.hourly("eu-west-1", Component.TRAINING, M5)
    assert rate == Rate(Decimal("0.26"), "2026-11-20", "Price List API")
    assert prices.usage_type("eu-west-1", Component.TRAINING, M5) == "XX1-Train:ml.m5.xlarge"
    assert prices.version == "price list 2026-11-20"


def test_a_type_without_a_packaged_price_has_a_live_one(world: World) -> None:
    """m6i is absent from the packaged table in most regions."""
    assert packaged.prices().hourly("eu-west-1", Component.TRAINING, M6I) is None
    rate = world.hourly(M6I)
    assert rate is not None
    assert rate.usd == Decimal("0.12")


def test_a_packaged_exception_does_not_override_a_live_rate(world: World) -> None:
    """0.822 is of a bill of 2023; the list says 0.83 today."""
    rate = world.hourly(G4DN)
    assert rate is not None
    assert (rate.usd, rate.note) == (Decimal("0.83"), None)


def test_storage_is_live_too(world: World) -> None:
    """Each component's own; Processing's is not listed here, so it is the packaged one."""
    prices = world.market().prices
    live = prices.storage("eu-west-1", Component.TRAINING)
    kept = world.market(kind=JobKind.PROCESSING).prices.storage("eu-west-1", Component.PROCESSING)
    assert live is not None
    assert kept is not None
    assert (live.usd, kept.usd) == (Decimal("0.155"), Decimal("0.11"))
    assert kept.note is not None
    assert "not in the price list of 2026-11-20" in kept.note


def test_all_types_of_a_region_and_component_cost_one_read(world: World) -> None:
    """Two requests: instances and volumes."""
    for name in (M5, G4DN, M6I):
        world.hourly(name)
    assert len(world.api.calls) == 2


def test_another_process_reads_the_table_and_not_the_api(world: World) -> None:
    """For a day."""
    world.hourly()
    world.markets = world.start()
    world.now += FRESH_FOR - timedelta(seconds=1)
    rate = world.hourly()
    assert rate is not None
    assert (rate.usd, rate.as_of) == (Decimal("0.26"), "2026-11-20")
    assert len(world.api.calls) == 2


def test_after_a_day_the_list_is_read_again(world: World) -> None:
    """In the same process and in others."""
    world.hourly()
    world.now += FRESH_FOR
    world.api.products[0] = product(M5, "0.27")
    rate = world.hourly()
    assert rate is not None
    assert (rate.usd, rate.as_of) == (Decimal("0.27"), "2026-11-21")


def test_without_permission_the_packaged_rate_says_so(world: World) -> None:
    """The audit goes on."""
    world.api.refusal = denied()
    rate = world.hourly()
    assert rate is not None
    assert (rate.usd, rate.as_of) == (Decimal("0.257"), "2026-05-20")
    assert rate.note == "packaged 2026-05-20: pricing:GetProducts is not permitted"
    assert world.market().prices.version == "packaged 2026-05-20"


def test_without_permission_what_is_not_packaged_is_unknown(world: World) -> None:
    """Never 0."""
    world.api.refusal = denied()
    assert world.hourly(M6I) is None


def test_a_failure_is_remembered_for_some_minutes(world: World) -> None:
    """A broken API is not asked for every job; then it is asked again."""
    world.api.refusal = denied()
    for _ in range(5):
        world.hourly()
    assert len(world.api.calls) == 1
    world.now += ASK_AGAIN_AFTER
    world.api.refusal = None
    rate = world.hourly()
    assert rate is not None
    assert rate.usd == Decimal("0.26")


def test_a_stale_listing_serves_with_its_date_while_the_api_is_broken(world: World) -> None:
    """It is newer than the packaged table."""
    world.hourly()
    world.markets = world.start()
    world.now += timedelta(days=3)
    world.api.refusal = denied()
    rate = world.hourly(at=world.now)
    assert rate is not None
    assert (rate.usd, rate.as_of) == (Decimal("0.26"), "2026-11-20")
    assert rate.note == "pricing:GetProducts is not permitted"


def test_an_ambiguous_rate_falls_back_and_names_both(world: World) -> None:
    """Neither is chosen."""
    rate = world.hourly("ml.c5.xlarge")
    assert rate is not None
    assert rate.as_of == "2026-05-20"
    assert rate.note == "packaged 2026-05-20: the price list has several rates: $0.2 and $0.3"


def test_a_refused_rate_falls_back_and_says_why(world: World) -> None:
    """A negative price is no price."""
    rate = world.hourly("ml.g5.xlarge")
    assert rate is not None
    assert rate.note is not None
    assert "not an amount: -1" in rate.note


def test_a_type_that_is_not_listed_falls_back(world: World) -> None:
    """Dated, with the reason."""
    rate = world.hourly("ml.m5.large")
    assert rate is not None
    assert rate.note == "packaged 2026-05-20: not in the price list of 2026-11-20"


def test_a_table_that_does_not_answer_costs_nothing_but_time(client: Any) -> None:
    """The price list itself answers."""
    world = World(client)
    world.table = "nowhere"
    world.markets = world.start()
    rate = world.hourly()
    assert rate is not None
    assert rate.usd == Decimal("0.26")


def test_a_market_without_a_table_keeps_rates_in_memory(world: World) -> None:
    """As the command line does."""
    world.markets = world.start(cached=False)
    world.hourly()
    world.hourly()
    assert len(world.api.calls) == 2


def test_regions_and_components_are_asked_for_on_their_own(world: World) -> None:
    """A region that fails does not hold up another."""
    rate = world.hourly(kind=JobKind.PROCESSING)
    other = world.hourly(region="eu-west-2")
    assert rate is not None
    assert other is not None
    assert rate.usd == Decimal("0.261")
    assert other.note == ("packaged 2026-05-20: The price list has no Training prices of eu-west-2")


def test_a_book_answers_for_another_region_from_the_package(world: World) -> None:
    """A rule may compare; the reason is given."""
    rate = world.market().prices.hourly("us-east-1", Component.TRAINING, M5)
    assert rate is not None
    assert rate.note == "packaged 2026-05-20: the price list was not read for it"


def test_a_job_without_a_region_asks_nobody(world: World) -> None:
    """Its bill is unknown."""
    market = world.markets.market(job(region=None), NOW)
    assert bill(job(region=None), market).total_usd is None
    assert not world.api.calls


def test_a_job_between_the_packaged_and_the_listed_price_is_ambiguous(world: World) -> None:
    """The list holds from May; of April only December 2023's price is known."""
    rate = world.hourly(at=datetime(2026, 4, 1, tzinfo=UTC))
    assert rate is not None
    assert (rate.usd, rate.other_usd) == (Decimal("0.26"), Decimal("0.257"))


def test_a_live_rate_reaches_the_bill(world: World) -> None:
    """An hour is the rate."""
    billed = bill(job(), world.market())
    assert billed.compute_usd == Decimal("0.26")


@pytest.mark.parametrize(
    ("at", "usd", "other_usd"),
    [
        (datetime(2020, 5, 1, tzinfo=UTC), "0.269", None),
        (datetime(2022, 5, 1, tzinfo=UTC), "0.23", "0.269"),
        (datetime(2024, 5, 1, tzinfo=UTC), "0.23", "0.269"),
        (datetime(2026, 5, 20, tzinfo=UTC), "0.23", None),
        (datetime(2026, 11, 1, tzinfo=UTC), "0.23", None),
    ],
)
def test_packaged_markets_price_a_job_on_its_own_day(
    at: datetime, usd: str, other_usd: str | None
) -> None:
    """ml.m5.xlarge in us-east-1 was seen at 0.269 some time in 2021 or 2022: both are shown."""
    asked = job(at, region="us-east-1")
    rate = offline_markets().market(asked, NOW).prices.hourly("us-east-1", Component.TRAINING, M5)
    assert rate is not None
    assert rate.usd == Decimal(usd)
    assert rate.other_usd == (None if other_usd is None else Decimal(other_usd))


def test_a_job_that_has_not_started_is_priced_today() -> None:
    """By `now` where nothing else is known."""
    asked = ran(3600, M5, at=NOW, region="us-east-1")
    market = offline_markets().market(asked, datetime(2030, 1, 1, tzinfo=UTC))
    assert market.prices.version == "packaged 2026-05-20"


def test_jobs_of_one_day_share_what_was_worked_out(world: World) -> None:
    """Another day or component has its own book."""
    book = world.market().prices
    assert world.market().prices is book
    assert world.market(kind=JobKind.PROCESSING).prices is not book
    assert world.market(at=NOW - timedelta(days=1)).prices is not book


def test_a_changed_rate_is_seen_at_the_next_read_of_the_list(world: World) -> None:
    """Kept rates end with the read that they come from."""
    assert world.hourly() == Rate(Decimal("0.26"), "2026-11-20", "Price List API")
    world.now += FRESH_FOR
    world.api.products = [product(M5, "0.25")]
    rate = world.market(at=world.now).prices.hourly("eu-west-1", Component.TRAINING, M5)
    assert rate == Rate(Decimal("0.25"), "2026-11-21", "Price List API")
