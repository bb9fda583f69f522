"""Counts calls by the names of functions, since seconds differ by machine."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def count_calls() -> Iterator[Counter[str]]:
    """Counts the calls in the block by their qualified name: `parse_answer`,
    `Connection.execute`.
    """
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, called: Any) -> None:
        if event == "call":
            calls[frame.f_code.co_qualname] += 1
        elif event == "c_call":
            calls[called.__qualname__] += 1

    outer = sys.getprofile()
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(outer)
