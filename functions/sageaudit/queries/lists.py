"""Walks the lists of a history within a window, newest first, and counts what it reads."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from itertools import takewhile
from typing import TypeVar

from sageaudit.domain.audit.record import FindingRow, Head, Page, Position
from sageaudit.domain.audit.sums import Scope, SumRow
from sageaudit.ports import History
from sageaudit.queries.question import List, Question
from sageaudit.queries.window import Window

_LARGEST_PAGE = 500
Row = TypeVar("Row", Head, FindingRow)


@dataclass(slots=True)
class Reading:
    """What was read so far: `rows` of lists (audits or findings) and `sums` (daily sums)."""

    rows: int = 0
    sums: int = 0


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of a history between two moments.

    `page_size`: how many rows the first request of each list reads; None for all that fit in one.
    """

    history: History
    window: Window
    reading: Reading
    page_size: int | None = None

    def heads(self, question: Question, after: Position | None = None) -> Iterator[Head]:
        """The audits of the question's list, before its other filters."""
        before = self._start(after)
        if question.list is List.FAMILY and question.family is not None:
            return self._family(question, question.family, before)
        if question.list is List.OWNER and question.owner is not None:
            return self.owner(question.owner, before)
        if question.list is List.ACCOUNT and question.account is not None:
            return self._counted(self._account(question.account, before))
        return self._counted(self._days(before))

    def findings(self, rule: str, after: Position | None = None) -> Iterator[FindingRow]:
        """The findings of one rule."""
        return self._counted(self._rule(rule, self._start(after)))

    def family(
        self, account: str, region: str, family: str, before: datetime | Position
    ) -> Iterator[Head]:
        """The runs of one family."""
        heads = self.history.by_family(
            account, region, family, before=before, page_size=self.page_size
        )
        return self._counted(heads)

    def owner(self, owner: str, before: datetime | Position) -> Iterator[Head]:
        """The jobs of one owner."""
        pages = self._pages(partial(self.history.by_owner, owner, before=before))
        return self._counted(pages)

    def sums(
        self,
        scope: Scope,
        *,
        account: str | None = None,
        region: str | None = None,
        name: str | None = None,
    ) -> Iterator[SumRow]:
        """The daily sums of the window's days."""
        rows = self.history.sums(
            scope,
            self.window.first_day,
            self.window.last_day,
            account=account,
            region=region,
            name=name,
        )
        for row in rows:
            self.reading.sums += 1
            yield row

    def _start(self, after: Position | None) -> datetime | Position:
        until = self.window.until
        return until if after is None or after.ended_at >= until else after

    def _family(
        self, question: Question, family: str, before: datetime | Position
    ) -> Iterator[Head]:
        """The runs of a family in each account and region that the daily sums know it in."""
        if question.account is not None and question.region is not None:
            places = {(question.account, question.region)}
        else:
            rows = self.sums(
                Scope.FAMILY, account=question.account, region=question.region, name=family
            )
            places = {(row.account, row.region) for row in rows}
        runs = [self.family(account, region, family, before) for account, region in sorted(places)]
        return heapq.merge(*runs, key=place, reverse=True)

    def _days(self, before: datetime | Position) -> Iterator[Head]:
        day = _last_day(before)
        while day >= self.window.first_day:
            yield from self.history.by_day(day, before=before, page_size=self.page_size)
            day -= timedelta(days=1)

    def _account(self, account: str, before: datetime | Position) -> Iterator[Head]:
        for month in self._months(before):
            yield from self.history.by_account(
                account, month, before=before, page_size=self.page_size
            )

    def _rule(self, rule: str, before: datetime | Position) -> Iterator[FindingRow]:
        for month in self._months(before):
            read = partial(self.history.by_rule, rule, month, before=before)
            yield from self._pages(read)

    def _pages(self, read: Callable[..., Page[Row]]) -> Iterator[Row]:
        """The rows of all pages; each page is twice as long as the one before."""
        limit, cursor = self.page_size or _LARGEST_PAGE, None
        while True:
            page = read(limit=limit, cursor=cursor)
            yield from page.rows
            limit, cursor = min(2 * limit, _LARGEST_PAGE), page.cursor
            if cursor is None:
                return

    def _months(self, before: datetime | Position) -> Iterator[str]:
        month = _last_day(before).replace(day=1)
        while month >= self.window.first_day.replace(day=1):
            yield f"{month:%Y-%m}"
            month = (month - timedelta(days=1)).replace(day=1)

    def _counted(self, rows: Iterable[Row]) -> Iterator[Row]:
        since = self.window.since
        for row in takewhile(lambda row: row.ended_at >= since, rows):
            self.reading.rows += 1
            yield row


def place(row: Position | Head | FindingRow) -> tuple[datetime, str]:
    """By this, rows of several lists sort as each list does: the newest has the largest."""
    return row.ended_at, f"{row.key.arn}#{row.key.created_at.timestamp():.3f}"


def _last_day(before: datetime | Position) -> date:
    """The newest day of a list: a moment itself is not in it, and a position's day may be."""
    if isinstance(before, Position):
        return before.ended_at.date()
    return (before - timedelta(microseconds=1)).date()
