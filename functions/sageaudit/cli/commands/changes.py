"""`sageaudit changes`: families (or teams) that cost more or less, are new, returned or gone."""

from __future__ import annotations

from datetime import datetime

import click

from sageaudit.adapters.history.opened import HistorySource
from sageaudit.cli import clock, query_options, query_output
from sageaudit.cli.messages import print_message
from sageaudit.cli.query_options import (
    AuditFilterOptions,
    HistoryChoice,
    OutputOptions,
    filter_options,
)
from sageaudit.cli.recommendations import RecommendationFilters
from sageaudit.cli.views import lists
from sageaudit.errors import BadUsage
from sageaudit.output.text.notes import recommendations_text
from sageaudit.queries.changes import SpendChange, find_changes, window_before
from sageaudit.queries.columns import parse_columns
from sageaudit.queries.names import resolve_question
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
    shell_complete=query_options.complete_columns(1),
    help="Column of `sageaudit by` whose values are compared, such as team.",
)
@click.option(
    "--advice",
    "with_recommendations",
    is_flag=True,
    help="Also print the state of recommendations for these families; reads their runs of 180"
    " days.",
)
@query_options.limit_option(20)
@query_options.ALL_OPTION
@query_options.HISTORY_OPTIONS
@query_options.output_options(lists.CHANGES)
def changes(
    filters: AuditFilterOptions,
    columns: str,
    with_recommendations: bool,
    limit: int,
    print_all: bool,
    history_choice: HistoryChoice,
    output_options: OutputOptions,
) -> None:
    """Compares the spend of families, or teams, with the days before.

    The largest change is first. Without --until, the days end with yesterday, since today is not
    over, or with the week or month that --since names. If the history does not cover the days
    before, only families that have no jobs any more are marked.
    """
    now = clock.utc_now()
    question = filters.question(now, with_today=False)
    [column, *other_columns] = parse_columns(columns)
    if other_columns:
        raise BadUsage(f"--by {columns}: give one column")
    if with_recommendations and column.name != "family":
        raise BadUsage("--advice is only for families: leave out --by")
    layout = lists.changes_layout(column, with_recommendations=with_recommendations)
    output_options.chosen_fields(layout)
    with history_choice.open() as source:
        reader, question = resolve_question(source.history, question)
        rows = find_changes(reader, question, column, today=now.date())
        shown_rows = rows if print_all else rows[:limit]
        if with_recommendations:
            shown_rows = [
                replace(row, recommendations=_recommendations_text(source, row, question, now))
                for row in shown_rows
            ]
        if not rows:
            query_output.explain_empty_result(reader, question)
    if rows and rows[0].jobs_before is None:
        before = window_before(question.window).text
        print_message(
            f"the history does not cover {before}, so new and changed families are not marked"
        )
    before_text = window_before(question.window).text
    header = f"Ended {question.window.text} (UTC), compared with {before_text}"
    tail = query_output.json_tail(reader.read_counts)
    query_output.show_rows(shown_rows, rows, layout, output_options, tail, header)


def _recommendations_text(
    source: HistorySource, row: SpendChange, question: Question, now: datetime
) -> str:
    """Returns the states of a family's recommendations of the last 180 days."""
    filters = RecommendationFilters(
        family=row.name, account=question.account, region=question.region
    )
    return recommendations_text(filters.find_recommendations(source, now))
