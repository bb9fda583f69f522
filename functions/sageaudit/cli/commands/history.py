"""`sageaudit history`: lists audits, or the findings of one rule."""

from __future__ import annotations

import click

from sageaudit.cli import clock, options, query_options, query_output
from sageaudit.cli.messages import print_message
from sageaudit.cli.query_options import (
    AuditFilterOptions,
    HistoryChoice,
    OutputOptions,
    filter_options,
)
from sageaudit.cli.views import lists
from sageaudit.cli.views.formats import ListLayout
from sageaudit.queries import answer
from sageaudit.queries.answer import AnswerPage
from sageaudit.queries.names import resolve_question
from sageaudit.queries.question import AMOUNT_SORTS, TIME_SORTS, Question, SortOrder

_EPILOG = """\b
Examples:
  sageaudit history
  sageaudit history --since 2026-11-01 --owner ana --sort waste
  sageaudit history --status completed --sort waiting
  sageaudit history --rule gpu-idle --severity high --table sageaudit-history
  sageaudit history --all --output csv > audits.csv"""


@click.command(epilog=_EPILOG)
@filter_options()
@click.option(
    "--sort",
    type=options.EnumChoice(SortOrder, (SortOrder.NEWEST, *AMOUNT_SORTS, *TIME_SORTS)),
    default=SortOrder.NEWEST.value,
    show_default=True,
    help="Sort by end, newest first, or by an amount or time, largest first; waste is avoidable"
    " plus lost.",
)
@query_options.limit_option(20)
@query_options.ALL_OPTION
@query_options.HISTORY_OPTIONS
@query_options.output_options(lists.AUDITS, lists.FINDINGS)
def history(
    filters: AuditFilterOptions,
    sort: SortOrder,
    limit: int,
    print_all: bool,
    history_choice: HistoryChoice,
    output_options: OutputOptions,
) -> None:
    """Lists audits, newest first, or the findings of a rule.

    The row of a tuning job leaves out the dollars of its training jobs, so that the columns add up
    to the daily sums.
    """
    question = filters.question(clock.utc_now(), sort)
    layout = _layout(question)
    with_summaries = not {field.name for field in output_options.chosen_fields(layout)} <= {
        *lists.FINDINGS.exported_fields
    }
    with history_choice.open() as source:
        reader, question = resolve_question(source.history, question)
        page = AnswerPage((), has_more=False)
        if not print_all:
            page = answer.first_page(reader, question, limit, with_summaries=with_summaries)
        rows = (
            answer.iterate_rows(reader, question, with_summaries=with_summaries)
            if print_all
            else page.rows
        )
        tail = query_output.json_tail(reader.read_counts, has_more=page.has_more)
        header = query_output.period_text(question.window)
        if not output_options.write_rows(rows, layout, tail, header):
            query_output.explain_empty_result(reader, question)
    query_output.explain_rollups(page.rollup_kinds)
    if page.has_more:
        print_message("there are more rows: --all prints all of them")


def _layout(question: Question) -> ListLayout:
    if question.rule is not None:
        return lists.FINDINGS
    return lists.with_sort_column(lists.AUDITS, question.sort)
