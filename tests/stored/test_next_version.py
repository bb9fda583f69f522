"""A later version may add fields, items, columns and tables: both versions read both.

The next version is simulated: its additions are written into the samples of the newest release,
and taken out of a file of today. So a deployment or a file can be rolled back.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.files.exact_json import gzip_json, read_gzip_json, to_json
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.sqlite import file, schema, upgrade
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import AuditEntry, RecordOutcome, RunQuery
from sageaudit.domain.audit.sums import Scope
from sageaudit.errors import HistoryDenied
from sageaudit.output.text.card import parse_notice
from sageaudit.structs import replace
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.entries import NOON, entry
from tests.stored.samples import FILE, Item, asked_file, asked_table, read_table, write_file
from tests.stored.test_stored import NEWEST, answers, lost

LATER = {"S": "of a later version"}
ADDED_COLUMNS = [
    ("runs", "carbon_g"),
    ("findings", "effort"),
    ("audits", "signature"),
    ("details", "carbon_g"),
    ("family_rows", "carbon_g"),
    ("decisions", "ticket"),
]


def with_additions(value: Any) -> Any:
    """Returns a stored value with an unknown key in each map of names, at every depth."""
    if isinstance(value, list):
        return [with_additions(inner) for inner in value]
    if isinstance(value, dict):
        inner = {name: with_additions(part) for name, part in value.items()}
        # a map by job, metric or tag has keys that are data
        has_names = all(name.isidentifier() and name.islower() for name in value)
        return inner | {"later_field": "of a later version"} if value and has_names else inner
    return value


def next_item(item: Item) -> dict[str, Any]:
    """Returns the item as a later version writes it: with another attribute, and with more keys in
    the JSON of its document.
    """
    packed = {
        name: {"B": gzip_json(with_additions(read_gzip_json(value["B"])))}
        for name, value in item.items()
        if name == "document"
    }
    return {**item, "later_attribute": LATER, **packed}


def next_table() -> list[dict[str, Any]]:
    """Returns the newest sample with a later version's attributes, and an item of an unknown kind
    in each partition that may have one (docs/data-model.md).
    """
    items = [next_item(item) for item in read_table(NEWEST)]
    partitions = {item["pk"]["S"] for item in items} - {"MEMBERS"}
    return items + [{"pk": {"S": name}, "sk": {"S": "LATER#1"}} for name in sorted(partitions)]


@pytest.fixture
def next_file(tmp_path: Path) -> Path:
    """Returns a file after a later version has opened it and changed it."""
    path = tmp_path / FILE
    path.write_bytes((NEWEST / FILE).read_bytes())
    with closing(sqlite3.connect(path)) as sql, sql:
        for table, column in ADDED_COLUMNS:
            sql.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT")
            sql.execute(f"UPDATE {table} SET {column} = 'of a later version'")  # noqa: S608
        for table in ("daily_sums", "daily_rule_sums"):
            sql.execute(f"ALTER TABLE {table} ADD COLUMN carbon_g INTEGER NOT NULL DEFAULT 0")
        sql.execute("CREATE TABLE budgets_of_teams (team TEXT PRIMARY KEY, usd INTEGER)")
        sql.execute("CREATE INDEX runs_by_carbon ON runs (carbon_g)")
        sql.execute("DROP VIEW jobs")
        [view] = [text for text in schema.TABLES if "CREATE VIEW jobs" in text]
        sql.execute(view.replace("SELECT\n", "SELECT carbon_g,\n"))
        for run, packed in sql.execute("SELECT run, document FROM audits").fetchall():
            later = gzip_json(with_additions(read_gzip_json(packed)))
            sql.execute("UPDATE audits SET document = ? WHERE run = ?", (later, run))
    return path


def later_entry(name: str) -> AuditEntry:
    """Returns an entry that makes the next version of a job's audit."""
    return entry(name, audit={"ruleset": "2026.12"}, force_new_version=True, modified_s=60)


def schema_of(path: Path) -> list[Any]:
    """Returns the SQL of all tables, indexes and views of a file."""
    with closing(sqlite3.connect(path)) as sql:
        return sql.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()


@pytest.fixture
def earlier_file(tmp_path: Path) -> Path:
    """Returns a file that lacks columns, an index and views of today's, as one of an earlier
    version does.
    """
    path = tmp_path / FILE
    write_file(path)
    with closing(sqlite3.connect(path)) as sql, sql:
        for view in ("jobs", "job_findings"):
            sql.execute(f"DROP VIEW {view}")
        sql.execute("CREATE VIEW jobs AS SELECT job, kind FROM runs")
        sql.execute("DROP INDEX runs_by_day")
        for table, column in (("runs", "image"), ("daily_sums", "jobs"), ("decisions", "reason")):
            sql.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    return path


def test_a_table_of_a_later_version_is_read_as_before() -> None:
    """Each reader ignores attributes, keys and kinds of items that it does not know."""
    assert lost(answers(NEWEST)["table"], asked_table(next_table())) == []


def test_a_notice_of_a_later_version_is_delivered() -> None:
    """The queue of a channel may still have it after a rollback."""
    bodies = [item["body"]["B"] for item in read_table(NEWEST) if "NOTICE" in item["sk"]["S"]]
    assert bodies
    for packed in bodies:
        body = read_gzip_json(packed)
        notice = parse_notice(to_json({**body, "later_field": 1}))
        assert notice == parse_notice(to_json(body))


def test_this_version_goes_on_in_a_table_of_a_later_one() -> None:
    """A job that the later version recorded gets its next audit, and a list has both jobs."""
    with dynamodb() as client:
        name = new_table(client)
        for item in next_table():
            client.put_item(TableName=name, Item=item)
        history = DynamoHistory(client, name)
        [head] = history.runs(RunQuery.for_name("llm-7b"))
        result = history.record(replace(later_entry("llm-7b"), key=head.key))
        assert (result.outcome, result.version) == (RecordOutcome.RECORDED, 2)
        assert history.record(entry("train-1")).outcome is RecordOutcome.RECORDED
        assert {row.job for row in history.runs(RunQuery.for_account(head.account))} == {
            "llm-7b",
            "train-1",
        }


def test_a_file_of_a_later_version_is_read_as_before_and_not_changed(next_file: Path) -> None:
    before = schema_of(next_file)
    assert lost(answers(NEWEST)["file"], asked_file(next_file)) == []
    assert schema_of(next_file) == before


def test_this_version_goes_on_in_a_file_of_a_later_one(next_file: Path) -> None:
    """A run of the later version gets its next audit; another run keeps the later values."""
    with SqliteHistory(next_file) as history:
        result = history.record(later_entry("train-1"))
        assert (result.outcome, result.version) == (RecordOutcome.RECORDED, 2)
        assert history.record(entry("train-3")).outcome is RecordOutcome.RECORDED
        rows = history.daily_sums(Scope.ACCOUNT, NOON.date(), NOON.date())
        assert [row.sums.jobs for row in rows] == [3]
    with closing(sqlite3.connect(next_file)) as sql:
        later = dict(sql.execute("SELECT job, carbon_g FROM jobs").fetchall())
        assert later["train-2"] == "of a later version"
        assert later["train-3"] is None


def test_a_file_of_an_earlier_version_gets_what_it_lacks(earlier_file: Path) -> None:
    """Once, at the first opening; the values are unknown, and new audits have them."""
    with SqliteHistory(earlier_file, create=False) as history:
        summaries = [*history.runs(RunQuery.for_account("111122223333"))]
        assert [row.image for row in summaries] == [None, None]
        assert history.record(entry("train-3")).outcome is RecordOutcome.RECORDED
        assert [row.reason for row in history.decisions()] == [None]
    with closing(sqlite3.connect(earlier_file)) as sql:
        assert upgrade.missing_parts(sql) == []
        assert {name for _, name in tables_and_views(sql)} >= {"jobs", "runs_by_day"}
        assert sql.execute("SELECT count(total_usd) FROM jobs").fetchone() == (3,)


def test_a_broken_view_of_the_user_stays_and_hides_nothing(earlier_file: Path) -> None:
    """It reads a table that is not there any more."""
    with closing(sqlite3.connect(earlier_file)) as sql:
        sql.execute("CREATE VIEW mine AS SELECT * FROM gone")
    with SqliteHistory(earlier_file, create=False) as history:
        assert len([*history.runs(RunQuery.for_account("111122223333"))]) == 2
    with closing(sqlite3.connect(earlier_file)) as sql:
        assert ("view", "mine") in tables_and_views(sql)


def test_two_processes_upgrade_a_file_once(earlier_file: Path) -> None:
    """The second one finds that the first has done it."""
    with closing(sqlite3.connect(earlier_file)) as second:
        planned = upgrade.missing_parts(second)
        with SqliteHistory(earlier_file):
            pass
        assert planned
        assert upgrade.missing_parts(second) == []


def test_an_earlier_file_that_cannot_be_written_is_refused_in_one_sentence(
    earlier_file: Path,
) -> None:
    """Opened as on a read-only drive, since root may write any file."""
    with closing(sqlite3.connect(earlier_file)) as sql:
        sql.execute("PRAGMA journal_mode = DELETE")
    connection = file._connect(earlier_file, "mode=ro", "immutable=1")
    with pytest.raises(HistoryDenied, match="by an earlier version of sageaudit and cannot be"):
        file._prepare_schema(connection, earlier_file, create=False, use_wal=False)


def tables_and_views(sql: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Yields type and name of each part of a file."""
    yield from sql.execute("SELECT type, name FROM sqlite_master")
