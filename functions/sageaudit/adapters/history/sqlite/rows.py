"""Converts rows to and from SQL columns: those of the table's items, with money in micro-dollars.

An amount is an integer of millionths of a dollar, so that SQL adds it exactly; a list or an object
is JSON; an unknown value is NULL.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import fields

from sageaudit.adapters.files.exact_json import from_json, replace_surrogates, to_json
from sageaudit.adapters.history.codec import (
    READERS_BY_TYPE,
    RUN_READERS,
    FieldReader,
    from_item,
    key_part,
    read_moment,
    to_item,
)
from sageaudit.adapters.history.record_steps import FamilyRow, read_compared
from sageaudit.adapters.history.rows import rule_finding
from sageaudit.domain.advice.advice import Decision
from sageaudit.domain.audit.record import FindingRow, RuleFinding
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import RuleSums, Scope, SumRow, Sums

Columns = dict[str, Any]
Stored = TypeVar("Stored", AuditSummary, FindingRow, JobKey, Decision)
_USD = "_usd"
_MICRO_USD = "_micro_usd"
_DIGITS = 6
_INTERNED_FIELDS = frozenset(
    {"kind", "status", "account", "region", "family", "costliest_rule", "ruleset", "policy"}
    | {"instance_type", "reason", "recommended_type", "fingerprint"}
)
"""Texts that many runs share: a list in memory has each of them once."""
_CACHED_OBJECTS = 1_024
"""Number of parsed lists and objects to keep, of each field. The earlier runs of a comparison come
again in the family's next audit, and many jobs have equal values. Nobody changes them."""
_KEY = ("run_key", "arn", "created_at")
"""Identifies a run: the first columns of every read of one."""
_SumKey = tuple[Any, ...]
"""Scope, day, account, region and name of a sum: the first columns of its tables."""
_WIDTH = 5
_SUM_FIELDS = tuple(field.name for field in fields(Sums) if field.name != "rules")
_RULE_FIELDS = tuple(field.name for field in fields(RuleSums))
_Number = tuple[str, Callable[[int], object]]


def column_names(row_type: type[Any]) -> Iterator[str]:
    """Yields the columns of a type's fields; those of a JobKey in place of the field `key`."""
    for field in fields(row_type):
        if field.name == "key":
            yield from column_names(JobKey)
        else:
            yield column_name(field.name)


def to_columns(row: Stored) -> Columns:
    """Returns the values of all columns of a row, None for unknown ones."""
    columns: Columns = dict.fromkeys(column_names(type(row)))
    values = {column_name(name): value for name, value in to_item(row).items()}
    return columns | {name: _value(values[name]) for name in columns if name in values}


def summary_columns(head: AuditSummary) -> Columns:
    """Returns the columns of a summary; its ARN is NULL if the run's key begins with it."""
    return to_columns(head) | ({"arn": None} if key_part(head.key.arn) == head.key.arn else {})


def read_finding(columns: sqlite3.Row) -> RuleFinding:
    """Reads a finding and its run, by RUN_COLUMNS and the finding's columns.

    Raises one of PARSE_ERRORS for other columns.
    """
    run, own = columns[len(_KEY) : len(RUN_COLUMNS)], columns[len(RUN_COLUMNS) :]
    finding = FindingRow(**_values(_FINDING_PLAN, own))
    return rule_finding(finding, key=read_key(columns), **_values(_RUN_PLAN, run))


def read_decision(columns: sqlite3.Row) -> Decision:
    """Reads a decision."""
    pairs = zip(columns.keys(), columns, strict=True)
    return from_item(Decision, {name: value for name, value in pairs if value is not None})


def read_summary(columns: sqlite3.Row) -> AuditSummary:
    """Reads the summary in a run's row; raises as `read_finding`."""
    values = _values(_SUMMARY_PLAN, columns[len(_KEY) :])
    values["key"] = read_key(columns)  # a keyword beside `**values` would copy them all
    return AuditSummary(**values)


def _values(plan: _Plan, columns: tuple[Any, ...]) -> dict[str, Any]:
    """Returns the fields that are not NULL; the others have their defaults."""
    values = {
        name: value if read is None else read(value)
        for name, read, value in zip(plan.names, plan.reads, columns, strict=True)
        if value is not None
    }
    if not plan.required <= values.keys():
        raise ValueError("a column that every row has is NULL")
    return values


def read_key(columns: sqlite3.Row) -> JobKey:
    """Reads the run's key, with which these columns begin."""
    run_key, arn, created_at = columns[:3]
    return JobKey(arn or run_key.rpartition("#")[0], read_moment(created_at))


def family_row_columns(row: FamilyRow) -> Columns:
    """Returns the columns of a family's row that are not in the run's own."""
    return {"stamp": row.stamp, "compared": row.compared_text, "since": row.compared_since}


def read_family_row(columns: sqlite3.Row) -> FamilyRow:
    """Reads the family's row of a run."""
    return FamilyRow(
        key=read_key(columns),
        ended_sk=f"{columns['ended_at']}#{columns['run_key']}",
        stamp=columns["stamp"],
        compared=read_compared(columns["compared"]),
        compared_since=columns["since"],
    )


def sum_columns(row: SumRow) -> Columns:
    """Returns the columns of a daily sum."""
    return _sum_key_columns(row) | _numbers(row.sums, _SUM_FIELDS)


def rule_sum_columns(row: SumRow) -> list[Columns]:
    """Returns the columns of the sums of each rule."""
    return [
        _sum_key_columns(row) | {"rule": replace_surrogates(rule)} | _numbers(of_rule, _RULE_FIELDS)
        for rule, of_rule in row.sums.rules.items()
    ]


def read_sums(sums: Iterable[sqlite3.Row], rules: Iterable[sqlite3.Row]) -> Iterator[SumRow]:
    """Yields the rows of both tables together; days that all audits have left are left out."""
    of_rules: dict[_SumKey, dict[str, RuleSums]] = defaultdict(dict)
    for row in rules:
        if known := _fields(_RULE_READERS, row[_WIDTH + 1 :]):
            of_rules[row[:_WIDTH]][row[_WIDTH]] = RuleSums(**known)
    for row in sums:
        place = row[:_WIDTH]
        known, found = _fields(_SUM_READERS, row[_WIDTH:]), of_rules.pop(place, {})
        if known or found:
            yield _sum_row(place, Sums(**known, rules=found))


def _sum_row(place: _SumKey, sums: Sums) -> SumRow:
    scope, day, account, region, name = place
    sum_name = name if name or scope == Scope.FAMILY else None
    return SumRow(Scope(scope), account, region, sum_name, date.fromisoformat(day), sums)


def _sum_key_columns(row: SumRow) -> Columns:
    return {
        "scope": row.scope.value,
        "day": row.day.isoformat(),
        "account": replace_surrogates(row.account),
        "region": replace_surrogates(row.region),
        "name": replace_surrogates(row.name or ""),
    }


def _fields(readers: Iterable[_Number], values: Sequence[int]) -> dict[str, Any]:
    """Returns the fields that are not 0, which is their default."""
    return {name: read(value) for (name, read), value in zip(readers, values, strict=True) if value}


def _numbers(sums: Sums | RuleSums, names: Sequence[str]) -> Columns:
    return {column_name(name): _value(getattr(sums, name)) for name in names}


def _value(value: object) -> object:
    if isinstance(value, Decimal):
        return int(value.scaleb(_DIGITS))
    if isinstance(value, list | dict):
        return to_json(value)
    return replace_surrogates(value) if isinstance(value, str) else value


@lru_cache(1_000)
def _from_micro_usd(amount: int) -> Decimal:
    return Decimal(amount).scaleb(-_DIGITS)


_SUM_READERS, _RULE_READERS = (
    tuple((name, _from_micro_usd if name.endswith(_USD) else int) for name in names)
    for names in (_SUM_FIELDS, _RULE_FIELDS)
)


class _Plan(NamedTuple):
    """The fields without the key, by their columns, what reads each, and the required ones."""

    names: tuple[str, ...]
    reads: tuple[Callable[[Any], Any] | None, ...]
    required: frozenset[str]


def _plan(readers: Iterable[FieldReader]) -> _Plan:
    own = [reader for reader in readers if reader.name != "key"]
    return _Plan(
        names=tuple(reader.name for reader in own),
        reads=tuple(map(_reads, own)),
        required=frozenset(reader.name for reader in own if not reader.is_optional),
    )


def _reads(reader: FieldReader) -> Callable[[Any], Any] | None:
    """Returns what reads a column; None if it is stored like its field."""
    if reader.name.endswith(_USD):
        return _from_micro_usd
    if reader.name in _INTERNED_FIELDS:
        return intern
    if reader.is_nested and reader.convert:
        return _json_reader(reader.convert)
    return reader.convert


def _json_reader(read: Callable[[Any], Any]) -> Callable[[str], Any]:
    return lru_cache(_CACHED_OBJECTS)(lambda text: read(from_json(text)))


_SUMMARY_PLAN, _RUN_PLAN, _FINDING_PLAN = (
    _plan(readers)
    for readers in (READERS_BY_TYPE[AuditSummary], RUN_READERS, READERS_BY_TYPE[FindingRow])
)
RUN_COLUMNS = (*_KEY, *_RUN_PLAN.names)
"""The columns of a run that its findings are read with."""


def column_name(name: str) -> str:
    """Returns the column of a field."""
    return name.removesuffix(_USD) + _MICRO_USD if name.endswith(_USD) else name
