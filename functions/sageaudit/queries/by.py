"""Sums of the audits of a question, by one or two columns: `sageaudit by COLUMN[,COLUMN]`.

Daily sums are added up if they have the columns and the filters, without reading an audit.
Otherwise the audits of the question are read. Both give the same figures.
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
from sageaudit.queries.columns import FILTERS, GROUPABLE, Column, matching, unknown_column_error
from sageaudit.queries.lists import HistoryLists, as_list_row, audited_days, first_covered_day
from sageaudit.queries.question import Question, SortOrder
from sageaudit.queries.total import JobPart, SumsRow, add_shares, run_field_sums, sort_rows
from sageaudit.queries.window import ONE_DAY, PeriodLength, days_between, make_window
from sageaudit.structs import replace

Values = tuple[str | None, ...]
_Part = tuple[Values, date, Sums, JobPart | None]
_Days = dict[date, list[tuple[Sums, JobPart | None]]]
"""By day: the sums of the day, or of each of its jobs."""
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
"""Amounts that no usage type has a part of."""


def period_length(columns: Sequence[Column]) -> PeriodLength | None:
    """Returns the length of the periods that the columns ask for."""
    return next((column.length for column in columns if column.length), None)


def default_since(columns: Sequence[Column]) -> str:
    """Returns how far back sums by these columns go by default."""
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

    The rows are in order of time if a column is one, else the most waste first, or as the question
    sorts. By time alone, periods without jobs have rows too. With a rule, only jobs with a standing
    finding of it are counted, and only its dollars. `read_runs` reads each audit, which hours and
    medians need.
    """
    names = [column for column in columns if not column.length]
    length = period_length(columns)
    if length is not None:
        periods = sort_rows(
            _periods(lists, question, names, length, today, runs=read_runs), question.sort
        )
        if GROUPABLE["usage_type"] in names:
            periods = [*map(_usage_type_row, periods)]
        return [*add_shares(periods, "total_usd")] if names else periods
    groups = _group_sums(lists, question, names, runs=read_runs)
    of_rules = _has_rule_dollars(question, names)
    totals = (
        replace(_total(chain(*days.values()), of_rules=of_rules), **column_values(names, values))
        for values, days in groups.items()
    )
    rows = sort_rows(filter(_is_not_empty, totals), question.sort)
    order = (SortOrder.WASTE if question.sort is SortOrder.NEWEST else question.sort).field
    if GROUPABLE["usage_type"] in names:
        rows = [*map(_usage_type_row, rows)]
        order = SortOrder.TOTAL.field if order in _WHOLE_JOB_FIELDS else order
    in_common = GROUPABLE["rule"] in names and order not in _FINDING_FIELDS
    return rows if in_common or order.endswith("_percent") else [*add_shares(rows, order)]


def _usage_type_row(row: SumsRow) -> SumsRow:
    """Marks a row, and the period before it, as those of a usage type."""
    before = row.before and replace(row.before, is_usage_type=True)
    return replace(row, is_usage_type=True, before=before)


def _has_rule_dollars(question: Question, names: Sequence[Column]) -> bool:
    """Whether the dollars of findings are those of single rules."""
    return question.rule is not None or GROUPABLE["rule"] in names


def sum_all(lists: HistoryLists, question: Question) -> Sums:
    """The sums of all of the question's audits."""
    days = _group_sums(lists, question, (), runs=False).get((), {})
    return add_sums([sums for sums, _ in chain(*days.values())])


class _Timeline(Struct, frozen=True):
    """The sums of some days. `all_jobs`: with a rule, those of all jobs that it may have judged."""

    days: _Days
    has_rule_dollars: bool
    all_jobs: _Days | None = None

    def total_between(self, first: date, last: date) -> SumsRow:
        """Returns the amounts of these days. A rule's dollars are unknown if nothing was judged in
        them, or if the rule found nothing on any day.
        """
        total = _between(self.days, first, last, of_rules=self.has_rule_dollars)
        if self.all_jobs is None:
            return total
        every = _between(self.all_jobs, first, last, of_rules=False)
        if self.days and every.avoidable_usd is not None:
            return total
        return replace(total, nothing_judged=True)


def _periods(
    lists: HistoryLists,
    question: Question,
    names: Sequence[Column],
    length: PeriodLength,
    today: date,
    *,
    runs: bool,
) -> Iterator[SumsRow]:
    starts = length.period_starts(lists.window, today)
    if not starts:
        return
    before = length.previous_period(starts[0])
    wide = lists.in_window(make_window(before, length.next_period(starts[-1])))
    covered = first_covered_day(wide, question, before)
    starts = [start for start in starts if length.next_period(start) > covered]
    groups = _group_sums(wide, question, names, runs=runs)
    every = None
    if not names:
        groups = groups or {(): {}}
        if question.rule is not None:
            every = _group_sums(wide, _without_rule_filter(question), names, runs=runs).get((), {})
    for values, days in groups.items():
        line = _Timeline(days, _has_rule_dollars(question, names), every)
        for start in starts:
            total = _period(line, length, start, today, covered)
            row = replace(total, **column_values(names, values))
            if not names or _is_not_empty(row):
                yield row


def _is_not_empty(row: SumsRow) -> bool:
    """Whether a row has a job, dollars or a rule; one of only a tuning job may have none."""
    return bool(row.jobs or row.waste_usd or row.possible_usd or row.rule)


def _period(
    line: _Timeline, length: PeriodLength, first: date, today: date, covered: date
) -> SumsRow:
    """Returns one period, the current one compared with as many days of the previous one. A first
    day that is not over is compared with nothing.
    """
    after, before = length.next_period(first), length.previous_period(first)
    days, so_far = (after - first).days, (today - first).days + 1
    now = line.total_between(first, after - ONE_DAY)
    over = so_far > days
    earlier = projected_usd = None
    if before >= covered and (over or so_far > 1):
        last = first if over else min(first, before + so_far * ONE_DAY)
        earlier = line.total_between(before, last - ONE_DAY)
    if not over and so_far > 1:
        projected_usd = _projected_spend(line, first, today, days)
    return replace(
        now,
        before=earlier,
        period=length.label(first),
        first_day=first,
        last_day=after - ONE_DAY,
        days=min(so_far, days),
        over=over,
        projected_usd=projected_usd,
    )


def _projected_spend(line: _Timeline, first: date, today: date, days: int) -> Decimal | None:
    """Returns the projected spend of the current period: each day left costs the average of the
    finished days. Today costs at least what it has cost so far.
    """
    spent_usd = line.total_between(first, today - ONE_DAY).total_usd
    if spent_usd is None:
        return None
    over = (today - first).days
    of_a_day_usd = spent_usd / over
    today_usd = max(line.total_between(today, today).total_usd or Decimal(0), of_a_day_usd)
    return spent_usd + today_usd + (days - over - 1) * of_a_day_usd


def _between(days: _Days, first: date, last: date, *, of_rules: bool) -> SumsRow:
    parts = chain(*(days.get(day, ()) for day in days_between(first, last)))
    return _total(parts, of_rules=of_rules)


def _total(parts: Iterable[tuple[Sums, JobPart | None]], *, of_rules: bool) -> SumsRow:
    every = [*parts]
    rows = [row for _, row in every if row]
    more = run_field_sums(rows) if len(rows) == len(every) else {}
    return SumsRow(sums=add_sums([sums for sums, _ in every]), has_rule_dollars=of_rules, **more)


def column_values(names: Sequence[Column], values: Values) -> dict[str, Any]:
    """The fields of a row of sums with these values."""
    pairs = [*zip(names, values, strict=True)]
    tags = {column.name: value for column, value in pairs if column.tag}
    return {column.key: value for column, value in pairs if not column.tag} | {"tags": tags}


def _group_sums(
    lists: HistoryLists, question: Question, names: Sequence[Column], *, runs: bool
) -> dict[Values, _Days]:
    """The sums by the values of these columns, then by day."""
    scope = None if runs else _scope(lists, question, names)
    if scope is None:
        parts = _parts_from_audits(lists, question, names)
    else:
        parts = _parts_from_daily_sums(lists, question, names, scope)
    groups: dict[Values, _Days] = defaultdict(lambda: defaultdict(list))
    for values, day, sums, row in parts:
        groups[values][day].append((sums, row))
    return groups


def _scope(lists: HistoryLists, question: Question, names: Sequence[Column]) -> Scope | None:
    """Returns the daily sums that have these columns and the filters; None if there are none."""
    asked = {column.key if column.tag else column.name for column in names}
    asked = (asked | question.filters.keys()) - {"account", "region"}
    window = lists.window
    if len(asked) > 1 or {window.since.time(), window.until.time()} != {time()}:
        return None
    grouping = GROUPABLE.get(asked.pop()) if asked else GROUPABLE["account"]
    return grouping.scope if grouping else None


def _parts_from_daily_sums(
    lists: HistoryLists, question: Question, names: Sequence[Column], scope: Scope
) -> Iterator[_Part]:
    name = None if scope is Scope.ACCOUNT else question.filters.get(scope.value)
    rows = lists.daily_sums(scope, account=question.account, region=question.region, name=name)
    for row in rows:
        values = {"account": row.account, "region": row.region}
        yield tuple(values.get(column.name, row.name) for column in names), row.day, row.sums, None


def _parts_from_audits(
    lists: HistoryLists, question: Question, names: Sequence[Column]
) -> Iterator[_Part]:
    """Yields what each matching audit adds; with a rule as column or filter, to each such rule.

    Raises BadUsage for a column that is not a cost tag of any of the audits read.
    """
    wanted, asked = question.rule, question
    found_keys: set[JobKey] | None = None
    if wanted is not None:
        asked = _without_rule_filter(question)
        if question.severity is not None or question.min_usd is not None:
            of_heads: dict[str, Any] = {
                name: None for name in question.filters if FILTERS[name].needs_summary
            }
            of_findings = replace(question.with_changed_filters(**of_heads), sort=SortOrder.NEWEST)
            rows = answer.iterate_rows(lists, of_findings)
            found_keys = {row.key for row in rows}
    fits = matching(asked)
    tags: set[str] = set()
    read = 0
    for read, head in enumerate(lists.audits(asked), 1):  # noqa: B007 - used after the loop
        row = as_list_row(head)
        tags |= row.tags.keys()
        if not fits(row) or (found_keys is not None and head.key not in found_keys):
            continue
        day = head.ended_at.astimezone(UTC).date()
        parts = [JobPart(row, head.sums)]
        if wanted is not None or GROUPABLE["rule"] in names:
            parts = [*_split_by_rule(row, wanted)]
        if GROUPABLE["usage_type"] in names:
            parts = [*_split_by_usage_type(parts)]
        for part in parts:
            yield tuple(part.column_value(column) for column in names), day, part.sums, part
    of_tags = [column for column in names if column.tag]
    known_tags = tags if read or not of_tags else _newest_tags(lists)
    for column in of_tags:
        if known_tags is not None and column.name not in known_tags:
            raise unknown_column_error(column.name, known_tags)


def _split_by_rule(row: AuditSummary, wanted: str | None) -> Iterator[JobPart]:
    """Yields the job once for each rule with a finding in it, or for the wanted rule."""
    for rule in row.sums.rules if wanted is None else {wanted} & {*row.sums.rules}:
        yield JobPart(row, replace(row.sums, rules={rule: row.sums.rules[rule]}), rule=rule)


def _split_by_usage_type(parts: Iterable[JobPart]) -> Iterator[JobPart]:
    """Yields the job once for each usage type of its bill, with that type's dollars alone."""
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
    """The cost tags of the history's newest audit; None without any."""
    days = audited_days(lists.history)
    if days is None:
        return None
    newest = lists.in_window(make_window(days[-1], days[-1] + ONE_DAY))
    return {tag for head in islice(newest.audits(Question(newest.window)), 1) for tag in head.tags}


def _without_rule_filter(question: Question) -> Question:
    """Returns the question about jobs, without the filters on the rule's findings."""
    return question.with_changed_filters(rule=None, severity=None, min_usd=None)
