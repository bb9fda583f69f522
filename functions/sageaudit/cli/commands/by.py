"""`sageaudit by COLUMN[,COLUMN]`: sums by family, owner, week, ..., of all jobs or of some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal

import click
from rich.text import Text

from sageaudit.cli import asking, options
from sageaudit.cli.asking import AuditFilterOptions, HistoryChoice, OutputOptions, filter_options
from sageaudit.cli.messages import print_message
from sageaudit.cli.views import cells, lists
from sageaudit.output.terminal.layout import make_console
from sageaudit.output.text.amounts import UNKNOWN_AMOUNTS
from sageaudit.output.text.headline import judged_figure, judged_jobs
from sageaudit.output.text.money import Figure, format_usd, percent_change_text
from sageaudit.output.text.words import count_text
from sageaudit.queries import by as sums
from sageaudit.queries.columns import parse_columns
from sageaudit.queries.names import resolve
from sageaudit.queries.question import AMOUNT_SORTS, COUNT_SORTS, SortOrder
from sageaudit.queries.total import RUN_FIELDS, SumsRow, combine
from sageaudit.queries.window import ONE_DAY, PeriodLength

_LIMIT = 26
_BLOCKS = "▁▂▃▄▅▆▇█"
_GAP = "·"
_PLAIN_BLOCKS = "_.:-=+*#"
"""For outputs that take ASCII only, and so is the gap."""
_PLAIN_GAP = "?"
_YOUNG_DAYS = 2
"""Our choice: what began today or yesterday is not yet the news."""
_TITLE = "Avoidable+lost"
_LABEL_WIDTH = 36
"""Columns for the title and the largest amount; the marks of older periods are left out."""
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
@click.argument("columns", metavar="COLUMN[,COLUMN]")
@filter_options(None, "30d; 56d by week, 180d by month")
@click.option(
    "--sort",
    type=options.EnumChoice(SortOrder, (*AMOUNT_SORTS, *COUNT_SORTS)),
    help="Order by these dollars, jobs or shares, the most first; waste is avoidable plus lost."
    "  [default: waste; periods in order of time]",
)
@asking.limit_option(_LIMIT)
@asking.ALL_OPTION
@asking.HISTORY_OPTIONS
@asking.OUTPUT_OPTIONS
def by(
    columns: str,
    filters: AuditFilterOptions,
    sort: SortOrder | None,
    limit: int,
    every: bool,
    where: HistoryChoice,
    shown: OutputOptions,
) -> None:
    """Adds up jobs by one or two columns, such as family or week.

    Weeks and months are whole: one that lasts stands beside as many days of the one before. Reads
    daily sums where these know columns and filters, else the audits.
    """
    now, names = asking.utc_now(), parse_columns(columns)
    length = sums.period_length(names)
    order = sort or SortOrder.NEWEST
    question = filters.question(now, order, sums.default_since(names))
    listing = lists.sums_layout(names, order, with_median=question.family is not None)
    asked = {order.field, *(field.name for field in shown.chosen_fields(listing))}
    with where.open() as opened:
        reader, question = resolve(opened.history, question)
        runs = not asked.isdisjoint(RUN_FIELDS)
        rows = sums.sum_by(reader, question, names, today=now.date(), read_runs=runs)
        if not any(row.jobs or row.costliest_rule for row in rows):
            asking.explain_empty_result(reader, question)
    if length is not None:
        _warn_history_begins_later(
            rows, length.extend_to_periods(question.window, now.date()).first_day
        )
    in_time = length is not None and sort is None
    if shown.output == "table" and length is not None:
        if in_time and len(names) == 1:
            _show_news(rows, length, shown, now.date())
        rows = _without_empty(rows, length)
    some = rows if every else rows[-limit:] if in_time else rows[:limit]
    whole = (
        question.window if length is None else length.extend_to_periods(question.window, now.date())
    )
    above = [asking.period_text(whole)]
    if rows and not any(column.name in {"rule", "usage_type"} for column in names):
        above += _total_lines(rows, is_truncated=len(some) < len(rows))
    asking.show_rows(some, rows, listing, shown, reader.read_counts, "\n".join(above))


def _total_lines(rows: Sequence[SumsRow], *, is_truncated: bool) -> Iterator[str]:
    """The sums of all rows of a list that is cut, and how much of the spend was judged."""
    found = combine(rows)
    figures = cells.row_amounts(found)
    if is_truncated:
        yield (
            f"all {len(rows):,} rows: {count_text(found.jobs, 'job')}, {figures.spend} spent,"
            f" {figures.waste} avoidable or lost"
        )
    judged = judged_figure(found.sums)
    yield f"{judged} of {figures.spend} judged: {judged_jobs(found.sums)}"


def _warn_history_begins_later(rows: Sequence[SumsRow], requested_start: date) -> None:
    """Says where the periods asked for begin before the history does."""
    first = min((row.first_day for row in rows if row.first_day), default=requested_start)
    if first > requested_start:
        print_message(
            f"no audit ended before {first}: nothing is known of {requested_start} to"
            f" {first - ONE_DAY}"
        )


def _without_empty(rows: Sequence[SumsRow], length: PeriodLength) -> list[SumsRow]:
    """The rows with jobs, and the newest."""
    kept = [row for row in rows if row.jobs or row.costliest_rule or row is rows[-1]]
    if empty := len(rows) - len(kept):
        print_message(f"{count_text(empty, length.value)} without a job left out of the table")
    return kept


def _show_news(
    rows: Sequence[SumsRow], length: PeriodLength, shown: OutputOptions, today: date
) -> None:
    """Prints the newest period's dollars with their change, then all periods in one line."""
    console = make_console(no_color=shown.no_color)
    if rows:
        for line in _news(_newest(rows, today), length):
            console.print(Text(line, "bold"))
    values = [row.waste_usd for row in rows[-max(console.width - _LABEL_WIDTH, 1) :]]
    known = [value for value in values if value is not None]
    if any(known):
        drawn = _marks(values, max(known), ascii_only=console.options.ascii_only)
        console.print(Text(f"{_TITLE}  {drawn}  0 to {format_usd(max(known))}"))


def _marks(values: Sequence[Decimal | None], top: Decimal, *, ascii_only: bool) -> str:
    """One mark for each amount, from 0 to `top`."""
    blocks, gap = (_PLAIN_BLOCKS, _PLAIN_GAP) if ascii_only else (_BLOCKS, _GAP)
    last = len(blocks) - 1
    return "".join(
        gap if value is None else blocks[min(int(value / top * len(blocks)), last)]
        for value in values
    )


def _newest(rows: Sequence[SumsRow], today: date) -> SumsRow:
    """The newest period; the one before it while it is too young to tell anything."""
    row = rows[-1]
    begun = row.first_day is not None and (today - row.first_day).days < _YOUNG_DAYS
    return rows[-2] if begun and not row.over and len(rows) > 1 else row


def _news(row: SumsRow, length: PeriodLength) -> Iterator[str]:
    """`2026-W46: $840.10 spent, 16% less than the week before`, and the same of the waste."""
    figures = cells.row_amounts(row)
    so_far = "" if row.over else " so far"
    before = f"the {length.value} before" if row.over else "in as many days before"
    spent = f"{row.period}{so_far}: {figures.spend} spent"
    then = cells.row_amounts(row.before) if row.before else UNKNOWN_AMOUNTS
    yield _compared_text(spent, figures.spend, then.spend, before)
    yield _compared_text(f"{figures.waste} avoidable or lost", figures.waste, then.waste, before)
    if row.projected_usd:
        yield f"at this rate {cells.projected_figure(row)} spent by {row.last_day}"


def _compared_text(said: str, now: Figure, then: Figure, before: str) -> str:
    percent = percent_change_text(now, then, places=0)
    if percent is None:
        return said
    shown = percent.replace("+", "").replace("-", "")
    if shown == "0%":
        return f"{said}, as much as {before}"
    return f"{said}, {shown} {'less' if '-' in percent else 'more'} than {before}"
