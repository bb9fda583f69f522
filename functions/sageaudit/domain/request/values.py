"""Values of a request that has not been sent: paths, and what is not known before it is.

A path is a tuple of keys and list indexes. People read it as AWS's documentation writes it, an item
of a list by its name where it has one: `InputDataConfig[train].DataSource`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec import Struct

Path = tuple[str | int, ...]
"""Where a value is, from the top of a request or of a file."""
_NAMES = ("ChannelName", "InputName", "OutputName", "RuleConfigurationName", "InstanceGroupName",
          "DefinitionName", "Key", "Name")  # fmt: skip
"""The keys that name an item of a list."""
_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


class NotKnown(Struct, frozen=True):
    """Stands for a value that is set, and that is known only later; `why` is part of a sentence."""

    why: str


def text(value: object) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def value_at(body: object, path: str) -> Any:
    """The value under a path such as `InputDataConfig[train].InputMode`.

    None where there is none; NotKnown where it, or an object around it, is not known.
    """
    return _walked(body, path)[0]


def place_of(body: object, path: str) -> Path:
    """The path as keys and indexes, as far as it exists."""
    return _walked(body, path)[1]


def _walked(body: object, path: str) -> tuple[Any, Path]:
    """The value under a path, None without one; and the part of the path that exists."""
    found: Any = body
    place: Path = ()
    for key, item in _STEP.findall(path):
        if isinstance(found, NotKnown):
            break
        step = key if key and isinstance(found, Mapping) and key in found else None
        if not key and isinstance(found, list):
            step = _index(found, item)
        if step is None:
            return None, place
        found, place = found[step], (*place, step)
    return found, place


def path_text(body: object, place: Path) -> str:
    """The path as people read it."""
    text, found = "", cast(Any, body)
    for step in place:
        try:
            found = found[step]
        except (IndexError, KeyError, TypeError):
            found = None
        text += f"[{_named(found, step)}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


def unknown_places(value: object, place: Path = ()) -> Iterator[tuple[Path, NotKnown]]:
    """Each value that is not known, with its path."""
    if isinstance(value, NotKnown):
        yield place, value
    elif isinstance(value, Mapping):
        for key, inside in value.items():
            yield from unknown_places(inside, (*place, key))
    elif isinstance(value, list):
        for index, inside in enumerate(value):
            yield from unknown_places(inside, (*place, index))


def without(value: object, left_out: frozenset[Path], place: Path = ()) -> Any:
    """The value without what is not known and without these paths; a list keeps its other items."""
    if isinstance(value, Mapping):
        return {
            key: without(inside, left_out, (*place, key))
            for key, inside in value.items()
            if (*place, key) not in left_out and not isinstance(inside, NotKnown)
        }
    if isinstance(value, list):
        return [
            without(inside, left_out, (*place, index))
            for index, inside in enumerate(value)
            if (*place, index) not in left_out and not isinstance(inside, NotKnown)
        ]
    return value


def matches(place: Path, pattern: str) -> bool:
    """Whether a path is the one of a pattern, or around it; `[]` stands for any item."""
    steps = tuple(key or "[]" for key, _ in _STEP.findall(pattern))
    shown = tuple("[]" if isinstance(step, int) else step for step in place)
    return steps[: len(shown)] == shown


def _named(item: object, index: int) -> str:
    if isinstance(item, Mapping):
        names = (item.get(key) for key in _NAMES)
        if name := next((name for name in names if isinstance(name, str) and name), None):
            return name
    return str(index)


def _index(found: list[Any], item: str) -> int | None:
    for index, inside in enumerate(found):
        if _named(inside, index) == item:
            return index
    return int(item) if item.isdecimal() and int(item) < len(found) else None
