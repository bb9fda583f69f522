"""One open history file that threads share, or a history in memory.

Only its owner can read a new file. It is in WAL mode if its drive allows it. SQLite's errors become
HistoryFileError: one sentence that names the file and what to do.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import sqlite3
import stat
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from sageaudit.adapters.files.local_files import wrong_format_reason
from sageaudit.adapters.history.sqlite import schema, upgrade
from sageaudit.errors import BadHistory, HistoryBusy, HistoryDenied, HistoryFileError, NoHistory

WAIT_S = 30
"""Seconds that a write waits for another process. A write takes a few milliseconds."""
IN_MEMORY = Path(":memory:")
"""The path in messages of a history without a file."""
_INVALID_PATH_ERRNOS = frozenset({errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL})
_PRIVATE = stat.S_IRUSR | stat.S_IWUSR
_NO_SHARED_MEMORY_ERRORS = (
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_IOERR_SHM",
    "SQLITE_PROTOCOL",
)
"""SQLite's errors on a drive without shared memory, which WAL mode needs."""
_HINT = "`sageaudit scan --history history.db` makes a history"
_NOTHING_LOST = "what was recorded before is kept"
_NOT_A_HISTORY_MESSAGE = (
    "{path} is not a history of sageaudit: name another file with --history, it was not changed"
)
_DAMAGED_MESSAGE = (
    "{path} is damaged ({error}): move it away and scan again; `sqlite3 FILE .recover` prints"
    " what can still be read"
)
_CHANGED_MESSAGE = (
    "{path} does not have the tables of a history ({error}): another tool changed it, so move it"
    " away and scan again"
)
_FULL_MESSAGE = (
    f"the disk of {{path}} is full: free some space and run the command again; {_NOTHING_LOST}"
)
_READ_ONLY_MESSAGE = (
    "{path} cannot be written: give yourself write permission to the file and its folder, or name"
    " another file with --history"
)
_CANNOT_OPEN_MESSAGE = "{path} cannot be opened: check the permissions of the file and its folder"
_BUSY_MESSAGE = (
    f"{{path}} is being written by another process: try again when it is done; {_NOTHING_LOST}"
)
_OTHER_MESSAGE = f"{{path}} cannot be read or written ({{error}}): check its disk; {_NOTHING_LOST}"
_NOT_UTF8 = "Could not decode to UTF-8"
"""Python's message for a text that is not UTF-8. This error has no SQLite error name."""
_MESSAGES: tuple[tuple[tuple[str, ...], type[HistoryFileError], str], ...] = (
    (("SQLITE_NOTADB",), BadHistory, _NOT_A_HISTORY_MESSAGE),
    (("SQLITE_CORRUPT",), BadHistory, _DAMAGED_MESSAGE),
    (("SQLITE_ERROR", "SQLITE_MISMATCH", "SQLITE_CONSTRAINT"), BadHistory, _CHANGED_MESSAGE),
    (("SQLITE_FULL",), HistoryFileError, _FULL_MESSAGE),
    (("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH"), HistoryDenied, _READ_ONLY_MESSAGE),
    (("SQLITE_CANTOPEN",), HistoryDenied, _CANNOT_OPEN_MESSAGE),
    (("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"), HistoryBusy, _BUSY_MESSAGE),
)
"""Error class and message, by the beginning of SQLite's error name."""

_FOREIGN_PARTS = (
    "SELECT name FROM sqlite_master WHERE type = 'trigger' OR name IN (SELECT value FROM"
    " json_each(:tables)) AND (type <> 'table' OR sql LIKE 'CREATE VIRTUAL%')"
)
"""Finds triggers, and views in the place of a table: they run SQL that may never end."""
_MISSING_TABLES = (
    "SELECT value FROM json_each(:tables) WHERE value NOT IN"
    " (SELECT name FROM sqlite_master WHERE type = 'table')"
)
SqlParameters = Mapping[str, Any]
T = TypeVar("T")


class HistoryFile:
    """One connection and one lock. A thread holds the lock for one query or transaction.

    Without a path the history is in memory. A forked process must not use its parent's connection.
    """

    def __init__(self, path: Path | None, *, create: bool) -> None:
        self.path = path or IN_MEMORY
        self._connection = _open_in_memory() if path is None else _open_file(path, create=create)
        self._lock = threading.RLock()
        if path is None:  # nothing is lost if nobody closes it
            weakref.finalize(self, self._connection.close)

    def close(self) -> None:
        """Closes the file. SQLite merges its side files if no other process reads the file."""
        with self._lock:
            self._connection.close()

    def query_all(self, query: str, values: SqlParameters) -> list[sqlite3.Row]:
        """Returns all rows of a query. Raises HistoryFileError."""
        with self._lock, sqlite_errors(self.path):
            return self._fetch(lambda: self._connection.execute(query, values).fetchall())

    def query_first(self, query: str, values: SqlParameters) -> sqlite3.Row | None:
        """Returns a query's first row; None without rows. Raises HistoryFileError."""
        with self._lock, sqlite_errors(self.path):
            row: sqlite3.Row | None = self._fetch(
                lambda: self._connection.execute(query, values).fetchone()
            )
            return row

    def _fetch(self, fetch: Callable[[], T]) -> T:
        """Returns what `fetch` returns. A text that is not UTF-8 spoils only its own row.

        SQLite's usual decoder refuses the whole result; ours is slower, so it is the second.
        """
        try:
            return fetch()
        except sqlite3.OperationalError as error:
            if not str(error).startswith(_NOT_UTF8):
                raise
        self._connection.text_factory = _decode
        return fetch()

    @contextmanager
    def write_transaction(self) -> Iterator[sqlite3.Connection]:
        """Runs a transaction that writes everything or nothing. Other processes wait."""
        with self._lock, sqlite_errors(self.path), _transaction(self._connection):
            yield self._connection

    @contextmanager
    def read_transaction(self) -> Iterator[None]:
        """Runs several queries on the same state of the history."""
        with self._lock, sqlite_errors(self.path), _transaction(self._connection, "BEGIN"):
            yield


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite ends it by itself on a full disk
            connection.execute("ROLLBACK")
        raise


def _open_in_memory() -> sqlite3.Connection:
    connection = _open_connection(":memory:")
    _make_tables(connection)
    return connection


def _open_file(path: Path, *, create: bool) -> sqlite3.Connection:
    """Opens a history's file with this version's schema. Any thread may use the connection.

    With `create`, a missing file is created. Raises NoHistory, BadHistory, HistoryDenied,
    HistoryBusy or HistoryFileError.
    """
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        if not create:
            raise NoHistory(
                f"there is no history {path}: {_scan_command(path)} makes one"
            ) from None
        _make_file(path)
    except OSError as error:
        if error.errno in _INVALID_PATH_ERRNOS:
            raise BadHistory(
                f"{path} is not a valid path ({error.strerror}): name another file with --history"
            ) from error
        raise HistoryDenied(
            f"{path} cannot be opened ({error.strerror}): check the permissions of its folder"
        ) from error
    else:
        if not stat.S_ISREG(status.st_mode):
            reason = wrong_format_reason(path, _HINT) or "is not a file, as a history is"
            raise BadHistory(f"{path} {reason}")
    with sqlite_errors(path):
        return _open_in_best_mode(path, create=create)


def _make_file(path: Path) -> None:
    # Only the owner can read the new file. SQLite gives its side files the same mode.
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
    except FileExistsError as error:
        if path.is_symlink() and not path.exists():
            raise BadHistory(
                f"{path} is a link to a file that does not exist: name that file with --history"
            ) from error
        return  # another process has created it meanwhile
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoHistory(
            f"{path} cannot be created: there is no folder {path.parent}, so create it first"
        ) from error
    except OSError as error:
        raise HistoryDenied(
            f"{path} cannot be created ({error.strerror}): name another file with --history"
        ) from error


def _open_in_best_mode(path: Path, *, create: bool) -> sqlite3.Connection:
    # Uses WAL mode. Without shared memory, uses a rollback journal or opens the file read-only.
    try:
        return _prepare_schema(_connect(path, "mode=rw"), path, create=create, use_wal=True)
    except sqlite3.OperationalError as error:
        if not error.sqlite_errorname.startswith(_NO_SHARED_MEMORY_ERRORS):
            raise
        if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
            _switch_off_wal(path)
            return _prepare_schema(_connect(path, "mode=rw"), path, create=create, use_wal=False)
        if _wal_path(path).exists():
            raise
    # Nobody can write the file here, so nothing changes while it is read.
    read_only_connection = _connect(path, "mode=ro", "immutable=1")
    return _prepare_schema(read_only_connection, path, create=False, use_wal=False)


def _prepare_schema(
    connection: sqlite3.Connection, path: Path, *, create: bool, use_wal: bool
) -> sqlite3.Connection:
    try:
        if _is_empty(connection):
            if not create:
                raise NoHistory(f"{path} is empty: {_scan_command(path)} fills it")
            if use_wal:
                _use_wal(connection)
            _make_tables(connection)
        _check_version(connection, path)
        _check_tables(connection, path)
        _add_missing_parts(connection, path)
        _sync_at_checkpoints(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Returns True if nothing was ever written to the file."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return not tables and not _pragma(connection, "application_id")


def _make_tables(connection: sqlite3.Connection) -> None:
    with _transaction(connection):
        if _is_empty(connection):  # another process may have created them meanwhile
            for statement in schema.TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {schema.VERSION}")


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raises BadHistory for a database of another tool or version."""
    if _pragma(connection, "application_id") != schema.APPLICATION_ID:
        raise BadHistory(
            f"{path} is a database of another tool: name another file with --history,"
            " it was not changed"
        )
    version = _pragma(connection, "user_version")
    if version != schema.VERSION:
        raise BadHistory(
            f"{path} was written by another version of sageaudit (schema {version}, this one has"
            f" {schema.VERSION}): scan into another file, or use that version"
        )


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Raises BadHistory if the file lacks a table, or has a trigger or a view in its place."""
    tables = {"tables": json.dumps(schema.TABLE_NAMES)}
    if part := connection.execute(_FOREIGN_PARTS, tables).fetchone():
        error = f"{part['name']} is not a table"
        raise BadHistory(_CHANGED_MESSAGE.format(path=path, error=error))
    if part := connection.execute(_MISSING_TABLES, tables).fetchone():
        error = f"no such table: {part['value']}"
        raise BadHistory(_CHANGED_MESSAGE.format(path=path, error=error))


def _add_missing_parts(connection: sqlite3.Connection, path: Path) -> None:
    """Upgrades a file of an earlier version. Raises HistoryDenied if it cannot be written."""
    if not upgrade.missing_parts(connection):
        return
    try:
        with _transaction(connection):
            # another process may have added them meanwhile
            for statement in upgrade.missing_parts(connection):
                connection.execute(statement)
    except sqlite3.OperationalError as error:
        if not error.sqlite_errorname.startswith("SQLITE_READONLY"):
            raise
        raise HistoryDenied(
            f"{path} was written by an earlier version of sageaudit and cannot be written here:"
            " open it once where you may write it, for example with `sageaudit history`"
        ) from error


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _connect(path: Path, *options: str) -> sqlite3.Connection:
    # Never creates a file. SQLite's `mode=rw` also opens a file that it can only read.
    return _open_connection(f"{path.absolute().as_uri()}?{'&'.join(options)}")


def _open_connection(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        address, uri=True, timeout=WAIT_S, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA trusted_schema = OFF")  # the file may be from somebody else
    return connection


def _decode(text: bytes) -> str:
    """Returns the text, with U+FFFD for bytes that are not UTF-8."""
    return text.decode("utf-8", "replace")


def _use_wal(connection: sqlite3.Connection) -> None:
    # In WAL mode, readers and the writer do not wait for each other. If SQLite is busy, another
    # process is creating the same file, and switches WAL mode on itself. The vacuum setting lets
    # expired rows free their space.
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")


def _sync_at_checkpoints(connection: sqlite3.Connection) -> None:
    # A commit then does not wait for the disk: it takes 0.2 ms instead of 6 ms. A process that is
    # killed loses nothing. After a power cut the file may lack the last audits, which the next scan
    # makes again.
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        connection.execute("PRAGMA synchronous = NORMAL")


def _wal_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _switch_off_wal(path: Path) -> None:
    # With a rollback journal and exclusive access, SQLite needs no shared memory.
    with closing(_connect(path, "mode=rw")) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()


def _scan_command(path: Path) -> str:
    return f"`sageaudit scan --history {shlex.quote(str(path))}`"


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turns SQLite's errors in the block into HistoryFileError.

    Errors in the use of the module, such as a closed connection, are bugs and stay unchanged.
    """
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite's message about a damaged table
        raise BadHistory(_DAMAGED_MESSAGE.format(path=path, error=error)) from error
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", None)
        if name is None:
            raise
        raise _translate_error(path, error, name) from error


def _translate_error(path: Path, error: sqlite3.Error, name: str) -> HistoryFileError:
    if name == "SQLITE_NOTADB" and (reason := wrong_format_reason(path, _HINT)):
        return BadHistory(f"{path} {reason}; it was not changed")
    for name_prefixes, error_class, message in _MESSAGES:
        if name.startswith(name_prefixes):
            return error_class(message.format(path=path, error=error))
    return HistoryFileError(_OTHER_MESSAGE.format(path=path, error=error))
