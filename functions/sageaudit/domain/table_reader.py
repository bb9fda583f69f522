"""Reading a policy's table: each key by its type, and none that nobody asked for."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from sageaudit.errors import BadPolicy

HIGHEST = 10**12
"""Above any amount, rate or threshold that somebody means."""
_IN_TOML = {dict: "table", list: "array", str: "string", bool: "boolean"}


class TableReader:
    """Takes keys of a table by type and remembers which were asked for."""

    def __init__(self, table: Mapping[str, Any], path: str) -> None:
        self.table = table
        self.path = path
        self.used: set[str] = set()

    def take(self, key: str, kind: type, default: Any) -> Any:
        """The value of a key, of one type."""
        self.used.add(key)
        value = self.table.get(key, default)
        if value is not default and not isinstance(value, kind):
            raise BadPolicy(f"{self.path}{key} is not {_named(kind)}")
        return value

    def strings(self, key: str, default: tuple[str, ...]) -> list[str]:
        """A list of names."""
        values = self.take(key, list, list(default))
        if not all(isinstance(value, str) and value for value in values):
            raise BadPolicy(f"{self.path}{key} is not a list of names")
        return list(values)

    def tables(self, key: str) -> list[Mapping[str, Any]]:
        """An array of tables."""
        rows = self.take(key, list, [])
        if not all(isinstance(row, dict) for row in rows):
            raise BadPolicy(f"{self.path}{key} is not a list of tables: write [[{key}]]")
        return list(rows)

    def usd(self, key: str, default: int | None = None) -> Decimal:
        """An amount in USD, 0 or more; needed where there is no default."""
        self.used.add(key)
        value = self.table.get(key, default)
        if not is_number(value):
            raise BadPolicy(
                f"{self.path}{key} is not an amount in USD: a number of 0 or more, without quotes"
            )
        return Decimal(str(value))

    def rest(self) -> list[str]:
        """The keys that were not asked for."""
        return [key for key in self.table if key not in self.used]

    def done(self) -> None:
        """Refuses a table with keys that nobody asked for."""
        if rest := self.rest():
            known = ", ".join(sorted(self.used))
            raise BadPolicy(f"unknown key {self.path}{rest[0]}; known here: {known}")


def is_number(value: Any) -> bool:
    """A number of 0 or more that somebody may mean."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value <= HIGHEST


def _named(kind: type) -> str:
    word = _IN_TOML[kind]
    return f"{'an' if word.startswith('a') else 'a'} {word}"
