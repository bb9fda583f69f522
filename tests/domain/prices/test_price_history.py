"""Which known price is valid on a day."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from sageaudit.domain.prices.known_prices import DatedRate, pricing_day, rate_on
from tests.fakes.jobs import not_none, ran

OLD = DatedRate.from_observation(Decimal("37.688"), "2025-01", "a table of January 2025")
NEW = DatedRate.from_observation(Decimal("25.2512883"), "2026-05-20", "the packaged table")
ROUNDED = DatedRate.from_observation(Decimal("25.251"), "2026-11-20", "Price List API")
SUSPECT = DatedRate.from_observation(Decimal(1), "2026-05-20", "a table", "suspect")
BOTH = [OLD, NEW]
BETWEEN = (
    "ambiguous: {} lies between two known prices, $37.688 (2025-01) and $25.251288 (2026-05-20)"
)


@pytest.mark.parametrize(
    ("rates", "day", "usd", "other_usd", "note"),
    [
        pytest.param(
            BOTH,
            "2024-12-31",
            "37.688",
            None,
            "the earliest known price, of 2025-01, for 2024-12-31",
            id="before the first price",
        ),
        pytest.param(BOTH, "2025-01-01", "37.688", None, None, id="on the day of the first price"),
        pytest.param(
            BOTH, "2025-01-31", "37.688", None, None, id="in the month of the first price"
        ),
        pytest.param(
            BOTH,
            "2025-02-01",
            "25.2512883",
            "37.688",
            BETWEEN.format("2025-02-01"),
            id="between two prices, on the first day",
        ),
        pytest.param(
            BOTH,
            "2026-05-19",
            "25.2512883",
            "37.688",
            BETWEEN.format("2026-05-19"),
            id="between two prices, on the last day",
        ),
        pytest.param(
            BOTH, "2026-05-20", "25.2512883", None, None, id="on the day of the newer price"
        ),
        pytest.param(BOTH, "2026-11-20", "25.2512883", None, None, id="after the newer price"),
        pytest.param(BOTH, None, "25.2512883", None, None, id="without a day"),
        pytest.param(
            [NEW, ROUNDED],
            "2026-07-01",
            "25.251",
            None,
            None,
            id="two roundings of one price are not a change",
        ),
        pytest.param(
            [SUSPECT],
            "2026-01-01",
            "1",
            None,
            "the earliest known price, of 2026-05-20, for 2026-01-01 · suspect",
            id="a doubt about a price is added to the note of the day",
        ),
    ],
)
def test_a_day_has_the_price_that_was_seen_then(
    rates: list[DatedRate], day: str | None, usd: str, other_usd: str | None, note: str | None
) -> None:
    """Of two different prices the newer one is used and the other one shown, in any order."""
    for order in (rates, rates[::-1]):
        rate = not_none(rate_on(order, None if day is None else date.fromisoformat(day)))
        assert (str(rate.usd), rate.note) == (usd, note)
        assert rate.other_usd == (None if other_usd is None else Decimal(other_usd))


def test_nothing_known_is_unknown() -> None:
    """Not 0."""
    assert rate_on([], date(2026, 1, 1)) is None


@pytest.mark.parametrize(
    ("when", "first", "last"),
    [
        ("2026-05-20", "2026-05-20", "2026-05-20"),
        ("2025-01", "2025-01-01", "2025-01-31"),
        ("2024-02", "2024-02-01", "2024-02-29"),
        ("2021/2022", "2021-01-01", "2022-12-31"),
        ("2023", "2023-01-01", "2023-12-31"),
    ],
)
def test_a_price_may_be_seen_on_a_day_in_a_month_or_for_years(
    when: str, first: str, last: str
) -> None:
    """It is valid on each of these days."""
    seen = DatedRate.from_observation(Decimal(1), when, "x")
    assert (seen.first_day.isoformat(), seen.last_day.isoformat()) == (first, last)


@pytest.mark.parametrize("when", ["", "May 2026", "2026-13", "2026-05-20T10:00", "26"])
def test_an_invalid_date_is_an_error(when: str) -> None:
    """The author of the data file made it."""
    with pytest.raises(ValueError, match=r"."):
        DatedRate.from_observation(Decimal(1), when, "x")


def test_a_job_is_priced_on_the_day_it_started() -> None:
    """In UTC."""
    east = datetime(2026, 3, 2, 3, tzinfo=timezone(timedelta(hours=9)))
    assert pricing_day(ran(60, at=east), datetime.now(UTC)) == date(2026, 3, 1)
