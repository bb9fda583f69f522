"""`sageaudit by COLUMN[,COLUMN]`: sums by family, owner, week and other columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal

import click
from rich.text import Text

from sageaudit.cli import clock, options, query_options, query_output
from sageaudit.cli.messages import print_message
from sageaudit.cli.query_options import (
    AuditFilterOptions,
    HistoryChoice,
    OutputOptions,
    filter_options,
)
from sageaudit.cli.views import cells, lists
from sageaudit.domain.money import format_usd
from sageaudit.output.terminal.layout import make_console
from sageaudit.output.text.amounts import UNKNOWN_AMOUNTS
from sageaudit.output.text.money import Figure, percent_change_text
from sageaudit.output.text.words import count_text
from sageaudit.queries import by as sums
from sageaudit.queries.columns import parse_columns
from sageaudit.queries.names import resolve_question
from sageaudit.queries.question import AMOUNT_SORTS, COUNT_SORTS, SortOrder
from sageaudit.queries.total import RUN_FIELDS, SumsRow
from sageaudit.queries.window import ONE_DAY, PeriodLength

_LIMIT = 26
_BLOCKS = "▁▂▃▄▅▆▇█"
_GAP = "·"
_PLAIN_BLOCKS = "_.:-=+*#"
"""The characters of bars for outputs that can only show ASCII."""
_PLAIN_GAP = "?"
_MIN_HEADLINE_DAYS = 2
"""The headline is about the current period only if it has this many finished days (our choice)."""
_TITLE = "Avoidable+lost"
_LABEL_WIDTH = 36
"""The width of the title and the largest amount beside the bars, in terminal columns.

Bars of the oldest periods are left out if they do not fit.
"""
_EPILOG = """\b
Columns: rule, family, owner, account, region, kind, type and count (of
  instances), purchase, status, judged, reason (of failures), image, each cost
  tag that the policy shows, such as team, and one of day, week (from Monday)
  and month; days are in UTC.

\b
Examples:
  sageaudit by family --since 2026-11-01 --until 2026-11-30 --sort total
  sageaudit by team,month
  sageaudit by week --rule gpu-idle
  sageaudit by type --status Failed --table sageaudit-history --output csv

`sageaudit families`, `owners` and `trend` are short for by family, by owner and by week."""


@click.command(epilog=_EPILOG)
@click.argument(
    "columns", metavar="COLUMN[,COLUMN]", shell_complete=query_options.complete_columns(2)
)
@filter_options(None, "30d; 56d by week, 180d by month")
@click.option(
    "--sort",
    type=options.EnumChoice(SortOrder, (*AMOUNT_SORTS, *COUNT_SORTS)),
    help="Sort by this amount, count or percentage, largest first; waste is avoidable plus lost."
    "  [default: waste; periods in order of time]",
)
@query_options.limit_option(_LIMIT)
@query_options.ALL_OPTION
@query_options.HISTORY_OPTIONS
@query_options.output_options(lists.SUMS)
def by(
    columns: str,
    filters: AuditFilterOptions,
    sort: SortOrder | None,
    limit: int,
    print_all: bool,
    history_choice: HistoryChoice,
    output_options: OutputOptions,
) -> None:
    """Adds up jobs by one or two columns, such as family or week.

    Weeks and months are whole. The current one is compared with the same number of days of the
    previous one. If daily sums do not have the columns or filters, all audits are read, which takes
    longer.
    """
    now, grouped_by = clock.utc_now(), parse_columns(columns)
    length = sums.period_length(grouped_by)
    sort_order = sort or SortOrder.NEWEST
    question = filters.question(now, sort_order, sums.default_since(grouped_by))
    layout = lists.sums_layout(grouped_by, sort_order, with_median=question.family is not None)
    field_names = {
        sort_order.field,
        *(field.name for field in output_options.chosen_fields(layout)),
    }
    with history_choice.open() as source:
        reader, question = resolve_question(source.history, question)
        needs_runs = not field_names.isdisjoint(RUN_FIELDS)
        rows = sums.sum_by(reader, question, grouped_by, today=now.date(), read_runs=needs_runs)
        if not any(row.jobs or row.costliest_rule for row in rows):
            query_output.explain_empty_result(reader, question)
    if length is not None:
        _warn_history_begins_later(
            rows, length.extend_to_periods(question.window, now.date()).first_day
        )
    by_period = length is not None and sort is None
    if output_options.output == "table" and length is not None:
        if by_period and len(grouped_by) == 1:
            _show_headline(rows, length, output_options, now.date())
        rows = _without_empty(rows, length)
    shown_rows = rows if print_all else rows[-limit:] if by_period else rows[:limit]
    window = (
        question.window if length is None else length.extend_to_periods(question.window, now.date())
    )
    header_lines = [query_output.period_text(window)]
    if rows and not any(column.name == "rule" for column in grouped_by):
        header_lines += query_output.total_lines(rows, is_truncated=len(shown_rows) < len(rows))
    tail = query_output.json_tail(reader.read_counts)
    query_output.show_rows(shown_rows, rows, layout, output_options, tail, "\n".join(header_lines))


def _warn_history_begins_later(rows: Sequence[SumsRow], requested_start: date) -> None:
    first_day = min((row.first_day for row in rows if row.first_day), default=requested_start)
    if first_day > requested_start:
        print_message(f"the history has no audits of {requested_start} to {first_day - ONE_DAY}")


def _without_empty(rows: Sequence[SumsRow], length: PeriodLength) -> list[SumsRow]:
    # The newest row stays. Prints how many rows are left out.
    nonempty_rows = [row for row in rows if row.jobs or row.costliest_rule or row is rows[-1]]
    if empty_count := len(rows) - len(nonempty_rows):
        print_message(f"{count_text(empty_count, f'empty {length.value}')} not shown")
    return nonempty_rows


def _show_headline(
    rows: Sequence[SumsRow], length: PeriodLength, output_options: OutputOptions, today: date
) -> None:
    console = make_console(no_color=output_options.no_color)
    if rows:
        for line in _headline_lines(_newest(rows, today), length):
            console.print(Text(line, "bold"))
    amounts = [row.waste_usd for row in rows[-max(console.width - _LABEL_WIDTH, 1) :]]
    known_amounts = [value for value in amounts if value is not None]
    if any(known_amounts):
        bars = _bars(amounts, max(known_amounts), ascii_only=console.options.ascii_only)
        console.print(Text(f"{_TITLE}  {bars}  0 to {format_usd(max(known_amounts))}"))


def _bars(amounts: Sequence[Decimal | None], largest_amount: Decimal, *, ascii_only: bool) -> str:
    """Returns one character per amount, scaled from 0 to `largest_amount`."""
    blocks, gap = (_PLAIN_BLOCKS, _PLAIN_GAP) if ascii_only else (_BLOCKS, _GAP)
    last = len(blocks) - 1
    return "".join(
        gap if value is None else blocks[min(int(value / largest_amount * len(blocks)), last)]
        for value in amounts
    )


def _newest(rows: Sequence[SumsRow], today: date) -> SumsRow:
    """Returns the newest row, or the previous one if the newest period has just begun."""
    row = rows[-1]
    has_just_begun = row.first_day is not None and (today - row.first_day).days < _MIN_HEADLINE_DAYS
    return rows[-2] if has_just_begun and not row.over and len(rows) > 1 else row


def _headline_lines(row: SumsRow, length: PeriodLength) -> Iterator[str]:
    """Yields `2026-W46: $840.10 spent, 16% less than the week before`, then the same for waste."""
    row_amounts = cells.row_amounts(row)
    progress_text = "" if row.over else " so far"
    period_before = (
        f"the {length.value} before" if row.over else f"the same days of the {length.value} before"
    )
    spent_text = f"{row.period}{progress_text}: {row_amounts.spend} spent"
    amounts_before = cells.row_amounts(row.before) if row.before else UNKNOWN_AMOUNTS
    yield _compared_text(spent_text, row_amounts.spend, amounts_before.spend, period_before)
    yield _compared_text(
        f"{row_amounts.waste} avoidable or lost",
        row_amounts.waste,
        amounts_before.waste,
        period_before,
    )
    if row.projected_usd:
        yield f"at this rate {cells.projected_figure(row)} will be spent by {row.last_day}"


def _compared_text(text: str, current: Figure, previous: Figure, period_before: str) -> str:
    percent = percent_change_text(current, previous, places=0)
    if percent is None:
        return text
    size = percent.replace("+", "").replace("-", "")
    if size == "0%":
        return f"{text}, as much as {period_before}"
    return f"{text}, {size} {'less' if '-' in percent else 'more'} than {period_before}"
