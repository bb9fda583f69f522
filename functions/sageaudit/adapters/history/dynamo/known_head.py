"""HEAD as it was read, and the condition that it is still so when it is written.

`revision` counts the writes of HEAD by `record`. A version is confirmed without a new number, and
what it adds to the daily sums must be added once, also when two deliveries confirm it together.
"""

from __future__ import annotations

from dataclasses import dataclass

from sageaudit.adapters.history.codec import Item
from sageaudit.adapters.history.dynamo import items
from sageaudit.adapters.history.dynamo.calls import put_action
from sageaudit.adapters.history.dynamo.table import PARTITION_KEY
from sageaudit.adapters.history.moments import moment_text
from sageaudit.domain.audit.record import Head

_AS_READ = "version = :version AND last_modified_at = :read"


@dataclass(frozen=True, slots=True)
class KnownHead:
    """A head and its revision; None for heads that were stored before there was one."""

    head: Head
    revision: int | None

    @classmethod
    def of(cls, item: Item) -> KnownHead:
        """The head of a HEAD item."""
        with items.own_item(item):
            revision = item.get("revision")
            return cls(items.read_head(item), None if revision is None else int(revision))

    @property
    def as_read(self) -> tuple[str, Item]:
        """The condition that HEAD has not changed since it was read, and its values."""
        values: Item = {
            ":version": self.head.version,
            ":read": moment_text(self.head.last_modified_at),
        }
        if self.revision is None:
            return f"{_AS_READ} AND attribute_not_exists(revision)", values
        return f"{_AS_READ} AND revision = :revision", values | {":revision": self.revision}


def put_head(head: Head, known: KnownHead | None) -> Item:
    """Puts HEAD only if it has not changed since it was read, as the decision depends on it."""
    if known is None:
        item = {**items.head_item(head), "revision": 1}
        return put_action(item, f"attribute_not_exists({PARTITION_KEY})")
    item = {**items.head_item(head), "revision": (known.revision or 0) + 1}
    return put_action(item, *known.as_read)
