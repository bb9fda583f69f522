"""An audit takes at most 6 KiB of a history, in bytes of items and of the file."""

from pathlib import Path
from statistics import median

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from tools.bench.samples import histories as bench

MOST_BYTES = 6 * 1024


def test_the_items_of_the_median_recorded_audit_are_small() -> None:
    """Head, version, findings, family row and detail, by the formula of DynamoDB."""
    assert median(map(bench.items_bytes, bench.recorded_entries())) <= MOST_BYTES


def test_an_audit_takes_little_of_a_file(tmp_path: Path) -> None:
    """Of 1,000 audits of as many jobs, indexes and daily sums included."""
    path = tmp_path / "history.db"
    with SqliteHistory(path) as history:
        bench.fill(history, bench.audits(1_000))
    assert path.stat().st_size <= 1_000 * MOST_BYTES
