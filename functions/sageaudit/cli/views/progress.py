"""How far a command is that reads many rows, on a terminal alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console

from sageaudit.output.text.words import counted

T = TypeVar("T")
_EVERY = 100


def with_progress(rows: Iterable[T], word: str, doing: str) -> Iterator[T]:
    """The rows; stderr shows how many of them came so far, as `reading: 1,200 audits`."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield from rows
        return
    with console.status(f"{doing} ...") as status:
        for number, row in enumerate(rows, 1):
            yield row
            if number % _EVERY == 0:
                status.update(f"{doing}: {counted(number, word)}")
