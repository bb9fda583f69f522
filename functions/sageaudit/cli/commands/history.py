"""`sageaudit history`: lists audits, or the findings of one rule."""

from __future__ import annotations

import click

from sageaudit.cli import asking, options
from sageaudit.cli.asking import AuditFilterOptions, HistoryChoice, OutputOptions, filter_options
from sageaudit.cli.messages import print_message
from sageaudit.cli.views import lists
from sageaudit.cli.views.formats import ListLayout
from sageaudit.queries import answer
from sageaudit.queries.answer import AnswerPage
from sageaudit.queries.names import resolve
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
    help="Order: by end, or by dollars or time, the most first; waste is avoidable plus lost.",
)
@asking.limit_option(20)
@asking.ALL_OPTION
@asking.HISTORY_OPTIONS
@asking.OUTPUT_OPTIONS
def history(
    filters: AuditFilterOptions,
    sort: SortOrder,
    limit: int,
    every: bool,
    where: HistoryChoice,
    shown: OutputOptions,
) -> None:
    """Lists audits, newest first, or the findings of a rule.

    A tuning job repeats the dollars of its training jobs, so its row has only those that it adds:
    the columns add up to the sums of the days.
    """
    question = filters.question(asking.utc_now(), sort)
    listing = _listing(question)
    heads = not {field.name for field in shown.chosen_fields(listing)} <= {
        *lists.FINDINGS.exported_fields
    }
    with where.open() as opened:
        reader, question = resolve(opened.history, question)
        found = AnswerPage((), has_more=False)
        if not every:
            found = answer.first_page(reader, question, limit, with_summaries=heads)
        rows = answer.iterate_rows(reader, question, with_summaries=heads) if every else found.rows
        tail, days = (
            asking.json_tail(reader.read_counts, has_more=found.has_more),
            asking.period_text(question.window),
        )
        count = shown.write_rows(rows, listing, tail, days)
        if not count:
            asking.explain_empty_result(reader, question)
    asking.explain_rollups(found.rollup_kinds)
    if found.has_more:
        print_message("there are more rows: --all prints all of them")


def _listing(question: Question) -> ListLayout:
    if question.rule is not None:
        return lists.FINDINGS
    return lists.with_sort_column(lists.AUDITS, question.sort)
