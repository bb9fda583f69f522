"""Replaces one leaf of a stored value by something odd."""

import copy
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**40, Decimal("0.5"), Decimal("-1E+300"), Decimal("1E-300")),
    *("", "x", "high", "2026-02-31T00:00:00Z", "9999-12-31T23:59:59.999999Z", "\ud800"),
    *([], [None], ["x"], {}, {"x": None}),
)
Path = tuple[str | int, ...]


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yields the path of each part of a value: also of lists and maps, but not of the whole."""
    parts: Any = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    for key, part in parts:
        yield (*path, key)
        yield from paths(part, (*path, key))


def replaced(value: Any, path: Path, odd_value: Any) -> Any:
    """Returns a copy of the value with something else at the path."""
    changed = copy.deepcopy(value)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = odd_value
    return changed


def without(value: Any, path: Path) -> Any:
    """Returns a copy of the value that lacks the part at the path."""
    changed = copy.deepcopy(value)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    return changed
