"""Daily sums as rows of the tables `daily_sums` and `daily_rule_sums`."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any

from sageaudit.adapters.files.exact_json import whole_text
from sageaudit.adapters.sqlite import statements
from sageaudit.adapters.sqlite.columns import Columns, from_micro_usd, micro_usd
from sageaudit.domain.audit.sums import RuleSums, Scope, SumRow, Sums

_USD, _MICRO_USD = "_usd", "_micro_usd"


def add(connection: sqlite3.Connection, row: SumRow) -> None:
    """Adds a difference to its day."""
    place = {
        "scope": row.scope.value,
        "day": row.day.isoformat(),
        "account": whole_text(row.account),
        "region": whole_text(row.region),
        "name": whole_text(row.name or ""),
    }
    sums = _numbers(row.sums, statements.SUM_COLUMNS)
    if any(sums.values()):
        connection.execute(statements.ADD_SUMS, place | sums)
    connection.executemany(
        statements.ADD_RULE_SUMS,
        [
            place | {"rule": whole_text(rule)} | _numbers(of_rule, statements.RULE_COLUMNS)
            for rule, of_rule in row.sums.rules.items()
        ],
    )


def read(sums: Iterable[sqlite3.Row], rules: Iterable[sqlite3.Row]) -> Iterator[SumRow]:
    """The rows of both tables together; days whose audits have all gone elsewhere are left out."""
    of_rules: dict[tuple[Any, ...], dict[str, RuleSums]] = defaultdict(dict)
    for row in rules:
        of_rule = RuleSums(**_fields(row, statements.RULE_COLUMNS))
        if of_rule != RuleSums():
            of_rules[_place(row)][row["rule"]] = of_rule
    for row in sums:
        place = _place(row)
        day = Sums(**_fields(row, statements.SUM_COLUMNS), rules=of_rules.pop(place, {}))
        if day != Sums():
            yield _sum_row(place, day)
    for place, found in of_rules.items():  # findings without any dollars or jobs: of roll-ups
        yield _sum_row(place, Sums(rules=found))


def _place(row: sqlite3.Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("scope", "account", "region", "name", "day"))


def _sum_row(place: tuple[Any, ...], sums: Sums) -> SumRow:
    scope, account, region, name, day = place
    known = name if name or scope == Scope.FAMILY else None
    return SumRow(Scope(scope), account, region, known, date.fromisoformat(day), sums)


def _numbers(sums: Sums | RuleSums, columns: Iterable[str]) -> Columns:
    values = ((column, getattr(sums, _field(column))) for column in columns)
    return {
        column: micro_usd(value) if isinstance(value, Decimal) else value
        for column, value in values
    }


def _fields(row: sqlite3.Row, columns: Iterable[str]) -> dict[str, Any]:
    return {
        _field(column): from_micro_usd(row[column]) if column.endswith(_MICRO_USD) else row[column]
        for column in columns
    }


def _field(column: str) -> str:
    return column.removesuffix(_MICRO_USD) + _USD if column.endswith(_MICRO_USD) else column
