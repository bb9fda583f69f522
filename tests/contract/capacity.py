"""Capacity by AWS's formula: moto's own figure is the same for every item.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any

Typed = Mapping[str, Mapping[str, Any]]
"""An item as the low-level client has it: {"pk": {"S": "..."}}."""


def item_bytes(item: Typed) -> int:
    """Names and values in UTF-8; a number has half a byte for each digit, and one more."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    [(kind, content)] = value.items()
    if kind == "N":
        digits = content.lstrip("-0.").replace(".", "")
        return ceil(len(digits) / 2) + 1 + int(content.startswith("-"))
    if kind == "L":
        return 3 + sum(1 + _value_bytes(entry) for entry in content)
    if kind == "M":
        return 3 + sum(
            1 + len(name.encode()) + _value_bytes(entry) for name, entry in content.items()
        )
    if kind in ("BOOL", "NULL"):
        return 1
    return len(content.encode()) if isinstance(content, str) else len(bytes(content))


def read_units(page: Iterable[Typed], *, consistent: bool) -> float:
    """What one page of a Query uses: its bytes together, a unit for each 4 KB; half if not
    consistent.
    """
    units = ceil(sum(map(item_bytes, page)) / 4_096)
    return units if consistent else units / 2


def write_units(item: Typed, *, in_transaction: bool) -> int:
    """What writing this item uses: a unit for each KB, two in a transaction."""
    return ceil(item_bytes(item) / 1_024) * (2 if in_transaction else 1)
