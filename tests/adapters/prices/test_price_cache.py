"""Rates in the history table: one item for each region and component."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.adapters.history.codec import epoch_s
from sageaudit.adapters.prices.price_list import CACHE_DAYS, PriceCache, StoredListing
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_list import (
    STORAGE,
    Entry,
    InvalidPrice,
    ListedRate,
    PriceListing,
)
from sageaudit.errors import Unavailable
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.price_lists import stored_listing

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A DynamoDB of moto's."""
    with dynamodb() as new_client:
        yield new_client


@pytest.fixture
def table(client: Any) -> str:
    """An empty table."""
    return new_table(client)


@pytest.fixture
def cache(client: Any, table: str) -> PriceCache:
    """The cache over it."""
    return PriceCache(client, table)


def test_what_was_written_is_read_back_exactly(cache: PriceCache) -> None:
    """Rates digit by digit, what is no rate with its reason."""
    entries: dict[str, Entry] = {
        "ml.m5.xlarge": ListedRate(Decimal("0.257"), date(2026, 5, 1), "EU-Train:ml.m5.xlarge"),
        "ml.p4d.24xlarge": ListedRate(Decimal("25.2512883"), None, "EU-Train:ml.p4d.24xlarge"),
        "ml.g5.xlarge": InvalidPrice("it is priced in CNY, not in USD"),
        STORAGE: ListedRate(Decimal("0.154"), None, "EU-Train:VolumeUsage.gp2"),
    }
    whole = PriceListing("eu-west-1", Component.TRAINING, entries)
    cache.write(StoredListing(whole, NOW))
    assert cache.read("eu-west-1", Component.TRAINING) == StoredListing(whole, NOW)


def test_regions_and_components_do_not_mix(cache: PriceCache) -> None:
    """Each has its own partition; nothing stored is no empty listing."""
    cache.write(stored_listing({"ml.m5.xlarge": "0.257"}, NOW))
    assert cache.read("eu-west-1", Component.PROCESSING) is None
    assert cache.read("eu-west-2", Component.TRAINING) is None


def test_a_type_that_is_listed_no_more_is_gone(cache: PriceCache) -> None:
    """A later read replaces the whole."""
    cache.write(stored_listing({"ml.m5.xlarge": "0.257", "ml.m4.xlarge": "0.3"}, NOW))
    later = stored_listing({"ml.m5.xlarge": "0.25"}, NOW + timedelta(days=2))
    cache.write(later)
    assert cache.read("eu-west-1", Component.TRAINING) == later


def test_items_expire(client: Any, table: str) -> None:
    """45 days after they were read."""
    PriceCache(client, table).write(stored_listing({"ml.m5.xlarge": "0.257"}, NOW))
    items = client.scan(TableName=table)["Items"]
    expected = str(epoch_s(NOW + timedelta(days=CACHE_DAYS)))
    assert [item["expires_at"]["N"] for item in items] == [expected]
    assert {item["pk"]["S"] for item in items} == {"PRICE#eu-west-1#Training"}


@pytest.mark.parametrize("usd", ["0", "-1"])
def test_a_stored_price_that_is_no_amount_is_no_read(cache: PriceCache, usd: str) -> None:
    """Whoever wrote it: nothing is priced 0, and the price list is read again."""
    cache.write(stored_listing({"ml.m5.xlarge": usd}, NOW))
    assert cache.read("eu-west-1", Component.TRAINING) is None


def test_a_table_that_is_not_there_is_one_of_our_errors(client: Any) -> None:
    """The book goes on without it."""
    with pytest.raises(Unavailable):
        PriceCache(client, "nowhere").read("eu-west-1", Component.TRAINING)
