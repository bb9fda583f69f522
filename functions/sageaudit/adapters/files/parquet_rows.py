"""Writes rows to a Parquet file with pyarrow, an optional dependency because it is large."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from sageaudit.errors import BadUsage

_ROWS = 5_000
"""Rows of a row group, which are in memory together."""
_DIGITS, _DECIMALS = 38, 6
Column = Literal["text", "usd", "count", "flag", "time", "day"]


def write_parquet(
    path: Path, columns: Mapping[str, Column], rows: Iterable[Mapping[str, object]]
) -> int:
    """Writes the rows and returns how many. Raises BadUsage if pyarrow is missing.

    Money is a decimal with 6 digits after the point, a time is UTC to the microsecond, an unknown
    value is null.
    """
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise BadUsage(
            "writing Parquet needs pyarrow: give --format csv, or install it with"
            " `pip install pyarrow` (`pipx inject sageaudit pyarrow`)"
        ) from error
    schema = arrow.schema([(name, _type(arrow, column)) for name, column in columns.items()])
    count = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        left = iter(rows)
        while group := list(islice(left, _ROWS)):
            writer.write_table(arrow.Table.from_pylist(group, schema=schema))
            count += len(group)
    return count


def _type(arrow: Any, column: Column) -> Any:
    return {
        "text": arrow.string(),
        "usd": arrow.decimal128(_DIGITS, _DECIMALS),
        "count": arrow.int64(),
        "flag": arrow.bool_(),
        "time": arrow.timestamp("us", tz="UTC"),
        "day": arrow.date32(),
    }[column]
