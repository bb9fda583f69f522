"""Parses days and moments from files, AWS and histories, within years that are safe to add to.

Every period that is added or subtracted, such as a retention, is shorter than the distance from
these years to the first and last date that Python knows.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Self, TypeVar

_YEARS = range(1970, 2200)
YEARS_TEXT = f"{_YEARS[0]} to {_YEARS[-1]}"
FIRST_DAY = date(_YEARS[0], 1, 1)
LAST_DAY = date(_YEARS[-1], 12, 31)
DateT = TypeVar("DateT", date, datetime)


def has_valid_year(moment: date) -> bool:
    """Returns whether the year of a day or moment is one of those that are accepted."""
    return moment.year in _YEARS


def parse_day(text: str) -> date:
    """Parses a day in ISO 8601. Raises ValueError, also for a day outside of YEARS_TEXT."""
    return _check_year(date.fromisoformat(text))


def parse_moment(text: str) -> datetime:
    """Parses a moment in ISO 8601 to UTC; a moment without a zone is taken as UTC.

    Raises ValueError, also for a moment outside of YEARS_TEXT.
    """
    return as_utc(_check_year(datetime.fromisoformat(text)))


def as_utc(moment: datetime) -> datetime:
    """Returns the moment in UTC; a moment without a zone is taken as UTC."""
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _check_year(moment: DateT) -> DateT:
    if not has_valid_year(moment):
        raise ValueError(f"{moment} is not in the years {YEARS_TEXT}")
    return moment


class Day(str):
    """The text of a day that `parse_day` accepts, as documents have it. Raises ValueError."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:  # noqa: D102 - the class docstring speaks for it
        parse_day(text)
        return super().__new__(cls, text)


class Moment(str):
    """The text of a moment that `parse_moment` accepts, as documents have it. Raises ValueError."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:  # noqa: D102 - the class docstring speaks for it
        parse_moment(text)
        return super().__new__(cls, text)
