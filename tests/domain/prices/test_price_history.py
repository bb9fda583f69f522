"""Which known price held on a day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from sageaudit.domain.prices.known_prices import KnownRate, day_of, rate_on
from tests.fakes.jobs import ran

OLD = KnownRate.seen(Decimal("37.688"), "2025-01", "a table of January 2025")
NEW = KnownRate.seen(Decimal("25.2512883"), "2026-05-20", "the packaged table")
BOTH = [OLD, NEW]


@pytest.mark.parametrize(
    ("day", "usd", "other_usd"),
    [
        ("2024-12-31", "37.688", None),
        ("2025-01-01", "37.688", None),
        ("2025-01-31", "37.688", None),
        ("2025-02-01", "25.2512883", "37.688"),
        ("2026-05-19", "25.2512883", "37.688"),
        ("2026-05-20", "25.2512883", None),
        ("2026-11-20", "25.2512883", None),
    ],
)
@pytest.mark.parametrize("known", [BOTH, BOTH[::-1]])
def test_a_day_has_the_price_that_was_seen_then(
    known: list[KnownRate], day: str, usd: str, other_usd: str | None
) -> None:
    """Between two that differ the newer is taken and the other shown."""
    rate = rate_on(known, date.fromisoformat(day))
    assert rate is not None
    assert rate.usd == Decimal(usd)
    assert rate.other_usd == (None if other_usd is None else Decimal(other_usd))


def test_an_ambiguous_day_shows_both_figures() -> None:
    """With the dates on which they were seen."""
    rate = rate_on(BOTH, date(2025, 6, 15))
    assert rate is not None
    assert rate.note == (
        "ambiguous: 2025-06-15 lies between two known prices,"
        " $37.688 (2025-01) and $25.2512883 (2026-05-20)"
    )


def test_a_day_before_all_that_is_known_says_so() -> None:
    """The earliest price stands in."""
    rate = rate_on(BOTH, date(2023, 4, 1))
    assert rate is not None
    assert rate.note == "the earliest known price, of 2025-01, for 2023-04-01"


def test_without_a_day_the_newest_price_answers() -> None:
    """As of its own date."""
    rate = rate_on(BOTH, None)
    assert rate is not None
    assert (rate.usd, rate.as_of, rate.note) == (NEW.rate.usd, "2026-05-20", None)


def test_nothing_known_is_unknown() -> None:
    """Not 0."""
    assert rate_on([], date(2026, 1, 1)) is None


def test_two_roundings_of_one_price_are_one_price() -> None:
    """25.251 and 25.2512883 are no change."""
    rounded = KnownRate.seen(Decimal("25.251"), "2026-11-20", "Price List API")
    rate = rate_on([NEW, rounded], date(2026, 7, 1))
    assert rate is not None
    assert (rate.usd, rate.other_usd, rate.note) == (rounded.rate.usd, None, None)


def test_what_speaks_against_a_price_is_said_too() -> None:
    """Beside the note of the day."""
    disputed = KnownRate.seen(Decimal(1), "2026-05-20", "a table", "suspect")
    rate = rate_on([disputed], date(2026, 1, 1))
    assert rate is not None
    assert rate.note is not None
    assert rate.note.endswith(" · suspect")


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
    """It held on each of those days."""
    known = KnownRate.seen(Decimal(1), when, "x")
    assert (known.first.isoformat(), known.last.isoformat()) == (first, last)


@pytest.mark.parametrize("when", ["", "May 2026", "2026-13", "2026-05-20T10:00", "26"])
def test_a_date_that_is_none_is_an_error(when: str) -> None:
    """Of the data file's author."""
    with pytest.raises(ValueError, match=r"."):
        KnownRate.seen(Decimal(1), when, "x")


def test_a_job_is_priced_on_the_day_it_started() -> None:
    """In UTC."""
    east = timezone(timedelta(hours=9))
    assert day_of(ran(60, at=datetime(2026, 3, 2, 3, tzinfo=east)), datetime.now(UTC)) == date(
        2026, 3, 1
    )
