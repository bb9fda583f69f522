"""Prices for a job: live, kept, or packaged with its date and the reason why."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.adapters.prices.price_list import MAX_LISTING_AGE, RETRY_AFTER, PriceCache, PriceList
from sageaudit.adapters.prices.sources import PricedMarkets, live_markets, offline_markets
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import Component, JobKind
from sageaudit.domain.job.ref import region_partition
from sageaudit.domain.prices.market import Market, Rate
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.jobs import not_none, ran
from tests.fakes.price_lists import PricingClient, denied_error, product, volume

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
M5, G4DN, M6I = "ml.m5.xlarge", "ml.g4dn.xlarge", "ml.m6i.large"
TRAINING, PROCESSING, _ = Component
LIVE = Rate(Decimal("0.26"), "2026-11-20", "Price List API")


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
                product(M5, "0.261", component=PROCESSING),
                volume("0.155", component=TRAINING),
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

    def unknown(self, name: str) -> bool:
        """Whether nobody knows the type's rate."""
        return self.market().prices.hourly_rate("eu-west-1", TRAINING, name) is None

    def hourly(self, name: str = M5, **changes: Any) -> Rate:
        """The rate of a type for such a job."""
        priced_job = job(**changes)
        prices = self.markets.market(priced_job, self.now).prices
        return not_none(
            prices.hourly_rate(priced_job.region or "", priced_job.kind.spec.component, name)
        )


def job(at: datetime = NOW, region: str | None = "eu-west-1", **changes: Any) -> Job:
    """An hour of ml.m5.xlarge."""
    return ran(3600, M5, at=at, region=region, **changes)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A DynamoDB of moto's."""
    with dynamodb() as new_client:
        yield new_client


@pytest.fixture
def world(client: Any) -> World:
    """A new table and a new process."""
    return World(client)


def test_rates_are_live_or_packaged_with_the_reason(world: World) -> None:
    """All types of a region and component cost one read: instances and volumes."""
    absent = "not in the price list of 2026-11-20"
    rates = {
        # m6i has no packaged price; 0.822 of g4dn is of a bill of 2023, and the list is newer
        M5: ("0.26", None),
        M6I: ("0.12", None),
        G4DN: ("0.83", None),
        # of several none is chosen, and a negative one is no price
        "ml.c5.xlarge": ("0.23", "the price list has several rates: $0.2 and $0.3"),
        "ml.g5.xlarge": (
            "1.57",
            "XX1-Train:ml.g5.xlarge has a price that is not an amount: -1",
        ),
        "ml.m5.large": ("0.128", absent),
    }
    for name, (usd, why) in rates.items():
        rate = world.hourly(name)
        assert (str(rate.usd), rate.as_of) == (usd, "2026-05-20" if why else "2026-11-20")
        assert rate.note == (why and f"packaged 2026-05-20: {why}")
    assert len(world.api.calls) == 2
    prices = world.market().prices
    assert world.hourly() == LIVE
    assert prices.usage_type("eu-west-1", TRAINING, M5) == "XX1-Train:ml.m5.xlarge"
    assert prices.version == "price list 2026-11-20"
    assert not_none(prices.storage_rate("eu-west-1", TRAINING)).usd == Decimal("0.155")
    elsewhere = not_none(prices.hourly_rate("us-east-1", TRAINING, M5))
    assert elsewhere.note == "packaged 2026-05-20: the price list was not read for it"
    assert bill(job(), world.market()).compute_usd == Decimal("0.26")
    # each component has its own storage: Processing's is not listed here
    storage_rate = not_none(
        world.market(kind=JobKind.PROCESSING).prices.storage_rate("eu-west-1", PROCESSING)
    )
    assert (storage_rate.usd, absent in (storage_rate.note or "")) == (Decimal("0.11"), True)


def test_another_process_reads_the_table_and_not_the_api_for_a_day(world: World) -> None:
    """Then the list is read again, and rates that were kept end with the read they come from."""
    world.hourly()
    world.markets = world.start()
    world.now += MAX_LISTING_AGE - timedelta(seconds=1)
    assert world.hourly() == LIVE
    assert len(world.api.calls) == 2
    world.now += timedelta(seconds=1)
    world.api.products[0] = product(M5, "0.27")
    rate = world.hourly(at=world.now)
    assert (rate.usd, rate.as_of) == (Decimal("0.27"), "2026-11-21")


def test_without_permission_the_audit_goes_on_with_the_packaged_rate(world: World) -> None:
    """What is not packaged is unknown. A failure is remembered for some minutes."""
    world.api.refusal = denied_error()
    for _ in range(5):
        rate = world.hourly()
    assert (rate.usd, rate.as_of) == (Decimal("0.257"), "2026-05-20")
    assert rate.note == "packaged 2026-05-20: pricing:GetProducts is not permitted"
    assert world.market().prices.version == "packaged 2026-05-20"
    assert world.unknown(M6I)
    assert len(world.api.calls) == 1
    world.now += RETRY_AFTER
    world.api.refusal = None
    assert world.hourly().usd == Decimal("0.26")


def test_a_stale_listing_serves_with_its_date_while_the_api_is_broken(world: World) -> None:
    """It is newer than the packaged table."""
    world.hourly()
    world.markets = world.start()
    world.now += timedelta(days=3)
    world.api.refusal = denied_error()
    rate = world.hourly(at=world.now)
    assert (rate.usd, rate.as_of) == (Decimal("0.26"), "2026-11-20")
    assert rate.note == "pricing:GetProducts is not permitted"


@pytest.mark.parametrize("table", ["nowhere", None])
def test_without_a_table_the_price_list_itself_answers(world: World, table: str | None) -> None:
    """From memory the second time, as for the command line."""
    world.table = table or world.table
    world.markets = world.start(cached=table is not None)
    assert world.hourly() == world.hourly() == LIVE
    assert len(world.api.calls) == 2


def test_regions_and_components_are_asked_for_on_their_own(world: World) -> None:
    """A region that fails does not hold up another; a job without one asks nobody."""
    assert bill(job(region=None), world.market(region=None)).total_usd is None
    assert not world.api.calls
    assert world.hourly(kind=JobKind.PROCESSING).usd == Decimal("0.261")
    other = world.hourly(region="eu-west-2")
    assert other.note == "packaged 2026-05-20: The price list has no Training prices of eu-west-2"


def test_a_job_between_the_packaged_and_the_listed_price_is_ambiguous(world: World) -> None:
    """The list holds from May; of April only December 2023's price is known."""
    rate = world.hourly(at=datetime(2026, 4, 1, tzinfo=UTC))
    assert (rate.usd, rate.other_usd) == (Decimal("0.26"), Decimal("0.257"))


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
    prices = offline_markets().market(job(at, region="us-east-1"), NOW).prices
    rate = not_none(prices.hourly_rate("us-east-1", TRAINING, M5))
    assert rate.usd == Decimal(usd)
    assert rate.other_usd == (None if other_usd is None else Decimal(other_usd))


def test_jobs_of_one_day_share_what_was_worked_out(world: World) -> None:
    """Another day or component has its own book."""
    book = world.market().prices
    assert world.market().prices is book
    assert world.market(kind=JobKind.PROCESSING).prices is not book
    assert world.market(at=NOW - timedelta(days=1)).prices is not book


@pytest.mark.parametrize(
    ("region", "price", "reason"),
    [
        ("us-gov-west-1", "0.29", "aws-us-gov has no Price List endpoint"),
        ("us-gov-west-1", None, "aws-us-gov has no Price List endpoint"),
        (
            "cn-north-1",
            None,
            (
                "The price list has no usable Training prices of cn-north-1:"
                " XX1-Train:ml.m5.xlarge is priced in CNY, not in USD; the packaged prices have no"
                " region of aws-cn"
            ),
        ),
        (
            "eusc-de-east-1",
            None,
            (
                "The price list has no usable Training prices of eusc-de-east-1:"
                " XX1-Train:ml.m5.xlarge is priced in EUR, not in USD; the packaged prices have no"
                " region of aws-eusc"
            ),
        ),
    ],
)
def test_another_partition_gets_no_commercial_price(
    region: str, price: str | None, reason: str
) -> None:
    """Its own packaged price, or an unknown bill that says why. Its credentials ask only its own
    endpoint.
    """
    name = M5 if price or not region.startswith("us-gov") else "ml.p5.48xlarge"
    listed = product(name, region=region)
    [term] = listed["terms"]["OnDemand"].values()
    [dimension] = term["priceDimensions"].values()
    dimension["pricePerUnit"] = {"CNY" if region.startswith("cn-") else "EUR": "2.1"}
    endpoints: list[str] = []
    api = PricingClient([listed])

    def client_of(endpoint: str) -> PricingClient:
        endpoints.append(endpoint)
        return api

    run = ran(3600, name, at=NOW, region=region, volume_gb=0)
    market = live_markets(PriceList(client_of), None, lambda: NOW).market(run, NOW)
    billed = bill(run, market)
    assert {region_partition(endpoint) for endpoint in endpoints} <= {region_partition(region)}
    assert billed.total_usd == (None if price is None else Decimal(price))
    if price is None:
        assert f"no Training price known for {name} in {region}: {reason}" in billed.missing
    else:
        assert not_none(billed.lines[0].rate).note == f"packaged 2026-05-20: {reason}"


@pytest.mark.parametrize("region", ["cn-northwest-1", "eusc-de-east-1", "us-iso-east-1"])
def test_a_recording_of_a_partition_without_packaged_prices_has_an_unknown_bill(
    region: str,
) -> None:
    """Whoever reads it, with whatever credentials: no commercial price is taken instead."""
    run = ran(3600, M5, at=NOW, region=region)
    reason = f"the packaged prices have no region of {region_partition(region)}"
    billed = bill(run, offline_markets().market(run, NOW))
    assert billed.total_usd is None
    assert billed.missing == (
        f"no Training price known for {M5} in {region}: {reason}",
        f"storage: no ML storage price for {region} (Training): {reason}",
    )
