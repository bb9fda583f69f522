"""`sageaudit changes`: families (or teams, ...) dearer, cheaper, new, back or gone."""

from __future__ import annotations

from datetime import datetime

import click

from sageaudit.adapters.history.opened import HistorySource
from sageaudit.cli import asking
from sageaudit.cli.advices import AdviceFilters
from sageaudit.cli.asking import Filters, HistoryOptions, Shown, filters
from sageaudit.cli.messages import say
from sageaudit.cli.views import lists
from sageaudit.errors import BadUsage
from sageaudit.output.text.notes import advice_words
from sageaudit.queries.changes import SpendChange, window_before
from sageaudit.queries.changes import changes as changes_of
from sageaudit.queries.columns import columns_of
from sageaudit.queries.names import resolve
from sageaudit.queries.question import Question
from sageaudit.structs import replace

_EPILOG = """\b
Examples:
  sageaudit changes
  sageaudit changes --since 30d --owner ana
  sageaudit changes --by team
  sageaudit changes --advice
  sageaudit changes --since 2026-11-01 --until 2026-11-15 --output csv"""


@click.command(epilog=_EPILOG)
@filters("7d")
@click.option(
    "--by",
    "columns",
    metavar="COLUMN",
    default="family",
    show_default=True,
    help="What is compared: a column of `sageaudit by`, such as team.",
)
@click.option(
    "--advice",
    is_flag=True,
    help="Also say what became of advice to these families: reads their runs of 180 days.",
)
@asking.limit(20)
@asking.ALL
@asking.WHERE
@asking.SHOWN
def changes(
    filters: Filters,
    columns: str,
    advice: bool,
    limit: int,
    every: bool,
    where: HistoryOptions,
    shown: Shown,
) -> None:
    """Compares the spend of families, or teams, with the days before.

    The largest change is first. Without --until the days end with yesterday, since today is not
    over, or with the week or month that --since names. Nothing is new or gone where the history
    does not cover the days before.
    """
    now = asking.now()
    question = filters.question(now, with_today=False)
    [column, *more] = columns_of(columns)
    if more:
        raise BadUsage(f"--by {columns}: changes are by one column")
    if advice and column.name != "family":
        raise BadUsage("--advice is to families: leave out --by")
    listing = lists.of_changes(column, advice=advice)
    shown.of(listing)
    with where.open() as opened:
        reader, question = resolve(opened.history, question)
        rows = changes_of(reader, question, column, today=now.date())
        some = rows if every else rows[:limit]
        if advice:
            some = [replace(row, advice=_advised(opened, row, question, now)) for row in some]
        if not rows:
            asking.say_nothing_found(reader, question)
    if rows and rows[0].jobs_before is None:
        before = window_before(question.window).words
        say(f"the history does not cover {before}: only what is gone since is known")
    days = f"{asking.days_of(question.window)}, before: {window_before(question.window).words}"
    asking.show_some(some, rows, listing, shown, reader.read, days)


def _advised(opened: HistorySource, row: SpendChange, question: Question, now: datetime) -> str:
    """What a family was advised in the last 180 days."""
    of_family = AdviceFilters(family=row.name, account=question.account, region=question.region)
    return advice_words(of_family.advices(opened, now))
