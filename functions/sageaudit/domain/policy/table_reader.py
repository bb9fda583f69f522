"""Reads a policy's tables: every key is checked for its type, and unknown keys are refused; which
jobs a section is about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct

from sageaudit.domain.job.ref import is_account_id
from sageaudit.errors import BadPolicy, KeyPath

HIGHEST = 10**12
"""Larger than any amount, rate or threshold that makes sense."""
_IN_TOML = {
    dict: "a table",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a whole number",
}
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


class TableReader:
    """Reads the keys of one table and remembers which were read."""

    def __init__(self, table: Mapping[str, Any], at: KeyPath = ()) -> None:
        self.table = table
        self.at = at
        self.used: set[str] = set()

    def take(self, key: str, kind: type, default: Any) -> Any:
        """The value of a key. Raises BadPolicy where it has another type."""
        self.used.add(key)
        value = self.table.get(key, default)
        if value is not default and not isinstance(value, kind):
            raise self.refusal(key, f"is not {_IN_TOML[kind]}")
        return value

    def within(self, key: str) -> TableReader:
        """The reader of a nested table; an empty one where the key is absent."""
        return TableReader(self.take(key, dict, {}), (*self.at, key))

    def strings(self, key: str, default: tuple[str, ...] = ()) -> list[str]:
        """A list of names."""
        values = self.take(key, list, list(default))
        if not all(isinstance(value, str) and value for value in values):
            raise self.refusal(key, "is not a list of names")
        return list(values)

    def tables(self, key: str) -> list[TableReader]:
        """The readers of an array of tables."""
        rows = self.take(key, object, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self.refusal(key, f"is not a list of tables: write [[{key}]]")
        return [TableReader(row, (*self.at, key, index)) for index, row in enumerate(rows)]

    def amount(
        self, key: str, default: Decimal | int | None = None, unit: str = " in USD"
    ) -> Decimal:
        """An amount of 0 or more; required where there is no default."""
        self.used.add(key)
        value = self.table.get(key, default)
        if isinstance(value, Decimal):
            return value
        if not is_number(value):
            why = f"is not an amount{unit}: a number of 0 or more, without quotes"
            raise self.refusal(key, why)
        return Decimal(str(value))

    def amount_if_any(self, key: str) -> Decimal | None:
        """The same; None where the key is absent."""
        self.used.add(key)
        return self.amount(key) if key in self.table else None

    def rest(self) -> list[str]:
        """The keys that were not read."""
        return [key for key in self.table if key not in self.used]

    def done(self) -> None:
        """Raises BadPolicy where the table has keys that were not read."""
        if rest := self.rest():
            known = ", ".join(sorted(self.used))
            path = (*self.at, rest[0])
            raise BadPolicy(f"unknown key {named(path)}; known here: {known}", path)

    def refusal(self, key: str, why: str) -> BadPolicy:
        """The error to raise about a key: its full name, and why."""
        path = (*self.at, key)
        return BadPolicy(f"{named(path)} {why}", path)


def named(path: KeyPath) -> str:
    """A key's full name: `rules.gpu-underused.mean_below`, `exempt[1].until` of the first one."""
    words = [f"[{part + 1}]" if isinstance(part, int) else f".{_written(part)}" for part in path]
    return "".join(words).removeprefix(".")


def is_number(value: Any) -> bool:
    """Whether the value is a number from 0 to HIGHEST."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value <= HIGHEST


def _written(part: str) -> str:
    return part if _BARE.match(part) else json.dumps(part)


class Conditions(Struct, frozen=True):
    """A job matches where it matches all that are given."""

    family: str | None = None
    tag: tuple[str, str] | None = None
    account: str | None = None

    def matches_job(self, account: str | None, family: str, tags: Mapping[str, str]) -> bool:
        """Whether this job matches."""
        return (
            self.family in {None, family}
            and self.account in {None, account}
            and (self.tag is None or tags.get(self.tag[0]) == self.tag[1])
        )


def conditions(reader: TableReader) -> Conditions:
    """Those of one section. Raises BadPolicy."""
    family, tag = reader.take("family", str, None), reader.take("tag", str, None)
    account = reader.take("account", str, None)
    name, equals, value = (tag or "").partition("=")
    if tag is not None and not (name and equals):
        raise reader.refusal("tag", 'is not written "key=value"')
    if account is not None and not is_account_id(account):
        raise reader.refusal("account", "is not an account id of 12 digits")
    return Conditions(family, (name, value) if tag is not None else None, account)
