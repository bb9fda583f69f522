"""Answers a question with rows or recommendations.

Rows come from the list with the fewest rows to read. Recommendations come from the runs of
families, which are read one family after the other.
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
from sageaudit.queries.columns import FILTERS, has_summary_filter, make_row_filter
from sageaudit.queries.lists import (
    HistoryLists,
    as_list_row,
    should_read_summary,
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
FamilyRecommendations = tuple[AuditSummary, list[FamilyRecommendation]]
"""The newest run of a family, and the family's recommendations."""
RECOMMENDATION_FIELDS = frozenset(
    {
        *("key", "status", "account", "region", "family", "owner", "ended_at", "rollup", "sums"),
        *("total_usd", "purchase", "elapsed_s", "instance_type", "instance_count", "fingerprint"),
        *("reason", "phase_s", "first_point_s", "recommendations", "settings"),
    }
)
"""The fields of runs from which recommendations are derived."""
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
    """Returns the first `limit` rows, and whether there are more.

    `with_summaries`: adds the whole summary of the run to each finding. `only_above_zero`: leaves
    out audits of $0 if the order is by dollars.

    Every row is read for an order by duration or waiting time, and for findings by an amount. Other
    reads do not grow with the history, unless a filter without an index matches few rows.
    """
    _check_sort_order(question)
    lists = replace(lists, page_size=min(limit + 1, _MAX_PAGE_SIZE))
    if question.sort is SortOrder.NEWEST:
        rows = _matching_rows(lists, question, with_summaries=with_summaries)
    elif question.rule is not None or question.sort in TIME_SORTS:
        rows = iter(
            _sort_by_amount(
                _matching_rows(lists, question, with_summaries=with_summaries), question
            )
        )
    else:
        rows = iter(_top_by_amount(lists, question, limit + 1, only_above_zero=only_above_zero))
    page = tuple(islice(rows, limit))
    return AnswerPage(page, len(page) == limit and next(rows, None) is not None)


def iterate_rows(
    lists: HistoryLists, question: Question, *, with_summaries: bool = False
) -> Iterator[ListRow]:
    """Yields every row as it is read. An order by an amount keeps all rows in memory.

    `with_summaries`: adds the whole summary of the run to each finding.
    """
    if question.rule is None:
        return iterate_audits(lists, question)
    return iterate_findings(lists, question, question.rule, with_summaries=with_summaries)


def iterate_audits(lists: HistoryLists, question: Question) -> Iterator[AuditSummary]:
    """Yields every audit of a question without a rule."""
    _check_sort_order(question)
    return _sorted_rows(_matching_audits(lists, question), question)


def iterate_findings(
    lists: HistoryLists, question: Question, rule: str, *, with_summaries: bool
) -> Iterator[RuleFinding]:
    """Yields each finding of `rule` that passes the question's filters, in the question's order.

    `with_summaries`: adds the whole summary of the run to each finding. Otherwise a summary is read
    only if a filter needs it.
    """
    _check_sort_order(question)
    return _sorted_rows(
        _matching_findings(lists, question, rule, with_summaries=with_summaries), question
    )


def _sorted_rows(rows: Iterator[Row], question: Question) -> Iterator[Row]:
    return rows if question.sort is SortOrder.NEWEST else iter(_sort_by_amount(rows, question))


def _check_sort_order(question: Question) -> None:
    """Raises BadUsage for an order that audits or findings do not have."""
    if question.sort in COUNT_SORTS:
        raise BadUsage(f"only sums are sorted by {question.sort}: `sageaudit by`")
    if question.rule is not None and question.sort not in {SortOrder.NEWEST, SortOrder.WASTE}:
        raise BadUsage(
            f"findings have one amount, their saving: with a rule, sort by {SortOrder.WASTE} and"
            f" not by {question.sort}"
        )


def _matching_rows(
    lists: HistoryLists, question: Question, *, with_summaries: bool
) -> Iterator[ListRow]:
    if question.rule is None:
        return _matching_audits(lists, question)
    return _matching_findings(lists, question, question.rule, with_summaries=with_summaries)


def _matching_audits(lists: HistoryLists, question: Question) -> Iterator[AuditSummary]:
    return filter(make_row_filter(question), map(as_list_row, lists.audits(question)))


def _matching_findings(
    lists: HistoryLists, question: Question, rule: str, *, with_summaries: bool
) -> Iterator[RuleFinding]:
    """Yields the findings that pass the filters. Reads a summary only if it is needed."""
    is_match = make_row_filter(question)
    reads_all_summaries = with_summaries or has_summary_filter(question)
    for finding in lists.findings(rule):
        row, should_read = finding, should_read_summary(finding)
        if not should_read and not is_match(row):
            continue
        if should_read or reads_all_summaries:
            lists.read_counts.rows += 1
            row = with_summary(finding, lists.history.summary(finding.key))
        if is_match(row):
            yield row


def _sort_by_amount(rows: Iterator[Row], question: Question) -> list[Row]:
    return sorted(
        rows, key=lambda row: (sort_amount(row, question.sort), sort_key(row)), reverse=True
    )


class _FamilyDay(Struct, frozen=True):
    """The dollars of a family on one day, or of the question's owner. No audit of that day has
    more.
    """

    usd: Decimal
    day: date
    jobs: int
    account: str
    region: str
    family: str | None


def _top_by_amount(
    lists: HistoryLists, question: Question, row_count: int, *, only_above_zero: bool
) -> list[AuditSummary]:
    """Returns the rows with the largest amounts, the largest first.

    Reads the days of families, the most expensive first. No job has more dollars than its family on
    that day. So reading stops when no remaining day can have a row that ranks higher.
    """
    highest_rows: list[tuple[_Rank, AuditSummary]] = []
    is_match = make_row_filter(question)
    days = sorted(_family_days(lists, question), key=lambda day: (day.usd, day.day), reverse=True)
    for family_day in days:
        if len(highest_rows) == row_count:
            (usd, (ended_at, _)), _ = highest_rows[0]
            if (family_day.usd, family_day.day) < (usd, ended_at.date()):
                break
        if only_above_zero and not family_day.usd:
            break
        for summary in _audits_of_family_day(lists, question, family_day):
            rank = stored_sort_amount(summary, question.sort), sort_key(summary)
            is_full = len(highest_rows) == row_count
            if (only_above_zero and not rank[0]) or (is_full and rank <= highest_rows[0][0]):
                continue
            row = as_list_row(summary)
            if is_match(row):
                (heapq.heapreplace if is_full else heapq.heappush)(highest_rows, (rank, row))
    return [row for _, row in sorted(highest_rows, key=lambda pair: pair[0], reverse=True)]


def _family_days(lists: HistoryLists, question: Question) -> Iterator[_FamilyDay]:
    scope = Scope.FAMILY if question.owner is None else Scope.OWNER
    name = question.family if question.owner is None else question.owner
    rows = lists.daily_sums(scope, account=question.account, region=question.region, name=name)
    sums_by_day: dict[tuple[date, str, str, str | None], tuple[Decimal, int]] = {}
    for row in rows:
        group = (
            ("", "", None)
            if question.owner is not None
            else (row.account, row.region, row.name or "")
        )
        usd, jobs = sums_by_day.get((row.day, *group), (Decimal(0), 0))
        sums_by_day[row.day, *group] = usd + question.sort.amount_of(row.sums), jobs + row.sums.jobs
    min_usd = question.min_usd if question.sort is SortOrder.WASTE else None
    for (day, account, region, family), (usd, jobs) in sums_by_day.items():
        if min_usd is None or usd >= min_usd:
            yield _FamilyDay(usd, day, jobs, account, region, family)


def _audits_of_family_day(
    lists: HistoryLists, question: Question, family_day: _FamilyDay
) -> Iterator[AuditSummary]:
    start = datetime.combine(family_day.day, time(), UTC)
    end = min(start + timedelta(days=1), lists.window.until)
    day_lists = replace(lists, page_size=family_day.jobs + 1)
    if family_day.family is None:
        summaries = day_lists.jobs_of_owner(question.owner or "", end)
    else:
        summaries = day_lists.runs_of_family(
            family_day.account, family_day.region, family_day.family, end
        )
    return takewhile(lambda summary: summary.ended_at >= start, summaries)


def read_family_recommendations(
    lists: HistoryLists,
    question: Question,
    decisions: Sequence[Decision],
    now: datetime,
    *,
    most_runs: int | None = None,
) -> Iterator[FamilyRecommendations]:
    """Yields each family's newest run and recommendations, for the question's account, region and
    family.

    `most_runs` is the number of a family's newest runs to read. None reads all runs in the window.
    """
    rows = lists.daily_sums(
        Scope.FAMILY, account=question.account, region=question.region, name=question.family
    )
    for account, region, family in sorted({(row.account, row.region, row.name) for row in rows}):
        family_runs = lists.runs_of_family(account, region, family or "", lists.window.until)
        if runs := [*islice(family_runs, most_runs)]:
            yield as_list_row(runs[0]), derive_recommendations(runs, decisions, now)


def matching_recommendations(
    families: Iterator[FamilyRecommendations] | list[FamilyRecommendations], question: Question
) -> Iterator[FamilyRecommendation]:
    """Yields the recommendations of the families whose newest run matches the question."""
    is_match = make_row_filter(question)
    return (
        recommendation
        for newest_run, recommendations in families
        if is_match(newest_run)
        for recommendation in recommendations
    )


def find_recommendations(
    lists: HistoryLists, question: Question, decisions: Sequence[Decision], now: datetime
) -> list[FamilyRecommendation]:
    """Returns a question's recommendations: counted ones first, then by dollars."""
    filter_fields = (FILTERS[name].read_fields for name in question.filters)
    partial_lists = replace(lists, fields=RECOMMENDATION_FIELDS.union(*filter_fields))
    families = read_family_recommendations(partial_lists, question, decisions, now)
    return sort_by_amount(matching_recommendations(families, question), now)
