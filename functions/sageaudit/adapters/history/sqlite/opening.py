"""Opens and makes a history's file: private, in WAL mode where the drive allows it."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from contextlib import closing, suppress
from pathlib import Path

from sageaudit.adapters.history.sqlite import schema
from sageaudit.adapters.history.sqlite.refusals import file_errors
from sageaudit.errors import BadHistory, HistoryDenied, NoHistory

WAIT_S = 30
"""How long a write waits for another process; each writes for a few milliseconds."""
_NO_PATH = frozenset({errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL})
_PRIVATE = stat.S_IRUSR | stat.S_IWUSR
_NO_SHARED_MEMORY = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_IOERR_SHM", "SQLITE_PROTOCOL")
"""What SQLite says where a drive has no memory that processes share, which WAL mode needs."""


def open_file(path: Path, *, create: bool) -> sqlite3.Connection:
    """A connection to a history's file, with this version's schema; any thread may use it.

    A file that does not exist is made where `create` says so, for its owner alone. Raises
    NoHistory, BadHistory, HistoryDenied, HistoryBusy or HistoryFileError.
    """
    try:
        known = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        if not create:
            raise NoHistory(
                f"there is no history {path}: `sageaudit scan --history {path}` makes one"
            ) from None
        _make(path)
    except OSError as error:
        if error.errno in _NO_PATH:
            raise BadHistory(
                f"{path} is not the path of a file ({error.strerror}): name another with --history"
            ) from error
        raise HistoryDenied(
            f"{path} cannot be opened ({error.strerror}): check the permissions of its folder"
        ) from error
    else:
        if not stat.S_ISREG(known.st_mode):
            raise BadHistory(f"{path} is not a file: a history is one file, such as history.db")
    with file_errors(path):
        return _prepared(path, create=create)


def _make(path: Path) -> None:
    """An empty file that only its owner can read; SQLite gives its own files the same mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
    except FileExistsError as error:
        if path.is_symlink() and not path.exists():
            raise BadHistory(
                f"{path} is a link to a file that does not exist: name that file with --history"
            ) from error
        return  # another process made it meanwhile
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoHistory(
            f"{path} cannot be made: there is no folder {path.parent}, so make it first"
        ) from error
    except OSError as error:
        raise HistoryDenied(
            f"{path} cannot be made ({error.strerror}): name another file with --history"
        ) from error


def _prepared(path: Path, *, create: bool) -> sqlite3.Connection:
    """With other means where shared memory is not possible, which WAL mode needs."""
    try:
        return _with_schema(_connect(path, "mode=rw"), path, create=create, wal=True)
    except sqlite3.OperationalError as error:
        if not error.sqlite_errorname.startswith(_NO_SHARED_MEMORY):
            raise
        if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
            _leave_wal(path)
            return _with_schema(_connect(path, "mode=rw"), path, create=create, wal=False)
        if _wal_of(path).exists():
            raise
    # Nobody can write it here, so nothing changes while it is read.
    only_read = _connect(path, "mode=ro", "immutable=1")
    return _with_schema(only_read, path, create=False, wal=False)


def _with_schema(
    connection: sqlite3.Connection, path: Path, *, create: bool, wal: bool
) -> sqlite3.Connection:
    try:
        if schema.is_empty(connection):
            if not create:
                raise NoHistory(f"{path} is empty: `sageaudit scan --history {path}` fills it")
            if wal:
                _use_wal(connection)
        schema.prepare(connection, path)
        _sync_at_checkpoints(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, *options: str) -> sqlite3.Connection:
    """A connection that makes no file. SQLite's `mode=rw` reads what cannot be written, too."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{'&'.join(options)}",
        uri=True,
        timeout=WAIT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA trusted_schema = OFF")  # a file may come from somebody else
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """Readers and the writer do not wait for each other; what expired gives its space back.

    Busy means that another process is making the file, and does the same.
    """
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")


def _sync_at_checkpoints(connection: sqlite3.Connection) -> None:
    """In WAL mode a commit takes 0.2 ms then, not 6 ms: it does not wait for the disk.

    A process that is killed loses nothing. After a power cut the file is whole, but may lack the
    last audits, which the next scan makes again.
    """
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        connection.execute("PRAGMA synchronous = NORMAL")


def _wal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _leave_wal(path: Path) -> None:
    """Gives the file a rollback journal: alone with it, SQLite needs no shared memory."""
    with closing(_connect(path, "mode=rw")) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()
