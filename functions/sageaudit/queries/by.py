"""Sums of the audits of a question, by one or two columns: `sageaudit by COLUMN[,COLUMN]`.

Daily sums are used if they have the columns and the filters. Otherwise the audits of the question
are read. Both give the same figures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time
from decimal import Decimal
from itertools import chain, islice
from typing import Any

from msgspec import Struct

from sageaudit.domain.audit.sum_parts import MicroSums, RunFigures, SumPart
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import Scope, Sums, add_sums, project_spend
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
from sageaudit.queries.total import RunningSums, RunTotals, SumsRow, add_shares, sort_rows
from sageaudit.queries.window import ONE_DAY, PeriodLength, days_between, make_window
from sageaudit.structs import replace

Values = tuple[str | None, ...]
_Added = tuple[Values, MicroSums, RunFigures]
"""The values of a group, and what an audit or a part of it adds to the group."""
_DaySums = tuple[Sums, RunTotals | None]
"""Sums, with the totals of their runs if each audit was read."""
_Days = dict[date | None, list[_DaySums]]
"""The sums of each day; without a period, those of all days together are under None."""
_PART_COLUMNS = ("rule", "usage_type")
_USAGE_COUNTS = ("jobs", "failed", "upper_bounds")
"""The counts of a job that also hold for each of its usage types."""
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
    groups = _group_sums(lists, question, group_columns, runs=read_runs, by_day=False)
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
    days = _group_sums(lists, question, (), runs=False, by_day=False).get((), {})
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
    groups = _group_sums(wide_lists, question, group_columns, runs=runs, by_day=True)
    all_jobs = None
    if not group_columns:
        groups = groups or {(): {}}
        if question.rule is not None:
            job_question = _without_rule_filter(question)
            all_groups = _group_sums(
                wide_lists, job_question, group_columns, runs=runs, by_day=True
            )
            all_jobs = all_groups.get((), {})
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
    """Returns the projected spend of the current period in USD; None if its spend is unknown."""
    spent_usd = timeline.total_between(first, today - ONE_DAY).total_usd
    if spent_usd is None:
        return None
    finished_days = (today - first).days
    today_usd = timeline.total_between(today, today).total_usd or Decimal(0)
    return project_spend(spent_usd, today_usd, finished_days, days - finished_days - 1)


def _sums_between(days: _Days, first: date, last_day: date, *, has_rule_dollars: bool) -> SumsRow:
    parts = chain(*(days.get(day, ()) for day in days_between(first, last_day)))
    return _total(parts, has_rule_dollars=has_rule_dollars)


def _total(parts: Iterable[_DaySums], *, has_rule_dollars: bool) -> SumsRow:
    all_parts, totals = [*parts], RunTotals()
    for _, part_totals in all_parts:
        if part_totals is not None:
            totals.add(part_totals)
    return SumsRow(
        sums=add_sums([sums for sums, _ in all_parts]),
        has_rule_dollars=has_rule_dollars,
        **totals.fields(),
    )


def column_values(group_columns: Sequence[Column], values: Values) -> dict[str, Any]:
    """Returns the fields of a row of sums with these values."""
    pairs = [*zip(group_columns, values, strict=True)]
    tags = {column.name: value for column, value in pairs if column.is_tag}
    return {column.key: value for column, value in pairs if not column.is_tag} | {"tags": tags}


def _group_sums(
    lists: HistoryLists,
    question: Question,
    group_columns: Sequence[Column],
    *,
    runs: bool,
    by_day: bool,
) -> dict[Values, _Days]:
    scope = None if runs else _scope(lists, question, group_columns)
    if scope is None:
        return _groups_from_audits(lists, question, group_columns, by_day=by_day)
    return _groups_from_daily_sums(lists, question, group_columns, scope)


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


def _groups_from_daily_sums(
    lists: HistoryLists, question: Question, group_columns: Sequence[Column], scope: Scope
) -> dict[Values, _Days]:
    name = None if scope is Scope.ACCOUNT else question.filters.get(scope.value)
    rows = lists.daily_sums(scope, account=question.account, region=question.region, name=name)
    groups: dict[Values, _Days] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        names = {"account": row.account, "region": row.region}
        values = tuple(names.get(column.name, row.name) for column in group_columns)
        groups[values][row.day].append((row.sums, None))
    return groups


def _groups_from_audits(
    lists: HistoryLists, question: Question, group_columns: Sequence[Column], *, by_day: bool
) -> dict[Values, _Days]:
    """Returns the sums of each group, added up while the audits are read.

    Raises BadUsage for a column that is not a cost tag of any of the audits read.
    """
    labels = _Labels(lists, question, group_columns)
    only_rule = question.rule
    by_rule = only_rule is not None or GROUPABLE["rule"] in group_columns
    by_usage_type = GROUPABLE["usage_type"] in group_columns
    parts = lists.sum_parts(
        labels.job_question, labels.label, labels.fields, with_usage=by_usage_type
    )
    groups: dict[Values, dict[date | None, RunningSums]] = defaultdict(
        lambda: defaultdict(RunningSums)
    )
    read_count = 0
    for read_count, part in enumerate(parts, 1):  # noqa: B007 - used after the loop
        if part.label is None:
            continue
        day = part.ended_at.date() if by_day else None
        added = [(part.label, part.sums, part.figures)]
        if by_rule:
            added = [*_split_by_rule(group_columns, part, only_rule)]
        if by_usage_type:
            added = [*_split_by_usage_type(group_columns, part, added)]
        for values, sums, figures in added:
            groups[values][day].add(sums, figures)
    labels.check_tags(read_count)
    return {
        values: {day: [(running.sums, running.totals)] for day, running in days.items()}
        for values, days in groups.items()
    }


class _Labels:
    """Which audits a question selects, and the values of the columns to group each by.

    A rule and a usage type are parts of an audit, and not yet in its values.
    """

    def __init__(
        self, lists: HistoryLists, question: Question, group_columns: Sequence[Column]
    ) -> None:
        self._lists = lists
        self._columns = [
            None if column.name in _PART_COLUMNS else column for column in group_columns
        ]
        self._tag_columns = [column for column in group_columns if column.is_tag]
        self._tags: set[str] = set()
        self.job_question, self._found_keys = question, _found_keys(lists, question)
        if question.rule is not None:
            self.job_question = _without_rule_filter(question)
        self._matches = make_row_filter(self.job_question)
        used_columns = (*group_columns, *(FILTERS[name] for name in self.job_question.filters))
        key = () if self._found_keys is None else ("key",)
        self.fields = {*chain(*(column.read_fields for column in used_columns)), *key}

    def label(self, summary: AuditSummary) -> Values | None:
        """Returns the values of an audit; None if the question leaves it out."""
        row = as_list_row(summary)
        self._tags |= row.tags.keys()
        if not self._matches(row):
            return None
        if self._found_keys is not None and summary.key not in self._found_keys:
            return None
        return tuple(None if column is None else column.value_of(row) for column in self._columns)

    def check_tags(self, read_count: int) -> None:
        """Raises BadUsage for a column that is not a cost tag of any of the audits read."""
        known_tags = self._tags
        if self._tag_columns and not read_count:
            newest_tags = _newest_tags(self._lists)
            if newest_tags is None:
                return
            known_tags = newest_tags
        for column in self._tag_columns:
            if column.name not in known_tags:
                raise unknown_column_error(column.name, known_tags)


def _found_keys(lists: HistoryLists, question: Question) -> set[JobKey] | None:
    """Returns the runs with a finding of the question's rule that passes the filters of findings.

    None if there are no such filters.
    """
    if question.rule is None or (question.severity is None and question.min_usd is None):
        return None
    summary_filters: dict[str, Any] = {
        name: None for name in question.filters if FILTERS[name].needs_summary
    }
    finding_question = replace(
        question.with_changed_filters(**summary_filters), sort=SortOrder.NEWEST
    )
    return {row.key for row in answer.iterate_rows(lists, finding_question)}


def _split_by_rule(
    group_columns: Sequence[Column], part: SumPart, only_rule: str | None
) -> Iterator[_Added]:
    for rule, numbers in part.sums.rules.items():
        if only_rule in {None, rule}:
            values = _with_value(group_columns, part.label, "rule", rule)
            yield values, MicroSums(part.sums.numbers, {rule: numbers}), part.figures


def _split_by_usage_type(
    group_columns: Sequence[Column], part: SumPart, added: Iterable[_Added]
) -> Iterator[_Added]:
    for values, sums, figures in added:
        counts = {name: sums.numbers.get(name, 0) for name in _USAGE_COUNTS}
        for name, micro_usd in part.usage_costs.items():
            numbers = counts | ({"unpriced": 1} if micro_usd is None else {"total_usd": micro_usd})
            if usage_unit(name) == HOURS:
                numbers["estimated"] = sums.numbers.get("estimated", 0)
            yield (
                _with_value(group_columns, values, "usage_type", name),
                MicroSums(numbers),
                RunFigures(
                    total_micro_usd=micro_usd,
                    waiting_s=figures.waiting_s,
                    usage_micro_quantity=part.usage_quantities.get(name),
                ),
            )


def _with_value(group_columns: Sequence[Column], values: Values, name: str, value: str) -> Values:
    # Returns the values unchanged if they have no such column.
    for index, column in enumerate(group_columns):
        if column.name == name:
            return (*values[:index], value, *values[index + 1 :])
    return values


def _newest_tags(lists: HistoryLists) -> set[str] | None:
    days = audited_days(lists.history)
    if days is None:
        return None
    newest = lists.in_window(make_window(days[-1], days[-1] + ONE_DAY))
    summaries = islice(newest.audits(Question(newest.window)), 1)
    return {tag for summary in summaries for tag in summary.tags}


def _without_rule_filter(question: Question) -> Question:
    return question.with_changed_filters(rule=None, severity=None, min_usd=None)
