"""Measures the size of an audit in a history. `samples/histories.py` measures its lists.

The peer of a recording is SQLite's own insert of the document's JSON.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from sageaudit.adapters.files.exact_json import to_json
from sageaudit.adapters.history.codec import run_key
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import AuditEntry
from tools.bench.measure import Row
from tools.bench.samples.histories import audits, fill, items_bytes, recorded_entries


def _plain_insert(path: Path, entries: Sequence[AuditEntry]) -> float:
    """Returns the CPU seconds of SQLite's own insert of one document's JSON, in one transaction."""
    texts = [(run_key(entry.key), to_json(entry.document)) for entry in entries]
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        sql.execute("PRAGMA journal_mode = WAL")
        sql.execute("PRAGMA synchronous = NORMAL")
        sql.execute("CREATE TABLE audits (run_key TEXT PRIMARY KEY, document TEXT)")
        begin = time.process_time()
        for text in texts:
            sql.execute("INSERT INTO audits VALUES (?, ?)", text)
        return (time.process_time() - begin) / len(texts)


def rows() -> Iterator[Row]:
    """Yields the sizes of an audit in both stores, and what it costs to record one."""
    yield Row(
        "an audit's items in DynamoDB, median of the recorded",
        statistics.median(map(items_bytes, recorded_entries())) / 1000,
        "kB",
        "JSON of the document",
        statistics.median(len(to_json(entry.document).encode()) for entry in recorded_entries())
        / 1000,
        "at most 6 kB",
    )
    with tempfile.TemporaryDirectory() as folder:
        plain, path = Path(folder, "plain.db"), Path(folder, "some.db")
        entries = [*audits(1_000)]
        insert_s = _plain_insert(plain, entries)
        with SqliteHistory(path) as history:
            begin = time.process_time()
            fill(history, entries)
            record_s = (time.process_time() - begin) / len(entries)
        yield Row(
            "recording an audit", 1000 * record_s, "CPU ms", "SQLite's insert", 1000 * insert_s
        )
        size, plain_size = (file.stat().st_size / len(entries) / 1000 for file in (path, plain))
        yield Row("an audit in SQLite", size, "kB", "a table of documents", plain_size, "6 kB")
