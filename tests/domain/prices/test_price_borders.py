"""Values at both sides of the thresholds for equal prices and for the age of a price list."""

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.prices.known_prices import DatedRate, rate_on
from tests.adapters.history.tables import dynamodb
from tests.adapters.prices.test_price_book import World
from tests.fakes.jobs import not_none
from tests.fakes.price_lists import denied_error


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Returns a DynamoDB client of moto."""
    with dynamodb() as made:
        yield made


@pytest.mark.parametrize(("older_usd", "is_ambiguous"), [("9.98", False), ("9.979", True)])
def test_prices_that_differ_by_two_thousandths_are_one(older_usd: str, is_ambiguous: bool) -> None:
    """AWS rounds one price differently. On a day between two other prices, the rate is
    ambiguous.
    """
    older = DatedRate.from_observation(Decimal(older_usd), "2025-01", "a table")
    newer = DatedRate.from_observation(Decimal(10), "2026-05-20", "a table")
    rate = not_none(rate_on([older, newer], date(2025, 6, 1)))
    assert (rate.price_age == "ambiguous") is is_ambiguous


@pytest.mark.parametrize(("after_h", "reads"), [(24 - 1e-3, 1), (24, 2)])
def test_a_price_list_is_read_again_after_a_day(client: Any, after_h: float, reads: int) -> None:
    """By the process that has it."""
    world = World(client)
    world.hourly()
    once = len(world.api.calls)
    world.now += timedelta(hours=after_h)
    world.hourly()
    assert len(world.api.calls) == reads * once


@pytest.mark.parametrize(("after_s", "reads"), [(599, 1), (600, 2)])
def test_a_price_list_that_fails_is_read_again_after_ten_minutes(
    client: Any, after_s: int, reads: int
) -> None:
    """Not for every job in between."""
    world = World(client)
    world.api.refusal = denied_error()
    world.hourly()
    world.now += timedelta(seconds=after_s)
    world.hourly()
    assert len(world.api.calls) == reads
