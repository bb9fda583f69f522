"""Opens the history's table with the user's own credentials."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sageaudit.adapters.aws.clients import aws_errors, client
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.cli.support.account.accounts import open_session
from sageaudit.errors import BadUsage
from sageaudit.ports import History

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
