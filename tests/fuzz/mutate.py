"""Mutates JSON: nonsense values, removed, repeated or cut parts, changed characters."""

import json
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

from tests.fakes.hostile import ATTACKS

NONSENSE: tuple[Any, ...] = (
    None,
    "",
    " ",
    "x",
    "NaN",
    "-0",
    True,
    False,
    -1,
    0,
    1.5,
    10**9,
    10**18,
    1e308,
    -1e308,
    10**400,
    float("nan"),
    float("inf"),
    [],
    [None],
    [[]],
    {},
    [{}],
    {"a": 1},
    {"S": "x"},
    {"N": ""},
    "1970-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00",
    "2026-13-45",
    "x" * 5_000,
    "\ud800",
    "\x00",
    "\u2028",
    *ATTACKS,
)


def mutated(value: Any, dice: Random) -> Any:
    """Returns a copy with one to three mutations; one time in 20 only nonsense."""
    if not dice.randrange(20):
        return _nonsense(dice)
    document = deepcopy(value)
    for _ in range(dice.randint(1, 3)):
        document = _once(document, dice)
    return document


def mutated_text(text: str, dice: Random) -> str:
    """Returns the text mutated as JSON, or cut, repeated or with changed characters."""
    way = dice.randrange(6)
    if way == 0:
        return text[: dice.randrange(len(text) + 1)]
    if way == 1:
        return text + text[dice.randrange(len(text)) :]
    if way == 2:
        turned = list(text)
        for _ in range(dice.randint(1, 4)):
            turned[dice.randrange(len(turned))] = chr(
                dice.choice((0, 34, 92, 123, 125, 0x2028, 65))
            )
        return "".join(turned)
    return json.dumps(mutated(json.loads(text), dice))


def _once(document: Any, dice: Random) -> Any:
    places = list(_places(document))
    if not places:
        return _nonsense(dice)
    *folders, key = dice.choice(places)
    place = document
    for folder in folders:
        place = place[folder]
    way = dice.randrange(5)
    if way == 0:
        del place[key]
    elif way == 1 and isinstance(place, list):
        place.append(deepcopy(place[key]))
    elif way == 2 and isinstance(place[key], int | float) and not isinstance(place[key], bool):
        place[key] = -place[key] if dice.randrange(2) else place[key] * 10 ** dice.randint(1, 12)
    else:
        other = list(_places(document))
        place[key] = (
            _nonsense(dice) if dice.randrange(3) or not other else _at(document, dice.choice(other))
        )
    return document


def _nonsense(dice: Random) -> Any:
    """Returns a copy, because the next mutation may change it."""
    return deepcopy(dice.choice(NONSENSE))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return deepcopy(value)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the path of every value inside; of a list, only the first four."""
    if path:
        yield path
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value[:4]))
    for key, inner in pairs:
        yield from _places(inner, (*path, key))
