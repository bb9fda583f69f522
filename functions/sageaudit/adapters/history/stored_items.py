"""The border at which stored items become values: an item is read, or unreadable by its key."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from sageaudit.errors import PARSE_ERRORS, UnreadableItem

Stored = TypeVar("Stored")
Value = TypeVar("Value")
_ERRORS = (zlib.error, *PARSE_ERRORS)


class StoredItems(Generic[Stored]):
    """Reads the items of one history, and collects those that its lists leave out.

    `key_of` returns the key of an item as text, such as `ADVICE abcdefgh#2026-11-01`.
    """

    def __init__(self, key_of: Callable[[Stored], str]) -> None:
        self._key_of = key_of
        self._left_out: dict[str, UnreadableItem] = {}

    def read(self, read: Callable[[Stored], Value], item: Stored) -> Value:
        """Returns what `read` makes of the item. Raises UnreadableItem if `read` fails."""
        try:
            return read(item)
        except _ERRORS as error:
            raise self._unreadable(item, error) from error

    def read_each(
        self, read: Callable[[Stored], Value], items: Iterable[Stored]
    ) -> Iterator[Value]:
        """Yields what `read` makes of each item, and leaves out the items for which it fails."""
        for item in items:
            try:
                value = read(item)
            except _ERRORS as error:
                unreadable = self._unreadable(item, error)
                self._left_out[unreadable.key] = unreadable
            else:
                yield value

    @property
    def left_out(self) -> tuple[UnreadableItem, ...]:
        """The items that were left out since they were last taken, each once."""
        return tuple(self._left_out.values())

    def take_left_out(self) -> tuple[UnreadableItem, ...]:
        """Returns `left_out`, and forgets it."""
        left_out, self._left_out = self.left_out, {}
        return left_out

    def _unreadable(self, item: Stored, error: Exception) -> UnreadableItem:
        reason = (
            f"cannot be read ({type(error).__name__}: {error}): delete it, unless a newer version"
            " of sageaudit wrote it"
        )
        return UnreadableItem(self._key_of(item), reason)
