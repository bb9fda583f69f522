"""Reads names from a history's file for a shell's completion.

The file and its folder stay unchanged. A file that cannot be read, or not quickly, has no names.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any, Literal

NameColumn = Literal["family", "owner", "account"]
"""A column of runs with an index, which makes its distinct values quick to find."""
_MAX_NAMES = 2_000
_MAX_JOBS = 200
_MAX_TAGGED_RUNS = 1_000
_MAX_QUERY_S = 0.5
"""The longest query: a person waits for it, and a file from somebody else may never end one."""
_STEPS_PER_CHECK = 10_000
_LAST_CHARACTER = "\U0010ffff"
_DISTINCT = """
WITH RECURSIVE names(name) AS (
    SELECT min({column}) FROM runs WHERE {column} > ''
    UNION ALL
    SELECT (SELECT min({column}) FROM runs WHERE {column} > name) FROM names
    WHERE name IS NOT NULL LIMIT :rows
)
SELECT name FROM names WHERE name IS NOT NULL"""
"""Jumps from name to name in the index, so that its time does not grow with the runs."""
_JOBS = "SELECT DISTINCT job FROM runs WHERE lower(job) >= :first AND lower(job) < :end LIMIT :rows"
_NEWEST_JOBS = "SELECT job FROM runs ORDER BY ended_at DESC LIMIT :rows"
_TAGS = "SELECT DISTINCT tags FROM (SELECT tags FROM runs ORDER BY ended_at DESC LIMIT :rows)"


def distinct_names(path: Path, column: NameColumn) -> list[str]:
    """Returns the first 2,000 names of a column, sorted."""
    return _query(path, _DISTINCT.format(column=column), {"rows": _MAX_NAMES})


def job_names(path: Path, prefix: str) -> list[str]:
    """Returns up to 200 names that begin with `prefix`; without a prefix the newest jobs."""
    first = prefix.lower()
    values = {"first": first, "end": first + _LAST_CHARACTER, "rows": _MAX_JOBS}
    return list(dict.fromkeys(_query(path, _JOBS if prefix else _NEWEST_JOBS, values)))


def cost_tags(path: Path) -> list[tuple[str, str]]:
    """Returns the names and values of the cost tags of the newest 1,000 runs, sorted."""
    tags: set[tuple[str, str]] = set()
    for text in _query(path, _TAGS, {"rows": _MAX_TAGGED_RUNS}):
        try:
            tags |= {(name, value or "") for name, value in json.loads(text).items()}
        except (ValueError, AttributeError):
            continue
    return sorted(tags)


def _query(path: Path, query: str, values: Mapping[str, Any]) -> list[str]:
    deadline = monotonic() + _MAX_QUERY_S
    try:
        if not path.is_file():  # a pipe would never open
            return []
        with closing(sqlite3.connect(_address(path), uri=True, timeout=0)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.set_progress_handler(lambda: monotonic() > deadline, _STEPS_PER_CHECK)
            return [str(name) for [name] in connection.execute(query, values) if name]
    except (sqlite3.Error, OSError, ValueError):
        return []


def _address(path: Path) -> str:
    # A reader of a file in WAL mode would leave side files behind, except in immutable mode. While
    # another process has the file open, the side files exist, and have the newest audits.
    has_side_files = all(path.with_name(f"{path.name}-{end}").exists() for end in ("wal", "shm"))
    mode = "mode=ro" if has_side_files else "mode=ro&immutable=1"
    return f"{path.absolute().as_uri()}?{mode}"
