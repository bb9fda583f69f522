"""The meaning of --since and --until, and the texts that they refuse."""

from datetime import UTC, date, datetime

import pytest

from sageaudit.domain.sweep import Period
from sageaudit.errors import BadUsage
from sageaudit.queries.window import METRIC_RETENTION, parse_whole_days, parse_window

NOW = datetime(2026, 11, 20, 12, 34, 56, tzinfo=UTC)


def at(*parts: int) -> datetime:
    """Returns a moment in UTC."""
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("since", "begin"),
    [
        ("30d", at(2026, 10, 21)),
        ("0d", at(2026, 11, 20)),
        ("9999d", at(2017, 11, 1)),
        ("0001-01-01", at(2017, 11, 1)),
        ("2026-11-01", at(2026, 11, 1)),
        ("2026-11-01T10:00Z", at(2026, 11, 1, 10)),
        ("2026-11-01T10:00", at(2026, 11, 1, 10)),
        ("2026-11-01T10:00:30+02:00", at(2026, 11, 1, 8, 0, 30)),
    ],
)
def test_since_is_days_a_date_or_a_time(since: str, begin: datetime) -> None:
    """It is in UTC. Days begin at midnight, and no days before SageMaker are read."""
    assert parse_window(since, None, NOW).since == begin


@pytest.mark.parametrize(
    ("until", "end"),
    [
        ("2026-11-10", at(2026, 11, 11)),
        ("2026-11-10T10:00Z", at(2026, 11, 10, 10)),
        ("5d", at(2026, 11, 16)),
        ("2026-11-20", at(2026, 11, 21)),
    ],
)
def test_until_includes_its_day_and_not_its_moment(until: str, end: datetime) -> None:
    """A date is a whole day; a time is an end."""
    assert parse_window("30d", until, NOW).until == end


def test_without_until_a_clock_that_is_behind_hides_nothing() -> None:
    """The window ends with the day; in the last hour before midnight with the next day."""
    assert parse_window("1d", None, NOW).until == at(2026, 11, 21)
    assert parse_window("1d", None, at(2026, 11, 20, 23, 30)).until == at(2026, 11, 22)


@pytest.mark.parametrize(
    ("since", "begin", "end"),
    [
        ("yesterday", at(2026, 11, 19), at(2026, 11, 20)),
        ("last-week", at(2026, 11, 9), at(2026, 11, 16)),
        ("last-month", at(2026, 10, 1), at(2026, 11, 1)),
        ("2026-08", at(2026, 8, 1), at(2026, 9, 1)),
        ("2025-12", at(2025, 12, 1), at(2026, 1, 1)),
        ("2026-W34", at(2026, 8, 17), at(2026, 8, 24)),
        ("2026-W01", at(2025, 12, 29), at(2026, 1, 5)),
        ("2026-11", at(2026, 11, 1), at(2026, 11, 21)),
        ("2026-W47", at(2026, 11, 16), at(2026, 11, 21)),
    ],
)
def test_a_named_period_is_both_ends_if_it_is_over(
    since: str, begin: datetime, end: datetime
) -> None:
    """A current period is only the start; with `until`, each names an end."""
    result = parse_window(since, None, NOW)
    assert (result.since, result.until) == (begin, end)
    assert parse_window(since, None, NOW, with_today=False).until == min(end, at(2026, 11, 20))
    assert parse_window(since, "0d", NOW).until == at(2026, 11, 21)
    assert parse_window("2025-11-01", since, NOW).until >= end
    assert parse_whole_days(since, None, NOW) == result
    with pytest.raises(BadUsage, match="--since 2017-10 is before the first SageMaker job"):
        parse_window("2017-10", None, NOW)


def test_a_window_has_its_first_and_last_days() -> None:
    """Both are included."""
    days = parse_window("2026-11-01", "2026-11-10", NOW)
    assert (days.first_day, days.last_day) == (date(2026, 11, 1), date(2026, 11, 10))
    assert days.period(NOW.date()) == Period(date(2026, 11, 1), date(2026, 11, 10))
    tomorrow = parse_window("1d", None, at(2026, 11, 20, 23, 30))
    assert tomorrow.period(NOW.date()) == Period(date(2026, 11, 19), date(2026, 11, 20))


@pytest.mark.parametrize(
    "text",
    [
        *("", "30", "d", "-1d", "30 d", "1.5d", "99999d", "٣٠d", "2026", "2026-13", "2026-13-01"),
        *("2026-02-30", "20261101", "2026-W45-1", "2026-11-01 10:00", "2026-11-01T25:00Z"),
        *(
            "tomorrow",
            "2026-W54",
            "0000-01",
            "2026-W00",
            "last-year",
            "Yesterday",
            "\x1b[31m",
        ),
    ],
)
def test_an_invalid_time_is_one_sentence(text: str) -> None:
    """It shows how to write one."""
    with pytest.raises(
        BadUsage, match=r"is not a time: write 30d, yesterday, last-week, .*, or 2026-11-01T10:00Z"
    ):
        parse_window(text, None, NOW)


@pytest.mark.parametrize(
    "text", ["2026-11-21", "2027-01", "2026-W48", "2027-01-01", "2026-11-20T12:35Z"]
)
def test_the_future_is_refused(text: str) -> None:
    """The error has this computer's time, since its clock may be wrong."""
    with pytest.raises(BadUsage, match=r"is in the future: it is 2026-11-20T12:34Z"):
        parse_window(text, None, NOW)
    with pytest.raises(BadUsage, match=r"--until .* is in the future"):
        parse_window("30d", text, NOW)


@pytest.mark.parametrize(
    ("since", "until", "begin"),
    [
        ("7d", "2026-11-10", at(2026, 11, 3)),
        ("7d", "2026-10", at(2026, 10, 24)),
        ("7d", "2026-11-10T10:00Z", at(2026, 11, 3)),
        ("7d", "2026-11-20", at(2026, 11, 13)),
        ("0d", "2026-11-10", at(2026, 11, 10)),
        ("7d", "2d", at(2026, 11, 13)),
    ],
)
def test_days_are_counted_back_from_the_date_of_until(
    since: str, until: str, begin: datetime
) -> None:
    """Without a date they are counted from today, and so are two counts of days."""
    assert parse_window(since, until, NOW).since == begin


def test_whole_days_before_a_date_are_that_many_days() -> None:
    """Without a date, seven days end with yesterday."""
    arguments = parse_window("7d", "2026-11-10", NOW, with_today=False)
    assert (arguments.since, arguments.until) == (at(2026, 11, 4), at(2026, 11, 11))


def test_since_after_until_is_refused() -> None:
    """No time is between them."""
    with pytest.raises(BadUsage, match="--since 1d is not before --until 2d"):
        parse_window("1d", "2d", NOW)


def test_days_before_sagemaker_are_refused() -> None:
    """The error does not suggest to swap or to widen them."""
    with pytest.raises(BadUsage, match="--until 2015-01-01 is before the first SageMaker job"):
        parse_window("0001-01-01", "2015-01-01", NOW)


def test_whole_days_have_no_time_of_day() -> None:
    """A time is refused, not rounded; midnight is allowed."""
    assert parse_whole_days("30d", None, NOW) == parse_window("30d", None, NOW)
    assert parse_whole_days("2026-11-01T00:00Z", "2026-11-10", NOW).since == at(2026, 11, 1)
    for since, until in (("2026-11-01T10:00Z", None), ("30d", "2026-11-10T10:00Z")):
        with pytest.raises(BadUsage, match=r"has a time of day: give a whole day, 30d, yester"):
            parse_whole_days(since, until, NOW)


def test_days_whose_data_is_deleted_are_refused() -> None:
    """The error says how long the data is kept."""
    assert parse_whole_days(f"{METRIC_RETENTION.days}d", None, NOW, METRIC_RETENTION)
    message = f"is too long ago: {METRIC_RETENTION.data} are kept for {METRIC_RETENTION.days} days"
    with pytest.raises(BadUsage, match=message):
        parse_whole_days(f"{METRIC_RETENTION.days + 1}d", None, NOW, METRIC_RETENTION)
