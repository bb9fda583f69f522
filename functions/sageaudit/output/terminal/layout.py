"""The console, tables and lines that all terminal views use.

`for_terminal` removes control characters from all texts. No text is parsed as rich markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from decimal import Decimal
from io import StringIO
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
"""The rich styles by `Severity.rank`."""
Cut = Literal["start", "middle", "end"]
"""Where a text that is too long is cut."""
_GAP = 2
_MIN_WIDTH = 10
_SHORT_NAME_WIDTH = 20
"""Names are cut to this width before the column of a main amount is dropped."""
_LINE_ENDS = re.compile(r" +$", re.MULTILINE)


class _Console(Console):
    """Does not pad lines in a file or pipe. Raises on a closed pipe, while rich's own console
    exits.
    """

    def print(self, *objects: Any, **settings: Any) -> None:
        if self.is_terminal:
            super().print(*objects, **settings)
            return
        with self.capture() as captured:
            super().print(*objects, **settings)
        self.file.write(_LINE_ENDS.sub("", captured.get()))

    def on_broken_pipe(self) -> None:
        """Leaves the BrokenPipeError to `cli/main.py`."""
        raise  # noqa: PLE0704 - the caller's handler is around this call


def make_console(*, no_color: bool = False) -> Console:
    """Returns a console on stdout.

    Without `no_color`, the terminal and the variable NO_COLOR decide.
    """
    return _Console(no_color=no_color or None)


def printed_text(print_to: Callable[[Console], None], width: int) -> str:
    """Returns what `print_to` prints on a console of this width, without colours."""
    file = StringIO()
    print_to(_Console(file=file, width=width, color_system=None, force_terminal=False))
    return file.getvalue()


def print_line(console: Console, text: str, style: str = "", *, indent: int = 0) -> None:
    """Prints an untrusted text, indented by `indent` columns."""
    line = Text(for_terminal(text), style)
    console.print(indented(line, indent) if indent else line)


def indented(content: RenderableType, columns: int) -> Padding:
    """Returns the content with a left margin of `columns`."""
    return Padding(content, (0, 0, 0, columns), expand=False)


def print_heading(console: Console, text: str) -> None:
    """Prints an empty line and a heading."""
    console.print()
    console.print(Text(text, "bold"))


def plain_table(*columns: str, right: Container[str] = (), unbroken: Container[str] = ()) -> Table:
    """Returns a table without borders.

    `right`: the titles of right-aligned columns. `unbroken`: the titles of columns that do not
    wrap.
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
    """Returns a difference as `+1.5%`, or "-" for None."""
    return "-" if percent is None else f"{percent:+.1f}%"


class FittedColumn(Struct, frozen=True):
    """A column whose cells may be cut to `min_width` characters. 0 means that they are never cut.

    `cut` says where. Names are cut to 20 characters before the column of a main amount is dropped.
    """

    name: str
    title: str
    is_right_aligned: bool
    min_width: int
    cut: Cut = "middle"
    is_main_amount: bool = False


def fit_table(
    columns: Sequence[FittedColumn],
    cells: Sequence[Sequence[str | Text]],
    droppable: Sequence[str] | None,
    width: int,
) -> Table:
    """Returns a table that is at most `width` characters wide, if the minimum widths allow it.

    First the widest columns are cut to their minimum. Then the columns in `droppable` are dropped
    one by one; names are cut further before a main amount is dropped. Last, names are cut further
    still.

    If `droppable` is None, all columns keep their minimum width.
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
    short_columns = _with_min_width(columns, _SHORT_NAME_WIDTH)
    while _total_width(widths, indexes) > width and drop_order:
        if columns[drop_order[0]].is_main_amount:
            short_widths = _shrink_widths(short_columns, widths, indexes, width)
            if _total_width(short_widths, indexes) <= width:
                break
        indexes.remove(drop_order.pop(0))
        widths = _shrink_widths(columns, full_widths, indexes, width)
    if droppable is not None:
        narrow_columns = _with_min_width(columns, _MIN_WIDTH)
        widths = _shrink_widths(narrow_columns, widths, indexes, width)
    titles = [columns[index].title for index in indexes]
    right = {columns[index].title for index in indexes if columns[index].is_right_aligned}
    table = plain_table(*titles, right=right, unbroken=set(titles))
    if droppable is None:
        table.width = _total_width(widths, indexes)
    for row in cells:
        table.add_row(*(_fit_cell(row[index], widths[index], columns[index]) for index in indexes))
    return table


def _with_min_width(columns: Sequence[FittedColumn], limit: int) -> list[FittedColumn]:
    return [replace(column, min_width=min(column.min_width, limit)) for column in columns]


def _shrink_widths(
    columns: Sequence[FittedColumn],
    full_widths: Sequence[int],
    indexes: Sequence[int],
    width: int,
) -> list[int]:
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
    """Returns the text cut to `width` columns of a terminal. A character may take two columns."""
    length, short_text = width, text
    while cell_len(short_text) > width:
        if column.cut == "middle":
            short_text = cut_middle(text, length)
        elif column.cut == "start":
            short_text = f"{ELLIPSIS}{text[len(text) - length + 1 :]}"
        else:
            short_text = f"{text[: length - 1]}{ELLIPSIS}"
        length -= 1
    return short_text
