"""`sageaudit trend`: dollars by week or month, with the change against the period before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click
from rich.text import Text

from sageaudit.cli import options
from sageaudit.cli.messages import say
from sageaudit.cli.support.history import asking, lists
from sageaudit.cli.support.history.asking import HistoryOptions, Shown, SumFilters
from sageaudit.output.terminal.layout import console_for
from sageaudit.output.text.money import usd
from sageaudit.output.text.sparkline import marks
from sageaudit.output.text.words import counted
from sageaudit.queries import totals
from sageaudit.queries.lists import Lists
from sageaudit.queries.totals import Total, TrendPeriod

_SINCE = {TrendPeriod.WEEK: "56d", TrendPeriod.MONTH: "180d"}
_TITLE = "Avoidable+lost"
_BESIDE = 36
"""Columns for the title and the largest amount; the marks of older periods are left out."""
_EPILOG = """\b
Examples:
  sageaudit trend
  sageaudit trend --by month --family training/-/train.py/resnet
  sageaudit trend --rule gpu-idle --since 2026-09-01 --output csv"""


@click.command(epilog=_EPILOG)
@click.option(
    "--by",
    type=options.EnumChoice(TrendPeriod),
    default=TrendPeriod.WEEK.value,
    show_default=True,
    help="Length of a period: weeks begin on Monday; days are those of UTC.",
)
@asking.sum_filters(None, "56d for weeks, 180d for months")
@asking.RULE
@asking.limit(26)
@asking.ALL
@asking.WHERE
@asking.SHOWN
def trend(
    by: TrendPeriod,
    filters: SumFilters,
    rule: str | None,
    limit: int,
    every: bool,
    where: HistoryOptions,
    shown: Shown,
) -> None:
    """Shows dollars by week or month, and how they changed.

    The change is that of avoidable plus lost dollars against the period before. A period that is
    not over is compared with as many days of the one before. Of many periods, the newest are
    printed. Reads daily sums, not audits.
    """
    now = asking.now()
    if filters.since is None:
        filters = replace(filters, since=_SINCE[by])
    days, wanted = filters.days(now), filters.wanted
    shown.of(lists.TREND)
    with where.open() as opened:
        reader = Lists(opened.history, days)
        rows = totals.trend(
            reader,
            by,
            wanted,
            today=now.date(),
            rule=None if rule is None else asking.rule_named(rule),
        )
    if shown.output == "table":
        _news(rows, by, shown)
    kept = rows
    if shown.output == "table":  # without the periods that have no jobs, but for the newest
        kept = [row for row in rows if row.jobs or row.unauditable or row is rows[-1]]
    newest = kept if every else kept[-limit:]
    shown.write(newest, lists.TREND, asking.tail(reader.read))
    if empty := len(rows) - len(kept):
        say(f"{counted(empty, by.value)} without a job left out of the table")
    if len(newest) < len(kept):
        say(f"the newest {len(newest):,} of {len(kept):,} rows: --all prints all of them")


def _news(rows: Sequence[Total], period: TrendPeriod, shown: Shown) -> None:
    """Prints the newest period's dollars with their change, then all periods in one line."""
    console = console_for(no_color=shown.no_color)
    if rows:
        console.print(Text(_newest(rows[-1], period), "bold"))
    values = [row.waste_usd for row in rows[-max(console.width - _BESIDE, 1) :]]
    known = [value for value in values if value is not None]
    if any(known):
        drawn = marks(values, ascii_only=console.options.ascii_only)
        console.print(Text(f"{_TITLE}  {drawn}  0 to {usd(max(known))}"))


def _newest(row: Total, period: TrendPeriod) -> str:
    """`2026-W47 so far: $556.32 avoidable or lost, 21% less than the same days before`."""
    so_far = "" if row.over else " so far"
    said = f"{row.period}{so_far}: {lists.amounts_of(row).waste} avoidable or lost"
    if row.change_percent is None:
        return said
    percent = f"{abs(row.change_percent):,.0f}%"
    how = "more" if row.change_percent > 0 else "less"
    change = "as much as" if percent == "0%" else f"{percent} {how} than"
    before = f"the {period.value} before" if row.over else "the same days before"
    return f"{said}, {change} {before}"
