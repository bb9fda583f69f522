"""Rows of results, and how they become a pandas DataFrame."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from importlib import import_module
from types import NoneType
from typing import Any, Generic, TypeVar, overload

Row = TypeVar("Row")
_KEY = "key"
_DTYPES: Mapping[type, str] = {
    bool: "boolean",
    int: "Int64",
    date: "datetime64[ns]",
    datetime: "datetime64[ns, UTC]",
    str: "string",
}


class Rows(Sequence[Row], Generic[Row]):
    """An unchangeable list of rows of one dataclass, `shape`."""

    def __init__(self, rows: Iterable[Row], shape: type[Row]) -> None:
        self._rows = tuple(rows)
        self.shape = shape

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Rows[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | Rows[Row]:
        if isinstance(index, slice):
            return Rows(self._rows[index], self.shape)
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self._rows == other._rows

    def __hash__(self) -> int:
        return hash(self._rows)

    def __repr__(self) -> str:
        return f"<{len(self)} rows of {self.shape.__name__}>"

    def to_pandas(self, *, floats: bool = False) -> Any:
        """A DataFrame with one row for each, and typed columns; see docs/python.md.

        Amounts stay Decimal, as exact as they are; with `floats` they become float64. Raises
        ModuleNotFoundError, with the command to install, where pandas is missing.
        """
        return frame(self._rows, self.shape, floats=floats)


def frame(rows: Sequence[Any], shape: type, *, floats: bool) -> Any:
    """A DataFrame of dataclasses. A JobKey becomes the columns `arn` and `created_at`."""
    pandas = _pandas()
    columns: dict[str, Any] = {}
    for name, kind in _columns(shape):
        values = [_plain(getattr(row, name)) for row in rows]
        if kind is Decimal:
            columns[name] = _amounts(pandas, values, floats=floats)
        else:
            columns[name] = pandas.Series(values, dtype=_DTYPES.get(kind, "object"))
    return pandas.DataFrame(columns)


def _columns(shape: type) -> Iterator[tuple[str, type]]:
    hints = typing.get_type_hints(shape)
    for field in fields(shape):
        if field.name == _KEY:
            yield "arn", str
            yield "created_at", datetime
        else:
            yield field.name, _kind(hints[field.name])


def _kind(hint: Any) -> type:
    """The type of a column; enumerated words are text."""
    [one, *others] = [part for part in typing.get_args(hint) or (hint,) if part is not NoneType]
    if others or not isinstance(one, type):
        return object
    return str if issubclass(one, Enum) else one


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _amounts(pandas: Any, values: list[Decimal | None], *, floats: bool) -> Any:
    if not floats:
        return pandas.Series(values, dtype="object")
    return pandas.Series(
        [None if value is None else float(value) for value in values], dtype="float64"
    )


def _pandas() -> Any:
    try:
        return import_module("pandas")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "to_pandas needs pandas: install it with `pip install pandas`",
            name="pandas",
        ) from error
