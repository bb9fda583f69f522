"""Converts rows to SQL columns and back. A field's column has the name of the DynamoDB attribute.

Amounts are integers of micro-dollars, so that SQL adds them exactly. Lists and objects are JSON.
None is NULL.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cache, lru_cache
from sys import intern
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import asdict, fields

from sageaudit.adapters.files.exact_json import from_json, replace_surrogates, to_json
from sageaudit.adapters.history.codec import (
    READERS_BY_TYPE,
    RUN_READERS,
    FieldReader,
    from_item,
    key_part,
    make_row,
    read_detail,
    to_item,
)
from sageaudit.adapters.history.record_steps import (
    FamilyPlace,
    FamilyRow,
    read_compared,
    read_stored_bytes,
)
from sageaudit.adapters.history.rows import rule_finding
from sageaudit.adapters.history.stored_items import StoredItems
from sageaudit.domain.advice.advice import Decision
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Detail, FindingRow, RuleFinding
from sageaudit.domain.audit.sum_parts import (
    FIGURE_FIELDS,
    USAGE_FIELDS,
    MicroSums,
    RunFigures,
    SumPart,
    from_micro_usd,
    to_micro_usd,
    to_micros,
)
from sageaudit.domain.audit.summary import AuditSummary, JobKey, PartialSummary
from sageaudit.domain.audit.sums import RuleSums, Scope, SumRow, Sums
from sageaudit.domain.moments import parse_day, parse_moment
from sageaudit.structs import replace

Columns = dict[str, Any]
Stored = TypeVar("Stored", AuditSummary, FindingRow, JobKey, Decision)
_USD = "_usd"
_MICRO_USD = "_micro_usd"
_INTERNED_FIELDS = frozenset(
    {"kind", "status", "account", "region", "family", "costliest_rule", "ruleset", "policy"}
    | {"instance_type", "reason", "recommended_type", "fingerprint"}
)
"""Fields whose texts many runs share. Memory has each text only once."""
_CACHED_RUNS = 4_096
"""How many earlier runs are cached: the last 50 runs of 80 families, in about 15 MB."""
_CACHED_OBJECTS = 1_024
"""How many parsed lists and objects each field caches. Nothing changes them.

Many jobs have equal values.
"""
_KEY_COLUMNS = ("run_key", "recommendation_id", "scope", "day", "account", "region", "name", "rule")
"""The columns that name a row in messages."""
_KEY = ("run_key", "arn", "created_at")
"""The columns that identify a run. Every read of a run begins with them."""
_SumKey = tuple[Any, ...]
"""Scope, day, account, region and name: the first columns of both tables of sums."""
_SUM_KEY_LENGTH = 5
_SUM_FIELDS = tuple(field.name for field in fields(Sums) if field.name != "rules")
_RULE_FIELDS = tuple(field.name for field in fields(RuleSums))
_Number = tuple[str, Callable[[int], object]]


def column_names(row_type: type[Any]) -> Iterator[str]:
    """Yields the columns of a type's fields. The field `key` has the columns of a JobKey."""
    for name in row_type.__struct_fields__:  # `fields(row_type)` would evaluate all type hints
        if name == "key":
            yield from column_names(JobKey)
        else:
            yield column_name(name)


def to_columns(row: Stored) -> Columns:
    """Returns the values of all columns of a row."""
    columns: Columns = dict.fromkeys(column_names(type(row)))
    columns.update((column_name(name), _value(value)) for name, value in to_item(row).items())
    return columns


def summary_columns(summary: AuditSummary) -> Columns:
    """Returns a summary's columns. The ARN is NULL if the run's key begins with it."""
    columns = to_columns(summary) | {"sums": to_json(asdict(MicroSums.from_sums(summary.sums)))}
    for name in USAGE_FIELDS:
        amounts = getattr(summary, name)
        columns[name] = None if amounts is None else to_json(to_micros(amounts))
    return columns | ({"arn": None} if key_part(summary.key.arn) == summary.key.arn else {})


def read_finding(columns: sqlite3.Row) -> RuleFinding:
    """Reads a finding and its run from RUN_COLUMNS, followed by the finding's columns.

    Raises one of PARSE_ERRORS for other columns.
    """
    run_values, finding_values = columns[len(_KEY) : len(RUN_COLUMNS)], columns[len(RUN_COLUMNS) :]
    finding = make_row(FindingRow, _values(_FINDING_PLAN, finding_values))
    return rule_finding(finding, key=read_key(columns), **_values(_RUN_PLAN, run_values))


def read_decision(columns: sqlite3.Row) -> Decision:
    """Reads a decision."""
    named_values = zip(columns.keys(), columns, strict=True)
    return from_item(Decision, {name: value for name, value in named_values if value is not None})


def read_summary(columns: sqlite3.Row) -> AuditSummary:
    """Reads the summary in a run's row. Raises one of PARSE_ERRORS for other columns."""
    values = _values(_SUMMARY_PLAN, columns[len(_KEY) :])
    values["key"] = read_key(
        columns
    )  # a keyword argument beside `**values` would copy the whole dict
    return make_row(AuditSummary, values)


def read_audit(columns: sqlite3.Row) -> AuditDocument:
    """Reads the document of an audit."""
    return read_stored_bytes(columns["document"])


def read_stored_detail(columns: sqlite3.Row) -> Detail:
    """Reads a run's details."""
    return read_detail(dict(columns))


def row_key(columns: sqlite3.Row) -> str:
    """Returns what identifies a row, as text, for messages: `run_key arn:aws:...#1763596800000`."""
    names = set(columns.keys()).intersection(_KEY_COLUMNS)
    return " ".join(f"{name} {columns[name]}" for name in _KEY_COLUMNS if name in names)


def _values(plan: _ReadPlan, columns: tuple[Any, ...]) -> dict[str, Any]:
    # NULL columns are left out, so that their fields get the defaults. Raises ValueError.
    values = {
        name: value if convert is None else convert(value)
        for name, convert, value in zip(plan.names, plan.reads, columns, strict=True)
        if value is not None
    }
    if not plan.required_names <= values.keys():
        raise ValueError("a column that every row has is NULL")
    return values


def read_key(columns: Sequence[Any]) -> JobKey:
    """Reads a run's key from the first columns of its row."""
    run_key, arn, created_at = columns[:3]
    return JobKey(arn or run_key.rpartition("#")[0], parse_moment(created_at))


def family_row_columns(row: FamilyRow) -> Columns:
    """Returns the columns of a family's row that the run's own row does not have."""
    return {"stamp": row.stamp, "compared": row.compared_text, "since": row.compared_since}


def read_family_place(columns: sqlite3.Row) -> FamilyPlace:
    """Reads a run's place in its family."""
    return FamilyPlace(
        ended_sk=f"{columns['ended_at']}#{columns['run_key']}", stamp=columns["stamp"]
    )


def read_family_row(columns: sqlite3.Row) -> FamilyRow:
    """Reads a run's row in its family."""
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
    """Returns the columns of each rule's part of a daily sum."""
    return [
        _sum_key_columns(row)
        | {"rule": replace_surrogates(rule)}
        | _numbers(rule_sums, _RULE_FIELDS)
        for rule, rule_sums in row.sums.rules.items()
    ]


def read_sums(
    sums: Iterable[sqlite3.Row],
    rules: Iterable[sqlite3.Row],
    stored_rows: StoredItems[sqlite3.Row],
) -> Iterator[SumRow]:
    """Yields the daily sums, from the rows of both tables.

    Leaves out sums that have become zero.
    """
    rule_sums_by_key: dict[_SumKey, dict[str, RuleSums]] = defaultdict(dict)
    for key, rule, rule_sums in stored_rows.read_each(_read_rule_sums, rules):
        if rule_sums != RuleSums():
            rule_sums_by_key[key][rule] = rule_sums
    for key, row in stored_rows.read_each(_read_sum_row, sums):
        sums_with_rules = replace(row.sums, rules=rule_sums_by_key.get(key, {}))
        if sums_with_rules != Sums():
            yield replace(row, sums=sums_with_rules)


def _read_rule_sums(columns: sqlite3.Row) -> tuple[_SumKey, str, RuleSums]:
    rule_sums = RuleSums(**_fields(_RULE_READERS, columns[_SUM_KEY_LENGTH + 1 :]))
    return columns[:_SUM_KEY_LENGTH], str(columns[_SUM_KEY_LENGTH]), rule_sums


def _read_sum_row(columns: sqlite3.Row) -> tuple[_SumKey, SumRow]:
    key = columns[:_SUM_KEY_LENGTH]
    return key, _sum_row(key, Sums(**_fields(_SUM_READERS, columns[_SUM_KEY_LENGTH:])))


def _sum_row(key: _SumKey, sums: Sums) -> SumRow:
    scope, day, account, region, name = key
    sum_name = name if name or scope == Scope.FAMILY else None
    return SumRow(Scope(scope), account, region, sum_name, parse_day(day), sums)


def _sum_key_columns(row: SumRow) -> Columns:
    return {
        "scope": row.scope.value,
        "day": row.day.isoformat(),
        "account": replace_surrogates(row.account),
        "region": replace_surrogates(row.region),
        "name": replace_surrogates(row.name or ""),
    }


def _fields(readers: Iterable[_Number], values: Sequence[int]) -> dict[str, Any]:
    # Leaves out zeros, which are the fields' defaults.
    return {
        name: convert(value)
        for (name, convert), value in zip(readers, values, strict=True)
        if value
    }


def _numbers(sums: Sums | RuleSums, names: Sequence[str]) -> Columns:
    return {column_name(name): _value(getattr(sums, name)) for name in names}


def _value(value: object) -> object:
    if isinstance(value, Decimal):
        return to_micro_usd(value)
    if isinstance(value, list | dict):
        return to_json(value)
    return replace_surrogates(value) if isinstance(value, str) else value


_SUM_READERS, _RULE_READERS = (
    tuple((name, from_micro_usd if name.endswith(_USD) else int) for name in names)
    for names in (_SUM_FIELDS, _RULE_FIELDS)
)


class _ReadPlan(NamedTuple):
    """How to read a row: its fields in the order of columns, and their converters."""

    names: tuple[str, ...]
    reads: tuple[Callable[[Any], Any] | None, ...]
    required_names: frozenset[str]


def _plan(readers: Iterable[FieldReader]) -> _ReadPlan:
    own_readers = [reader for reader in readers if reader.name != "key"]
    return _ReadPlan(
        names=tuple(reader.name for reader in own_readers),
        reads=tuple(map(_converter, own_readers)),
        required_names=frozenset(reader.name for reader in own_readers if not reader.is_optional),
    )


def _converter(reader: FieldReader) -> Callable[[Any], Any] | None:
    """Returns None if the column already has the field's value."""
    if reader.name.endswith(_USD):
        return from_micro_usd
    if reader.name == "sums":
        return _read_sums
    if reader.name in USAGE_FIELDS:
        return _read_usage
    if reader.name in _INTERNED_FIELDS:
        return intern
    if reader.is_nested and reader.convert:
        return _json_reader(reader.convert)
    return reader.convert


@lru_cache(_CACHED_OBJECTS)
def _read_sums(text: str) -> Sums:
    return _decode_sums(text).sums


@lru_cache(_CACHED_OBJECTS)
def _read_usage(text: str) -> dict[str, Decimal | None]:
    return {
        intern(name): None if micros is None else from_micro_usd(micros)
        for name, micros in _decode_usage(text).items()
    }


def _json_reader(convert: Callable[[Any], Any]) -> Callable[[str], Any]:
    return lru_cache(_CACHED_OBJECTS)(lambda text: convert(from_json(text)))


_decode_sums = msgspec.json.Decoder(MicroSums).decode
_decode_usage = msgspec.json.Decoder(dict[str, int | None]).decode
_NO_SUMS = MicroSums()
_SUMMARY_READERS = READERS_BY_TYPE[AuditSummary]
_SUMMARY_PLAN, _RUN_PLAN, _FINDING_PLAN = (
    _plan(readers) for readers in (_SUMMARY_READERS, RUN_READERS, READERS_BY_TYPE[FindingRow])
)
RUN_COLUMNS = (*_KEY, *_RUN_PLAN.names)
"""The run's columns that are read when findings are listed."""


def column_name(name: str) -> str:
    """Returns the column of a field."""
    return name.removesuffix(_USD) + _MICRO_USD if name.endswith(_USD) else name


class PartialReader:
    """Reads some fields of the summary in a run's row, from its `columns`.

    `read_cached` does the same with a cache: each audit of a family reads up to 50 earlier runs,
    and all but one of them are those of the audit before. A changed row is another key of the
    cache.
    """

    def __init__(self, field_names: Collection[str]) -> None:
        self._has_key = "key" in field_names
        self._plan = _plan(reader for reader in _SUMMARY_READERS if reader.name in field_names)
        key_columns = _KEY if self._has_key else ()
        self.columns = (*key_columns, *map(column_name, self._plan.names))
        self._plan_start = len(key_columns)
        cached = lru_cache(_CACHED_RUNS)(self.read)
        self.read_cached = lambda row: cached(row[:])  # a slice is a tuple, which can be hashed

    def read(self, columns: Sequence[Any]) -> PartialSummary:
        """Reads the summary. Raises one of PARSE_ERRORS for other columns."""
        values = _values(self._plan, tuple(columns[self._plan_start :]))
        if self._has_key:
            values["key"] = read_key(columns)
        return make_row(PartialSummary, values)


@cache
def partial_reader(field_names: frozenset[str]) -> PartialReader:
    """Returns the reader of these fields."""
    return PartialReader(field_names)


PART_COLUMNS = ("run_key", "ended_at", "sums", *map(column_name, FIGURE_FIELDS))
"""The columns with which the columns of a PartReader begin."""
_FIGURES = slice(3, len(PART_COLUMNS))
_CACHED_LABELS = 4_096


class PartReader:
    """Reads what runs add to sums, from their `columns`.

    `label` is called once for runs whose other `field_names` have equal columns, of which many runs
    have the same: a type, an image, the tags.
    """

    def __init__(
        self,
        label: Callable[[AuditSummary], object],
        field_names: Collection[str],
        *,
        with_usage: bool,
    ) -> None:
        self._label, self._summaries = label, PartialReader(field_names)
        usage_columns = USAGE_FIELDS if with_usage else ()
        self.columns = (*PART_COLUMNS, *self._summaries.columns, *usage_columns)
        labels_end = len(PART_COLUMNS) + len(self._summaries.columns)
        self._labels, self._usage = slice(len(PART_COLUMNS), labels_end), slice(labels_end, None)
        self._cached_label = lru_cache(_CACHED_LABELS)(self._read_label)

    def read(self, columns: sqlite3.Row) -> SumPart:
        """Reads a run. Raises one of PARSE_ERRORS for other columns."""
        ended_at = parse_moment(columns[1])
        label = self._cached_label(columns[self._labels])
        if label is None:
            return SumPart(None, ended_at)
        sums = _NO_SUMS if columns[2] is None else _decode_sums(columns[2])
        figures = msgspec.convert(columns[_FIGURES], RunFigures)
        usage = (_decode_usage(text or "{}") for text in columns[self._usage])
        return SumPart(label, ended_at, sums, figures, *usage)

    def _read_label(self, columns: tuple[Any, ...]) -> object:
        return self._label(self._summaries.read(columns))
