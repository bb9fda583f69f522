"""`sageaudit by COLUMN[,COLUMN]`: sums by family, owner, week, ..., of all jobs or of some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal

import click
from rich.text import Text

from sageaudit.cli import asking, options
from sageaudit.cli.asking import Filters, HistoryOptions, Shown, filters
from sageaudit.cli.messages import say
from sageaudit.cli.views import cells, lists
from sageaudit.output.terminal.layout import console_for
from sageaudit.output.text.amounts import NO_AMOUNTS
from sageaudit.output.text.headline import judged_figure, judged_jobs
from sageaudit.output.text.money import Figure, percent_change, usd
from sageaudit.output.text.words import counted
from sageaudit.queries import by as sums
from sageaudit.queries.columns import columns_of
from sageaudit.queries.names import resolve
from sageaudit.queries.question import AMOUNTS, COUNTS, Sort
from sageaudit.queries.total import OF_RUNS, Total, together
from sageaudit.queries.window import ONE_DAY, Length

_LIMIT = 26
_BLOCKS = "▁▂▃▄▅▆▇█"
_GAP = "·"
_PLAIN_BLOCKS = "_.:-=+*#"
"""For outputs that take ASCII only, and so is the gap."""
_PLAIN_GAP = "?"
_YOUNG_DAYS = 2
"""Our choice: what began today or yesterday is not yet the news."""
_TITLE = "Avoidable+lost"
_BESIDE = 36
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
@filters(None, "30d; 56d by week, 180d by month")
@click.option(
    "--sort",
    type=options.EnumChoice(Sort, (*AMOUNTS, *COUNTS)),
    help="Order by these dollars, jobs or shares, the most first; waste is avoidable plus lost."
    "  [default: waste; periods in order of time]",
)
@asking.limit(_LIMIT)
@asking.ALL
@asking.WHERE
@asking.SHOWN
def by(
    columns: str,
    filters: Filters,
    sort: Sort | None,
    limit: int,
    every: bool,
    where: HistoryOptions,
    shown: Shown,
) -> None:
    """Adds up jobs by one or two columns, such as family or week.

    Weeks and months are whole: one that lasts stands beside as many days of the one before. Reads
    daily sums where these know columns and filters, else the audits.
    """
    now, names = asking.now(), columns_of(columns)
    length = sums.length_of(names)
    order = sort or Sort.NEWEST
    question = filters.question(now, order, sums.since_of(names))
    listing = lists.of_columns(names, order, median=question.family is not None)
    asked = {order.field, *(field.name for field in shown.of(listing))}
    with where.open() as opened:
        reader, question = resolve(opened.history, question)
        runs = not asked.isdisjoint(OF_RUNS)
        rows = sums.by(reader, question, names, today=now.date(), runs=runs)
        if not any(row.jobs or row.costliest_rule for row in rows):
            asking.say_nothing_found(reader, question)
    if length is not None:
        _say_begin(rows, length.whole(question.window, now.date()).first_day)
    in_time = length is not None and sort is None
    if shown.output == "table" and length is not None:
        if in_time and len(names) == 1:
            _show_news(rows, length, shown, now.date())
        rows = _without_empty(rows, length)
    some = rows if every else rows[-limit:] if in_time else rows[:limit]
    whole = question.window if length is None else length.whole(question.window, now.date())
    above = [asking.days_of(whole)]
    if rows and not any(column.name in {"rule", "usage_type"} for column in names):
        above += _all_together(rows, cut=len(some) < len(rows))
    asking.show_some(some, rows, listing, shown, reader.read, "\n".join(above))


def _all_together(rows: Sequence[Total], *, cut: bool) -> Iterator[str]:
    """The sums of all rows of a list that is cut, and how much of the spend was judged."""
    found = together(rows)
    figures = cells.amounts_of(found)
    if cut:
        yield (
            f"all {len(rows):,} rows: {counted(found.jobs, 'job')}, {figures.spend} spent,"
            f" {figures.waste} avoidable or lost"
        )
    judged = judged_figure(found.sums)
    yield f"{judged} of {figures.spend} judged: {judged_jobs(found.sums)}"


def _say_begin(rows: Sequence[Total], asked: date) -> None:
    """Says where the periods asked for begin before the history does."""
    first = min((row.first_day for row in rows if row.first_day), default=asked)
    if first > asked:
        say(f"no audit ended before {first}: nothing is known of {asked} to {first - ONE_DAY}")


def _without_empty(rows: Sequence[Total], length: Length) -> list[Total]:
    """The rows with jobs, and the newest."""
    kept = [row for row in rows if row.jobs or row.costliest_rule or row is rows[-1]]
    if empty := len(rows) - len(kept):
        say(f"{counted(empty, length.value)} without a job left out of the table")
    return kept


def _show_news(rows: Sequence[Total], length: Length, shown: Shown, today: date) -> None:
    """Prints the newest period's dollars with their change, then all periods in one line."""
    console = console_for(no_color=shown.no_color)
    if rows:
        for line in _news(_newest(rows, today), length):
            console.print(Text(line, "bold"))
    values = [row.waste_usd for row in rows[-max(console.width - _BESIDE, 1) :]]
    known = [value for value in values if value is not None]
    if any(known):
        drawn = _marks(values, max(known), ascii_only=console.options.ascii_only)
        console.print(Text(f"{_TITLE}  {drawn}  0 to {usd(max(known))}"))


def _marks(values: Sequence[Decimal | None], top: Decimal, *, ascii_only: bool) -> str:
    """One mark for each amount, from 0 to `top`."""
    blocks, gap = (_PLAIN_BLOCKS, _PLAIN_GAP) if ascii_only else (_BLOCKS, _GAP)
    last = len(blocks) - 1
    return "".join(
        gap if value is None else blocks[min(int(value / top * len(blocks)), last)]
        for value in values
    )


def _newest(rows: Sequence[Total], today: date) -> Total:
    """The newest period; the one before it while it is too young to tell anything."""
    row = rows[-1]
    begun = row.first_day is not None and (today - row.first_day).days < _YOUNG_DAYS
    return rows[-2] if begun and not row.over and len(rows) > 1 else row


def _news(row: Total, length: Length) -> Iterator[str]:
    """`2026-W46: $840.10 spent, 16% less than the week before`, and the same of the waste."""
    figures = cells.amounts_of(row)
    so_far = "" if row.over else " so far"
    before = f"the {length.value} before" if row.over else "in as many days before"
    spent = f"{row.period}{so_far}: {figures.spend} spent"
    then = cells.amounts_of(row.before) if row.before else NO_AMOUNTS
    yield _compared(spent, figures.spend, then.spend, before)
    yield _compared(f"{figures.waste} avoidable or lost", figures.waste, then.waste, before)
    if row.projected_usd:
        yield f"at this rate {cells.projected(row)} spent by {row.last_day}"


def _compared(said: str, now: Figure, then: Figure, before: str) -> str:
    percent = percent_change(now, then, places=0)
    if percent is None:
        return said
    shown = percent.replace("+", "").replace("-", "")
    if shown == "0%":
        return f"{said}, as much as {before}"
    return f"{said}, {shown} {'less' if '-' in percent else 'more'} than {before}"
