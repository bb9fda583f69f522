"""The console, tables and lines that all terminal views use.

All texts of a document pass through `for_terminal`, which removes control characters, and no text
is parsed as rich markup.
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
"""The rich styles by `Severity.rank`, the least severe first."""
_GAP = 2
_MIN_WIDTH = 10
_LINE_ENDS = re.compile(r" +$", re.MULTILINE)


class _Console(Console):
    """A console that does not pad lines, and raises on a closed pipe (rich's own console exits)."""

    def print(self, *objects: Any, **settings: Any) -> None:
        """Prints the objects; in a file or pipe, no line ends in spaces."""
        if self.is_terminal:
            super().print(*objects, **settings)
            return
        with self.capture() as captured:
            super().print(*objects, **settings)
        self.file.write(_LINE_ENDS.sub("", captured.get()))

    def on_broken_pipe(self) -> None:
        """Raises the current BrokenPipeError again, because `cli/main.py` handles it."""
        raise  # noqa: PLE0704 - the caller's handler is around this call


def make_console(*, no_color: bool = False) -> Console:
    """Returns a console on stdout; `no_color` turns colours off, else the terminal and NO_COLOR
    decide.
    """
    return _Console(no_color=no_color or None)


def print_line(console: Console, text: str, style: str = "", *, indent: int = 0) -> None:
    """Prints an untrusted text, indented by `indent` columns."""
    line = Text(for_terminal(text), style)
    console.print(indented(line, indent) if indent else line)


def indented(content: RenderableType, columns: int) -> Padding:
    """Returns the text or table with a left margin of `columns`."""
    return Padding(content, (0, 0, 0, columns), expand=False)


def print_heading(console: Console, text: str) -> None:
    """Prints an empty line and a heading."""
    console.print()
    console.print(Text(text, "bold"))


def plain_table(*columns: str, right: Container[str] = (), unbroken: Container[str] = ()) -> Table:
    """Returns a table without borders.

    The columns titled in `right` are right-aligned; those in `unbroken` do not wrap.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in right else "left"
        if column in unbroken:  # an ellipsis marks a number that is cut
            table.add_column(column, justify=justify, no_wrap=True, overflow="ellipsis")
        else:
            table.add_column(column, justify=justify, overflow="fold")
    return table


def signed_percent(percent: Decimal | None) -> str:
    """Returns a difference as `+1.5%`; "-" for None."""
    return "-" if percent is None else f"{percent:+.1f}%"


class FittedColumn(Struct, frozen=True):
    """A column whose cells may be cut to `min_width` characters; 0 means never.

    A name is cut in the middle, a sentence (`is_sentence`) at the end.
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
    """Returns the table in at most `width` characters, as far as the minimum widths allow.

    First the widest columns are cut to their minimum, then the columns in `droppable` are dropped
    in order, at last names are cut further. Amounts are never cut.

    If `droppable` is None, all columns stay, no name is cut below its minimum, and lines may be
    longer than `width`.
    """
    indexes = list(range(len(columns)))
    full_widths = [
        max([cell_len(column.title), *(cell_len(str(row[index])) for row in cells)])
        for index, column in enumerate(columns)
    ]
    drop_order = [
        index
        for name in droppable or ()
        for index, column in enumerate(columns)
        if column.name == name
    ]
    widths = _shrink_widths(columns, full_widths, indexes, width)
    while _total_width(widths, indexes) > width and drop_order:
        indexes.remove(drop_order.pop(0))
        widths = _shrink_widths(columns, full_widths, indexes, width)
    if droppable is not None:
        narrow_columns = [
            replace(column, min_width=min(column.min_width, _MIN_WIDTH)) for column in columns
        ]
        widths = _shrink_widths(narrow_columns, widths, indexes, width)
    titles = [columns[index].title for index in indexes]
    right = {columns[index].title for index in indexes if columns[index].is_right_aligned}
    table = plain_table(*titles, right=right, unbroken=set(titles))
    if droppable is None:
        table.width = _total_width(widths, indexes)
    for row in cells:
        table.add_row(*(_fit_cell(row[index], widths[index], columns[index]) for index in indexes))
    return table


def _shrink_widths(
    columns: Sequence[FittedColumn],
    full_widths: Sequence[int],
    indexes: Sequence[int],
    width: int,
) -> list[int]:
    """Returns the column widths after cutting the widest columns as far as their minimum allows."""
    widths = list(full_widths)
    while _total_width(widths, indexes) > width:
        shrinkable = [
            index
            for index in indexes
            if columns[index].min_width
            and widths[index] > max(columns[index].min_width, cell_len(columns[index].title))
        ]
        if not shrinkable:
            break
        widths[max(shrinkable, key=lambda index: widths[index])] -= 1
    return widths


def _total_width(widths: Sequence[int], indexes: Sequence[int]) -> int:
    return sum(widths[index] for index in indexes) + _GAP * (len(indexes) - 1)


def _fit_cell(cell: str | Text, width: int, column: FittedColumn) -> Text:
    style = cell.style if isinstance(cell, Text) else ""
    return Text(_shorten(str(cell), width, column), style)


def _shorten(text: str, width: int, column: FittedColumn) -> str:
    """Returns the text cut to `width` columns of a terminal; a character may take two columns."""
    length, short_text = width, text
    while cell_len(short_text) > width:
        if column.is_sentence:
            short_text = f"{text[: length - 1]}{ELLIPSIS}"
        else:
            short_text = cut_middle(text, length)
        length -= 1
    return short_text
