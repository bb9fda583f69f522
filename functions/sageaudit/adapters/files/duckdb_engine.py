"""Uses DuckDB, an optional dependency because of its size, for cost reports and Parquet."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from sageaudit.errors import BadUsage

_MEMORY = "2GB"
"""DuckDB's memory limit, above which it uses temporary files. Its default is 80% of the memory."""


@contextmanager
def duckdb_connection(purpose: str) -> Iterator[Any]:
    """Opens an empty in-memory database in UTC.

    Raises BadUsage with `purpose` if DuckDB is not installed. DuckDB's errors in the block become
    BadUsage too.
    """
    try:
        duckdb = importlib.import_module("duckdb")
    except ImportError as error:
        raise BadUsage(
            f"{purpose} needs DuckDB: `pip install duckdb`, or `pipx inject sageaudit duckdb`"
        ) from error
    with TemporaryDirectory(prefix="sageaudit-") as folder:
        config = {"memory_limit": _MEMORY, "temp_directory": folder}
        with duckdb.connect(config=config) as connection, duckdb_errors(purpose):
            connection.execute("SET TimeZone = 'UTC'; SET autoinstall_known_extensions = false")
            yield connection


@contextmanager
def duckdb_errors(message: str) -> Iterator[None]:
    """Turns DuckDB's errors into BadUsage, with `message` and the first line of DuckDB's text."""
    duckdb = importlib.import_module("duckdb")
    try:
        yield
    except duckdb.Error as error:
        raise BadUsage(f"{message} ({str(error).partition(chr(10))[0]})") from error


_BATCH_ROWS = 5_000
"""The number of rows in Python's memory at a time."""
ColumnType = Literal["text", "usd", "count", "flag", "time", "day"]
_TYPES: Mapping[ColumnType, str] = {
    "text": "VARCHAR",
    "usd": "DECIMAL(38, 6)",
    "count": "BIGINT",
    "flag": "BOOLEAN",
    "time": "TIMESTAMPTZ",
    "day": "DATE",
}


def write_parquet(
    path: Path, columns: Mapping[str, ColumnType], rows: Iterable[Mapping[str, object]]
) -> int:
    """Writes the rows, and returns their number. Raises BadUsage if DuckDB is missing.

    Money has 6 decimal places. Times are in UTC with microseconds. None becomes null.
    """
    types = {name: _TYPES[column] for name, column in columns.items()}
    count, remaining_rows = 0, iter(rows)
    with duckdb_connection("writing Parquet (--format csv works without it)") as connection:
        column_list = ", ".join(f'"{name}" {sql_type}' for name, sql_type in types.items())
        connection.execute(f"CREATE TABLE written ({column_list})")
        values = ", ".join(f"unnest(?::{sql_type}[])" for sql_type in types.values())
        while batch := list(islice(remaining_rows, _BATCH_ROWS)):
            lists = [[row[name] for row in batch] for name in types]
            connection.execute(f"INSERT INTO written SELECT {values}", lists)
            count += len(batch)
        connection.table("written").write_parquet(str(path), compression="zstd")
    return count
