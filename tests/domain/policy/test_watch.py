"""`[watch]`: its defaults, and what it refuses."""

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.policy.scope import WatchSettings, parse_watch
from sageaudit.domain.policy.table_reader import TableReader
from sageaudit.errors import BadPolicy


def read(table: dict[str, Any]) -> WatchSettings | None:
    """Returns the settings of a table."""
    return parse_watch(TableReader(table, ("watch",)))


def test_it_is_on_with_its_defaults() -> None:
    """A policy without the table has the watch on; a policy can switch it off."""
    assert read({}) == WatchSettings()
    assert read({"on": False}) is None
    assert read({"usd_per_hour": 12.5, "idle_minutes": 60}) == WatchSettings(
        usd_per_hour=Decimal("12.5"), idle_minutes=60
    )


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"idle_minutes": 29}, "watch.idle_minutes is not from 30 to 720"),
        ({"idle_minutes": 45.5}, "watch.idle_minutes"),
        ({"gpus_unpriced": True}, "watch.gpus_unpriced is not a whole number of 0 or more"),
        ({"usd_per_hour": "5"}, "watch.usd_per_hour is not an amount in USD"),
        ({"longest_times": 0.5}, "watch.longest_times is below 1"),
        ({"on": "no"}, "watch.on is not a boolean"),
        ({"minutes": 45}, "unknown key watch.minutes"),
    ],
)
def test_what_is_wrong_is_named(table: dict[str, Any], reason: str) -> None:
    """The error has the key."""
    with pytest.raises(BadPolicy, match=reason):
        read(table)


@pytest.mark.parametrize(
    ("usd", "gpus", "watched"),
    [
        (Decimal(5), 8, False),
        (Decimal("5.01"), 0, True),
        (None, 4, True),
        (None, 3, False),
        (None, 0, False),
    ],
)
def test_which_jobs_are_watched(usd: Decimal | None, gpus: int, *, watched: bool) -> None:
    """Jobs above the rate; without a price, jobs with enough GPUs."""
    assert WatchSettings().should_watch(usd, gpus) is watched
