"""Counts the bytes of an audit in DynamoDB and in SQLite, beside the JSON of its document."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sageaudit.adapters.files.exact_json import to_json
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from tools.bench.measure import Row
from tools.bench.samples.histories import audits, fill, items_bytes, recorded_entries

AUDITS = 10_000
_KB = 1000


def rows() -> Iterator[Row]:
    """Yields the size of an audit: the median in DynamoDB without indexes, the mean in SQLite."""
    entries = recorded_entries()
    json_bytes = statistics.median(len(to_json(entry.document).encode()) for entry in entries)
    yield Row.of_count("the JSON of a recorded job's document, median", json_bytes / _KB, "kB")
    yield Row.of_count(
        "its items in DynamoDB", statistics.median(map(items_bytes, entries)) / _KB, "kB",
        "at most 6 kB",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "history.db")
        with SqliteHistory(path) as history:
            fill(history, audits(AUDITS))
        size = path.stat().st_size / AUDITS / _KB
    yield Row.of_count("an audit in SQLite, tables and indexes", size, "kB", "at most 6 kB")
