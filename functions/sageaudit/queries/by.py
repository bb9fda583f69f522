"""Sums of the audits of a question, by one or two columns: `sageaudit by COLUMN[,COLUMN]`.

Daily sums are used if they have the columns and the filters. Otherwise the audits of the question
are read. Both give the same figures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, time
from decimal import Decimal
from itertools import chain, islice
from typing import Any

from msgspec import Struct

from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import Scope, Sums, add_sums
from sageaudit.domain.reconcile.lines import HOURS, usage_unit
from sageaudit.queries import answer
from sageaudit.queries.columns import (
    FILTERS,
    GROUPABLE,
    Column,
    make_row_filter,
    unknown_column_error,
)
from sageaudit.queries.lists import HistoryLists, as_list_row, audited_days, first_covered_day
from sageaudit.queries.question import Question, SortOrder
from sageaudit.queries.total import JobPart, SumsRow, add_shares, run_field_sums, sort_rows
from sageaudit.queries.window import ONE_DAY, PeriodLength, days_between, make_window
from sageaudit.structs import replace

Values = tuple[str | None, ...]
_Part = tuple[Values, date, Sums, JobPart | None]
_Days = dict[date, list[tuple[Sums, JobPart | None]]]
"""The sums of each day: one daily sum with None, or the sums and part of each job."""
_FINDING_FIELDS = (
    "avoidable_usd",
    "avoidable_up_to_usd",
    "lost_usd",
    "lost_up_to_usd",
    "waste_usd",
    "possible_usd",
    "possible_up_to_usd",
)

_WHOLE_JOB_FIELDS = (*_FINDING_FIELDS, "judged_usd", "idle_usd", "costliest_rule")
"""Amounts that are not split by usage type."""


def period_length(columns: Sequence[Column]) -> PeriodLength | None:
    """Returns the length of the periods that the columns ask for; None without a period."""
    return next((column.period_length for column in columns if column.period_length), None)


def default_since(columns: Sequence[Column]) -> str:
    """Returns how far back sums by these columns go by default, such as `30d`."""
    length = period_length(columns)
    return (
        {PeriodLength.WEEK: "56d", PeriodLength.MONTH: "180d"}.get(length, "30d")
        if length
        else "30d"
    )


def sum_by(
    lists: HistoryLists,
    question: Question,
    columns: Sequence[Column],
    *,
    today: date,
    read_runs: bool = False,
) -> list[SumsRow]:
    """Returns the sums of the question's audits by these columns.

    Rows with a period are in order of time. Other rows are in the question's order, by default the
    most waste first. If the only column is a period, periods without jobs have rows, too.

    With a rule, a job counts only if its finding is neither exempt nor covered by another one. The
    dollars are then only the rule's. `read_runs` reads each audit, which hours and medians need.
    """
    group_columns = [column for column in columns if not column.period_length]
    length = period_length(columns)
    if length is not None:
        periods = sort_rows(
            _periods(lists, question, group_columns, length, today, runs=read_runs), question.sort
        )
        if GROUPABLE["usage_type"] in group_columns:
            periods = [*map(_usage_type_row, periods)]
        return [*add_shares(periods, "total_usd")] if group_columns else periods
    groups = _group_sums(lists, question, group_columns, runs=read_runs)
    has_rule_dollars = _has_rule_dollars(question, group_columns)
    totals = (
        replace(
            _total(chain(*days.values()), has_rule_dollars=has_rule_dollars),
            **column_values(group_columns, values),
        )
        for values, days in groups.items()
    )
    rows = sort_rows(filter(_is_not_empty, totals), question.sort)
    order = (SortOrder.WASTE if question.sort is SortOrder.NEWEST else question.sort).field
    if GROUPABLE["usage_type"] in group_columns:
        rows = [*map(_usage_type_row, rows)]
        order = SortOrder.TOTAL.field if order in _WHOLE_JOB_FIELDS else order
    is_shared = GROUPABLE["rule"] in group_columns and order not in _FINDING_FIELDS
    return rows if is_shared or order.endswith("_percent") else [*add_shares(rows, order)]


def _usage_type_row(row: SumsRow) -> SumsRow:
    before = row.before and replace(row.before, is_usage_type=True)
    return replace(row, is_usage_type=True, before=before)


def _has_rule_dollars(question: Question, group_columns: Sequence[Column]) -> bool:
    return question.rule is not None or GROUPABLE["rule"] in group_columns


def sum_all(lists: HistoryLists, question: Question) -> Sums:
    """Returns the sums of all audits of the question."""
    days = _group_sums(lists, question, (), runs=False).get((), {})
    return add_sums([sums for sums, _ in chain(*days.values())])


class _Timeline(Struct, frozen=True):
    """The sums of a group by day.

    `all_jobs` has the sums of all jobs that the rule may judge; None for a question without a rule.
    """

    days: _Days
    has_rule_dollars: bool
    all_jobs: _Days | None = None

    def total_between(self, first_day: date, last_day: date) -> SumsRow:
        """Returns the sums of these days. Both days are included.

        A rule's dollars are unknown if no job was judged, or if the rule found nothing.
        """
        total = _sums_between(
            self.days, first_day, last_day, has_rule_dollars=self.has_rule_dollars
        )
        if self.all_jobs is None:
            return total
        all_jobs = _sums_between(self.all_jobs, first_day, last_day, has_rule_dollars=False)
        if self.days and all_jobs.avoidable_usd is not None:
            return total
        return replace(total, nothing_judged=True)


def _periods(
    lists: HistoryLists,
    question: Question,
    group_columns: Sequence[Column],
    length: PeriodLength,
    today: date,
    *,
    runs: bool,
) -> Iterator[SumsRow]:
    starts = length.period_starts(lists.window, today)
    if not starts:
        return
    before = length.previous_period(starts[0])
    wide_lists = lists.in_window(make_window(before, length.next_period(starts[-1])))
    covered_day = first_covered_day(wide_lists, question, before)
    starts = [start for start in starts if length.next_period(start) > covered_day]
    groups = _group_sums(wide_lists, question, group_columns, runs=runs)
    all_jobs = None
    if not group_columns:
        groups = groups or {(): {}}
        if question.rule is not None:
            job_question = _without_rule_filter(question)
            all_jobs = _group_sums(wide_lists, job_question, group_columns, runs=runs).get((), {})
    for values, days in groups.items():
        timeline = _Timeline(days, _has_rule_dollars(question, group_columns), all_jobs)
        for start in starts:
            total = _period(timeline, length, start, today, covered_day)
            row = replace(total, **column_values(group_columns, values))
            if not group_columns or _is_not_empty(row):
                yield row


def _is_not_empty(row: SumsRow) -> bool:
    return bool(row.jobs or row.waste_usd or row.possible_usd or row.rule)


def _period(
    timeline: _Timeline, length: PeriodLength, first: date, today: date, covered_day: date
) -> SumsRow:
    """Returns the sums of the period that begins on `first`, with those of the previous period.

    The current period is compared with the same number of days of the previous one. On its first
    day there is no comparison.
    """
    after, before = length.next_period(first), length.previous_period(first)
    days, days_so_far = (after - first).days, (today - first).days + 1
    current = timeline.total_between(first, after - ONE_DAY)
    is_over = days_so_far > days
    previous = projected_usd = None
    if before >= covered_day and (is_over or days_so_far > 1):
        last_day = first if is_over else min(first, before + days_so_far * ONE_DAY)
        previous = timeline.total_between(before, last_day - ONE_DAY)
    if not is_over and days_so_far > 1:
        projected_usd = _projected_spend(timeline, first, today, days)
    return replace(
        current,
        before=previous,
        period=length.label(first),
        first_day=first,
        last_day=after - ONE_DAY,
        days=min(days_so_far, days),
        over=is_over,
        projected_usd=projected_usd,
    )


def _projected_spend(timeline: _Timeline, first: date, today: date, days: int) -> Decimal | None:
    """Returns the projected spend of the current period in USD; None if its spend is unknown.

    Each remaining day costs the average of the finished days. Today costs at least what it has cost
    so far.
    """
    spent_usd = timeline.total_between(first, today - ONE_DAY).total_usd
    if spent_usd is None:
        return None
    finished_days = (today - first).days
    daily_usd = spent_usd / finished_days
    today_usd = max(timeline.total_between(today, today).total_usd or Decimal(0), daily_usd)
    return spent_usd + today_usd + (days - finished_days - 1) * daily_usd


def _sums_between(days: _Days, first: date, last_day: date, *, has_rule_dollars: bool) -> SumsRow:
    parts = chain(*(days.get(day, ()) for day in days_between(first, last_day)))
    return _total(parts, has_rule_dollars=has_rule_dollars)


def _total(parts: Iterable[tuple[Sums, JobPart | None]], *, has_rule_dollars: bool) -> SumsRow:
    all_parts = [*parts]
    rows = [row for _, row in all_parts if row]
    run_fields = run_field_sums(rows) if len(rows) == len(all_parts) else {}
    return SumsRow(
        sums=add_sums([sums for sums, _ in all_parts]),
        has_rule_dollars=has_rule_dollars,
        **run_fields,
    )


def column_values(group_columns: Sequence[Column], values: Values) -> dict[str, Any]:
    """Returns the fields of a row of sums with these values."""
    pairs = [*zip(group_columns, values, strict=True)]
    tags = {column.name: value for column, value in pairs if column.is_tag}
    return {column.key: value for column, value in pairs if not column.is_tag} | {"tags": tags}


def _group_sums(
    lists: HistoryLists, question: Question, group_columns: Sequence[Column], *, runs: bool
) -> dict[Values, _Days]:
    scope = None if runs else _scope(lists, question, group_columns)
    if scope is None:
        parts = _parts_from_audits(lists, question, group_columns)
    else:
        parts = _parts_from_daily_sums(lists, question, group_columns, scope)
    groups: dict[Values, _Days] = defaultdict(lambda: defaultdict(list))
    for values, day, sums, row in parts:
        groups[values][day].append((sums, row))
    return groups


def _scope(
    lists: HistoryLists, question: Question, group_columns: Sequence[Column]
) -> Scope | None:
    """Returns the scope whose daily sums have these columns and filters; None if there is none."""
    used_names = {column.key if column.is_tag else column.name for column in group_columns}
    used_names = (used_names | question.filters.keys()) - {"account", "region"}
    window = lists.window
    if len(used_names) > 1 or {window.since.time(), window.until.time()} != {time()}:
        return None
    group_column = GROUPABLE.get(used_names.pop()) if used_names else GROUPABLE["account"]
    return group_column.scope if group_column else None


def _parts_from_daily_sums(
    lists: HistoryLists, question: Question, group_columns: Sequence[Column], scope: Scope
) -> Iterator[_Part]:
    name = None if scope is Scope.ACCOUNT else question.filters.get(scope.value)
    rows = lists.daily_sums(scope, account=question.account, region=question.region, name=name)
    for row in rows:
        values = {"account": row.account, "region": row.region}
        yield (
            tuple(values.get(column.name, row.name) for column in group_columns),
            row.day,
            row.sums,
            None,
        )


def _parts_from_audits(
    lists: HistoryLists, question: Question, group_columns: Sequence[Column]
) -> Iterator[_Part]:
    """Yields the parts of audits with their values and day.

    Raises BadUsage for a column that is not a cost tag of any of the audits read.
    """
    rule, job_question = question.rule, question
    found_keys: set[JobKey] | None = None
    if rule is not None:
        job_question = _without_rule_filter(question)
        if question.severity is not None or question.min_usd is not None:
            summary_filters: dict[str, Any] = {
                name: None for name in question.filters if FILTERS[name].needs_summary
            }
            finding_question = replace(
                question.with_changed_filters(**summary_filters), sort=SortOrder.NEWEST
            )
            rows = answer.iterate_rows(lists, finding_question)
            found_keys = {row.key for row in rows}
    matches = make_row_filter(job_question)
    tags: set[str] = set()
    read_count = 0
    for read_count, summary in enumerate(lists.audits(job_question), 1):  # noqa: B007 - used after the loop
        row = as_list_row(summary)
        tags |= row.tags.keys()
        if not matches(row) or (found_keys is not None and summary.key not in found_keys):
            continue
        day = summary.ended_at.astimezone(UTC).date()
        parts = [JobPart(row, summary.sums)]
        if rule is not None or GROUPABLE["rule"] in group_columns:
            parts = [*_split_by_rule(row, rule)]
        if GROUPABLE["usage_type"] in group_columns:
            parts = [*_split_by_usage_type(parts)]
        for part in parts:
            yield tuple(part.column_value(column) for column in group_columns), day, part.sums, part
    tag_columns = [column for column in group_columns if column.is_tag]
    known_tags = tags if read_count or not tag_columns else _newest_tags(lists)
    for column in tag_columns:
        if known_tags is not None and column.name not in known_tags:
            raise unknown_column_error(column.name, known_tags)


def _split_by_rule(row: AuditSummary, only_rule: str | None) -> Iterator[JobPart]:
    for rule in row.sums.rules if only_rule is None else {only_rule} & {*row.sums.rules}:
        yield JobPart(row, replace(row.sums, rules={rule: row.sums.rules[rule]}), rule=rule)


def _split_by_usage_type(parts: Iterable[JobPart]) -> Iterator[JobPart]:
    for part in parts:
        for name, usd in (part.summary.usage_costs or {}).items():
            sums = Sums(
                jobs=part.sums.jobs,
                failed=part.sums.failed,
                unpriced=int(usd is None),
                upper_bounds=part.sums.upper_bounds,
                estimated=part.sums.estimated if usage_unit(name) == HOURS else 0,
                total_usd=usd or Decimal(0),
            )
            yield replace(part, sums=sums, usage_type=name)


def _newest_tags(lists: HistoryLists) -> set[str] | None:
    days = audited_days(lists.history)
    if days is None:
        return None
    newest = lists.in_window(make_window(days[-1], days[-1] + ONE_DAY))
    summaries = islice(newest.audits(Question(newest.window)), 1)
    return {tag for summary in summaries for tag in summary.tags}


def _without_rule_filter(question: Question) -> Question:
    return question.with_changed_filters(rule=None, severity=None, min_usd=None)
