"""The tables of a history's file, and the migrations that lead to them.

docs/data-model.md describes them for people who ask SQL. A migration is never changed once a
version of sageaudit had it: another one is added.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sageaudit.errors import BadHistory

APPLICATION_ID = 0x53674175
"""The letters SgAu: says whose file it is, also to the command `file`."""

_FIRST = (
    """
CREATE TABLE runs (
    run_key TEXT PRIMARY KEY NOT NULL,
    arn TEXT NOT NULL,
    created_at TEXT NOT NULL,
    version INTEGER NOT NULL,
    settled INTEGER NOT NULL,
    due_at TEXT,
    last_modified_at TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    family TEXT NOT NULL,
    owner TEXT,
    ended_at TEXT NOT NULL,
    rollup INTEGER NOT NULL,
    total_micro_usd INTEGER,
    avoidable_micro_usd INTEGER,
    lost_micro_usd INTEGER,
    top_rule TEXT,
    unauditable TEXT,
    digest TEXT NOT NULL,
    ruleset TEXT NOT NULL,
    policy TEXT NOT NULL,
    family_version INTEGER NOT NULL,
    fingerprint TEXT,
    finding_ids TEXT NOT NULL,
    facts TEXT,
    judged TEXT,
    estimated INTEGER,
    incomplete INTEGER,
    stamp TEXT,
    sums TEXT,
    severity TEXT,
    findings_without_row INTEGER
)""",
    "CREATE INDEX runs_by_day ON runs (ended_at, run_key)",
    "CREATE INDEX runs_by_family ON runs (account, region, family, ended_at, run_key)",
    "CREATE INDEX runs_by_owner ON runs (owner, ended_at, run_key) WHERE owner IS NOT NULL",
    "CREATE INDEX runs_by_account ON runs (account, ended_at, run_key)",
    "CREATE INDEX runs_due ON runs (due_at, run_key) WHERE due_at IS NOT NULL",
    """
CREATE TABLE audits (
    run_key TEXT NOT NULL,
    version INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (run_key, version)
)""",
    """
CREATE TABLE findings (
    run_key TEXT NOT NULL,
    rule_id TEXT NOT NULL,
    rule TEXT NOT NULL,
    ended_at TEXT NOT NULL,
    severity TEXT NOT NULL,
    confidence TEXT NOT NULL,
    bucket TEXT NOT NULL,
    saving_micro_usd INTEGER,
    saving_alone_micro_usd INTEGER,
    summary TEXT NOT NULL,
    estimated INTEGER,
    PRIMARY KEY (run_key, rule_id)
)""",
    "CREATE INDEX findings_by_rule ON findings (rule, ended_at, run_key)",
    """
CREATE TABLE details (
    run_key TEXT PRIMARY KEY NOT NULL,
    job BLOB NOT NULL,
    series BLOB NOT NULL,
    note TEXT,
    expires_at TEXT NOT NULL
)""",
    "CREATE INDEX details_expire ON details (expires_at)",
    """
CREATE TABLE family_rows (
    run_key TEXT PRIMARY KEY NOT NULL,
    compared TEXT,
    since TEXT NOT NULL,
    expires_at TEXT NOT NULL
)""",
    "CREATE INDEX family_rows_expire ON family_rows (expires_at)",
    """
CREATE TABLE daily_sums (
    scope TEXT NOT NULL,
    day TEXT NOT NULL,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    unauditable INTEGER NOT NULL,
    not_judged INTEGER NOT NULL,
    partly_judged INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    incomplete INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    total_micro_usd INTEGER NOT NULL,
    avoidable_micro_usd INTEGER NOT NULL,
    lost_micro_usd INTEGER NOT NULL,
    lost_up_to_micro_usd INTEGER NOT NULL,
    possible_micro_usd INTEGER NOT NULL,
    idle_micro_usd INTEGER NOT NULL,
    idle_counted_micro_usd INTEGER NOT NULL,
    idle_unpriced INTEGER NOT NULL,
    PRIMARY KEY (scope, day, account, region, name)
) WITHOUT ROWID""",
    "CREATE INDEX daily_sums_by_name ON daily_sums (scope, name, day)",
    """
CREATE TABLE daily_rule_sums (
    scope TEXT NOT NULL,
    day TEXT NOT NULL,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    rule TEXT NOT NULL,
    findings INTEGER NOT NULL,
    avoidable_micro_usd INTEGER NOT NULL,
    lost_micro_usd INTEGER NOT NULL,
    possible_micro_usd INTEGER NOT NULL,
    PRIMARY KEY (scope, day, account, region, name, rule)
) WITHOUT ROWID""",
    "CREATE INDEX daily_rule_sums_by_name ON daily_rule_sums (scope, name, day)",
    """
CREATE VIEW jobs AS SELECT
    name, kind, status, account, region, family, owner, created_at, ended_at,
    total_micro_usd / 1e6 AS total_usd,
    avoidable_micro_usd / 1e6 AS avoidable_usd,
    lost_micro_usd / 1e6 AS lost_usd,
    json_extract(facts, '$.instance_type') AS instance_type,
    top_rule, severity, judged, estimated IS NOT NULL AS estimated, unauditable,
    version, settled, arn, run_key
FROM runs WHERE NOT rollup""",
    """
CREATE VIEW job_findings AS SELECT
    f.rule_id, f.rule, f.severity, f.confidence, f.bucket,
    f.saving_micro_usd / 1e6 AS saving_usd,
    f.summary, r.name, r.kind, r.account, r.region, r.family, r.owner, r.ended_at, r.rollup,
    r.arn, r.run_key
FROM findings AS f JOIN runs AS r ON r.run_key = f.run_key""",
)
MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST,)
"""The statements that lead from each schema version to the next; a new file has version 0."""


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Brings an open file to this version's schema, or makes it in an empty one.

    Raises BadHistory for a database of another tool and for a newer schema; then nothing changed.
    """
    if _version(connection, path) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited for the lock.
        for statements in MIGRATIONS[_version(connection, path) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether nothing was ever written to the file."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return not tables and not _pragma(connection, "application_id")


def _version(connection: sqlite3.Connection, path: Path) -> int:
    if is_empty(connection):
        return 0
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise BadHistory(
            f"{path} is a database of another tool: name another file with --history,"
            " it was not changed"
        )
    version = _pragma(connection, "user_version")
    if version > len(MIGRATIONS):
        raise BadHistory(
            f"{path} was written by a newer sageaudit (schema {version}, this one knows"
            f" {len(MIGRATIONS)}): update sageaudit, or name another file with --history"
        )
    return version


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
