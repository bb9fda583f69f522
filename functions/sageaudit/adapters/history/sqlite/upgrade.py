"""Adds to a history's file what this version has and an earlier version did not have.

Within one `schema.VERSION`, a version only adds tables, columns, indexes and views. A new column
is optional, or a number with the default 0. So an earlier version can still read and write a file
that a later one has opened, and it leaves alone what it does not know.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import cache

from msgspec import Struct

from sageaudit.adapters.history.sqlite import schema

_NAMES = "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
_STATEMENTS = """
SELECT type, name, sql FROM sqlite_master WHERE name IN (SELECT value FROM json_each(?))"""
_COLUMNS = """
SELECT m.name, c.name,
    c.type || iif(c.[notnull], ' NOT NULL', '') || coalesce(' DEFAULT ' || c.dflt_value, '')
FROM sqlite_master AS m, pragma_table_info(m.name) AS c
WHERE m.type IN ('table', 'view') AND m.name IN (SELECT value FROM json_each(?))"""


class _Schema(Struct, frozen=True):
    """`statements`: the CREATE statement by type and name. `columns`: the definition by table or
    view and column.
    """

    statements: dict[tuple[str, str], str]
    columns: dict[tuple[str, str], str]


def missing_parts(connection: sqlite3.Connection) -> list[str]:
    """Returns the statements that add to a file what it lacks; usually none."""
    own = _own_schema()
    stored = _read_schema(connection, {name for _, name in own.statements})
    return [] if own == stored else [*_statements(own, stored)]


def _statements(own: _Schema, stored: _Schema) -> Iterator[str]:
    missing_columns = own.columns.keys() - stored.columns.keys()
    for table, column in own.columns:
        if (table, column) in missing_columns and ("table", table) in stored.statements:
            definition = own.columns[table, column]
            yield f"ALTER TABLE {table} ADD COLUMN {column} {definition}"
    old_views = {name for name, _ in missing_columns if ("view", name) in stored.statements}
    yield from (f"DROP VIEW {name}" for name in sorted(old_views))
    for (kind, name), statement in own.statements.items():
        if (kind, name) not in stored.statements or name in old_views:
            yield statement


@cache
def _own_schema() -> _Schema:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in schema.TABLES:
            connection.execute(statement)
        return _read_schema(connection, {name for (name,) in connection.execute(_NAMES)})


def _read_schema(connection: sqlite3.Connection, names: Iterable[str]) -> _Schema:
    # Another tool's views are not looked at: a broken one would be an error.
    values = (json.dumps(sorted(names)),)
    statements = {(kind, name): sql for kind, name, sql in connection.execute(_STATEMENTS, values)}
    columns = {(table, name): text for table, name, text in connection.execute(_COLUMNS, values)}
    return _Schema(statements, columns)
