"""Reads the lists of a history within a window, newest first, and counts what it reads.

A row is an audit's summary, or a finding with it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, starmap
from typing import Any, TypeVar

from msgspec import Struct, field

from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.audit.record import UNKNOWN_NAME, RuleFinding, RunIndex, RunQuery
from sageaudit.domain.audit.sum_parts import SumPart
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums, Scope, SumRow
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.job.family import shared_name
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import Period
from sageaudit.ports import History
from sageaudit.queries.question import Question, SortOrder
from sageaudit.queries.window import FIRST_MOMENT, ONE_DAY, Window, make_window
from sageaudit.structs import replace

_MAX_YEAR = 2099
_MAX_GAP = timedelta(days=90)
"""How far back `first_covered_day` looks. After a longer gap without audits, a history counts as
new. Our choice.
"""
Row = TypeVar("Row", AuditSummary, RuleFinding)
Counted = TypeVar("Counted", AuditSummary, RuleFinding, SumPart)
_SHARED_NAME_PREFIXES = tuple(f"{kind.value}/" for kind in JobKind if kind.spec.rollup)
"""Prefixes of names that several roll-ups, each a family of its own, may share."""
_ZERO = Decimal(0)
_ROLL_UP_OWN_AMOUNTS = (SortOrder.TOTAL, SortOrder.AVOIDABLE, SortOrder.LOST)
"""Amounts that a roll-up's summary takes from its training jobs."""
NEVER_STARTED = "Never started"
"""The status of jobs that failed or were stopped before their start. AWS has no such status."""


class ReadCounts(Struct):
    """The numbers of rows of lists (audits or findings) and of daily sums that were read."""

    rows: int = 0
    sums: int = 0


class HistoryLists(Struct, frozen=True):
    """The lists of a history in a window.

    The first request of each list reads `page_size` rows; None reads as many as fit. `fields` are
    the fields of audits to read; None for all.
    """

    history: History
    window: Window
    read_counts: ReadCounts = field(default_factory=ReadCounts)
    page_size: int | None = None
    fields: frozenset[str] | None = None

    def in_window(self, window: Window) -> HistoryLists:
        """Returns the same lists for another window."""
        return replace(self, window=window)

    def audits(self, question: Question) -> Iterator[AuditSummary]:
        """Yields the window's audits, newest first.

        `question`: its `index` selects the list of a family, an owner or an account; all other
        filters are not applied.
        """
        queries, ended_before = self._queries(question), self.window.until
        if question.index is RunIndex.FAMILY:
            runs = [self._rows([query], ended_before) for query in queries]
            return heapq.merge(*runs, key=sort_key, reverse=True)
        return self._rows(queries, ended_before)

    def sum_parts(
        self,
        question: Question,
        label: Callable[[AuditSummary], object],
        fields: Collection[str],
        *,
        with_usage: bool = False,
    ) -> Iterator[SumPart]:
        """Yields what each of the same audits adds to sums, as `History.sum_parts` describes it."""
        for query in self._queries(question):
            parts = self.history.sum_parts(
                query, label, fields, ended_before=self.window.until, with_usage=with_usage
            )
            yield from self._counted(parts)

    def findings(self, rule: str) -> Iterator[RuleFinding]:
        """Yields the findings of one rule."""
        return self._rows([RunQuery.for_rule(rule)], self.window.until)

    def runs_of_family(
        self, account: str, region: str, family: str, ended_before: datetime
    ) -> Iterator[AuditSummary]:
        """Yields the window's runs of one family that ended before `ended_before`, newest first."""
        return self._rows([RunQuery.for_family(account, region, family)], ended_before)

    def jobs_of_owner(self, owner: str, ended_before: datetime) -> Iterator[AuditSummary]:
        """Yields the window's jobs of one owner that ended before `ended_before`, newest first."""
        return self._rows([RunQuery.for_owner(owner)], ended_before)

    def daily_sums(
        self,
        scope: Scope,
        *,
        account: str | None = None,
        region: str | None = None,
        name: str | None = None,
    ) -> Iterator[SumRow]:
        """Yields the daily sums of the window's days.

        For tuning jobs, `name` may be the name that several families share.
        """
        is_shared = (
            scope is Scope.FAMILY and name is not None and name.startswith(_SHARED_NAME_PREFIXES)
        )
        rows = self.history.daily_sums(
            scope,
            self.window.first_day,
            self.window.last_day,
            account=account,
            region=region,
            name=None if is_shared else name,
        )
        for row in rows:
            self.read_counts.sums += 1
            if not is_shared or shared_name(row.name or "") == name:
                yield row

    def _queries(self, question: Question) -> Iterable[RunQuery[AuditSummary]]:
        if question.index is RunIndex.FAMILY and question.family is not None:
            return self._queries_of_families(question, question.family)
        if question.index is RunIndex.OWNER and question.owner is not None:
            return [RunQuery.for_owner(question.owner)]
        if question.index is RunIndex.ACCOUNT and question.account is not None:
            return [RunQuery.for_account(question.account)]
        return map(RunQuery.for_day, self._days_back(self.window.until))

    def _queries_of_families(
        self, question: Question, family: str
    ) -> Iterator[RunQuery[AuditSummary]]:
        account, region = question.account, question.region
        if (
            account is not None
            and region is not None
            and not family.startswith(_SHARED_NAME_PREFIXES)
        ):
            families = {(account, region, family)}
        else:
            rows = self.daily_sums(Scope.FAMILY, account=account, region=region, name=family)
            families = {(row.account, row.region, row.name or "") for row in rows}
        return starmap(RunQuery.for_family, sorted(families))

    def _days_back(self, ended_before: datetime) -> Iterator[date]:
        day = _last_day(ended_before)
        while day >= self.window.first_day:
            yield day
            day -= timedelta(days=1)

    def _rows(self, queries: Iterable[RunQuery[Row]], ended_before: datetime) -> Iterator[Row]:
        rows = chain.from_iterable(
            self.history.runs(
                query, ended_before=ended_before, page_size=self.page_size, fields=self.fields
            )
            for query in queries
        )
        return self._counted(rows)

    def _counted(self, rows: Iterable[Counted]) -> Iterator[Counted]:
        since = self.window.since
        for row in rows:
            if row.ended_at < since:
                return
            self.read_counts.rows += 1
            yield row


def sort_key(row: AuditSummary | RuleFinding) -> tuple[datetime, str]:
    """Returns a key that sorts the rows of several lists. The newest row has the largest key."""
    return row.ended_at, f"{row.key.arn}#{row.key.created_at.timestamp():.3f}"


def _last_day(end: datetime) -> date:
    return (end - timedelta(microseconds=1)).date()


def audits_of_period(
    history: History,
    period: Period,
    account: str | None = None,
    *,
    fields: frozenset[str] | None = None,
) -> Iterator[AuditSummary]:
    """Yields the audits of jobs that ended in the period, newest first.

    `account` is None for all accounts. `fields` are the fields to read; None for all.
    """
    window = Window(datetime.combine(period.since, time(), UTC), period.created_before)
    lists = HistoryLists(history, window, fields=fields)
    return lists.audits(Question.with_filters(window, account=account))


def audited_days(history: History) -> list[date] | None:
    """Returns the days on which audited jobs ended, in order; None without audits."""
    rows = history.daily_sums(Scope.ACCOUNT, FIRST_MOMENT.date(), date(_MAX_YEAR, 12, 31))
    return sorted({row.day for row in rows}) or None


def first_covered_day(lists: HistoryLists, question: Question, day: date) -> date:
    """Returns the first day that the history covers in the question's account and region.

    It looks back from `day`. It returns `date.max` if there are no audits.
    """
    earlier = make_window(day - _MAX_GAP, lists.window.last_day + ONE_DAY)
    rows = lists.in_window(earlier).daily_sums(
        Scope.ACCOUNT, account=question.account, region=question.region
    )
    return min((row.day for row in rows), default=date.max)


def as_list_row(summary: AuditSummary) -> AuditSummary:
    """Returns an audit as lists show it.

    The row of a roll-up leaves out the dollars of its training jobs, so that the columns of any
    list add up to the daily sums.
    """
    sums = summary.sums
    if summary.rollup:
        own_sums: dict[str, Any] = {
            f"{sort}_usd": sort.amount_of(sums) for sort in _ROLL_UP_OWN_AMOUNTS
        }
        possible_usd = sums.known_possible_usd
        exact = SpendQualifier.EXACT
        return replace(summary, possible_usd=possible_usd, spend_qualifier=exact, **own_sums)
    if summary.possible_usd != sums.known_possible_usd:
        summary = replace(summary, possible_usd=sums.known_possible_usd)
    if not summary.never_started:
        return summary
    return replace(summary, status=NEVER_STARTED, judged=None)


def with_summary(row: RuleFinding, summary: AuditSummary | None) -> RuleFinding:
    """Returns the finding with its audit's whole summary, or unchanged if `summary` is None.

    For a roll-up, the finding's saving becomes the part that no training job counts.
    """
    if summary is None:
        return row
    finding = row.finding
    if summary.rollup:
        own_sums = summary.sums.rules.get(finding.rule, RuleSums())
        has_dollars = finding.bucket is not Bucket.NONE
        finding = replace(
            finding,
            saving_usd=own_sums.known_usd(finding.bucket) if has_dollars else None,
            saving_up_to_usd=own_sums.max_usd(finding.bucket) if has_dollars else None,
        )
    summary = replace(as_list_row(summary), severity=finding.severity, estimated=finding.estimated)
    return RuleFinding(finding, summary, is_loaded=True)


def should_read_summary(row: RuleFinding) -> bool:
    """Returns True if the account, kind or own dollars of the finding are only in its audit's
    summary.
    """
    return row.summary.rollup or row.summary.kind == UNKNOWN_NAME


def sort_amount(row: AuditSummary | RuleFinding, sort: SortOrder) -> Decimal:
    """Returns the amount to sort a row by; for a finding, its saving. 0 if unknown."""
    if isinstance(row, RuleFinding):
        return row.finding.saving_usd or _ZERO
    return Decimal(getattr(row, sort.field) or 0)


def stored_sort_amount(summary: AuditSummary, sort: SortOrder) -> Decimal:
    """Returns the amount to sort a stored summary by, as `sort_amount` does for its list row."""
    if sort is SortOrder.WASTE and not summary.rollup:
        return (summary.avoidable_usd or _ZERO) + (summary.lost_usd or _ZERO)
    return sort_amount(as_list_row(summary), sort)
