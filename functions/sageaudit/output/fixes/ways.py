"""Ways: the calls, arguments, lists and mappings that lead to a parameter in one dialect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.fixes import literals
from sageaudit.output.fixes.names import (
    DEFINITION,
    ELEMENT_NAMES,
    NOT_IN_TERRAFORM,
    TEXT_MAPS,
    Names,
    names_of,
)

MAPPING, LIST, BLOCK = "{}", "[]", "block"
_PART = re.compile(r"([\w.]+)(?:\[(\w+)\]|\{(\*|\w+)\})?(?::(\w+|\{\}))?\Z")
_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BARE = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class WayStep:
    """One step of a way.

    `opens` is empty for the value itself, MAPPING, LIST, BLOCK, or the name of a class to call.
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
    parts = text.split(" > ")
    steps: list[WayStep] = []
    for index, part in enumerate(parts):
        match = _PART.match(part)
        if match is None:
            raise ValueError(f"{text!r} is not a way")
        name, label, key, call = match.groups()
        if label:
            steps += [WayStep(name, LIST), WayStep(next(names), call or BLOCK, label)]
        elif key:
            steps += [
                WayStep(name, MAPPING),
                WayStep(next(names) if key == "*" else key, call or ""),
            ]
        else:
            steps.append(WayStep(name, call or (BLOCK if index < len(parts) - 1 else "")))
    return tuple(steps)


def request_way(kind: JobKind, mapped: MappedParameter) -> tuple[WayStep, ...]:
    """The way in a boto3 call, which uses the request's own names."""
    words = _request_words(mapped.pattern, f":{MAPPING}", str)
    return way(f"client.create_{kind.row.sdk_noun} > {words}", mapped.user_names)


def terraform_way(mapped: MappedParameter) -> tuple[WayStep, ...] | None:
    """The way in Terraform, whose blocks are the request's names in snake case; None without."""
    if mapped.pattern in NOT_IN_TERRAFORM:
        return None
    tags = mapped.pattern.startswith("Tags")
    words = (
        "tags{*}"
        if tags
        else _request_words(mapped.pattern, "", lambda name: _CASE.sub("_", name).lower())
    )
    return way(words, mapped.user_names)


def _request_words(pattern: str, opens: str, spelled: Callable[[str], str]) -> str:
    parts = pattern.split(".")
    words = []
    for part, after in zip(parts, [*parts[1:], ""], strict=True):
        name = part.removesuffix("[*]")
        if name in TEXT_MAPS:
            words.append(f"{spelled(name)}{{{after}}}")
            break
        label = f"[{spelled(ELEMENT_NAMES[name])}]" if name != part else ""
        words.append(f"{spelled(name)}{label}{opens if after else ''}")
    return " > ".join(words)


def json_path(mapped: MappedParameter) -> str:
    """The path as a JSONPath (RFC 9535)."""
    names = iter(mapped.user_names)
    words = ["$"]
    for part in mapped.pattern.split("."):
        name = part.removesuffix("[*]")
        if name != part:
            words.append(f".{name}[?@.{ELEMENT_NAMES[name]}=={literals.json_path(next(names))}]")
        elif part == "*":
            key = next(names)
            words.append(f".{key}" if _BARE.match(key) else f"[{literals.json_path(key)}]")
        else:
            words.append(f".{part}")
    return "".join(words)


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
