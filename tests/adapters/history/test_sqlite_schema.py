"""Each statement of an embedded history uses its index: it reads no other rows, and sorts none
that ended at different moments.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from sageaudit.adapters.history.sqlite import schema
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import RunIndex
from tests.fakes.entries import NOON, entry_ending_at

INDEXES = {
    "SUMMARY": "sqlite_autoindex_runs_1 (run_key=?",
    "by-day": "runs_by_day (ended_at>?",
    "by-family": "runs_by_family (family=? AND account=? AND region=? AND ended_at<?",
    "by-owner": "runs_by_owner (owner=? AND ended_at<?",
    "by-account": "runs_by_account (account=? AND ended_at<?",
    "by-rule": "findings_by_rule (rule=? AND ended_at<?",
    "due": "runs_due (due_at>? AND due_at<?",
    "FAMILY_BEFORE": "runs_by_family (family=? AND account=? AND region=? AND ended_at<?",
    "FAMILY_AFTER": "runs_by_family (family=? AND account=? AND region=? AND ended_at>?",
    "NEWEST_AUDIT": "sqlite_autoindex_audits_1 (run=?",
    "DETAIL": "INTEGER PRIMARY KEY (rowid=?",
    "SUMS": "PRIMARY KEY (scope=? AND day>? AND day<?",
    "RULE_SUMS": "PRIMARY KEY (scope=? AND day>? AND day<?",
}
"""What SQLite plans for the statement of this name."""
SORTED_WITHIN = re.compile("USE TEMP B-TREE FOR (RIGHT PART|LAST TERM|LAST 1 TERMS?) OF ORDER BY")
"""What it says where an index has the order but for the runs of one moment."""


LISTS = {index.value: schema.list_query(index)[1] for index in RunIndex}


@pytest.fixture
def sql(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A history of some jobs, as SQLite plans its queries."""
    path = tmp_path / "history.db"
    with SqliteHistory(path) as history:
        for minute in range(20):
            history.record(entry_ending_at(f"job-{minute}", NOON + timedelta(minutes=minute)))
    with closing(sqlite3.connect(path)) as connection:
        yield connection


@pytest.mark.parametrize("query", INDEXES)
@pytest.mark.parametrize("analyzed", [False, True])
def test_each_list_uses_its_index(sql: sqlite3.Connection, query: str, analyzed: bool) -> None:
    """Also once SQLite knows how the rows are spread."""
    if analyzed:
        sql.execute("ANALYZE")
    statement = LISTS.get(query) or getattr(schema, query)
    values = dict.fromkeys(
        [word.strip(",)(") for part in statement.split(":")[1:] for word in part.split()[:1]]
    )
    plan = [row[3] for row in sql.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
    assert INDEXES[query] in plan[0]
    assert not [step for step in plan if "SCAN" in step]
    assert not [s for s in plan if "TEMP B-TREE" in s and not SORTED_WITHIN.fullmatch(s)]
