# ruff: noqa: S608 - the statements are made of names that this package defines
"""The tables of a history's file, and the SQL that reads and writes them.

docs/data-model.md describes the tables for people who query them. A test in tests/adapters/history
checks which index each list uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args, get_type_hints

from sageaudit.adapters.history.sqlite.rows import (
    RUN_COLUMNS,
    column_name,
    column_names,
)
from sageaudit.domain.advice.advice import Decision
from sageaudit.domain.audit.record import FindingRow, RunIndex
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums, Sums

APPLICATION_ID = 0x53674175
"""SQLite's application id of a history: the letters SgAu. The command `file` shows it."""
VERSION = 8
"""The version of these tables, stored as PRAGMA user_version. Other versions are refused.

Parts that are only added keep the version: upgrade.py adds them to a file that lacks them.
"""

_ARN = "coalesce(arn, rtrim(rtrim(run_key, '-0123456789'), '#'))"
_RUN = "(SELECT run FROM runs WHERE run_key = :run_key)"
_SUM_KEY = ("scope", "day", "account", "region", "name")
_RULE_KEY = (*_SUM_KEY, "rule")
_SUMS = tuple(name for name in column_names(Sums) if name != "rules")
_RULE_SUMS = tuple(column_names(RuleSums))


def _columns(form: type[Any]) -> str:
    # Each column is an INTEGER, or a TEXT, which keeps decimals exact.
    integer_columns = {
        column_name(field)
        for field, hint in get_type_hints(form).items()
        if {bool, int} & {hint, *get_args(hint)} or field.endswith("_usd")
    }
    types = {name: "INTEGER" if name in integer_columns else "TEXT" for name in column_names(form)}
    return ", ".join(f"{name} {type_name}" for name, type_name in types.items())


def _sums_table(name: str, key: tuple[str, ...], numbers: tuple[str, ...]) -> str:
    texts = ", ".join(f"{column} TEXT NOT NULL" for column in key)
    sums = ", ".join(f"{column} INTEGER NOT NULL DEFAULT 0" for column in numbers)
    return f"CREATE TABLE {name} ({texts}, {sums}, PRIMARY KEY ({', '.join(key)})) WITHOUT ROWID"


TABLES = (
    f"""
CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    run_key TEXT NOT NULL UNIQUE,
    {_columns(AuditSummary)}
)""",
    "CREATE INDEX runs_by_day ON runs (ended_at)",
    "CREATE INDEX runs_by_family ON runs (family, account, region, ended_at)",
    "CREATE INDEX runs_by_owner ON runs (owner, ended_at) WHERE owner IS NOT NULL",
    "CREATE INDEX runs_by_account ON runs (account, ended_at)",
    "CREATE INDEX runs_by_name ON runs (lower(job))",
    "CREATE INDEX runs_due ON runs (due_at) WHERE due_at IS NOT NULL",
    """
CREATE TABLE audits (
    run INTEGER NOT NULL,
    version INTEGER NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (run, version)
)""",
    f"""
CREATE TABLE findings (
    run INTEGER NOT NULL,
    ended_at TEXT, {_columns(FindingRow)},
    PRIMARY KEY (run, rule_id)
) WITHOUT ROWID""",
    "CREATE INDEX findings_by_rule ON findings (rule, ended_at)",
    """
CREATE TABLE details (
    run INTEGER PRIMARY KEY,
    description BLOB NOT NULL,
    series BLOB NOT NULL,
    note TEXT,
    expires_at INTEGER NOT NULL
)""",
    "CREATE INDEX details_expire ON details (expires_at)",
    """
CREATE TABLE family_rows (
    run INTEGER PRIMARY KEY,
    stamp TEXT NOT NULL,
    compared TEXT,
    since TEXT NOT NULL,
    expires_at INTEGER NOT NULL
)""",
    "CREATE INDEX family_rows_expire ON family_rows (expires_at)",
    f"CREATE TABLE decisions ({_columns(Decision)}, PRIMARY KEY (recommendation_id, at))",
    _sums_table("daily_sums", _SUM_KEY, _SUMS),
    _sums_table("daily_rule_sums", _RULE_KEY, _RULE_SUMS),
    f"""
CREATE VIEW jobs AS SELECT
    job, kind, status, account, region, family, owner, created_at, ended_at, instance,
    total_micro_usd / 1e6 AS total_usd, spend_qualifier,
    avoidable_micro_usd / 1e6 AS avoidable_usd,
    lost_micro_usd / 1e6 AS lost_usd,
    possible_micro_usd / 1e6 AS possible_usd,
    storage_micro_usd / 1e6 AS storage_usd,
    warm_pool_micro_usd / 1e6 AS warm_pool_usd,
    spot_saved_micro_usd / 1e6 AS spot_saved_usd,
    instance_type, instance_count, purchase, image, tags, duration_s, waiting_s,
    instance_s / 3600.0 AS instance_hours,
    gpu_s / 3600.0 AS gpu_hours, idle_gpu_s / 3600.0 AS idle_gpu_hours,
    reason,
    costliest_rule, severity, judged, estimated IS NOT NULL AS estimated, unauditable,
    version, settled, {_ARN} AS arn, run_key
FROM runs WHERE NOT rollup""",
    f"""
CREATE VIEW job_findings AS SELECT
    f.rule_id, f.rule, f.severity, f.confidence, f.bucket,
    f.saving_micro_usd / 1e6 AS saving_usd, f.saving_up_to_micro_usd / 1e6 AS saving_up_to_usd,
    f.summary, f.fix, r.job, r.kind, r.account, r.region, r.family, r.owner, r.ended_at, r.rollup,
    {_ARN} AS arn, r.run_key
FROM findings AS f JOIN runs AS r ON r.run = f.run""",
)
"""The statements that create a history in an empty file."""

RUN_ROW_COLUMNS = ("run_key", *column_names(AuditSummary))
"""The columns with a run's whole summary."""
SUMMARY = f"SELECT {', '.join(RUN_ROW_COLUMNS)} FROM runs WHERE run_key = :run_key"
_NEWEST = (
    " AND ended_at <= :moment AND (ended_at < :moment OR run_key < :after)"
    " ORDER BY ended_at DESC, run_key DESC LIMIT :rows"
)
"""Ends a list's query: newest rows first, after the previous page.

SQLite itself sorts runs with the same end by run_key, which is too long for an index.
"""
_FAMILY_CONDITION = "account = :account AND region = :region AND family = :family"
_DUE = (
    "due_at <= :until AND due_at >= :moment AND (due_at > :moment OR run_key > :after)"
    " ORDER BY due_at, run_key LIMIT :rows"
)
_FINDING_COLUMNS = ", ".join(
    [f"r.{name} AS {name}" for name in RUN_COLUMNS]
    + [f"f.{name} AS {name}" for name in column_names(FindingRow)]
)
_FINDINGS = (
    f"SELECT {_FINDING_COLUMNS} FROM findings AS f CROSS JOIN runs AS r ON r.run = f.run WHERE"
)
_LISTS: dict[RunIndex, tuple[tuple[str, ...], str]] = {
    RunIndex.DAY: (("period",), f"ended_at >= :period{_NEWEST}"),
    RunIndex.FAMILY: (("account", "region", "family"), f"{_FAMILY_CONDITION}{_NEWEST}"),
    RunIndex.OWNER: (("owner",), f"owner = :owner{_NEWEST}"),
    RunIndex.ACCOUNT: (("account",), f"account = :account{_NEWEST}"),
    RunIndex.NAME: (("name",), f"lower(job) = lower(:name){_NEWEST}"),
    RunIndex.RULE: (("rule",), f"rule = :rule{_NEWEST.replace('ended_at', 'f.ended_at')}"),
    RunIndex.DUE: (("until",), _DUE),
}


def list_query(
    index: RunIndex, columns: Iterable[str] = RUN_ROW_COLUMNS
) -> tuple[tuple[str, ...], str]:
    """Returns the parameters of a list, in the order of a RunQuery's values, and its SQL.

    `columns` are the columns of runs to read. `period` is a day, the prefix of its times. A page
    begins after `moment` and `after` (a run's key).
    """
    parameter_names, condition = _LISTS[index]
    select = _FINDINGS if index is RunIndex.RULE else f"SELECT {', '.join(columns)} FROM runs WHERE"
    return parameter_names, f"{select} {condition}"


_FAMILY_PLACE_COLUMNS = "r.run_key, r.ended_at, f.stamp"
_FAMILY_ROW_COLUMNS = "r.run_key, r.arn, r.created_at, r.ended_at, f.stamp, f.compared, f.since"
_FAMILY_ROWS = (
    " FROM runs AS r CROSS JOIN family_rows AS f ON f.run = r.run"
    " WHERE r.account = :account AND r.region = :region AND r.family = :family"
    " AND f.expires_at > :now AND "
)
FAMILY_ROW = (
    f"SELECT {_FAMILY_ROW_COLUMNS}{_FAMILY_ROWS}r.ended_at = :ended_at AND r.run_key = :run_key"
)
FAMILY_BEFORE = (
    f"SELECT {_FAMILY_PLACE_COLUMNS}{_FAMILY_ROWS}r.ended_at < :ended_at"
    " ORDER BY r.ended_at DESC, r.run_key DESC LIMIT :rows"
)
FAMILY_AFTER = (
    f"SELECT {_FAMILY_ROW_COLUMNS}{_FAMILY_ROWS}r.ended_at > :ended_at"
    " ORDER BY r.ended_at, r.run_key LIMIT :rows"
)
SCHEDULE_REAUDIT = (
    "UPDATE runs SET due_at = :due_at WHERE run_key = :run_key"
    " AND (due_at IS NULL OR due_at > :due_at)"
)

TABLE_NAMES = (
    *("runs", "audits", "findings", "details", "family_rows", "decisions"),
    *("daily_sums", "daily_rule_sums"),
)
"""The tables that every file has."""
_AUDITS_OF_RUN = f"SELECT :run_key AS run_key, document FROM audits WHERE run = {_RUN}"
NEWEST_AUDIT = f"{_AUDITS_OF_RUN} ORDER BY version DESC LIMIT 1"
AUDIT = f"{_AUDITS_OF_RUN} AND version = :version"
DETAIL = (
    "SELECT :run_key AS run_key, description, series, note FROM details"
    f" WHERE run = {_RUN} AND expires_at > :now"
)
ADVANCE = "UPDATE runs SET last_modified_at = :last_modified_at WHERE run_key = :run_key"
DELETE_FINDINGS = f"DELETE FROM findings WHERE run = {_RUN}"
DELETE_FAMILY_ROW = f"DELETE FROM family_rows WHERE run = {_RUN}"
DELETE_EXPIRED = (
    "DELETE FROM details WHERE expires_at <= :now",
    "DELETE FROM family_rows WHERE expires_at <= :now",
)
VACUUM = "PRAGMA incremental_vacuum"


def _put(table: str, *columns: str) -> str:
    """Returns a statement that writes a row, or replaces the row with the same key."""
    values = ", ".join(_RUN if name == "run" else f":{name}" for name in columns)
    return f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({values})"


def _put_run(*columns: str) -> str:
    # An existing row keeps its number.
    assignments = ", ".join(f"{name} = excluded.{name}" for name in columns)
    return (
        f"INSERT INTO runs (run_key, {', '.join(columns)})"
        f" VALUES (:run_key, {', '.join(f':{name}' for name in columns)})"
        f" ON CONFLICT (run_key) DO UPDATE SET {assignments}"
    )


def _add(table: str, key: tuple[str, ...], number_columns: tuple[str, ...]) -> str:
    """Adds to the numbers of a row, or inserts the row."""
    names = ", ".join((*key, *number_columns))
    values = ", ".join(f":{name}" for name in (*key, *number_columns))
    additions = ", ".join(f"{name} = {name} + excluded.{name}" for name in number_columns)
    return (
        f"INSERT INTO {table} ({names}) VALUES ({values})"
        f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {additions}"
    )


PUT_SUMMARY = _put_run(*column_names(AuditSummary))
PUT_AUDIT = f"INSERT INTO audits (run, version, document) VALUES ({_RUN}, :version, :document)"
PUT_FINDING = _put("findings", "run", "ended_at", *column_names(FindingRow))
PUT_DETAIL = _put("details", "run", "description", "series", "note", "expires_at")
PUT_DECISION = _put("decisions", *column_names(Decision))
DECISIONS = (
    f"SELECT {', '.join(column_names(Decision))} FROM decisions ORDER BY recommendation_id, at"
)
PUT_FAMILY_ROW = _put("family_rows", "run", "stamp", "compared", "since", "expires_at")

ADD_SUMS = _add("daily_sums", _SUM_KEY, _SUMS)
ADD_RULE_SUMS = _add("daily_rule_sums", _RULE_KEY, _RULE_SUMS)
_SUMS_CONDITION = (
    " WHERE scope = :scope AND day BETWEEN :since AND :until"
    " AND (:account IS NULL OR account = :account) AND (:region IS NULL OR region = :region)"
    " AND (:name IS NULL OR name = :name)"
)
SUMS = f"SELECT {', '.join((*_SUM_KEY, *_SUMS))} FROM daily_sums{_SUMS_CONDITION}"
RULE_SUMS = f"SELECT {', '.join((*_RULE_KEY, *_RULE_SUMS))} FROM daily_rule_sums{_SUMS_CONDITION}"
