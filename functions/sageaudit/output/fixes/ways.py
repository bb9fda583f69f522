"""Ways: the calls, arguments, lists and mappings that lead to a parameter in one dialect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.fixes.names import (
    DEFINITION,
    ELEMENT_NAMES,
    TEXT_MAPS,
    Names,
    names_of,
)

MAPPING, LIST = "{}", "[]"
_PART = re.compile(r"([\w.]+)(?:\[(\w+)\]|\{(\*|\w+)\})?(?::(\w+|\{\}))?\Z")


@dataclass(frozen=True, slots=True)
class WayStep:
    """One step of a way.

    `opens` is empty for the value itself, MAPPING, LIST, or the name of what to call.
    `label` is the argument that has `name` as its value, for an element of a list.
    """

    name: str
    opens: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """A parameter's value and the remaining steps of its way."""

    way: tuple[WayStep, ...]
    value: Any
    removed: bool


@dataclass(frozen=True, slots=True)
class MappedParameter:
    """A parameter found in the table of names, with the user's names that its stars matched."""

    pattern: str
    user_names: tuple[str, ...]
    names: Names


def mapped_parameter(kind: JobKind, path: str) -> MappedParameter | None:
    """Finds a path in the table. Tuning jobs also accept the paths of training jobs."""
    names = names_of(kind)
    mapped = _match(names, path)
    if mapped is None and kind is JobKind.TUNING:
        words = path.removeprefix("HyperParameters.")
        static = f"StaticHyperParameters.{words}" if words != path else path
        mapped = _match(names, DEFINITION + static)
    return mapped


def way(text: str, user_names: Iterable[str]) -> tuple[WayStep, ...]:
    """Parses a way of the table; the first step is the call. ValueError for another text."""
    names = iter(user_names)
    steps: list[WayStep] = []
    for part in text.split(" > "):
        match = _PART.match(part)
        if match is None:
            raise ValueError(f"{text!r} is not a way")
        name, label, key, call = match.groups()
        if label:
            steps += [WayStep(name, LIST), WayStep(next(names), call or MAPPING, label)]
        elif key:
            steps += [
                WayStep(name, MAPPING),
                WayStep(next(names) if key == "*" else key, call or ""),
            ]
        else:
            steps.append(WayStep(name, call or ("" if steps else name)))
    return tuple(steps)


def request_way(kind: JobKind, mapped: MappedParameter) -> tuple[WayStep, ...]:
    """The way in a boto3 call, which uses the request's own names."""
    parts = mapped.pattern.split(".")
    words = [f"client.create_{kind.row.sdk_noun}"]
    for part, after in zip(parts, [*parts[1:], ""], strict=True):
        name = part.removesuffix("[*]")
        if name in TEXT_MAPS:
            words.append(f"{name}{{{after}}}")
            break
        label = f"[{ELEMENT_NAMES[name]}]" if name != part else ""
        words.append(f"{name}{label}{f':{MAPPING}' if after else ''}")
    return way(" > ".join(words), mapped.user_names)


def grouped(rows: Iterable[ParameterRow]) -> Iterator[tuple[WayStep, list[ParameterRow]]]:
    """Groups rows by their first step, in order of appearance, and removes that step."""
    groups: dict[WayStep, list[ParameterRow]] = {}
    for row in rows:
        rest = ParameterRow(row.way[1:], row.value, row.removed)
        groups.setdefault(row.way[0], []).append(rest)
    yield from groups.items()


def _match(table: Mapping[str, Names], path: str) -> MappedParameter | None:
    for pattern, names in table.items():
        if match := _regex(pattern).fullmatch(path):
            return MappedParameter(pattern, match.groups(), names)
    return None


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", "(.+)"), re.DOTALL)
