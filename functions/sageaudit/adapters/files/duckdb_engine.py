"""DuckDB, which reads cost reports and writes Parquet: an optional dependency for its size."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from sageaudit.errors import BadUsage

_MEMORY = "2GB"
"""DuckDB takes 80% of a machine's memory by default; beyond its limit it uses temporary files."""


@contextmanager
def duckdb_connection(what: str) -> Iterator[Any]:
    """An empty database in memory, in UTC. Raises BadUsage where DuckDB is not installed.

    `what` is what needs it. An error of DuckDB inside becomes BadUsage too.
    """
    try:
        duckdb = importlib.import_module("duckdb")
    except ImportError as error:
        raise BadUsage(
            f"{what} needs DuckDB: `pip install duckdb`, or `pipx inject sageaudit duckdb`"
        ) from error
    with TemporaryDirectory(prefix="sageaudit-") as folder:
        config = {"memory_limit": _MEMORY, "temp_directory": folder}
        with duckdb.connect(config=config) as connection, duckdb_errors(what):
            connection.execute("SET TimeZone = 'UTC'; SET autoinstall_known_extensions = false")
            yield connection


@contextmanager
def duckdb_errors(what: str) -> Iterator[None]:
    """Raises BadUsage for an error of DuckDB: `what`, and the first line of its message."""
    duckdb = importlib.import_module("duckdb")
    try:
        yield
    except duckdb.Error as error:
        raise BadUsage(f"{what} ({str(error).partition(chr(10))[0]})") from error
