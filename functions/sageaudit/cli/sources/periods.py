"""Reads `--since` and `--until`: days in UTC."""

from __future__ import annotations

import re
from datetime import date, timedelta

from sageaudit.domain.job.listed import Period
from sageaudit.errors import BadUsage

_DAYS = re.compile(r"(\d{1,4})d\Z")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_MOST_DAYS = 455
"""CloudWatch keeps metrics no longer: an older job can be billed, but not judged."""


def period(since: str, until: str | None, today: date) -> Period:
    """The days that both options name. Raises BadUsage for what is no day, or in the future."""
    first = day("--since", since, today)
    last = today if until is None else day("--until", until, today)
    if first > last:
        raise BadUsage(f"--since {since} is after --until {until}: swap them")
    return Period(first, last)


def day(option: str, text: str, today: date) -> date:
    """The day in a text such as `30d` (that many days before today) or `2026-11-01`.

    Raises BadUsage, naming the option.
    """
    if match := _DAYS.match(text):
        days = int(match[1])
        if days > _MOST_DAYS:
            raise BadUsage(
                f"{option} {text} is too long ago: CloudWatch keeps metrics for {_MOST_DAYS} days"
            )
        return today - timedelta(days=days)
    try:
        named = date.fromisoformat(text) if _DATE.match(text) else None
    except ValueError:
        named = None
    if named is None:
        raise BadUsage(f"{option} {text} is neither days such as 30d nor a date such as {today}")
    if named > today:
        raise BadUsage(f"{option} {text} is in the future: today is {today} in UTC")
    if named < today - timedelta(days=_MOST_DAYS):
        raise BadUsage(
            f"{option} {text} is too long ago: CloudWatch keeps metrics for {_MOST_DAYS} days"
        )
    return named
