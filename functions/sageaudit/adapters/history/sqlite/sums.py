"""Daily sums as rows of the tables `daily_sums` and `daily_rule_sums`."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import date
from typing import Any

from sageaudit.adapters.files.exact_json import whole_text
from sageaudit.adapters.history.sqlite import statements
from sageaudit.adapters.history.sqlite.columns import (
    Columns,
    column_name,
    from_micro_usd,
    micro_usd,
)
from sageaudit.domain.audit.sums import RuleSums, Scope, SumRow, Sums

_Place = tuple[Any, ...]
"""Scope, account, region, name and day, as the tables have them."""
_WIDTH = 5
_USD = "_usd"
_SUM_FIELDS = tuple(field.name for field in fields(Sums) if field.name != "rules")
_RULE_FIELDS = tuple(field.name for field in fields(RuleSums))


def add(connection: sqlite3.Connection, row: SumRow) -> None:
    """Adds a difference to its day."""
    place = {
        "scope": row.scope.value,
        "day": row.day.isoformat(),
        "account": whole_text(row.account),
        "region": whole_text(row.region),
        "name": whole_text(row.name or ""),
    }
    sums = _numbers(row.sums, _SUM_FIELDS)
    if any(sums.values()):
        connection.execute(statements.ADD_SUMS, place | sums)
    connection.executemany(
        statements.ADD_RULE_SUMS,
        [
            place | {"rule": whole_text(rule)} | _numbers(of_rule, _RULE_FIELDS)
            for rule, of_rule in row.sums.rules.items()
        ],
    )


def read(sums: Iterable[sqlite3.Row], rules: Iterable[sqlite3.Row]) -> Iterator[SumRow]:
    """The rows of both tables together; days whose audits have all gone elsewhere are left out."""
    of_rules: dict[_Place, dict[str, RuleSums]] = defaultdict(dict)
    for row in map(tuple, rules):
        if any(row[_WIDTH + 1 :]):
            of_rule = RuleSums(**_fields(_RULE_FIELDS, row[_WIDTH + 1 :]))
            of_rules[row[:_WIDTH]][row[_WIDTH]] = of_rule
    for row in map(tuple, sums):
        found = of_rules.pop(row[:_WIDTH], {})
        if found or any(row[_WIDTH:]):
            yield _sum_row(row[:_WIDTH], Sums(**_fields(_SUM_FIELDS, row[_WIDTH:]), rules=found))
    for place, found in of_rules.items():  # of roll-ups whose findings have no dollars
        yield _sum_row(place, Sums(rules=found))


def _sum_row(place: _Place, sums: Sums) -> SumRow:
    scope, account, region, name, day = place
    known = name if name or scope == Scope.FAMILY else None
    return SumRow(Scope(scope), account, region, known, date.fromisoformat(day), sums)


def _fields(names: Sequence[str], values: Sequence[int]) -> dict[str, Any]:
    """The fields that are not 0, as they are by default."""
    return {
        name: from_micro_usd(value) if name.endswith(_USD) else value
        for name, value in zip(names, values, strict=True)
        if value
    }


def _numbers(sums: Sums | RuleSums, names: Sequence[str]) -> Columns:
    values = ((name, getattr(sums, name)) for name in names)
    return {
        column_name(name): micro_usd(value) if name.endswith(_USD) else value
        for name, value in values
    }
