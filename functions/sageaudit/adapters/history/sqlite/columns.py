"""Converts rows to and from SQL columns: those of the table's items, with money in micro-dollars.

An amount is an integer of millionths of a dollar, so that SQL adds it exactly; a list is JSON; an
unknown value is NULL.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import fields
from decimal import Decimal
from typing import Any, TypeVar

from sageaudit.adapters.files.exact_json import from_json, to_json, whole_text
from sageaudit.adapters.history.codec import Item, from_item, to_item
from sageaudit.domain.audit.record import FindingRow, Head, JobKey

Columns = dict[str, Any]
Stored = TypeVar("Stored", Head, FindingRow, JobKey)
_USD, _MICRO_USD, _DIGITS = "_usd", "_micro_usd", 6
_LISTS = frozenset({"finding_ids"})


def column_names(form: type[Any]) -> Iterator[str]:
    """The columns of a form's fields; those of a JobKey in place of the field `key`."""
    for field in fields(form):
        if field.name == "key":
            yield from column_names(JobKey)
        else:
            yield column_name(field.name)


def to_columns(row: Stored) -> Columns:
    """The values of all columns of a row, None for those that are not known."""
    known = {column_name(name): _value(value) for name, value in to_item(row).items()}
    return dict.fromkeys(column_names(type(row))) | known


def from_columns(form: type[Stored], columns: sqlite3.Row) -> Stored:
    """The row of these columns. Raises KeyError or ValueError for columns of something else."""
    item: Item = {}
    for name in columns.keys():  # noqa: SIM118 - a sqlite3.Row iterates over its values
        value = columns[name]
        if value is None:
            continue
        if name.endswith(_MICRO_USD):
            item[name.removesuffix(_MICRO_USD) + _USD] = from_micro_usd(value)
        else:
            item[name] = from_json(value) if name in _LISTS else value
    return from_item(form, item)


def micro_usd(amount: Decimal) -> int:
    """An amount of at most 6 decimals in millionths of a dollar."""
    return int(amount.scaleb(_DIGITS))


def from_micro_usd(amount: int) -> Decimal:
    """Millionths of a dollar in USD."""
    return Decimal(amount).scaleb(-_DIGITS)


def column_name(name: str) -> str:
    """The column of a field."""
    return name.removesuffix(_USD) + _MICRO_USD if name.endswith(_USD) else name


def _value(value: object) -> object:
    if isinstance(value, Decimal):
        return micro_usd(value)
    if isinstance(value, list):
        return to_json(value)
    return whole_text(value) if isinstance(value, str) else value
