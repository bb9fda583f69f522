"""Opens the history that a command reads or writes: a file, or a table in AWS."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.support.history.data_folder import data_folder
from sageaudit.errors import BadUsage, HistoryDenied, NoHistory
from sageaudit.ports import History


@dataclass(frozen=True, slots=True)
class HistorySource:
    """An open history, to be used in a `with` block.

    `name` is the file or the table, for messages. `session` is that of a table; None for a file.
    """

    history: History
    name: str
    session: Any = None
    close: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def default_path() -> Path:
    """The history that commands use where none is named, in the user's data folder."""
    return data_folder() / "history.db"


def open_history(
    history: Path | None,
    table: str | None,
    profile: str | None,
    region: str | None,
    *,
    create: bool = False,
) -> HistorySource:
    """Opens the file or the table; where neither is named, the user's own file.

    With `create`, a file that does not exist is made. Raises BadUsage where both are named,
    NoHistory, BadHistory or another HistoryFileError for a file, AwsError for a table.
    """
    if history is not None and table is not None:
        raise BadUsage("name one history: either a file with --history or a table with --table")
    if table is not None:
        from sageaudit.cli.support.history import history_table  # noqa: PLC0415 - a file needs no boto3

        opened = history_table.open_table(table, profile, region)
        return HistorySource(opened.history, table, opened.session)
    path = history or default_path()
    if history is None and create:
        _make_folder(path.parent)
    if history is None and not create and not _exists(path):
        raise NoHistory(
            "there is no history yet: make one with `sageaudit scan`, or name one with --history"
            " FILE or --table NAME"
        )
    of_file = SqliteHistory(path, create=create)
    return HistorySource(of_file, str(path), close=of_file.close)


def _exists(path: Path) -> bool:
    """False only where the file is certainly not there: opening it says what else is wrong."""
    with suppress(OSError):
        return path.exists()
    return True


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise HistoryDenied(
            f"the folder {folder} cannot be made ({error.strerror}): name a file with --history"
        ) from error
