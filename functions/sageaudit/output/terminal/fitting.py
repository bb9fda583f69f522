"""Fits a table into the width of a terminal: long texts are cut, then columns dropped.

1. Every column has the width of its widest cell, as long as all fit.
2. Else the widest of the columns that may be cut loses one character at a time, down to its least.
3. Else the columns are dropped in the order that the list states, and the rest tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from sageaudit.output.terminal.layout import plain_table
from sageaudit.output.text.untrusted import DOTS, middle

_GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `least`: the fewest characters to which its cells may be cut, 0 for never.

    A name is cut in its middle, a sentence (`sentence`) at its end.
    """

    name: str
    title: str
    right: bool
    least: int
    sentence: bool = False


def fitted(
    columns: Sequence[Column],
    cells: Sequence[Sequence[str]],
    dropped: Sequence[str],
    width: int,
) -> Table:
    """The table in at most `width` characters, if the least widths of the last column allow it."""
    shown = list(range(len(columns)))
    widest = [
        max([cell_len(column.title), *(cell_len(row[at]) for row in cells)])
        for at, column in enumerate(columns)
    ]
    order = [at for name in dropped for at, column in enumerate(columns) if column.name == name]
    widths = _cut(columns, widest, shown, width)
    while _needed(widths, shown) > width and order:
        shown.remove(order.pop(0))
        widths = _cut(columns, widest, shown, width)
    titles = [columns[at].title for at in shown]
    right = {columns[at].title for at in shown if columns[at].right}
    table = plain_table(*titles, right=right, unbroken=set(titles))
    for row in cells:
        table.add_row(*(Text(_short(row[at], widths[at], columns[at])) for at in shown))
    return table


def _cut(
    columns: Sequence[Column], widest: Sequence[int], shown: Sequence[int], width: int
) -> list[int]:
    """The widths after the widest columns were cut, as far as they may be."""
    widths = list(widest)
    while _needed(widths, shown) > width:
        least = [max(columns[at].least, cell_len(columns[at].title)) for at in shown]
        open_ = [
            at
            for at, fewest in zip(shown, least, strict=True)
            if columns[at].least and widths[at] > fewest
        ]
        if not open_:
            break
        widths[max(open_, key=lambda at: widths[at])] -= 1
    return widths


def _needed(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[at] for at in shown) + _GAP * (len(shown) - 1)


def _short(text: str, width: int, column: Column) -> str:
    """The text in at most `width` columns of a terminal, where some characters take two."""
    room, shown = width, text
    while cell_len(shown) > width:
        shown = f"{text[: room - 1]}{DOTS}" if column.sentence else middle(text, room)
        room -= 1
    return shown
