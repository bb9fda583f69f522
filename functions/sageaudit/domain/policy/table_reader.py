"""Reads a policy's tables, and the conditions that select jobs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct

from sageaudit.domain.job.ref import is_account_id
from sageaudit.errors import BadPolicy, KeyPath

MAX_NUMBER = 10**12
"""The largest amount, rate or threshold that a policy can have."""
_TOML_TYPE_NAMES = {
    dict: "a table",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a whole number",
}
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


class TableReader:
    """Reads the keys of one table, and remembers which keys were read."""

    def __init__(self, table: Mapping[str, Any], path: KeyPath = ()) -> None:
        self.table = table
        self.path = path
        self.read_keys: set[str] = set()

    def read(self, key: str, kind: type, default: Any) -> Any:
        """Returns the value of a key, or the default. Raises BadPolicy for another type."""
        self.read_keys.add(key)
        value = self.table.get(key, default)
        if value is not default and not isinstance(value, kind):
            raise self.error(key, f"is not {_TOML_TYPE_NAMES[kind]}")
        return value

    def subtable(self, key: str) -> TableReader:
        """Returns the reader of a nested table; a reader of an empty table if the key is absent."""
        return TableReader(self.read(key, dict, {}), (*self.path, key))

    def strings(self, key: str, default: tuple[str, ...] = ()) -> list[str]:
        """Returns the list of names under a key. Raises BadPolicy for any other value."""
        values = self.read(key, list, list(default))
        if not all(isinstance(value, str) and value for value in values):
            raise self.error(key, "is not a list of names")
        return list(values)

    def table_array(self, key: str) -> list[TableReader]:
        """Returns the readers of an array of tables. Raises BadPolicy for any other value."""
        rows = self.read(key, object, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self.error(
                key, f"is not a list of tables: write [[{full_key((*self.path, key))}]]"
            )
        return [TableReader(row, (*self.path, key, index)) for index, row in enumerate(rows)]

    def amount(
        self, key: str, default: Decimal | int | None = None, unit: str = " in USD"
    ) -> Decimal:
        """Returns an amount of 0 or more. Raises BadPolicy for any other value.

        Without a `default`, an absent key raises BadPolicy, too. `unit` is the unit in the error.
        """
        self.read_keys.add(key)
        value = self.table.get(key, default)
        if isinstance(value, Decimal):
            return value
        if not is_number(value):
            text = f"is not an amount{unit}: a number of 0 or more, without quotes"
            raise self.error(key, text)
        return Decimal(str(value))

    def optional_amount(self, key: str) -> Decimal | None:
        """Returns an amount of 0 or more; None if the key is absent."""
        self.read_keys.add(key)
        return self.amount(key) if key in self.table else None

    def unread_keys(self) -> list[str]:
        """Returns the keys that were not read."""
        return [key for key in self.table if key not in self.read_keys]

    def reject_unread_keys(self) -> None:
        """Raises BadPolicy if the table has keys that were not read."""
        if unread_keys := self.unread_keys():
            known_text = ", ".join(sorted(self.read_keys))
            path = (*self.path, unread_keys[0])
            raise BadPolicy(f"unknown key {full_key(path)}; known here: {known_text}", path)

    def error(self, key: str, refusal_reason: str) -> BadPolicy:
        """Returns the error to raise about a key. `refusal_reason` follows the key's full name."""
        path = (*self.path, key)
        return BadPolicy(f"{full_key(path)} {refusal_reason}", path)


def full_key(path: KeyPath) -> str:
    """Returns a key's full name, such as `exempt[1].until`."""
    parts = [f"[{key + 1}]" if isinstance(key, int) else f".{_quote_part(key)}" for key in path]
    return "".join(parts).removeprefix(".")


def is_number(value: Any) -> bool:
    """Returns whether the value is a number from 0 to `MAX_NUMBER`."""
    has_type = isinstance(value, int | float) and not isinstance(value, bool)
    return has_type and 0 <= value <= MAX_NUMBER


def _quote_part(part: str) -> str:
    return part if _BARE_KEY.match(part) else json.dumps(part)


class Conditions(Struct, frozen=True):
    """Conditions on jobs. A job must meet all conditions that are not None."""

    family: str | None = None
    tag: tuple[str, str] | None = None
    account: str | None = None

    def matches_job(self, account: str | None, family: str, tags: Mapping[str, str]) -> bool:
        """Returns whether a job meets all conditions."""
        return (
            self.family in {None, family}
            and self.account in {None, account}
            and (self.tag is None or tags.get(self.tag[0]) == self.tag[1])
        )


def conditions(reader: TableReader) -> Conditions:
    """Reads the conditions of one section. Raises BadPolicy."""
    family, tag = reader.read("family", str, None), reader.read("tag", str, None)
    account = reader.read("account", str, None)
    name, equals, value = (tag or "").partition("=")
    if tag is not None and not (name and equals):
        raise reader.error("tag", 'is not written "key=value"')
    if account is not None and not is_account_id(account):
        raise reader.error("account", "is not an account id of 12 digits")
    return Conditions(family, (name, value) if tag is not None else None, account)
