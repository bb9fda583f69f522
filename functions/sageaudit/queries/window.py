"""The time that a question is about: from `since` (included) to `until` (not included), in UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from sageaudit.errors import BadUsage

_DAYS = re.compile(r"(\d{1,4})d\Z", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
_MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?\Z", re.ASCII
)
_ONE_DAY = timedelta(days=1)
_FIRST = datetime(2017, 11, 1, tzinfo=UTC)
"""The month in which SageMaker came: no job is older, so no list is read for earlier days."""
_BEHIND = timedelta(hours=1)
"""How far a computer's clock may be behind; AWS refuses one that is off by minutes."""
FORMS = "30d, 2026-11-01 or 2026-11-01T10:00Z"


@dataclass(frozen=True, slots=True)
class Window:
    """From `since` (included) to `until` (not included), both in UTC."""

    since: datetime
    until: datetime

    @property
    def first_day(self) -> date:
        """The day of the first moment."""
        return self.since.date()

    @property
    def last_day(self) -> date:
        """The day of the last moment."""
        return (self.until - timedelta(microseconds=1)).date()

    @property
    def whole_days(self) -> bool:
        """True where it begins and ends at midnight, as daily sums do."""
        return {self.since.time(), self.until.time()} == {time()}


def days_ago(text: str) -> int | None:
    """30 of `30d`; None for other texts."""
    match = _DAYS.match(text)
    return int(match[1]) if match else None


def day(text: str) -> date | None:
    """The day of `2026-11-01`; None for other texts."""
    try:
        return date.fromisoformat(text) if _DAY.match(text) else None
    except ValueError:
        return None


def window(since: str, until: str | None, now: datetime) -> Window:
    """Reads `30d`, `2026-11-01` or `2026-11-01T10:00Z`; a time without a zone is UTC.

    Days are whole: `30d` begins at midnight 30 days ago, and an `until` without a time includes its
    day. Without `until`, the window ends with the day, an hour from now: a clock that is a little
    behind hides no audit. Raises BadUsage for other texts, for the future, and where nothing is
    between both.
    """
    start = max(_start("--since", since, now), _FIRST)
    if until is None:
        return Window(start, _midnight(now + _BEHIND) + _ONE_DAY)
    end = _start("--until", until, now)
    if "T" not in until:
        end += _ONE_DAY
    if end <= _FIRST:
        raise BadUsage(f"--until {until} is before the first SageMaker job, of {_FIRST:%Y-%m}")
    if start >= end:
        raise BadUsage(f"--since {since} is not before --until {until}: give an earlier --since")
    return Window(start, end)


def _start(option: str, text: str, now: datetime) -> datetime:
    moment = _moment(text, now)
    if moment is None:
        raise BadUsage(f"{option} {text} is not a time: write {FORMS}")
    if moment > now:
        raise BadUsage(
            f"{option} {text} is in the future: it is {now:%Y-%m-%dT%H:%MZ} by this computer"
        )
    return moment


def _moment(text: str, now: datetime) -> datetime | None:
    if (days := days_ago(text)) is not None:
        ago = min(days, (now.date() - date.min).days)
        return _midnight(now) - ago * _ONE_DAY
    if not (_DAY.match(text) or _MOMENT.match(text)):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _midnight(now: datetime) -> datetime:
    return datetime.combine(now.astimezone(UTC).date(), time(), UTC)
