"""Builds HTML and SVG, and escapes every text.

Only `tag`, `tag_pieces` and `join` make Markup from untrusted text.

Charts measure x in percent and y in pixels, so they fit any screen and their texts keep their size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.money import CENT
from sageaudit.output.text.money import Figure, percent_text
from sageaudit.output.text.untrusted import for_html
from sageaudit.structs import replace


class Markup(str):
    """HTML that is safe to write without escaping."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"
"""The content of an element. Markup is not escaped, other text is, and None is empty."""
Value = str | int | float | Decimal | bool | None
"""An attribute's value. True writes only its name; None and False omit the attribute."""

_VOID_ELEMENTS = frozenset({"br", "col", "input", "link", "meta", "wbr"})
_ATTRIBUTE_NAMES = {"class_": "class", "for_": "for"}
_LOADING_ATTRIBUTES = frozenset(
    {"src", "srcset", "action", "formaction", "background", "poster", "data"}
)
_LINK_PREFIXES = ("#", "https://", "data:,")
_NO_DOLLARS = "$0.00"


def tag(name: str, /, *children: Child, **attributes: Value) -> Markup:
    """Returns an element. `class_` becomes `class`; `_` in an attribute's name becomes `-`.

    Raises ValueError for an attribute that runs, styles or loads something.
    """
    start_tag = _start_tag(name, tuple(attributes), *attributes.values())
    return start_tag if name in _VOID_ELEMENTS else Markup(f"{start_tag}{join(children)}</{name}>")


def tag_pieces(name: str, *children: Child, **attributes: Value) -> tuple[Child, ...]:
    """Returns an element in pieces, so that a large element never becomes one string."""
    start_tag = _start_tag(name, tuple(attributes), *attributes.values())
    return start_tag, children, Markup(f"</{name}>")


def render_pieces(child: Child) -> Iterator[str]:
    """Yields the text of `child` in pieces."""
    if child is None or isinstance(child, str):
        yield _render(child)
    else:
        for piece in child:
            yield from render_pieces(piece)


def join(children: Iterable[Child]) -> Markup:
    """Returns the children one after another."""
    return Markup("".join(map(_render, children)))


def breakable_path(name: str) -> Markup:
    """Returns a name in which a line may break after each slash."""
    first_part, *other_parts = name.split("/")
    return join([first_part, *(["/", tag("wbr"), part] for part in other_parts)])


def _render(child: Child) -> str:
    if child is None or isinstance(child, Markup):
        return child or ""
    return for_html(child) if isinstance(child, str) else join(child)


@lru_cache(1_000, typed=True)  # typed, because 1 == True
def _start_tag(name: str, keys: Sequence[str], *values: Value) -> Markup:
    attributes_text = "".join(map(_attribute, keys, values))
    return Markup(f"<{name}{attributes_text}>")


def _attribute(key: str, value: Value) -> str:
    name = _ATTRIBUTE_NAMES.get(key) or key.replace("_", "-")
    if value is None or value is False:
        return ""
    if name.startswith("on") or name == "style" or name in _LOADING_ATTRIBUTES:
        raise ValueError(f"{name} is not allowed in a page")
    if value is True:
        return f" {name}"
    text = for_html(_number(value) if isinstance(value, float) else str(value))
    if name == "href" and not text.startswith(_LINK_PREFIXES):
        raise ValueError(f"{text} is not an address that a page may link to")
    return f' {name}="{text}"'


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def figure(caption: Child, *content: Child, note: Child = None) -> Markup:
    """Returns a figure with a caption above it and a note below."""
    note_tag = tag("p", note, class_="note") if note else None
    return tag("figure", tag("figcaption", caption), *content, note_tag)


def svg_chart(label: str, height: int, *content: Child, class_: str = "chart") -> Markup:
    """Returns an SVG as wide as its container. Screen readers read `label`."""
    return tag(
        "svg", *content, class_=class_, width="100%", height=height, role="img", aria_label=label
    )


def chart_with_axes(y_labels: Sequence[str], x_labels: Sequence[str], svg: Child) -> Markup:
    """Returns a chart with axis labels. `y_labels` are from top to bottom."""
    y_axis = tag("div", (tag("span", label) for label in y_labels), class_="y", aria_hidden="true")
    x_axis = tag("div", (tag("span", label) for label in x_labels), class_="x", aria_hidden="true")
    return tag("div", y_axis, svg, x_axis, class_="plot")


def data_table(titles: Sequence[str], rows: Iterable[Sequence[Child]], label: str) -> Markup:
    """Returns a chart's numbers as a closed table."""
    rows_table = table(titles, rows, label, numbers=titles[1:])
    return tag("details", tag("summary", f"Data: {label}"), rows_table, class_="data")


def table(
    titles: Sequence[str],
    rows: Iterable[Sequence[Child]],
    label: str,
    *,
    numbers: Sequence[str],
    foot: Sequence[Child] = (),
) -> Markup:
    """Returns a table that scrolls if it is too wide.

    The first cell of each row is a heading. `numbers`: the titles of right-aligned columns. `foot`:
    the cells of the last row.
    """
    css_classes = ["n" if title in numbers else None for title in titles]

    def cells(row: Sequence[Child]) -> Markup:
        (name, name_class), *others = zip(row, css_classes, strict=True)
        heading = tag("th", name, scope="row", class_=name_class)
        return join([heading, *(tag("td", cell, class_=css_class) for cell, css_class in others)])

    heads = (
        tag("th", title, scope="col", class_=css_class)
        for title, css_class in zip(titles, css_classes, strict=True)
    )
    body = (tag("tr", cells(row)) for row in rows)
    foot_tag = tag("tfoot", tag("tr", cells(foot))) if foot else None
    table_tag = tag("table", tag("thead", tag("tr", heads)), tag("tbody", body), foot_tag)
    return join(scroll_box(label, table_tag))


def scroll_box(label: str, *children: Child) -> tuple[Child, ...]:
    """Returns a container that scrolls sideways, also by keyboard."""
    return tag_pieces("div", *children, class_="scroll", role="group", tabindex=0, aria_label=label)


class BarPiece(Struct, frozen=True):
    """A part of a bar."""

    usd: Decimal
    css_class: str


class BarRow(Struct, frozen=True):
    """A row of a table with bars. `name` is the row's heading. The bar starts at `start_usd`."""

    name: Child
    pieces: Sequence[BarPiece]
    cells: Sequence[Child]
    start_usd: Decimal = Decimal(0)
    is_bold: bool = False


def spend_pieces(sums: Sums) -> tuple[BarPiece, BarPiece, BarPiece]:
    """Returns the lost, the avoidable and the other spend. No piece is negative."""
    wasted_usd = min(sums.waste_usd, sums.total_usd)
    lost_usd = min(sums.lost_usd, wasted_usd)
    return (
        BarPiece(lost_usd, "lost"),
        BarPiece(wasted_usd - lost_usd, "avoidable"),
        BarPiece(sums.total_usd - wasted_usd, "spent"),
    )


def bar_table(label: str, titles: Sequence[str], rows: Sequence[BarRow]) -> Markup:
    """Returns a table with a bar at the end of each row. The first title belongs to the row
    headings.
    """
    max_usd = max((_end_usd(row) for row in rows), default=Decimal(0))
    name_title, *cell_titles = titles
    heads = [
        tag("th", name_title, scope="col"),
        *(tag("th", title, scope="col", class_="n") for title in cell_titles),
        tag("td", class_="bar"),
    ]
    body = (_bar_row(row, max_usd) for row in rows)
    table_tag = tag("table", tag("thead", tag("tr", heads)), tag("tbody", body), class_="bars")
    return join(scroll_box(label, table_tag))


def waterfall(
    label: str,
    start: tuple[str, Figure],
    steps: Iterable[tuple[Child, Figure, str]],
    end_name: str,
) -> Markup:
    """Returns a waterfall chart from `start` (name, dollars) down to the rest, named `end_name`.

    `steps`: tuples of name, dollars and CSS class. The dollars are negative if a fix costs more
    than it saves.
    """
    start_name, spend = start
    total_usd = left_usd = spend.upper_end or Decimal(0)
    start_bar = (BarPiece(total_usd, "spent"),)
    rows = [BarRow(start_name, start_bar, (str(spend), ""), is_bold=True)]
    for name, step_figure, css_class in steps:
        usd = step_figure.usd or Decimal(0)
        left_usd -= usd
        size = replace(step_figure, usd=abs(usd))
        cells = (
            str(size).replace("$", "−$") if usd >= CENT else str(size),
            percent_text(usd, total_usd) if total_usd and usd > 0 else "",
        )
        start_usd = min(left_usd, left_usd + usd)
        rows.append(BarRow(name, (BarPiece(abs(usd), css_class),), cells, start_usd=start_usd))
    end_cells = (
        str(replace(spend, usd=left_usd, upper_usd=None)),
        percent_text(left_usd, total_usd) if total_usd and left_usd >= 0 else "",
    )
    rows.append(BarRow(end_name, (BarPiece(left_usd, "needed"),), end_cells, is_bold=True))
    return bar_table(label, ("Step", "USD", "Share of spend"), rows)


def _end_usd(row: BarRow) -> Decimal:
    return row.start_usd + sum((piece.usd for piece in row.pieces), Decimal(0))


def _bar_row(row: BarRow, max_usd: Decimal) -> Markup:
    cells = (tag("td", cell, class_="n z" if cell == _NO_DOLLARS else "n") for cell in row.cells)
    return tag(
        "tr",
        tag("th", row.name, scope="row"),
        join(cells),
        tag("td", _bar(row, max_usd), class_="bar"),
        class_="strong" if row.is_bold else None,
    )


def _bar(row: BarRow, max_usd: Decimal) -> Markup | None:
    start_usd, rects = row.start_usd, []
    for piece in row.pieces:
        if piece.usd > 0 and max_usd > 0:
            horizontal = {
                "x": f"{width_percent(start_usd, max_usd)}%",
                "width": f"{width_percent(piece.usd, max_usd)}%",
            }
            rects.append(tag("rect", **horizontal, height=14, class_=piece.css_class))
            start_usd += piece.usd
    return tag("svg", rects, width="100%", height=14, aria_hidden="true") if rects else None


def width_percent(part: Decimal, whole: Decimal) -> str:
    """Returns the part as a percentage of the whole, to a hundredth: `12.5`."""
    return f"{max(round(float(part / whole) * 100, 2), 0):g}"
