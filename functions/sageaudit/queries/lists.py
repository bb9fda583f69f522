"""Walks the lists of a history within a window, newest first, and counts what it reads."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain, takewhile
from typing import TypeVar

from msgspec import Struct, field

from sageaudit.domain.audit.record import RuleFinding, RunIndex, RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Scope, SumRow
from sageaudit.domain.job.family import shared_name
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import Period
from sageaudit.ports import History
from sageaudit.queries.question import Question
from sageaudit.queries.window import Window
from sageaudit.structs import replace

Row = TypeVar("Row", AuditSummary, RuleFinding)
_SHARED = tuple(f"{kind.value}/" for kind in JobKind if kind.row.rollup)
"""Begin the names that several roll-ups, each a family of its own, may share."""


class ReadCounts(Struct):
    """What was read so far: `rows` of lists (audits or findings) and `sums` (daily sums)."""

    rows: int = 0
    sums: int = 0


class Lists(Struct, frozen=True):
    """The lists of a history between two moments.

    `page_size`: how many rows the first request of each list reads; None for all that fit in one.
    """

    history: History
    window: Window
    read: ReadCounts = field(default_factory=ReadCounts)
    page_size: int | None = None

    def within(self, window: Window) -> Lists:
        """The same lists between two other moments."""
        return replace(self, window=window)

    def heads(self, question: Question) -> Iterator[AuditSummary]:
        """The audits of the question's list, before its other filters."""
        before = self.window.until
        if question.index is RunIndex.FAMILY and question.family is not None:
            return self._family(question, question.family, before)
        if question.index is RunIndex.OWNER and question.owner is not None:
            return self.owner(question.owner, before)
        if question.index is RunIndex.ACCOUNT and question.account is not None:
            return self._rows([RunQuery.of_account(question.account)], before)
        return self._rows(map(RunQuery.of_day, self._days(before)), before)

    def findings(self, rule: str) -> Iterator[RuleFinding]:
        """The findings of one rule."""
        return self._rows([RunQuery.of_rule(rule)], self.window.until)

    def family(
        self, account: str, region: str, family: str, before: datetime
    ) -> Iterator[AuditSummary]:
        """The runs of one family."""
        return self._rows([RunQuery.of_family(account, region, family)], before)

    def owner(self, owner: str, before: datetime) -> Iterator[AuditSummary]:
        """The jobs of one owner."""
        return self._rows([RunQuery.of_owner(owner)], before)

    def sums(
        self,
        scope: Scope,
        *,
        account: str | None = None,
        region: str | None = None,
        name: str | None = None,
    ) -> Iterator[SumRow]:
        """The daily sums of the window's days; a family may be named by what it shares with others.

        The history itself knows the whole name of a family alone.
        """
        shared = scope is Scope.FAMILY and name is not None and name.startswith(_SHARED)
        rows = self.history.sums(
            scope,
            self.window.first_day,
            self.window.last_day,
            account=account,
            region=region,
            name=None if shared else name,
        )
        for row in rows:
            self.read.sums += 1
            if not shared or shared_name(row.name or "") == name:
                yield row

    def _family(self, question: Question, family: str, before: datetime) -> Iterator[AuditSummary]:
        """The runs of a family in each account and region that the daily sums know it in."""
        account, region = question.account, question.region
        if account is not None and region is not None and not family.startswith(_SHARED):
            places = {(account, region, family)}
        else:
            rows = self.sums(Scope.FAMILY, account=account, region=region, name=family)
            places = {(row.account, row.region, row.name or "") for row in rows}
        runs = [self.family(*of_family, before) for of_family in sorted(places)]
        return heapq.merge(*runs, key=place, reverse=True)

    def _days(self, before: datetime) -> Iterator[date]:
        day = _last_day(before)
        while day >= self.window.first_day:
            yield day
            day -= timedelta(days=1)

    def _rows(self, queries: Iterable[RunQuery[Row]], before: datetime) -> Iterator[Row]:
        """The rows of lists that come one after the other, down to the window's begin."""
        since = self.window.since
        rows = chain.from_iterable(
            self.history.runs(query, before=before, page_size=self.page_size) for query in queries
        )
        for row in takewhile(lambda row: row.ended_at >= since, rows):
            self.read.rows += 1
            yield row


def place(row: AuditSummary | RuleFinding) -> tuple[datetime, str]:
    """By this, rows of several lists sort as each list does: the newest has the largest."""
    return row.ended_at, f"{row.key.arn}#{row.key.created_at.timestamp():.3f}"


def _last_day(before: datetime) -> date:
    """The newest day of a list: the moment itself is not in it."""
    return (before - timedelta(microseconds=1)).date()


def heads_of_period(
    history: History, period: Period, account: str | None = None
) -> Iterator[AuditSummary]:
    """The audits of jobs that ended in the period, of one account or of all, newest first."""
    window = Window(datetime.combine(period.since, time(), UTC), period.created_before)
    return Lists(history, window).heads(Question(window, account=account))
