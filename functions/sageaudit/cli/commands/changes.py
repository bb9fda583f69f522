"""`sageaudit changes`: families (or teams) that cost more or less, are new, returned or gone."""

from __future__ import annotations

from datetime import datetime

import click

from sageaudit.adapters.history.opened import HistorySource
from sageaudit.cli import asking
from sageaudit.cli.asking import AuditFilterOptions, HistoryChoice, OutputOptions, filter_options
from sageaudit.cli.messages import print_message
from sageaudit.cli.recommendations import RecommendationFilters
from sageaudit.cli.views import lists
from sageaudit.errors import BadUsage
from sageaudit.output.text.notes import recommendations_text
from sageaudit.queries.changes import SpendChange, window_before
from sageaudit.queries.changes import find_changes as changes_of
from sageaudit.queries.columns import parse_columns
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
@filter_options("7d")
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
    "with_recommendations",
    is_flag=True,
    help="Also say what became of advice to these families: reads their runs of 180 days.",
)
@asking.limit_option(20)
@asking.ALL_OPTION
@asking.HISTORY_OPTIONS
@asking.OUTPUT_OPTIONS
def changes(
    filters: AuditFilterOptions,
    columns: str,
    with_recommendations: bool,
    limit: int,
    every: bool,
    where: HistoryChoice,
    shown: OutputOptions,
) -> None:
    """Compares the spend of families, or teams, with the days before.

    The largest change is first. Without --until the days end with yesterday, since today is not
    over, or with the week or month that --since names. Nothing is new or gone where the history
    does not cover the days before.
    """
    now = asking.utc_now()
    question = filters.question(now, with_today=False)
    [column, *more] = parse_columns(columns)
    if more:
        raise BadUsage(f"--by {columns}: changes are by one column")
    if with_recommendations and column.name != "family":
        raise BadUsage("--advice is to families: leave out --by")
    listing = lists.changes_layout(column, with_recommendations=with_recommendations)
    shown.chosen_fields(listing)
    with where.open() as opened:
        reader, question = resolve(opened.history, question)
        rows = changes_of(reader, question, column, today=now.date())
        some = rows if every else rows[:limit]
        if with_recommendations:
            some = [
                replace(row, recommendations=_recommendations_text(opened, row, question, now))
                for row in some
            ]
        if not rows:
            asking.explain_empty_result(reader, question)
    if rows and rows[0].jobs_before is None:
        before = window_before(question.window).text
        print_message(f"the history does not cover {before}: only what is gone since is known")
    days = f"{asking.period_text(question.window)}, before: {window_before(question.window).text}"
    asking.show_rows(some, rows, listing, shown, reader.read_counts, days)


def _recommendations_text(
    opened: HistorySource, row: SpendChange, question: Question, now: datetime
) -> str:
    """What a family was advised in the last 180 days."""
    of_family = RecommendationFilters(
        family=row.name, account=question.account, region=question.region
    )
    return recommendations_text(of_family.find_recommendations(opened, now))
