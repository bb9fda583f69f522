"""Converts rows to and from SQL columns: those of the table's items, with money in micro-dollars.

An amount is an integer of millionths of a dollar, so that SQL adds it exactly; a list or an object
is JSON; an unknown value is NULL.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import date
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from sys import intern
from typing import Any, NamedTuple, TypeVar

from sageaudit.adapters.files.exact_json import from_json, to_json, whole_text
from sageaudit.adapters.history.codec import READERS, from_item, to_item
from sageaudit.adapters.history.moments import read_moment
from sageaudit.adapters.history.record_steps import FamilyRow, read_compared
from sageaudit.adapters.history.sort_keys import part
from sageaudit.domain.advice.advice import Decision
from sageaudit.domain.audit.record import FindingRow, Head, JobKey
from sageaudit.domain.audit.sums import RuleSums, Scope, SumRow, Sums

Columns = dict[str, Any]
Stored = TypeVar("Stored", Head, FindingRow, JobKey, Decision)
_USD, _MICRO_USD, _DIGITS = "_usd", "_micro_usd", 6
_JSON_FIELDS = frozenset(
    {"tags", "finding_ids", "facts", "sums", "usage_quantities", "usage_costs"}
)
"""Fields of a head that are lists or objects."""
LAZY_FIELDS = ("facts", "sums")
"""Those that are parsed when somebody asks for them."""
_REPEATED = ("kind", "status", "account", "region", "family", "top_rule", "ruleset", "policy")
"""Texts that many runs share: a list that is kept has each of them once."""
OF_FACTS = ("instance_type", "instance_count", "purchase", "reason_class")
"""What the view `jobs` shows of the facts."""
OF_THE_RUN = frozenset({"run_key", "arn", "created_at", "job", "family", "owner"})
"""Fields of a finding that its run's row has."""
_KEY = ("run_key", "arn", "created_at")
"""What tells a run, the first columns of all that is read of one."""
_Place = tuple[Any, ...]
"""Scope, day, account, region and name of a sum: the first columns of its tables."""
_WIDTH = 5
_SUM_FIELDS = tuple(field.name for field in fields(Sums) if field.name != "rules")
_RULE_FIELDS = tuple(field.name for field in fields(RuleSums))
_Number = tuple[str, Callable[[int], object]]


def column_names(form: type[Any]) -> Iterator[str]:
    """The columns of a form's fields; those of a JobKey in place of the field `key`."""
    for field in fields(form):
        if form is FindingRow and field.name in OF_THE_RUN | {"key"}:
            continue
        if field.name == "key":
            yield from column_names(JobKey)
        else:
            yield column_name(field.name)


def to_columns(row: Stored) -> Columns:
    """The values of all columns of a row, None for those that are not known."""
    columns: Columns = dict.fromkeys(column_names(type(row)))
    known = {column_name(name): value for name, value in to_item(row).items()}
    return columns | {name: _value(known[name]) for name in columns if name in known}


def head_columns(head: Head) -> Columns:
    """Those of a head; its ARN is NULL where the run's key begins with it."""
    columns = to_columns(head) | {name: getattr(head.facts, name, None) for name in OF_FACTS}
    return columns | ({"arn": None} if part(head.key.arn) == head.key.arn else {})


def read_names(form: type[Any]) -> tuple[str, ...]:
    """The columns that a row of this form is read from, in this order."""
    names = map(column_name, _PLANS[form].names)
    return (*_KEY, *names, *LAZY_FIELDS) if form is Head else (*_KEY, *names)


def read_finding(columns: sqlite3.Row) -> FindingRow:
    """The row of a finding. Raises one of UNREADABLE for columns of something else."""
    return FindingRow(**_fields_of(FindingRow, columns))


def read_decision(columns: sqlite3.Row) -> Decision:
    """The same of a decision."""
    known = zip(columns.keys(), columns, strict=True)
    return from_item(Decision, {name: value for name, value in known if value is not None})


def head_fields(columns: sqlite3.Row) -> dict[str, Any]:
    """The fields of a head without LAZY_FIELDS; raises as `read_finding`."""
    return _fields_of(Head, columns)


def lazy_texts(columns: sqlite3.Row) -> tuple[str | None, ...]:
    """The columns of LAZY_FIELDS: a head that is kept does not keep the other columns."""
    texts: tuple[str | None, ...] = columns[-len(LAZY_FIELDS) :]
    return texts


def lazy_field(texts: tuple[str | None, ...], name: str) -> dict[str, Any]:
    """One of LAZY_FIELDS; raises as `read_finding`."""
    text = texts[LAZY_FIELDS.index(name)]
    return {name: None if text is None else _LAZY_READERS[name](text)}


def _fields_of(form: type[Any], columns: sqlite3.Row) -> dict[str, Any]:
    plan = _PLANS[form]
    values: dict[str, Any] = dict(zip(plan.names, columns[len(_KEY) :], strict=False))
    if None in plan.required(values):
        raise ValueError("a column that every row has is NULL")
    for name, read in plan.converted:
        if values[name] is not None:
            values[name] = read(values[name])
    values["key"] = read_key(columns)
    return values


def read_key(columns: sqlite3.Row) -> JobKey:
    """The run that these columns begin with."""
    run_key, arn, created_at = columns[:3]
    return JobKey(arn or run_key.rpartition("#")[0], read_moment(created_at))


def family_row_columns(row: FamilyRow) -> Columns:
    """The columns of a family's row that are not in the run's own."""
    return {"stamp": row.stamp, "compared": row.compared_text, "since": row.since}


def read_family_row(columns: sqlite3.Row) -> FamilyRow:
    """The family's row of a run."""
    return FamilyRow(
        key=read_key(columns),
        ended_sk=f"{columns['ended_at']}#{columns['run_key']}",
        stamp=columns["stamp"],
        compared=read_compared(columns["compared"]),
        since=columns["since"],
    )


def sum_columns(row: SumRow) -> Columns:
    """The columns of a daily sum."""
    return _place(row) | _numbers(row.sums, _SUM_FIELDS)


def rule_sum_columns(row: SumRow) -> list[Columns]:
    """The columns of the sums of each rule."""
    return [
        _place(row) | {"rule": whole_text(rule)} | _numbers(of_rule, _RULE_FIELDS)
        for rule, of_rule in row.sums.rules.items()
    ]


def read_sums(sums: Iterable[sqlite3.Row], rules: Iterable[sqlite3.Row]) -> Iterator[SumRow]:
    """The rows of both tables together; days whose audits have all gone elsewhere are left out."""
    of_rules: dict[_Place, dict[str, RuleSums]] = defaultdict(dict)
    for row in rules:
        if known := _fields(_RULE_READERS, row[_WIDTH + 1 :]):
            of_rules[row[:_WIDTH]][row[_WIDTH]] = RuleSums(**known)
    for row in sums:
        place = row[:_WIDTH]
        known, found = _fields(_SUM_READERS, row[_WIDTH:]), of_rules.pop(place, {})
        if known or found:
            yield _sum_row(place, Sums(**known, rules=found))


def _sum_row(place: _Place, sums: Sums) -> SumRow:
    scope, day, account, region, name = place
    known = name if name or scope == Scope.FAMILY else None
    return SumRow(Scope(scope), account, region, known, date.fromisoformat(day), sums)


def _place(row: SumRow) -> Columns:
    return {
        "scope": row.scope.value,
        "day": row.day.isoformat(),
        "account": whole_text(row.account),
        "region": whole_text(row.region),
        "name": whole_text(row.name or ""),
    }


def _fields(readers: Iterable[_Number], values: Sequence[int]) -> dict[str, Any]:
    """The fields that are not 0, as they are by default."""
    return {name: read(value) for (name, read), value in zip(readers, values, strict=True) if value}


def _numbers(sums: Sums | RuleSums, names: Sequence[str]) -> Columns:
    return {column_name(name): _value(getattr(sums, name)) for name in names}


def _value(value: object) -> object:
    if isinstance(value, Decimal):
        return int(value.scaleb(_DIGITS))
    if isinstance(value, list | dict):
        return to_json(value)
    return whole_text(value) if isinstance(value, str) else value


@lru_cache(1_000)
def _from_micro_usd(amount: int) -> Decimal:
    return Decimal(amount).scaleb(-_DIGITS)


_SUM_READERS, _RULE_READERS = (
    tuple((name, _from_micro_usd if name.endswith(_USD) else int) for name in names)
    for names in (_SUM_FIELDS, _RULE_FIELDS)
)


class _Plan(NamedTuple):
    """What reads the fields without the key and LAZY_FIELDS, in the order of their columns."""

    names: tuple[str, ...]
    required: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    converted: tuple[tuple[str, Callable[[Any], Any]], ...]


def _plan(form: type[Any]) -> _Plan:
    readers = [reader for reader in READERS[form] if reader[0] not in {"key", *LAZY_FIELDS}]
    of_columns = {name: _from_micro_usd for name, *_ in readers if name.endswith(_USD)}
    reads = {name: read for name, read, _ in readers if read} | of_columns
    reads |= {name: intern for name, *_ in readers if name in _REPEATED}
    reads |= {name: _of_json(read) for name, read in reads.items() if name in _JSON_FIELDS}
    return _Plan(
        names=tuple(name for name, *_ in readers),
        required=itemgetter(*(name for name, _, optional in readers if not optional)),
        converted=tuple(reads.items()),
    )


def _of_json(read: Callable[[Any], Any]) -> Callable[[str], Any]:
    return lambda text: read(from_json(text))


_LAZY_READERS = {
    name: _of_json(read) for name, read, _ in READERS[Head] if name in LAZY_FIELDS and read
}
_PLANS = {form: _plan(form) for form in (Head, FindingRow)}


def column_name(name: str) -> str:
    """The column of a field."""
    return name.removesuffix(_USD) + _MICRO_USD if name.endswith(_USD) else name
