# ruff: noqa: S608 - the statements are made of names that this package defines
"""The SQL of a history's file. tests/contract asks SQLite which index each list uses."""

from __future__ import annotations

from sageaudit.adapters.history.sqlite.columns import column_names
from sageaudit.domain.audit.record import Head
from sageaudit.domain.audit.sums import RuleSums, Sums

HEAD = "SELECT * FROM runs WHERE run_key = :run_key"
_NEWEST = " AND (ended_at, run_key) < (:ended_at, :after) ORDER BY ended_at DESC, run_key DESC"
_PAGE = " LIMIT :rows"
BY_DAY = f"SELECT * FROM runs WHERE ended_at >= :day{_NEWEST}{_PAGE}"
BY_FAMILY = (
    "SELECT * FROM runs WHERE account = :account AND region = :region AND family = :family"
    f"{_NEWEST}{_PAGE}"
)
BY_OWNER = f"SELECT * FROM runs WHERE owner = :owner{_NEWEST}{_PAGE}"
BY_ACCOUNT = (
    f"SELECT * FROM runs WHERE account = :account AND ended_at >= :month"
    f" AND substr(ended_at, 1, 7) = :month{_NEWEST}{_PAGE}"
)
BY_RULE = (
    "SELECT r.arn, r.created_at, f.rule_id, f.rule, f.severity, f.confidence, f.bucket, r.name,"
    " r.family, r.owner, f.ended_at, f.saving_micro_usd, f.saving_alone_micro_usd, f.summary,"
    " f.estimated, f.run_key"
    " FROM findings AS f CROSS JOIN runs AS r ON r.run_key = f.run_key"
    " WHERE f.rule = :rule AND f.ended_at >= :month AND substr(f.ended_at, 1, 7) = :month"
    " AND (f.ended_at, f.run_key) < (:ended_at, :after)"
    " ORDER BY f.ended_at DESC, f.run_key DESC LIMIT :rows"
)
"""CROSS JOIN: SQLite then begins with the findings."""
DUE = (
    "SELECT * FROM runs WHERE due_at <= :until AND (due_at, run_key) > (:due_at, :after)"
    " ORDER BY due_at, run_key LIMIT :rows"
)

_FAMILY_ROW = (
    "SELECT r.arn, r.created_at, r.ended_at, r.run_key, r.stamp, f.compared, f.since"
    " FROM runs AS r CROSS JOIN family_rows AS f ON f.run_key = r.run_key"
    " WHERE r.account = :account AND r.region = :region AND r.family = :family"
    " AND f.expires_at > :now AND "
)
FAMILY_ROW = f"{_FAMILY_ROW}r.ended_at = :ended_at AND r.run_key = :run_key"
FAMILY_BEFORE = (
    f"{_FAMILY_ROW}r.ended_at < :ended_at ORDER BY r.ended_at DESC, r.run_key DESC LIMIT :rows"
)
FAMILY_AFTER = f"{_FAMILY_ROW}r.ended_at > :ended_at ORDER BY r.ended_at, r.run_key LIMIT :rows"
MAKE_DUE = (
    "UPDATE runs SET due_at = :due_at WHERE run_key = :run_key"
    " AND (due_at IS NULL OR due_at > :due_at)"
)

NEWEST_AUDIT = "SELECT document FROM audits WHERE run_key = :run_key ORDER BY version DESC LIMIT 1"
AUDIT = "SELECT document FROM audits WHERE run_key = :run_key AND version = :version"
DETAIL = "SELECT job, series, note FROM details WHERE run_key = :run_key AND expires_at > :now"
ADVANCE = "UPDATE runs SET last_modified_at = :last_modified_at WHERE run_key = :run_key"
FORGET_FINDINGS = "DELETE FROM findings WHERE run_key = :run_key"
FORGET_FAMILY_ROW = "DELETE FROM family_rows WHERE run_key = :run_key"
FORGET_EXPIRED = (
    "DELETE FROM details WHERE expires_at <= :now",
    "DELETE FROM family_rows WHERE expires_at <= :now",
)
GIVE_SPACE_BACK = "PRAGMA incremental_vacuum"


def _put(table: str, *columns: str) -> str:
    """Writes a row, in place of the one with its key."""
    names, values = ", ".join(columns), ", ".join(f":{name}" for name in columns)
    return f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({values})"


def _add(table: str, key: tuple[str, ...], added: tuple[str, ...]) -> str:
    """Adds to the numbers of a row, which begin at 0."""
    names = ", ".join((*key, *added))
    values = ", ".join(f":{name}" for name in (*key, *added))
    more = ", ".join(f"{name} = {name} + excluded.{name}" for name in added)
    return (
        f"INSERT INTO {table} ({names}) VALUES ({values})"
        f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {more}"
    )


PUT_HEAD = _put("runs", "run_key", *column_names(Head))
PUT_AUDIT = "INSERT INTO audits (run_key, version, document) VALUES (:run_key, :version, :document)"
_OF_FINDING = ("rule_id", "rule", "ended_at", "severity", "confidence", "bucket")
_SAVED = ("saving_micro_usd", "saving_alone_micro_usd", "summary", "estimated")
PUT_FINDING = _put("findings", "run_key", *_OF_FINDING, *_SAVED)
PUT_DETAIL = _put("details", "run_key", "job", "series", "note", "expires_at")
PUT_FAMILY_ROW = _put("family_rows", "run_key", "compared", "since", "expires_at")

SUM_COLUMNS = tuple(name for name in column_names(Sums) if name != "rules")
RULE_COLUMNS = tuple(column_names(RuleSums))
_OF_SUMS = ("scope", "account", "region", "name", "day")
ADD_SUMS = _add("daily_sums", _OF_SUMS, SUM_COLUMNS)
ADD_RULE_SUMS = _add("daily_rule_sums", (*_OF_SUMS, "rule"), RULE_COLUMNS)
_SUMS_WANTED = (
    " WHERE scope = :scope AND day BETWEEN :since AND :until"
    " AND (:account IS NULL OR account = :account) AND (:region IS NULL OR region = :region)"
)
_OF_NAME = f"{_SUMS_WANTED} AND name = :name"
_SUMS_FROM = f"SELECT {', '.join((*_OF_SUMS, *SUM_COLUMNS))} FROM daily_sums"
_RULES_FROM = f"SELECT {', '.join((*_OF_SUMS, 'rule', *RULE_COLUMNS))} FROM daily_rule_sums"
SUMS = f"{_SUMS_FROM}{_SUMS_WANTED}"
RULE_SUMS = f"{_RULES_FROM}{_SUMS_WANTED}"
SUMS_OF_NAME = f"{_SUMS_FROM} INDEXED BY daily_sums_by_name{_OF_NAME}"
RULE_SUMS_OF_NAME = f"{_RULES_FROM} INDEXED BY daily_rule_sums_by_name{_OF_NAME}"
