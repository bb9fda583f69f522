"""A history that is read while new audits are kept in memory beside it, and not in it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from sageaudit.adapters.history.in_memory import MemoryHistory
from sageaudit.adapters.history.sort_keys import ended_sk
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Detail, Head, JobKey, Position
from sageaudit.ports import History


class BesideTable(MemoryHistory):
    """What an audit reads of a history, as if the audits kept in memory were in it."""

    def __init__(self, table: History) -> None:
        super().__init__()
        self._table = table

    def by_family(
        self,
        account: str,
        region: str,
        family: str,
        *,
        before: datetime | Position | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> Iterator[Head]:
        """The runs of one family, newest first; an audit in memory replaces the stored one."""
        asked = (account, region, family)
        own = list(super().by_family(*asked, before=before))
        names = {head.key for head in own}
        stored = self._table.by_family(
            *asked, before=before, page_size=page_size or (limit and limit + len(own))
        )
        others = (head for head in stored if head.key not in names)
        return islice(heapq.merge(own, others, key=_end, reverse=True), limit)

    def head(self, key: JobKey) -> Head | None:
        """The head in memory, or the stored one."""
        return super().head(key) or self._table.head(key)

    def audit(self, key: JobKey, version: int | None = None) -> AuditDocument | None:
        """The document in memory, or the stored one."""
        return super().audit(key, version) or self._table.audit(key, version)

    def detail(self, key: JobKey) -> Detail | None:
        """The detail in memory, or the stored one."""
        return super().detail(key) or self._table.detail(key)


def _end(head: Head) -> str:
    return ended_sk(head.ended_at, head.key)
