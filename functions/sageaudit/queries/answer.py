"""Answers a question with rows, from the list with the fewest to read or by rank, or with
recommendations.

Recommendations come from the runs of families, which are read one family after the other.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice, takewhile
from typing import TypeVar

from msgspec import Struct

from sageaudit.domain.advice.advice import (
    Decision,
    FamilyRecommendation,
    derive_recommendations,
    sort_by_amount,
)
from sageaudit.domain.audit.record import RuleFinding
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Scope
from sageaudit.errors import BadUsage
from sageaudit.queries.columns import matching, needs_summary
from sageaudit.queries.lists import (
    HistoryLists,
    as_list_row,
    reads_summaries,
    sort_amount,
    sort_key,
    stored_sort_amount,
    with_summary,
)
from sageaudit.queries.question import COUNT_SORTS, TIME_SORTS, Question, SortOrder
from sageaudit.structs import replace

_MAX_PAGE_SIZE = 1_000
ListRow = AuditSummary | RuleFinding
"""An audit, or in lists of one rule a finding."""
Advised = tuple[AuditSummary, list[FamilyRecommendation]]
"""The newest run of a family, and the family's recommendations."""
Row = TypeVar("Row", AuditSummary, RuleFinding, ListRow)
_Rank = tuple[Decimal, tuple[datetime, str]]


class AnswerPage(Struct, frozen=True):
    """The first rows of an answer, and whether there are more."""

    rows: tuple[ListRow, ...]
    has_more: bool

    @property
    def rollup_kinds(self) -> set[str]:
        """The kinds of the roll-ups among the rows."""
        audits = (row.summary if isinstance(row, RuleFinding) else row for row in self.rows)
        return {audit.kind for audit in audits if audit.rollup}


def first_page(
    lists: HistoryLists,
    question: Question,
    limit: int,
    *,
    with_summaries: bool = False,
    only_above_zero: bool = False,
) -> AnswerPage:
    """Returns at most `limit` rows; with `only_above_zero`, none of $0 in an order by dollars.

    The reads do not grow with the history, unless a filter without an index matches few rows. An
    order by time reads every row of the window: no sum tells which days have the longest.
    """
    _check(question)
    lists = replace(lists, page_size=min(limit + 1, _MAX_PAGE_SIZE))
    if question.sort is SortOrder.NEWEST:
        rows = _rows(lists, question, with_heads=with_summaries)
    elif question.rule is not None or question.sort in TIME_SORTS:
        rows = iter(_best(_rows(lists, question, with_heads=with_summaries), question))
    else:
        rows = iter(_top_by_amount(lists, question, limit + 1, above_zero=only_above_zero))
    page = tuple(islice(rows, limit))
    return AnswerPage(page, len(page) == limit and next(rows, None) is not None)


def iterate_rows(
    lists: HistoryLists, question: Question, *, with_summaries: bool = False
) -> Iterator[ListRow]:
    """Yields every row as it is read; an order by an amount holds all rows in memory."""
    if question.rule is None:
        return iterate_audits(lists, question)
    return iterate_findings(lists, question, question.rule, with_heads=with_summaries)


def iterate_audits(lists: HistoryLists, question: Question) -> Iterator[AuditSummary]:
    """Yields every audit of a question without a rule."""
    _check(question)
    return _sorted_rows(_audits(lists, question), question)


def iterate_findings(
    lists: HistoryLists, question: Question, rule: str, *, with_heads: bool
) -> Iterator[RuleFinding]:
    """Yields every finding of a question with a rule."""
    _check(question)
    return _sorted_rows(_findings(lists, question, rule, with_heads=with_heads), question)


def _sorted_rows(rows: Iterator[Row], question: Question) -> Iterator[Row]:
    return rows if question.sort is SortOrder.NEWEST else iter(_best(rows, question))


def _check(question: Question) -> None:
    """Raises BadUsage for an order that audits or findings do not have."""
    if question.sort in COUNT_SORTS:
        raise BadUsage(f"only sums are sorted by {question.sort}: `sageaudit by`")
    if question.rule is not None and question.sort not in {SortOrder.NEWEST, SortOrder.WASTE}:
        raise BadUsage(
            f"findings have one amount, their saving: with a rule, sort by {SortOrder.WASTE} and"
            " not by"
            f" {question.sort}"
        )


def _rows(lists: HistoryLists, question: Question, *, with_heads: bool) -> Iterator[ListRow]:
    if question.rule is None:
        return _audits(lists, question)
    return _findings(lists, question, question.rule, with_heads=with_heads)


def _audits(lists: HistoryLists, question: Question) -> Iterator[AuditSummary]:
    return filter(matching(question), map(as_list_row, lists.audits(question)))


def _findings(
    lists: HistoryLists, question: Question, rule: str, *, with_heads: bool
) -> Iterator[RuleFinding]:
    """Yields the findings that fit; reads a summary only if the finding itself is not enough."""
    fits, all_heads = matching(question), with_heads or needs_summary(question)
    for finding in lists.findings(rule):
        row, doubtful = finding, reads_summaries(finding)
        if not doubtful and not fits(row):
            continue
        if doubtful or all_heads:
            lists.read_counts.rows += 1
            row = with_summary(finding, lists.history.summary(finding.key))
        if fits(row):
            yield row


def _best(rows: Iterator[Row], question: Question) -> list[Row]:
    """All rows in an order by an amount, those of the same amount newest first."""
    return sorted(
        rows, key=lambda row: (sort_amount(row, question.sort), sort_key(row)), reverse=True
    )


class _Cell(Struct, frozen=True):
    """The audits of one day of a family or of the asked owner; none exceeds their sum."""

    usd: Decimal
    day: date
    jobs: int
    account: str
    region: str
    family: str | None


def _top_by_amount(
    lists: HistoryLists, question: Question, count: int, *, above_zero: bool
) -> list[AuditSummary]:
    """Returns the first `count` rows in an order by dollars.

    Reads the days of families from the most expensive on, since no job has more dollars than its
    family had on that day. Stops when no remaining day can have a row before those already found.
    """
    best: list[tuple[_Rank, AuditSummary]] = []
    fits = matching(question)
    for cell in sorted(_cells(lists, question), key=lambda c: (c.usd, c.day), reverse=True):
        if len(best) == count:
            (usd, (ended_at, _)), _row = best[0]
            if (cell.usd, cell.day) < (usd, ended_at.date()):
                break
        if above_zero and not cell.usd:
            break
        for head in _audits_of_family_day(lists, question, cell):
            rank = stored_sort_amount(head, question.sort), sort_key(head)
            full = len(best) == count
            if (above_zero and not rank[0]) or (full and rank <= best[0][0]):
                continue
            row = as_list_row(head)
            if fits(row):
                (heapq.heapreplace if full else heapq.heappush)(best, (rank, row))
    return [row for _, row in sorted(best, key=lambda pair: pair[0], reverse=True)]


def _cells(lists: HistoryLists, question: Question) -> Iterator[_Cell]:
    scope = Scope.FAMILY if question.owner is None else Scope.OWNER
    name = question.family if question.owner is None else question.owner
    rows = lists.daily_sums(scope, account=question.account, region=question.region, name=name)
    cells: dict[tuple[date, str, str, str | None], tuple[Decimal, int]] = {}
    for row in rows:
        of_owner = question.owner is not None
        place = ("", "", None) if of_owner else (row.account, row.region, row.name or "")
        usd, jobs = cells.get((row.day, *place), (Decimal(0), 0))
        cells[row.day, *place] = usd + question.sort.amount_of(row.sums), jobs + row.sums.jobs
    least = question.min_usd if question.sort is SortOrder.WASTE else None
    for (day, account, region, family), (usd, jobs) in cells.items():
        if least is None or usd >= least:
            yield _Cell(usd, day, jobs, account, region, family)


def _audits_of_family_day(
    lists: HistoryLists, question: Question, cell: _Cell
) -> Iterator[AuditSummary]:
    begin = datetime.combine(cell.day, time(), UTC)
    before = min(begin + timedelta(days=1), lists.window.until)
    day = replace(lists, page_size=cell.jobs + 1)
    if cell.family is None:
        heads = day.jobs_of_owner(question.owner or "", before)
    else:
        heads = day.runs_of_family(cell.account, cell.region, cell.family, before)
    return takewhile(lambda head: head.ended_at >= begin, heads)


def by_family(
    lists: HistoryLists,
    question: Question,
    decisions: Sequence[Decision],
    now: datetime,
    *,
    most_runs: int | None = None,
) -> Iterator[Advised]:
    """Yields the families of the question's account, region and family.

    `most_runs`: read only this many of a family's newest runs; None reads all of the window.
    """
    rows = lists.daily_sums(
        Scope.FAMILY, account=question.account, region=question.region, name=question.family
    )
    for account, region, family in sorted({(row.account, row.region, row.name) for row in rows}):
        of_family = lists.runs_of_family(account, region, family or "", lists.window.until)
        if runs := [*islice(of_family, most_runs)]:
            yield as_list_row(runs[0]), derive_recommendations(runs, decisions, now)


def of_question(
    families: Iterator[Advised] | list[Advised], question: Question
) -> Iterator[FamilyRecommendation]:
    """Yields the recommendations of the families whose newest run fits."""
    fits = matching(question)
    return (
        recommendation
        for newest, recommendations in families
        if fits(newest)
        for recommendation in recommendations
    )


def recommendations(
    lists: HistoryLists, question: Question, decisions: Sequence[Decision], now: datetime
) -> list[FamilyRecommendation]:
    """Returns a question's recommendations, those that count first, then by dollars."""
    families = by_family(lists, question, decisions, now)
    return sort_by_amount(of_question(families, question), now)
