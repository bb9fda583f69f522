"""Opens the history's table with the user's own credentials, and lists its runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from sageaudit.adapters.aws.clients import aws_errors, client
from sageaudit.adapters.dynamo.history import DynamoHistory
from sageaudit.adapters.history.detail import DETAIL_DAYS
from sageaudit.cli.sources.session import open_session
from sageaudit.domain.audit.record import Head
from sageaudit.domain.job.ref import is_account_id
from sageaudit.errors import BadUsage
from sageaudit.ports import History
from sageaudit.queries.window import days_ago

_TABLE = re.compile(r"[a-zA-Z0-9_.-]{3,255}\Z")


@dataclass(frozen=True, slots=True)
class HistoryTable:
    """The history in a table, and the session that reads it."""

    session: Any
    history: History


def open_table(table: str, profile: str | None, region: str | None) -> HistoryTable:
    """Opens the table. Raises BadUsage for an invalid table name or an unknown region."""
    if not _TABLE.match(table):
        raise BadUsage(f"--table {table} is not a valid table name")
    session = open_session(profile, region)
    if session.region_name is None:
        raise BadUsage("which region is the table in? give --region, or set one for your profile")
    with aws_errors("dynamodb"):
        return HistoryTable(session, DynamoHistory(client(session, "dynamodb"), table))


def account_id(text: str, option: str) -> str:
    """Returns `text`. Raises BadUsage, naming `option`, unless it is an account id."""
    if not is_account_id(text):
        raise BadUsage(f"{option} {text} is not an account id, which has 12 digits")
    return text


def days_of(since: str) -> int:
    """The number of days in a text such as `30d`. Raises BadUsage unless it is 1 to 90."""
    days = days_ago(since) or 0
    if not 1 <= days <= DETAIL_DAYS:
        raise BadUsage(
            f"--since must be 1d to {DETAIL_DAYS}d: run details are kept for {DETAIL_DAYS} days"
        )
    return days


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
