"""The frame of a chart: caption, drawing, legend, and the table of what it shows.

A drawing places things in percents of its width and in pixels of its height, so that it fits any
screen while its texts keep their size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sageaudit.output.html.markup import Child, Markup, join, tag


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; numbers are aligned right."""

    title: str
    number: bool = False


def figure(caption: Child, *parts: Child, note: Child = None) -> Markup:
    """A chart with its caption above and a note below."""
    below = tag("p", note, class_="note") if note else None
    return tag("figure", tag("figcaption", caption), *parts, below)


def drawing(label: str, height: int, *parts: Child, class_: str = "chart") -> Markup:
    """An SVG that is as wide as its place; `label` says what it shows to those who cannot see."""
    return tag(
        "svg", *parts, class_=class_, width="100%", height=height, role="img", aria_label=label
    )


def plot(axis: Sequence[str], below: Sequence[str], svg: Child) -> Markup:
    """A drawing with the values of its vertical axis, top to bottom, and what stands below it."""
    marks = tag("div", (tag("span", mark) for mark in axis), class_="y", aria_hidden="true")
    ends = tag("div", (tag("span", mark) for mark in below), class_="x", aria_hidden="true")
    return tag("div", marks, svg, ends, class_="plot")


def data(columns: Sequence[Column], rows: Iterable[Sequence[Child]], label: str) -> Markup:
    """The numbers behind a chart, folded away."""
    return tag(
        "details", tag("summary", f"Data: {label}"), table(columns, rows, label), class_="data"
    )


def table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[Child]],
    label: str,
    foot: Sequence[Child] = (),
) -> Markup:
    """A table that scrolls inside its place where it is too wide."""
    heads = (_head(column) for column in columns)
    body = (tag("tr", _cells(columns, row)) for row in rows)
    last = tag("tfoot", tag("tr", _cells(columns, foot))) if foot else None
    whole = tag("table", tag("thead", tag("tr", heads)), tag("tbody", body), last)
    return scrolling(label, whole)


def scrolling(label: str, *children: Child) -> Markup:
    """A place that scrolls sideways by itself, with the keyboard too."""
    return tag("div", *children, class_="scroll", role="region", tabindex=0, aria_label=label)


def _head(column: Column) -> Markup:
    return tag("th", column.title, scope="col", class_="n" if column.number else None)


def _cells(columns: Sequence[Column], row: Sequence[Child]) -> Markup:
    """The first cell names the row."""
    cells: list[Markup] = []
    for position, (column, cell) in enumerate(zip(columns, row, strict=True)):
        number = "n" if column.number else None
        name, scope = ("td", None) if position else ("th", "row")
        cells.append(tag(name, cell, scope=scope, class_=number))
    return join(cells)
