"""Walks the lists of a history within a window, newest first, and counts what it reads.

Its rows are an audit's summary, or a finding beside it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, takewhile
from typing import Any, TypeVar

from msgspec import Struct, field

from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.audit.record import NOT_NAMED, RuleFinding, RunIndex, RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums, Scope, SumRow
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.job.family import shared_name
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import Period
from sageaudit.ports import History
from sageaudit.queries.question import Question, Sort
from sageaudit.queries.window import FIRST, ONE_DAY, Window, window_of
from sageaudit.structs import replace

_LAST_YEAR = 2099
_LONGEST_GAP = timedelta(days=90)
"""Our choice: a history without an audit for so long is taken to begin after it."""
Row = TypeVar("Row", AuditSummary, RuleFinding)
_SHARED = tuple(f"{kind.value}/" for kind in JobKind if kind.row.rollup)
"""Begin the names that several roll-ups, each a family of its own, may share."""
_ZERO = Decimal(0)
_OWN = (Sort.TOTAL, Sort.AVOIDABLE, Sort.LOST)
"""Amounts of a roll-up that its summary has of its training jobs."""
NEVER_STARTED = "Never started"
"""The status of jobs that failed or were stopped before their start; no word of AWS."""


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
    return Lists(history, window).heads(Question.of(window, account=account))


def audited_days(history: History) -> list[date] | None:
    """The days of all times on which audited jobs ended, in order; None without any."""
    rows = history.sums(Scope.ACCOUNT, FIRST.date(), date(_LAST_YEAR, 12, 31))
    return sorted({row.day for row in rows}) or None


def first_covered(lists: Lists, question: Question, day: date) -> date:
    """The first day with an audit in the question's account and region, from some time before a
    day on: a history says nothing about days before it. The last of all dates without any.
    """
    earlier = window_of(day - _LONGEST_GAP, lists.window.last_day + ONE_DAY)
    rows = lists.within(earlier).sums(
        Scope.ACCOUNT, account=question.account, region=question.region
    )
    return min((row.day for row in rows), default=date.max)


def listed(head: AuditSummary) -> AuditSummary:
    """An audit as lists show it.

    A roll-up (a tuning job) repeats the dollars of its training jobs, so it has only those that it
    adds itself: the columns of any list add up to the daily sums.
    """
    sums = head.sums
    if head.rollup:
        own: dict[str, Any] = {f"{sort}_usd": sort.of(sums) for sort in _OWN}
        possible_usd = sums.known_possible_usd
        exact = SpendQualifier.EXACT
        return replace(head, possible_usd=possible_usd, spend_qualifier=exact, **own)
    if head.possible_usd != sums.known_possible_usd:
        head = replace(head, possible_usd=sums.known_possible_usd)
    if not _never_started(head):
        return head
    waited_s = sum(head.phase_s.values()) or None
    waiting_s = None if waited_s is None else round(waited_s)
    return replace(head, status=NEVER_STARTED, judged=None, waiting_s=waiting_s)


def _never_started(head: AuditSummary) -> bool:
    """Whether a job ended before its start: it has no times, and its bill is known to be 0."""
    if head.purchase is None or head.total_usd is None:
        return False
    times = (head.elapsed_s, head.billable_s)
    return head.status != "Completed" and not head.total_usd and not any(times)


def with_head(row: RuleFinding, head: AuditSummary | None) -> RuleFinding:
    """The row with its audit's whole summary, where that could be read.

    Of a roll-up, whose head must be read, the savings are those that no training job counts.
    """
    if head is None:
        return row
    finding = row.finding
    if head.rollup:
        own = head.sums.rules.get(finding.rule, RuleSums())
        has_dollars = finding.bucket is not Bucket.NONE
        finding = replace(
            finding,
            saving_usd=own.known_usd(finding.bucket) if has_dollars else None,
            saving_up_to_usd=own.most_usd(finding.bucket) if has_dollars else None,
        )
    summary = replace(listed(head), severity=finding.severity, estimated=finding.estimated)
    return RuleFinding(finding, summary, is_read=True)


def needs_head(row: RuleFinding) -> bool:
    """True where the list does not tell the account, region and kind, or what a finding adds."""
    return row.summary.rollup or row.summary.kind == NOT_NAMED


def amount(row: AuditSummary | RuleFinding, sort: Sort) -> Decimal:
    """What a row is sorted by; 0 if it is not known. A finding: its saving."""
    if isinstance(row, RuleFinding):
        return row.finding.saving_usd or _ZERO
    return Decimal(getattr(row, sort.field) or 0)


def head_amount(head: AuditSummary, sort: Sort) -> Decimal:
    """The same of a stored summary, which is made a row of only where it has no such amount."""
    if sort is Sort.WASTE and not head.rollup:
        return (head.avoidable_usd or _ZERO) + (head.lost_usd or _ZERO)
    return amount(listed(head), sort)
