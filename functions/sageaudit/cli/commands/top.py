"""`sageaudit top`: the jobs with the most avoidable and lost dollars."""

from __future__ import annotations

import click

from sageaudit.cli import asking
from sageaudit.cli.asking import AuditFilterOptions, HistoryChoice, OutputOptions, filter_options
from sageaudit.cli.views import lists
from sageaudit.errors import BadUsage
from sageaudit.queries import answer
from sageaudit.queries.names import resolve
from sageaudit.queries.question import SortOrder

_EPILOG = """\b
Examples:
  sageaudit top
  sageaudit top --since 7d --limit 5 --owner ana
  sageaudit top --sort idle --table sageaudit-history --output markdown"""


@click.command(epilog=_EPILOG)
@filter_options()
@asking.AMOUNT_SORT_OPTION
@asking.limit_option(10)
@asking.HISTORY_OPTIONS
@asking.OUTPUT_OPTIONS
def top(
    filters: AuditFilterOptions,
    sort: SortOrder,
    limit: int,
    where: HistoryChoice,
    shown: OutputOptions,
) -> None:
    """Ranks jobs by their avoidable and lost dollars.

    Daily sums say in which families to look first. Jobs without such dollars are left out.
    """
    question = filters.question(asking.utc_now(), sort)
    if question.rule is not None:
        raise BadUsage(
            "top ranks jobs, not findings: `sageaudit history --rule RULE --sort waste` ranks those"
        )
    listing = lists.with_sort_column(lists.MOST_WASTEFUL, question.sort)
    shown.chosen_fields(listing)
    with where.open() as opened:
        reader, question = resolve(opened.history, question)
        page = answer.first_page(reader, question, limit, only_above_zero=True)
        days = asking.period_text(question.window)
        if not shown.write_rows(page.rows, listing, asking.json_tail(reader.read_counts), days):
            asking.explain_empty_result(reader, question)
    asking.explain_rollups(page.rollup_kinds)
