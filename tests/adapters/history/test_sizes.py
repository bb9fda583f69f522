"""An audit takes at most 3 kB of a history, in bytes of items and of the file."""

from hashlib import sha256
from importlib import resources
from pathlib import Path
from statistics import median

from sageaudit.adapters.history import packed
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from tools.bench import history as bench

MOST_BYTES = 3_000
DICTIONARIES = {1: "149a5fecbdb9d248b5ce8bd7a2f3999b76bddba940259ff58d754dbc3b41d906"}
"""By version: histories need each that a release had, as it was."""


def test_the_items_of_the_median_recorded_audit_are_small() -> None:
    """Head, version, findings, family row and detail, by the formula of DynamoDB."""
    assert median(map(bench.items_bytes, bench.recorded())) <= MOST_BYTES


def test_an_audit_takes_little_of_a_file(tmp_path: Path) -> None:
    """Of 1,000 audits of as many jobs, indexes and daily sums included."""
    path = tmp_path / "history.db"
    with SqliteHistory(path) as history:
        bench.fill(history, bench.audits(1_000))
    assert path.stat().st_size <= 1_000 * MOST_BYTES


def test_a_dictionary_never_changes() -> None:
    """What was packed with it could not be read any more."""
    data = resources.files("sageaudit.data")
    for version, digest in DICTIONARIES.items():
        assert sha256((data / f"history-{version}.zdict").read_bytes()).hexdigest() == digest
    assert max(DICTIONARIES) == packed.VERSION
