"""The example company with a fixed last day, as README, its picture and the tests show it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.workflows.example.run import record_example

LAST_DAY = date(2026, 11, 27)
NOW = datetime(2026, 11, 28, 9, 0, tzinfo=UTC)
"""The time at which the example's history is queried: the day after its last job."""
DAYS_OPTIONS = ("--since", "2026-10-03", "--until", "2026-11-27")
"""The example's eight weeks, as options for commands that run on any day."""


def write_history(path: Path) -> Path:
    """Writes the example's history to a new file, and returns the path."""
    with SqliteHistory(path) as history:
        for _ in record_example(history, LAST_DAY):
            pass  # the generator records each job
    return path
