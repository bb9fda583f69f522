"""Parses `--since` and `--until` into a window of time in UTC, and divides it into periods."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

from msgspec import Struct

from sageaudit.domain.moments import parse_moment
from sageaudit.domain.sweep import Period
from sageaudit.errors import BadUsage

_DAYS_AGO = re.compile(r"(\d{1,4})d\Z", re.ASCII)
_MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?)?\Z", re.ASCII
)
_MONTH = re.compile(r"\d{4}-\d\d\Z", re.ASCII)
_WEEK = re.compile(r"\d{4}-W\d\d\Z", re.ASCII)
ONE_DAY = timedelta(days=1)
FIRST_MOMENT = datetime(2017, 11, 1, tzinfo=UTC)
"""The start of the month of SageMaker's first release. No earlier days are read."""
_PAST_YEAR = 2016
_FUTURE_YEAR = 2196
"""Leap years before SageMaker and far in the future, so that every date of a leap year exists."""
_MAX_CLOCK_LAG = timedelta(hours=1)
"""The most that a computer's clock may be behind. AWS refuses requests if it is off by minutes."""
DAY_FORMATS = "30d, yesterday, last-week, last-month, 2026-08, 2026-W34 or 2026-11-01"
TIME_FORMATS = f"{DAY_FORMATS}, or 2026-11-01T10:00Z"


class Retention(Struct, frozen=True):
    """How many days data is kept. `data` is its name, a plural."""

    data: str
    days: int


METRIC_RETENTION = Retention("CloudWatch metrics", 455)


class Window(Struct, frozen=True):
    """From `since` (included) to `until` (not included), both in UTC."""

    since: datetime
    until: datetime

    @property
    def first_day(self) -> date:
        """The first day of the window."""
        return self.since.date()

    @property
    def last_day(self) -> date:
        """The last day of the window."""
        return (self.until - timedelta(microseconds=1)).date()

    @property
    def text(self) -> str:
        """The window's first and last days, such as `2026-11-01 to 2026-11-30`.

        If the days are not whole, the text has times.
        """
        if {self.since.time(), self.until.time()} != {time()}:
            return f"{self.since:%Y-%m-%d %H:%M} to {self.until:%Y-%m-%d %H:%M}"
        return f"{self.first_day} to {self.last_day}"

    def period(self, today: date) -> Period:
        """Returns the days of the window, until today at the latest."""
        return Period(self.first_day, min(self.last_day, today))


def parse_window(
    since: str,
    until: str | None,
    now: datetime,
    *,
    with_today: bool = True,
    option_format: str = "--{} {}",
) -> Window:
    """Parses the texts of `--since` and `--until`, each in one of TIME_FORMATS.

    A time without a zone is UTC; a week begins on Monday. Days are whole: `30d` begins at midnight
    30 days ago, or 30 days before the date in `until`. A date in `until` includes the whole day.

    Without `until`, a finished week, month or `yesterday` in `since` is the whole window. Any other
    window ends with today, or without `with_today`, with yesterday. Today is the date in one hour,
    so that a slow clock hides no audit.

    Raises BadUsage for other texts, for the future, and for an empty window. `option_format` is how
    it names an option and its text.
    """
    since_option = option_format.format("since", since)
    until_option = option_format.format("until", until)
    start, end = _parse_time(since_option, since, now)
    if until is not None:
        _, end = _parse_time(until_option, until, now)
        if (match := _DAYS_AGO.match(since)) and not _DAYS_AGO.match(until):
            last_moment = end - timedelta(microseconds=1) if with_today else end
            start = _days_before(last_moment, int(match[1]))
    elif _parse_named_period(since, now) is None or end > _midnight(now):
        end = _midnight(now + _MAX_CLOCK_LAG) + ONE_DAY if with_today else _midnight(now)
    start = max(start, FIRST_MOMENT)
    if end <= FIRST_MOMENT:
        option = since_option if until is None else until_option
        raise BadUsage(f"{option} is before the first SageMaker job, of {FIRST_MOMENT:%Y-%m}")
    if start >= end:
        end_text = "the end of yesterday" if until is None else until_option
        raise BadUsage(f"{since_option} is not before {end_text}: give an earlier start")
    return Window(start, end)


def parse_whole_days(
    since: str, until: str | None, now: datetime, retention: Retention | None = None
) -> Window:
    """Parses a window of whole days, perhaps for data with a `retention`.

    Raises BadUsage also for a time of day, and for days whose data is deleted.
    """
    window = parse_window(since, until, now)
    for option, text, moment in (
        ("--since", since, window.since),
        ("--until", until, window.until),
    ):
        if moment.time() != time():
            raise BadUsage(f"{option} {text} has a time of day: give a whole day, {DAY_FORMATS}")
    if retention is not None and window.since < _midnight(now) - retention.days * ONE_DAY:
        raise BadUsage(
            f"--since {since} is too long ago: {retention.data} are kept for {retention.days} days"
        )
    return window


def _parse_time(option: str, text: str, now: datetime) -> tuple[datetime, datetime]:
    """Returns the start and the end of the time in a text; both are equal for a time of day.

    Raises BadUsage that begins with `option`, for an invalid or a future time.
    """
    period = _parse_named_period(text, now)
    if period is None and (moment := _parse_moment(text, now)) is not None:
        period = moment, moment + ("T" not in text) * ONE_DAY
    if period is None:
        raise BadUsage(f"{option} is not a time: write {TIME_FORMATS}")
    if period[0] > now:
        raise BadUsage(f"{option} is in the future: it is {now:%Y-%m-%dT%H:%MZ} by this computer")
    return period


def _parse_named_period(text: str, now: datetime) -> tuple[datetime, datetime] | None:
    """Returns the start and end of `yesterday`, a week or a month; None for other texts."""
    today = _midnight(now)
    monday, first = today - today.weekday() * ONE_DAY, today.replace(day=1)
    if text == "yesterday":
        return today - ONE_DAY, today
    if text == "last-week":
        return monday - 7 * ONE_DAY, monday
    if text == "last-month":
        return (first - ONE_DAY).replace(day=1), first
    try:
        if _MONTH.match(text):
            start = parse_moment(f"{_clamp_year(text)}-01")
            return start, (start + 31 * ONE_DAY).replace(day=1)
        if _WEEK.match(text):
            start = parse_moment(f"{_clamp_year(text)}-1")
            return start, start + 7 * ONE_DAY
    except ValueError:
        pass
    return None


def _parse_moment(text: str, now: datetime) -> datetime | None:
    if match := _DAYS_AGO.match(text):
        return _days_before(now, int(match[1]))
    if not _MOMENT.match(text):
        return None
    try:
        return parse_moment(_clamp_year(text))
    except ValueError:
        return None


def _clamp_year(text: str) -> str:
    """Returns a date with the nearest year that is before SageMaker's first or in the future."""
    if text.startswith("0000"):  # no year
        return text
    year = min(max(int(text[:4]), _PAST_YEAR), _FUTURE_YEAR)
    return f"{year}{text[4:]}"


def _days_before(moment: datetime, days: int) -> datetime:
    """Returns midnight this many days before a moment, but not before the earliest date."""
    midnight = _midnight(moment)
    return midnight - min(days, (midnight.date() - date.min).days) * ONE_DAY


def _midnight(now: datetime) -> datetime:
    return datetime.combine(now.astimezone(UTC).date(), time(), UTC)


class PeriodLength(enum.StrEnum):
    """The length of a period: a day, a week from Monday, or a month."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    def first_day(self, day: date) -> date:
        """Returns the first day of the period that contains `day`."""
        if self is PeriodLength.WEEK:
            return day - day.weekday() * ONE_DAY
        return day.replace(day=1) if self is PeriodLength.MONTH else day

    def next_period(self, first_day: date) -> date:
        """Returns the first day of the next period."""
        days = {PeriodLength.DAY: 1, PeriodLength.WEEK: 7, PeriodLength.MONTH: 32}[self]
        return self.first_day(first_day + days * ONE_DAY)

    def previous_period(self, first_day: date) -> date:
        """Returns the first day of the previous period."""
        return self.first_day(first_day - ONE_DAY)

    def label(self, first_day: date) -> str:
        """Returns the label of a period, such as `2026-11-20`, `2026-W47` or `2026-11`."""
        forms = {
            PeriodLength.DAY: "%Y-%m-%d",
            PeriodLength.WEEK: "%G-W%V",
            PeriodLength.MONTH: "%Y-%m",
        }
        return first_day.strftime(forms[self])

    def extend_to_periods(self, window: Window, today: date) -> Window:
        """Returns the window extended to whole periods, until today at the latest."""
        end = min(self.next_period(self.first_day(window.last_day)), today + ONE_DAY)
        return make_window(self.first_day(window.first_day), end)

    def period_starts(self, window: Window, today: date) -> list[date]:
        """Returns the first days of the periods in a window, until today at the latest."""
        first, first_days = self.first_day(window.first_day), []
        while first <= min(window.last_day, today):
            first_days.append(first)
            first = self.next_period(first)
        return first_days


def days_between(first: date, last_moment: date) -> Iterator[date]:
    """Yields each day from the first to the last."""
    return (first + number * ONE_DAY for number in range((last_moment - first).days + 1))


def make_window(first: date, end: date) -> Window:
    """Returns the window from the day `first` (included) to the day `end` (not included)."""
    return Window(datetime.combine(first, time(), UTC), datetime.combine(end, time(), UTC))
