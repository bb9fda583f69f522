"""What every view of the terminal prints with: the console, tables, and lines of a document.

All texts of a document pass through `terminal`, which removes control characters; none is read as
rich markup.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sageaudit.output.text.untrusted import ELLIPSIS, cut_middle, for_terminal
from sageaudit.structs import replace

SEVERITY_STYLES = ("dim", "cyan", "bold yellow", "bold red")
"""By `Severity.rank`, the least severe first."""
_GAP = 2
_MIN_WIDTH = 10
_LINE_ENDS = re.compile(r" +$", re.MULTILINE)


class _Console(Console):
    """A console that pads no line, and leaves a closed pipe to the caller: rich would exit."""

    def print(self, *objects: Any, **settings: Any) -> None:
        """Prints; in a file or pipe, no line ends in spaces."""
        if self.is_terminal:
            super().print(*objects, **settings)
            return
        with self.capture() as captured:
            super().print(*objects, **settings)
        self.file.write(_LINE_ENDS.sub("", captured.get()))

    def on_broken_pipe(self) -> None:
        """Called while a BrokenPipeError is handled: raises it again for `cli/main.py`."""
        raise  # noqa: PLE0704 - the caller's handler is around this call


def make_console(*, no_color: bool = False) -> Console:
    """A console on stdout; without `no_color`, the terminal and NO_COLOR decide on colours."""
    return _Console(no_color=no_color or None)


def print_line(console: Console, text: str, style: str = "", *, indent: int = 0) -> None:
    """Prints a text of a document."""
    words = Text(for_terminal(text), style)
    console.print(indented(words, indent) if indent else words)


def indented(part: RenderableType, columns: int) -> Padding:
    """The text or table with this margin on its left."""
    return Padding(part, (0, 0, 0, columns), expand=False)


def print_heading(console: Console, text: str) -> None:
    """Prints a title below an empty line."""
    console.print()
    console.print(Text(text, "bold"))


def plain_table(*columns: str, right: Container[str] = (), unbroken: Container[str] = ()) -> Table:
    """A table without borders, with right-aligned columns and columns that never wrap."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in right else "left"
        if column in unbroken:  # the ellipsis marks a number that is cut off
            table.add_column(column, justify=justify, no_wrap=True, overflow="ellipsis")
        else:
            table.add_column(column, justify=justify, overflow="fold")
    return table


def signed_percent(percent: Decimal | None) -> str:
    """A difference as `+1.5%`; "-" where it is not known."""
    return "-" if percent is None else f"{percent:+.1f}%"


class FittedColumn(Struct, frozen=True):
    """A column; `least`: the fewest characters to which its cells may be cut, 0 for never.

    A name is cut in its middle, a sentence (`sentence`) at its end.
    """

    name: str
    title: str
    is_right_aligned: bool
    min_width: int
    is_sentence: bool = False


def fit_table(
    columns: Sequence[FittedColumn],
    cells: Sequence[Sequence[str | Text]],
    droppable: Sequence[str] | None,
    width: int,
) -> Table:
    """The table in at most `width` characters, if the least widths of the last column allow it.

    Where not all fits, the widest of the columns that may be cut loses one character at a time,
    down to its least; then columns are dropped in the order of `dropped`, and the rest tried again.
    In the end names are cut further: an amount is whole or not there. Without `dropped` each
    column is there, no name is shorter than its least, and lines may be longer than `width`.
    """
    shown = list(range(len(columns)))
    widest = [
        max([cell_len(column.title), *(cell_len(str(row[at])) for row in cells)])
        for at, column in enumerate(columns)
    ]
    order = [
        at for name in droppable or () for at, column in enumerate(columns) if column.name == name
    ]
    widths = _shrink_widths(columns, widest, shown, width)
    while _total_width(widths, shown) > width and order:
        shown.remove(order.pop(0))
        widths = _shrink_widths(columns, widest, shown, width)
    if droppable is not None:
        last = [replace(column, min_width=min(column.min_width, _MIN_WIDTH)) for column in columns]
        widths = _shrink_widths(last, widths, shown, width)
    titles = [columns[at].title for at in shown]
    right = {columns[at].title for at in shown if columns[at].is_right_aligned}
    table = plain_table(*titles, right=right, unbroken=set(titles))
    if droppable is None:
        table.width = _total_width(widths, shown)
    for row in cells:
        table.add_row(*(_fitting(row[at], widths[at], columns[at]) for at in shown))
    return table


def _shrink_widths(
    columns: Sequence[FittedColumn], widest: Sequence[int], shown: Sequence[int], width: int
) -> list[int]:
    """The widths after the widest columns were cut, as far as they may be."""
    widths = list(widest)
    while _total_width(widths, shown) > width:
        open_ = [
            at
            for at in shown
            if columns[at].min_width
            and widths[at] > max(columns[at].min_width, cell_len(columns[at].title))
        ]
        if not open_:
            break
        widths[max(open_, key=lambda at: widths[at])] -= 1
    return widths


def _total_width(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[at] for at in shown) + _GAP * (len(shown) - 1)


def _fitting(cell: str | Text, width: int, column: FittedColumn) -> Text:
    style = cell.style if isinstance(cell, Text) else ""
    return Text(_shorten(str(cell), width, column), style)


def _shorten(text: str, width: int, column: FittedColumn) -> str:
    """The text in at most `width` columns of a terminal, where some characters take two."""
    room, shown = width, text
    while cell_len(shown) > width:
        shown = f"{text[: room - 1]}{ELLIPSIS}" if column.is_sentence else cut_middle(text, room)
        room -= 1
    return shown
