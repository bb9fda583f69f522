"""Reads Parquet with pyarrow, an optional dependency because it is large."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from sageaudit.errors import BadUsage

_BROKEN = (ValueError, OSError)
"""Base classes of pyarrow's errors."""


class ParquetReader(Protocol):
    """Reads the wanted columns of a file: returns their names, and an iterator of rows."""

    def __call__(
        self, path: Path, wanted: Callable[[str], bool]
    ) -> tuple[Sequence[str], Iterator[Sequence[object]]]:
        """Raises BadUsage for a file that cannot be read, also while rows are iterated."""


def read_parquet(
    path: Path, wanted: Callable[[str], bool]
) -> tuple[Sequence[str], Iterator[Sequence[object]]]:
    """Reads with pyarrow. Raises BadUsage if pyarrow is missing or the file is broken."""
    try:
        arrow = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise BadUsage(
            f"{path}: is Parquet, and reading that needs pyarrow: "
            "export the report as CSV, or install it with `pip install pyarrow`"
            " (`pipx inject sageaudit pyarrow`)"
        ) from error
    try:
        file = arrow.ParquetFile(path)
    except _BROKEN as error:
        raise _broken(path) from error
    columns = [name for name in file.schema_arrow.names if wanted(name)]
    return columns, _rows(path, file, columns)


def _rows(path: Path, file: Any, columns: Sequence[str]) -> Iterator[Sequence[object]]:
    try:
        for batch in file.iter_batches(columns=list(columns)):
            yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    except _BROKEN as error:
        raise _broken(path) from error
    finally:
        file.close()


def _broken(path: Path) -> BadUsage:
    return BadUsage(f"{path}: is a broken Parquet file")
