"""A history in memory that stores an audit only when its family, or anything else, is read.

An audit of one recording reads nothing that it has recorded. So it needs no tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import date, datetime
from functools import cached_property

from sageaudit.adapters.history.rows import clip_text
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import (
    UNKNOWN_NAME,
    AuditEntry,
    Detail,
    RecordOutcome,
    RecordResult,
    Row,
    RunIndex,
    RunQuery,
)
from sageaudit.domain.audit.sum_parts import SumPart
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import Scope, SumRow
from sageaudit.errors import UnreadableItem


class DeferredHistory:
    """Implements History for one thread. It is lost when its process ends."""

    def __init__(self) -> None:
        self._unstored: dict[tuple[str, ...], list[AuditEntry]] = {}
        self._stored_families: set[tuple[str, ...]] = set()

    @cached_property
    def _sqlite(self) -> SqliteHistory:
        return SqliteHistory()

    @property
    def _complete(self) -> SqliteHistory:
        """The history with all recorded audits."""
        for family in [*self._unstored]:
            self._store(family)
        return self._sqlite

    def _store(self, family: tuple[str, ...]) -> None:
        for entry in self._unstored.pop(family, ()):
            self._sqlite.record(entry)
            self._stored_families.add(family)

    def record(self, entry: AuditEntry) -> RecordResult:
        """Records an audit. The result has no summary, and version 0, since neither is made yet."""
        job = entry.document["job"]
        names = (job["account"] or UNKNOWN_NAME, job["region"] or UNKNOWN_NAME, job["family"])
        self._unstored.setdefault(tuple(map(clip_text, names)), []).append(entry)
        return RecordResult(RecordOutcome.RECORDED, version=0)

    def runs(
        self,
        query: RunQuery[Row],
        *,
        ended_before: datetime | None = None,
        page_size: int | None = None,
        fields: Collection[str] | None = None,
    ) -> Iterator[Row]:
        """Yields the rows of a list. The list of one family stores no other family's audits."""
        if query.index is not RunIndex.FAMILY:
            return self._complete.runs(
                query, ended_before=ended_before, page_size=page_size, fields=fields
            )
        family = tuple(map(clip_text, query.values))
        self._store(family)
        if family not in self._stored_families:
            return iter(())
        return self._sqlite.runs(
            query, ended_before=ended_before, page_size=page_size, fields=fields
        )

    def sum_parts(
        self,
        query: RunQuery[AuditSummary],
        label: Callable[[AuditSummary], object],
        fields: Collection[str],
        *,
        ended_before: datetime | None = None,
        with_usage: bool = False,
    ) -> Iterator[SumPart]:
        """Yields what the audits of a list add to sums."""
        return self._complete.sum_parts(
            query, label, fields, ended_before=ended_before, with_usage=with_usage
        )

    def recheck_family(
        self,
        key: JobKey,
        *,
        account: str,
        region: str,
        family: str,
        ended_at: datetime,
        due_at: datetime,
    ) -> tuple[JobKey, ...]:
        """Schedules the family's audits that were judged without an earlier run. Returns their
        keys.
        """
        return self._complete.recheck_family(
            key, account=account, region=region, family=family, ended_at=ended_at, due_at=due_at
        )

    def schedule_reaudit(self, key: JobKey, due_at: datetime) -> None:
        """Sets an audit's `due_at`, unless it is due earlier or there is no audit."""
        self._complete.schedule_reaudit(key, due_at)

    def summary(self, key: JobKey) -> AuditSummary | None:
        """Returns the summary of a run's newest version; None for an unknown run."""
        return self._complete.summary(key)

    def audit(self, key: JobKey, version: int | None = None) -> AuditDocument | None:
        """Returns the document of a version, by default the newest; None if it does not exist."""
        return self._complete.audit(key, version)

    def detail(self, key: JobKey) -> Detail | None:
        """Returns the data that a new audit of the job needs; None if it is absent."""
        return self._complete.detail(key)

    def daily_sums(
        self,
        scope: Scope,
        since: date,
        until: date,
        *,
        account: str | None = None,
        region: str | None = None,
        name: str | None = None,
    ) -> Iterator[SumRow]:
        """Yields a scope's daily sums."""
        return self._complete.daily_sums(
            scope, since, until, account=account, region=region, name=name
        )

    def unreadable_items(self) -> tuple[UnreadableItem, ...]:
        """Returns the rows that were left out since they were last taken."""
        return self._complete.unreadable_items()

    def take_unreadable(self) -> tuple[UnreadableItem, ...]:
        """Returns `unreadable_items`, and forgets them."""
        return self._complete.take_unreadable()
