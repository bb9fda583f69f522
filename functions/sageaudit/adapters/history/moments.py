"""Times in UTC as texts of fixed width, which sort by time, and as numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_utc(moment: datetime) -> datetime:
    """The moment in UTC; one without a zone is taken as UTC."""
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def moment_text(moment: datetime) -> str:
    """ISO 8601 in UTC, always 27 characters."""
    return as_utc(moment).isoformat(timespec="microseconds").replace("+00:00", "Z")


def read_moment(text: str) -> datetime:
    """A moment from ISO 8601."""
    return as_utc(datetime.fromisoformat(text))


def epoch_s(moment: datetime) -> int:
    """Whole seconds since 1970, as TTL attributes count."""
    return (as_utc(moment) - _EPOCH) // timedelta(seconds=1)


def epoch_ms(moment: datetime) -> int:
    """Whole milliseconds since 1970."""
    return (as_utc(moment) - _EPOCH) // timedelta(milliseconds=1)


def month_of(moment: datetime) -> str:
    """YYYY-MM in UTC."""
    return moment_text(moment)[:7]
