"""Writes parameter rows as Python calls: on one line if it fits, else one argument per line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from sageaudit.output.fixes.literals import python
from sageaudit.output.fixes.ways import LIST, MAPPING, ParameterRow, WayStep, grouped

_WIDTH = 88
_INDENT = "    "
_BRACKETS = {MAPPING: ("{", "}"), LIST: ("[", "]")}


def calls(rows: Iterable[ParameterRow]) -> list[str]:
    """One statement for each class or function to call."""
    return [_opened(WayStep(root.name, root.name), inner, 0, 0) for root, inner in grouped(rows)]


def _opened(step: WayStep, rows: list[ParameterRow], depth: int, begins: int) -> str:
    """The call, list or mapping of a step; `begins` is its column on the line."""
    items = [_before(step, WayStep(step.label)) + python(step.name)] if step.label else []
    for inner, rest in grouped(rows):
        name = _before(step, inner)
        if inner.opens:
            items.append(name + _opened(inner, rest, depth + 1, len(name)))
        elif rest[-1].removed:
            items.append(f"# remove {name.rstrip('=: ')}")
        else:
            items.append(name + python(rest[-1].value))
    opening, closing = _BRACKETS.get(step.opens, (f"{step.opens}(", ")"))
    line = f"{opening}{', '.join(items)}{closing}"
    plain = not any(item.startswith("#") or "\n" in item for item in items)
    if plain and len(_INDENT) * depth + begins + len(line) < _WIDTH:
        return line
    body = [item if item.startswith("#") else f"{item}," for item in items]
    return "\n".join([opening, textwrap.indent("\n".join(body), _INDENT), closing])


def _before(parent: WayStep, step: WayStep) -> str:
    """The text before a value: its key, its argument's name, or nothing in a list."""
    if parent.opens == LIST:
        return ""
    return f"{python(step.name)}: " if parent.opens == MAPPING else f"{step.name}="
