"""One open history file, shared by the threads of a process."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sageaudit.adapters.history.sqlite.opening import open_file
from sageaudit.adapters.history.sqlite.refusals import file_errors

Values = Mapping[str, Any]


class HistoryFile:
    """One connection and one lock: a thread holds it for one query or one transaction.

    Not to be used in a process that was forked from the one that opened it.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path = path
        self._connection = open_file(path, create=create)
        self._lock = threading.RLock()

    def close(self) -> None:
        """Closes the file; SQLite then moves what is beside it into it, if nobody else reads it."""
        with self._lock:
            self._connection.close()

    def rows(self, query: str, values: Values) -> list[sqlite3.Row]:
        """All rows of a query. Raises HistoryFileError."""
        with self._lock, file_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    def row(self, query: str, values: Values) -> sqlite3.Row | None:
        """The first row of a query."""
        with self._lock, file_errors(self.path):
            found: sqlite3.Row | None = self._connection.execute(query, values).fetchone()
            return found

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone among all processes: all of it is written, or nothing."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Several queries of the history as it was at one moment."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, file_errors(self.path):
            self._connection.execute(begin)
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite ends it by itself on a full disk
                    self._connection.execute("ROLLBACK")
                raise
