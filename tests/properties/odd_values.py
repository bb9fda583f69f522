"""Replaces one leaf of a stored value by something odd."""

import copy
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import islice
from typing import Any, TypeVar

from hypothesis import settings

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**40, Decimal("0.5"), Decimal("-1E+300"), Decimal("1E-300")),
    *("", "x", "high", "2026-02-31T00:00:00Z", "9999-12-31T23:59:59.999999Z", "\ud800"),
    *([], [None], ["x"], {}, {"x": None}),
)
ABSENT = object()
"""Stands for a part that is missing."""
T = TypeVar("T")
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
    """Returns a copy of the value with something else at the path, or without it for ABSENT."""
    changed = copy.deepcopy(value)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    if odd_value is ABSENT:
        del holder[path[-1]]
    else:
        holder[path[-1]] = odd_value
    return changed


def some_of(cases: Iterable[T], *, each: int = 1) -> Iterator[T]:
    """Yields every `each`-th case in `make test-all`, and far fewer in `make test`."""
    is_full = settings.get_current_profile_name() == "full"
    yield from islice(cases, 0, None, each if is_full else 23 * each)
