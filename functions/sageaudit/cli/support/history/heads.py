"""Lists the runs of a history by the days on which they ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from sageaudit.domain.audit.record import Head
from sageaudit.ports import History


def heads_of_days(history: History, since: date, until: date) -> Iterator[Head]:
    """The runs that ended from `since` to `until` (both included), the newest day first."""
    for days in range((until - since).days + 1):
        yield from history.by_day(until - timedelta(days=days))


def heads_of_account(history: History, account: str, since: date, until: date) -> Iterator[Head]:
    """One account's runs that ended from `since` to `until` (both included), newest month first."""
    month = until.replace(day=1)
    while month >= since.replace(day=1):
        for head in history.by_account(account, f"{month:%Y-%m}"):
            if since <= head.ended_at.date() <= until:
                yield head
        month = (month - timedelta(days=1)).replace(day=1)
