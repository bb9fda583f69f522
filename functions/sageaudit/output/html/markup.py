"""Builds HTML and SVG from elements: every text is escaped, and nothing else can be written.

Only `tag` and `join` make Markup of a name, a tag or a failure message, so that none of them can
become an element. An attribute that could run or load something is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from sageaudit.output.text.untrusted import html


class Markup(str):
    """HTML that is safe to write as it is."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"
"""Markup stays as it is, any other text is escaped; None is nothing."""
Value = str | int | float | Decimal | bool | None
"""Of an attribute: True writes the name alone, None and False leave it out."""

_VOID = frozenset({"br", "col", "input", "link", "meta", "wbr"})
_NAMES = {"class_": "class", "for_": "for"}
_LOADS = frozenset({"src", "srcset", "action", "formaction", "background", "poster", "data"})
_ADDRESSES = ("#", "https://", "data:,")


def tag(name: str, /, *children: Child, **attributes: Value) -> Markup:
    """An element. `class_` is `class`; `_` in an attribute's name is `-`.

    Raises ValueError for an attribute that runs, styles or loads something.
    """
    start = _start(name, tuple(attributes), *attributes.values())
    return start if name in _VOID else Markup(f"{start}{join(children)}</{name}>")


def around(name: str, *children: Child, **attributes: Value) -> tuple[Child, ...]:
    """The same in pieces: what is large is then never one text."""
    return _start(name, tuple(attributes), *attributes.values()), children, Markup(f"</{name}>")


def pieces(child: Child) -> Iterator[str]:
    """The text of a child, made while it is written."""
    if child is None or isinstance(child, str):
        yield _child(child)
    else:
        for part in child:
            yield from pieces(part)


def join(children: Iterable[Child]) -> Markup:
    """The children one after the other."""
    return Markup("".join(map(_child, children)))


def path(name: str) -> Markup:
    """A name with slashes, after each of which a line may end."""
    first, *others = name.split("/")
    return join([first, *(["/", tag("wbr"), part] for part in others)])


def _child(child: Child) -> str:
    if child is None or isinstance(child, Markup):
        return child or ""
    return html(child) if isinstance(child, str) else join(child)


@lru_cache(1_000, typed=True)  # typed, as 1 == True
def _start(name: str, keys: Sequence[str], *values: Value) -> Markup:
    written = "".join(map(_attribute, keys, values))
    return Markup(f"<{name}{written}>")


def _attribute(key: str, value: Value) -> str:
    name = _NAMES.get(key) or key.replace("_", "-")
    if value is None or value is False:
        return ""
    if name.startswith("on") or name == "style" or name in _LOADS:
        raise ValueError(f"{name} is not allowed in a page")
    if value is True:
        return f" {name}"
    text = html(_number(value) if isinstance(value, float) else str(value))
    if name == "href" and not text.startswith(_ADDRESSES):
        raise ValueError(f"{text} is no address that a page may name")
    return f' {name}="{text}"'


def _number(value: float) -> str:
    """At most two decimals: a hundredth of a pixel or of a percent."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
