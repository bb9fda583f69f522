"""Pages of a list: opaque cursors that say after which row to go on.

A cursor names the list and the last row's sort key, so that it holds while rows come and go, and
means the same over one partition, over merged shards and in memory.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import islice
from typing import TypeVar

from sageaudit.adapters.files.exact_json import whole_text
from sageaudit.domain.audit.record import Page

Row = TypeVar("Row")
_VERSION = 1
_LONGEST_SORT_KEY = 1_024


def page_of(asked: str, rows: Iterator[tuple[str, Row]], limit: int) -> Page[Row]:
    """The first `limit` rows, and a cursor when there are more; `asked` names the list."""
    if limit < 1:
        raise ValueError(f"A page needs at least one row, not {limit}.")
    taken = list(islice(rows, limit))
    more = len(taken) == limit and next(rows, None) is not None
    return Page(tuple(row for _, row in taken), _cursor(asked, taken[-1][0]) if more else None)


def last_seen(asked: str, cursor: str | None) -> str | None:
    """The sort key of the last row given; ValueError when the cursor is not of this list."""
    if cursor is None:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        parts = None
    match parts:
        case [version, str(of), str(last)] if (version, of) == (_VERSION, asked) and _is_key(last):
            return last
    raise ValueError("This cursor does not belong to this list: ask again without it.")


def _is_key(text: str) -> bool:
    """Could be a sort key that was given: DynamoDB takes 1 to 1,024 bytes of whole UTF-8."""
    return (
        0 < len(text.encode("utf-8", "replace")) <= _LONGEST_SORT_KEY and whole_text(text) == text
    )


def _cursor(asked: str, last: str) -> str:
    text = json.dumps([_VERSION, asked, last], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
