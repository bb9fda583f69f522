"""Opens a command's history: a file, a table in AWS, or one in memory."""

from __future__ import annotations

import heapq
import os
import re
import shlex
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from sageaudit.adapters.files.local_files import data_folder
from sageaudit.adapters.history.codec import moment_sk
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Detail, Row, RunIndex, RunQuery
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.errors import BadUsage, HistoryDenied, NoHistory
from sageaudit.ports import Decisions, History

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_TABLE = re.compile(r"[a-zA-Z0-9_.-]{3,255}\Z")


class HistorySource(Struct, frozen=True):
    """An open history, for use in a `with` block.

    `name` is the file or table in messages. `session` is the table's boto3 session; None for a
    file.
    """

    history: History
    decisions: Decisions
    name: str
    session: Any = None
    close: Callable[[], None] = lambda: None
    warn: Callable[[str], None] = lambda _: None

    @property
    def is_table(self) -> bool:
        """Whether the history is the table of a deployment, and not a file."""
        return self.session is not None

    @property
    def location_text(self) -> str:
        """The history's location for people: a file's path, or `the table sageaudit
        in eu-west-1`.
        """
        if not self.is_table:
            return self.name
        return f"the table {self.name} in {self.session.region_name}"

    def installed_at(self) -> datetime | None:
        """Returns when the table's deployment was installed; None if unknown, and for a file.

        Raises AwsError or MalformedData.
        """
        if not self.is_table:
            return None
        # boto3 is imported only for tables.
        from sageaudit.adapters.aws.clients import client  # noqa: PLC0415
        from sageaudit.adapters.history.dynamo.sweep_notes import (  # noqa: PLC0415
            DynamoSweepStore,
        )

        return DynamoSweepStore(client(self.session, "dynamodb"), self.name).installed_at()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._warn_about_unreadable()
        self.close()

    def _warn_about_unreadable(self) -> None:
        if not (count := len(self.history.take_unreadable())):
            return
        option = "--table" if self.is_table else "--history"
        command = f"sageaudit doctor {option} {shlex.quote(self.name)}"
        lacks, named = ("1 stored item that cannot be read", "it")
        if count > 1:
            lacks, named = (f"{count} stored items that cannot be read", "them")
        self.warn(f"what was printed lacks {lacks}: `{command}` names {named}")


def default_path() -> Path:
    """Returns the default history file, in the user's data folder."""
    return data_folder() / "history.db"


def open_history(
    history: Path | None,
    table: str | None,
    profile: str | None,
    region: str | None,
    *,
    create: bool = False,
    warn: Callable[[str], None],
) -> HistorySource:
    """Opens a file or a table, by default the user's own file.

    With `create`, a missing file is created. `warn` is called if others may write the file. Raises
    BadUsage if both are named; NoHistory, BadHistory or another HistoryFileError for a file;
    AwsError for a table.
    """
    if history is not None and table is not None:
        raise BadUsage(
            "name one history: either a file with --history or a table with --table; without an"
            " option, either SAGEAUDIT_HISTORY or SAGEAUDIT_TABLE in the environment"
        )
    if table is not None:
        session, history_table, decisions = _open_table(table, profile, region)
        return HistorySource(history_table, decisions, table, session, warn=warn)
    path = history or default_path()
    if history is None and create:
        create_private_folder(path.parent)
    if history is None and not create and not _exists(path):
        raise NoHistory(
            "there is no history yet: `sageaudit scan` makes one (or `sageaudit demo`, to try it)."
            " Or name one with --history FILE or --table NAME"
        )
    file_history = SqliteHistory(path, create=create)
    if os.name == "posix" and path.stat().st_mode & _WRITABLE_BY_OTHERS:
        warn(
            f"others may write {path}, and so change the history:"
            f" `chmod go-w {shlex.quote(str(path))}` prevents that"
        )
    return HistorySource(file_history, file_history, str(path), close=file_history.close, warn=warn)


def open_in_memory(name: str) -> HistorySource:
    """Opens an empty history that is never stored."""
    history = SqliteHistory()
    return HistorySource(history, history, name)


def _open_table(
    table: str, profile: str | None, region: str | None
) -> tuple[Any, History, Decisions]:
    # Uses the user's own credentials. Raises BadUsage for an invalid table name or an unknown
    # region.
    # boto3 is imported only for tables.
    from sageaudit.adapters.aws.accounts import open_session  # noqa: PLC0415
    from sageaudit.adapters.aws.clients import aws_errors, client  # noqa: PLC0415
    from sageaudit.adapters.history.dynamo.history import DynamoHistory  # noqa: PLC0415

    if not _TABLE.match(table):
        raise BadUsage(f"--table {table} is not a valid table name")
    session = open_session(profile, region)
    if session.region_name is None:
        raise BadUsage(
            "which region is the table in? give --table-region (or --region, if the command has no"
            " --table-region), or set AWS_REGION"
        )
    with aws_errors("dynamodb"):
        history_table = DynamoHistory(client(session, "dynamodb"), table)
    return session, history_table, history_table


def _exists(path: Path) -> bool:
    """Returns True after an error, which opening the file then reports."""
    with suppress(OSError):
        return path.exists()
    return True


def create_private_folder(folder: Path) -> None:
    """Creates a history's folder, which only its owner can read. Raises HistoryDenied."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise HistoryDenied(
            f"the folder {folder} cannot be made ({error.strerror}): name a file with --history"
        ) from error


class TableOverlay(SqliteHistory):
    """A table combined with new audits in memory. It never writes to the table."""

    def __init__(self, table: History) -> None:
        super().__init__()
        self._table = table

    def runs(
        self,
        query: RunQuery[Row],
        *,
        ended_before: datetime | None = None,
        page_size: int | None = None,
        fields: Collection[str] | None = None,
    ) -> Iterator[Row]:
        """Yields the runs of a list.

        A family's runs come from the table and from memory. An audit in memory replaces the stored
        one. Other lists come from memory only.
        """
        runs_in_memory = super().runs(
            query, ended_before=ended_before, page_size=page_size, fields=fields
        )
        if query.index is not RunIndex.FAMILY:
            return runs_in_memory
        rows: list[Any] = list(runs_in_memory)
        keys_in_memory = {run.key for run in rows}
        wider_page_size = page_size and page_size + len(rows)
        stored: Iterator[Any] = self._table.runs(
            query, ended_before=ended_before, page_size=wider_page_size, fields=fields
        )
        stored_only = (run for run in stored if run.key not in keys_in_memory)
        return heapq.merge(
            rows, stored_only, key=lambda run: moment_sk(run.ended_at, run.key), reverse=True
        )

    def summary(self, key: JobKey) -> AuditSummary | None:
        """Returns the summary in memory, or else the stored one."""
        return super().summary(key) or self._table.summary(key)

    def audit(self, key: JobKey, version: int | None = None) -> AuditDocument | None:
        """Returns the document in memory, or else the stored one."""
        return super().audit(key, version) or self._table.audit(key, version)

    def detail(self, key: JobKey) -> Detail | None:
        """Returns the detail in memory, or else the stored one."""
        return super().detail(key) or self._table.detail(key)
