"""SQLite's errors as this project's: one sentence that names the file and what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sageaudit.errors import BadHistory, HistoryBusy, HistoryDenied, HistoryFileError

_KEPT = "what was recorded before is kept"
_OTHER_TOOLS = (
    "{path} is not a history of sageaudit: name another file with --history, it was not changed"
)
_DAMAGED = (
    "{path} is damaged ({error}): move it away and scan again; `sqlite3 {path} .recover` prints"
    " what can still be read"
)
_CHANGED = (
    "{path} does not have the tables of a history ({error}): another tool changed it, so move it"
    " away and scan again"
)
_FULL = f"the disk of {{path}} is full: free some space and run the command again; {_KEPT}"
_READ_ONLY = (
    "{path} cannot be written: give yourself write permission to the file and its folder, or name"
    " another file with --history"
)
_CLOSED = "{path} cannot be opened: check the permissions of the file and its folder"
_BUSY = f"{{path}} is being written by another process: try again when it is done; {_KEPT}"
_OTHER = f"{{path}} cannot be read or written ({{error}}): check its disk; {_KEPT}"
_NO_TEXT = "Could not decode to UTF-8"
"""Python's own error, without SQLite's name."""
_SENTENCES: tuple[tuple[tuple[str, ...], type[HistoryFileError], str], ...] = (
    (("SQLITE_NOTADB",), BadHistory, _OTHER_TOOLS),
    (("SQLITE_CORRUPT",), BadHistory, _DAMAGED),
    (("SQLITE_ERROR", "SQLITE_MISMATCH", "SQLITE_CONSTRAINT"), BadHistory, _CHANGED),
    (("SQLITE_FULL",), HistoryFileError, _FULL),
    (("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH"), HistoryDenied, _READ_ONLY),
    (("SQLITE_CANTOPEN",), HistoryDenied, _CLOSED),
    (("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"), HistoryBusy, _BUSY),
)
"""By the beginning of SQLite's name of the error; any other is told as it is."""


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Raises SQLite's errors in this block as HistoryFileError, each with its sentence.

    Errors in how the module is called, such as a closed connection, are bugs and stay as they are.
    """
    try:
        yield
    except UnicodeDecodeError as error:  # a text, or SQLite's own words about a damaged table
        raise damaged(path, error) from error
    except sqlite3.Error as error:
        if str(error).startswith(_NO_TEXT):
            raise damaged(path, error) from error
        name = getattr(error, "sqlite_errorname", None)
        if name is None:
            raise
        raise _refusal(path, error, name) from error


def damaged(path: Path, error: Exception) -> BadHistory:
    """The error for a row that cannot be read."""
    return BadHistory(_DAMAGED.format(path=path, error=f"{type(error).__name__}: {error}"))


def _refusal(path: Path, error: sqlite3.Error, name: str) -> HistoryFileError:
    for names, kind, sentence in _SENTENCES:
        if name.startswith(names):
            return kind(sentence.format(path=path, error=error))
    return HistoryFileError(_OTHER.format(path=path, error=error))
