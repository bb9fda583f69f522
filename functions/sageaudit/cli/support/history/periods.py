"""Reads `--since` and `--until`: days in UTC."""

from __future__ import annotations

from datetime import date, timedelta

from sageaudit.adapters.history.detail import DETAIL_DAYS
from sageaudit.domain.job.listed import Period
from sageaudit.errors import BadUsage
from sageaudit.queries import window

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
    days = window.days_ago(text)
    named = window.day(text) if days is None else today - timedelta(days=days)
    if named is None:
        raise BadUsage(f"{option} {text} is neither days such as 30d nor a date such as {today}")
    if named > today:
        raise BadUsage(f"{option} {text} is in the future: today is {today} in UTC")
    if named < today - timedelta(days=_MOST_DAYS):
        raise BadUsage(
            f"{option} {text} is too long ago: CloudWatch keeps metrics for {_MOST_DAYS} days"
        )
    return named


def days_of(since: str) -> int:
    """The number of days in a text such as `30d`. Raises BadUsage unless it is 1 to 90."""
    days = window.days_ago(since) or 0
    if not 1 <= days <= DETAIL_DAYS:
        raise BadUsage(
            f"--since must be 1d to {DETAIL_DAYS}d: run details are kept for {DETAIL_DAYS} days"
        )
    return days
