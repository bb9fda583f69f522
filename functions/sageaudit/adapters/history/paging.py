"""Pages of a list, and opaque cursors to continue after a page's last row.

A cursor names the list and the last row's sort key. It stays valid while rows are added or removed,
and works for one partition, for merged shards and in memory.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import TypeVar

from sageaudit.adapters.files.exact_json import whole_text
from sageaudit.adapters.history.sort_keys import before_sk
from sageaudit.domain.audit.record import Page, Position
from sageaudit.errors import BadHistory

Raw = TypeVar("Raw")
Row = TypeVar("Row")
_VERSION = 1
_LONGEST_SORT_KEY = 1_024


def page_of(asked: str, rows: Iterator[tuple[str, Row]], limit: int) -> Page[Row]:
    """The first `limit` rows, and a cursor if there are more. `asked` names the list.

    Raises ValueError for a limit below 1.
    """
    if limit < 1:
        raise ValueError(f"A page needs at least one row, not {limit}.")
    taken = list(islice(rows, limit))
    more = len(taken) == limit and next(rows, None) is not None
    return Page(tuple(row for _, row in taken), _cursor(asked, taken[-1][0]) if more else None)


def tried(read: Callable[[Raw], Row], raw: Raw) -> Row | BadHistory:
    """The row, or why it cannot be read."""
    try:
        return read(raw)
    except BadHistory as error:
        return error


def readable(page: Page[Row | BadHistory]) -> Page[Row]:
    """The page without the rows that cannot be read, of which it says why."""
    rows = tuple(row for row in page.rows if not isinstance(row, BadHistory))
    why = tuple(str(row) for row in page.rows if isinstance(row, BadHistory))
    return Page(rows, page.cursor, why)


def last_seen(asked: str, cursor: str | None) -> str | None:
    """The sort key of the last row of the previous page; None without a cursor.

    Raises ValueError if the cursor does not belong to the list `asked`.
    """
    if cursor is None:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        parts = None
    match parts:
        case [version, str(name), str(last)] if (version, name) == (_VERSION, asked):
            if _is_key(last):
                return last
    raise ValueError("This cursor does not belong to this list: repeat the query without it.")


def list_end(asked: str, cursor: str | None, before: datetime | Position | None) -> str:
    """The sort key below which a list by end continues: that of the cursor, or of `before`.

    Raises ValueError if the cursor does not belong to the list `asked`.
    """
    return min(last_seen(asked, cursor) or "~", before_sk(before))


def _is_key(text: str) -> bool:
    """True if DynamoDB accepts the text as a sort key: 1 to 1,024 bytes of valid UTF-8."""
    return (
        0 < len(text.encode("utf-8", "replace")) <= _LONGEST_SORT_KEY and whole_text(text) == text
    )


def _cursor(asked: str, last: str) -> str:
    text = json.dumps([_VERSION, asked, last], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
