"""Builds HTML and SVG from elements: every text is escaped, and nothing else can be written.

Only `tag` and `join` make Markup of a name, a tag or a failure message, so that none of them can
become an element. An attribute that could run or load something is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
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
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    start = f"<{name}{written}>"
    if name in _VOID:
        return Markup(start)
    return Markup(f"{start}{join(children)}</{name}>")


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
