"""`sageaudit top`: the jobs with the most avoidable and lost dollars."""

from __future__ import annotations

import click

from sageaudit.cli import clock, query_options, query_output
from sageaudit.cli.query_options import (
    AuditFilterOptions,
    HistoryChoice,
    OutputOptions,
    filter_options,
)
from sageaudit.cli.views import lists
from sageaudit.errors import BadUsage
from sageaudit.queries import answer
from sageaudit.queries.names import resolve_question
from sageaudit.queries.question import SortOrder

_EPILOG = """\b
Examples:
  sageaudit top
  sageaudit top --since 7d --limit 5 --owner ana
  sageaudit top --sort idle --table sageaudit-history --output markdown"""


@click.command(epilog=_EPILOG)
@filter_options()
@query_options.AMOUNT_SORT_OPTION
@query_options.limit_option(10)
@query_options.HISTORY_OPTIONS
@query_options.output_options(lists.MOST_WASTEFUL)
def top(
    filters: AuditFilterOptions,
    sort: SortOrder,
    limit: int,
    history_choice: HistoryChoice,
    output_options: OutputOptions,
) -> None:
    """Ranks jobs by their avoidable and lost dollars.

    Jobs without such dollars are left out.
    """
    question = filters.question(clock.utc_now(), sort)
    if question.rule is not None:
        raise BadUsage(
            "top ranks jobs, not findings: `sageaudit history --rule RULE --sort waste` ranks those"
        )
    layout = lists.with_sort_column(lists.MOST_WASTEFUL, question.sort)
    output_options.chosen_fields(layout)
    with history_choice.open() as source:
        reader, question = resolve_question(source.history, question)
        page = answer.first_page(reader, question, limit, only_above_zero=True)
        days = query_output.period_text(question.window)
        if not output_options.write_rows(
            page.rows, layout, query_output.json_tail(reader.read_counts), days
        ):
            query_output.explain_empty_result(reader, question)
    query_output.explain_rollups(page.rollup_kinds)
