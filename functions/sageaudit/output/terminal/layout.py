"""The console, the plain table and the form of a difference that every view prints with."""

from __future__ import annotations

from collections.abc import Container
from decimal import Decimal
from typing import Literal

from rich.console import Console
from rich.table import Table


class _Console(Console):
    """A console that leaves a closed pipe to the caller, where rich would exit with code 1."""

    def on_broken_pipe(self) -> None:
        """Called while a BrokenPipeError is handled: raises it again for `cli/main.py`."""
        raise  # noqa: PLE0704 - the caller's handler is around this call


def console_for(*, no_color: bool = False) -> Console:
    """A console on stdout; without `no_color`, the terminal and NO_COLOR decide on colours."""
    return _Console(no_color=no_color or None)


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
