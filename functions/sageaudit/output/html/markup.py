"""Builds HTML and SVG from elements: every text is escaped, and nothing else can be written.

Only `tag` and `join` make Markup of a name, a tag or a failure message, so that none of them can
become an element. An attribute that could run or load something is refused.

Charts and tables are built of them: a caption, a drawing, the table of what it shows, tables with a
bar a row. A drawing places things in percents of its width and in pixels of its height, so that it
fits any screen while its texts keep their size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from sageaudit.domain.audit.sums import Sums
from sageaudit.output.text.money import Figure, percent_text
from sageaudit.output.text.untrusted import for_html
from sageaudit.structs import replace


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
_NOTHING = "$0.00"
_CENT = Decimal("0.01")


def tag(name: str, /, *children: Child, **attributes: Value) -> Markup:
    """An element. `class_` is `class`; `_` in an attribute's name is `-`.

    Raises ValueError for an attribute that runs, styles or loads something.
    """
    start = _start(name, tuple(attributes), *attributes.values())
    return start if name in _VOID else Markup(f"{start}{join(children)}</{name}>")


def tag_pieces(name: str, *children: Child, **attributes: Value) -> tuple[Child, ...]:
    """The same in pieces: what is large is then never one text."""
    return _start(name, tuple(attributes), *attributes.values()), children, Markup(f"</{name}>")


def render_pieces(child: Child) -> Iterator[str]:
    """The text of a child, made while it is written."""
    if child is None or isinstance(child, str):
        yield _child(child)
    else:
        for part in child:
            yield from render_pieces(part)


def join(children: Iterable[Child]) -> Markup:
    """The children one after the other."""
    return Markup("".join(map(_child, children)))


def breakable_path(name: str) -> Markup:
    """A name with slashes, after each of which a line may end."""
    first, *others = name.split("/")
    return join([first, *(["/", tag("wbr"), part] for part in others)])


def _child(child: Child) -> str:
    if child is None or isinstance(child, Markup):
        return child or ""
    return for_html(child) if isinstance(child, str) else join(child)


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
    text = for_html(_number(value) if isinstance(value, float) else str(value))
    if name == "href" and not text.startswith(_ADDRESSES):
        raise ValueError(f"{text} is no address that a page may name")
    return f' {name}="{text}"'


def _number(value: float) -> str:
    """At most two decimals: a hundredth of a pixel or of a percent."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def figure(caption: Child, *parts: Child, note: Child = None) -> Markup:
    """A chart with its caption above and a note below."""
    below = tag("p", note, class_="note") if note else None
    return tag("figure", tag("figcaption", caption), *parts, below)


def svg_chart(label: str, height: int, *parts: Child, class_: str = "chart") -> Markup:
    """An SVG that is as wide as its place; `label` says what it shows to those who cannot see."""
    return tag(
        "svg", *parts, class_=class_, width="100%", height=height, role="img", aria_label=label
    )


def chart_with_axes(axis: Sequence[str], below: Sequence[str], svg: Child) -> Markup:
    """A drawing with the values of its vertical axis, top to bottom, and what stands below it."""
    marks = tag("div", (tag("span", mark) for mark in axis), class_="y", aria_hidden="true")
    ends = tag("div", (tag("span", mark) for mark in below), class_="x", aria_hidden="true")
    return tag("div", marks, svg, ends, class_="plot")


def data_table(titles: Sequence[str], rows: Iterable[Sequence[Child]], label: str) -> Markup:
    """The numbers behind a chart, folded away; all columns but the first are numbers."""
    folded = table(titles, rows, label, numbers=titles[1:])
    return tag("details", tag("summary", f"Data: {label}"), folded, class_="data")


def table(
    titles: Sequence[str],
    rows: Iterable[Sequence[Child]],
    label: str,
    *,
    numbers: Sequence[str],
    foot: Sequence[Child] = (),
) -> Markup:
    """A table that scrolls inside its place where it is too wide; the first cell names the row.

    The columns of `numbers` are aligned right.
    """
    kinds = ["n" if title in numbers else None for title in titles]

    def cells(row: Sequence[Child]) -> Markup:
        first, *others = zip(row, kinds, strict=True)
        name = tag("th", first[0], scope="row", class_=first[1])
        return join([name, *(tag("td", cell, class_=kind) for cell, kind in others)])

    heads = (
        tag("th", title, scope="col", class_=kind)
        for title, kind in zip(titles, kinds, strict=True)
    )
    body = (tag("tr", cells(row)) for row in rows)
    last = tag("tfoot", tag("tr", cells(foot))) if foot else None
    whole = tag("table", tag("thead", tag("tr", heads)), tag("tbody", body), last)
    return join(scroll_box(label, whole))


def scroll_box(label: str, *children: Child) -> tuple[Child, ...]:
    """A place that scrolls sideways by itself, with the keyboard too."""
    return tag_pieces("div", *children, class_="scroll", role="group", tabindex=0, aria_label=label)


class BarPiece(Struct, frozen=True):
    """A part of a bar in USD, and the class that colours it."""

    usd: Decimal
    css_class: str


class BarRow(Struct, frozen=True):
    """A name, its bar from `start_usd` on, and its other cells."""

    name: Child
    pieces: Sequence[BarPiece]
    cells: Sequence[Child]
    start_usd: Decimal = Decimal(0)
    is_bold: bool = False


def spend_pieces(sums: Sums) -> tuple[BarPiece, BarPiece, BarPiece]:
    """Spend in its parts, each at least 0: lost, avoidable, and the rest."""
    wasted = min(sums.waste_usd, sums.total_usd)
    lost = min(sums.lost_usd, wasted)
    rest = sums.total_usd - wasted
    return BarPiece(lost, "lost"), BarPiece(wasted - lost, "avoidable"), BarPiece(rest, "spent")


def bar_table(label: str, titles: Sequence[str], rows: Sequence[BarRow]) -> Markup:
    """`titles`: of the name's column, then of the cells; the bar stands after them."""
    most = max((_end(row) for row in rows), default=Decimal(0))
    first, *others = titles
    heads = [
        tag("th", first, scope="col"),
        *(tag("th", title, scope="col", class_="n") for title in others),
        tag("td", class_="bar"),
    ]
    body = (_row(row, most) for row in rows)
    whole = tag("table", tag("thead", tag("tr", heads)), tag("tbody", body), class_="bars")
    return join(scroll_box(label, whole))


def waterfall(
    label: str, whole: tuple[str, Figure], steps: Iterable[tuple[Child, Figure, str]], rest: str
) -> Markup:
    """From the whole down to what was needed: each step is (name, dollars, class).

    A step of a fix that costs something adds to what is left.
    """
    name, spend = whole
    total = left = spend.upper_end or Decimal(0)
    rows = [BarRow(name, (BarPiece(total, "spent"),), (str(spend), ""), is_bold=True)]
    for step, found, kind in steps:
        amount = found.usd or Decimal(0)
        left -= amount
        size = replace(found, usd=abs(amount))
        shown = str(size).replace("$", "−$") if amount >= _CENT else str(size)
        part = percent_text(amount, total) if total and amount > 0 else ""
        low = min(left, left + amount)
        rows.append(BarRow(step, (BarPiece(abs(amount), kind),), (shown, part), start_usd=low))
    needed = replace(spend, usd=left, upper_usd=None)
    part = percent_text(left, total) if total and left >= 0 else ""
    rows.append(BarRow(rest, (BarPiece(left, "needed"),), (str(needed), part), is_bold=True))
    return bar_table(label, ("Step", "USD", "of the cost"), rows)


def _end(row: BarRow) -> Decimal:
    return row.start_usd + sum((piece.usd for piece in row.pieces), Decimal(0))


def _row(row: BarRow, most: Decimal) -> Markup:
    cells = (tag("td", cell, class_="n z" if cell == _NOTHING else "n") for cell in row.cells)
    return tag(
        "tr",
        tag("th", row.name, scope="row"),
        join(cells),
        tag("td", _bar(row, most), class_="bar"),
        class_="strong" if row.is_bold else None,
    )


def _bar(row: BarRow, most: Decimal) -> Markup | None:
    at, rects = row.start_usd, []
    for piece in row.pieces:
        if piece.usd > 0 and most > 0:
            place = {
                "x": f"{width_percent(at, most)}%",
                "width": f"{width_percent(piece.usd, most)}%",
            }
            rects.append(tag("rect", **place, height=14, class_=piece.css_class))
            at += piece.usd
    return tag("svg", rects, width="100%", height=14, aria_hidden="true") if rects else None


def width_percent(part: Decimal, whole: Decimal) -> str:
    """A share of the width to a hundredth of a percent; the least part is still seen."""
    return f"{max(round(float(part / whole) * 100, 2), 0):g}"
