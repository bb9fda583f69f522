"""Writes rows to a Parquet file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Literal

from sageaudit.adapters.files.duckdb_engine import duckdb_connection

_ROWS = 5_000
"""Rows that are in Python's memory together."""
Column = Literal["text", "usd", "count", "flag", "time", "day"]
_TYPES: Mapping[Column, str] = {
    "text": "VARCHAR",
    "usd": "DECIMAL(38, 6)",
    "count": "BIGINT",
    "flag": "BOOLEAN",
    "time": "TIMESTAMPTZ",
    "day": "DATE",
}


def write_parquet(
    path: Path, columns: Mapping[str, Column], rows: Iterable[Mapping[str, object]]
) -> int:
    """Writes the rows and returns how many. Raises BadUsage if DuckDB is missing.

    Money is a decimal with 6 digits after the point, a time is UTC to the microsecond, an unknown
    value is null.
    """
    types = {name: _TYPES[column] for name, column in columns.items()}
    count, left = 0, iter(rows)
    with duckdb_connection("writing Parquet (--format csv is without it)") as connection:
        named = ", ".join(f'"{name}" {of}' for name, of in types.items())
        connection.execute(f"CREATE TABLE written ({named})")
        values = ", ".join(f"unnest(?::{of}[])" for of in types.values())
        while group := list(islice(left, _ROWS)):
            lists = [[row[name] for row in group] for name in types]
            connection.execute(f"INSERT INTO written SELECT {values}", lists)
            count += len(group)
        connection.table("written").write_parquet(str(path), compression="zstd")
    return count
