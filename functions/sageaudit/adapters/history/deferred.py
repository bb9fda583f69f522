"""A history in memory that makes its tables only when a recorded audit may be read.

An audit of one recording reads nothing that it has recorded. So it needs no tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from sageaudit.adapters.history.rows import clip_text
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import (
    UNKNOWN_NAME,
    AuditEntry,
    RecordOutcome,
    RecordResult,
    Row,
    RunIndex,
    RunQuery,
)


class DeferredHistory(SqliteHistory):
    """Implements History for one thread. It is lost when its process ends."""

    def __init__(self) -> None:
        self._unstored: list[AuditEntry] | None = []
        """The recorded audits; None once the tables exist."""
        self._families: set[tuple[str, ...]] = set()

    def __getattr__(self, name: str) -> Any:
        # SqliteHistory has its attributes only from the first call of a method that needs one.
        if self._unstored is None:
            raise AttributeError(name)
        entries, self._unstored = self._unstored, None
        super().__init__()
        for entry in entries:
            super().record(entry)
        return getattr(self, name)

    def record(self, entry: AuditEntry) -> RecordResult:
        """Records an audit. Without tables, the result has no summary, and version 0."""
        if self._unstored is None:
            return super().record(entry)
        job = entry.document["job"]
        names = (job["account"] or UNKNOWN_NAME, job["region"] or UNKNOWN_NAME, job["family"])
        self._families.add(tuple(map(clip_text, names)))
        self._unstored.append(entry)
        return RecordResult(RecordOutcome.RECORDED, version=0)

    def runs(
        self,
        query: RunQuery[Row],
        *,
        ended_before: datetime | None = None,
        page_size: int | None = None,
        fields: Collection[str] | None = None,
    ) -> Iterator[Row]:
        """Yields the rows of a list. That of a family without audits needs no tables."""
        is_family = query.index is RunIndex.FAMILY and self._unstored is not None
        if is_family and tuple(map(clip_text, query.values)) not in self._families:
            return iter(())
        return super().runs(query, ended_before=ended_before, page_size=page_size, fields=fields)
