"""`sageaudit top`: the jobs with the most avoidable and lost dollars."""

from __future__ import annotations

import click

from sageaudit.cli import asking
from sageaudit.cli.asking import Filters, HistoryOptions, Shown, filters
from sageaudit.cli.views import lists
from sageaudit.errors import BadUsage
from sageaudit.queries import answer
from sageaudit.queries.names import resolve
from sageaudit.queries.question import Sort

_EPILOG = """\b
Examples:
  sageaudit top
  sageaudit top --since 7d --limit 5 --owner ana
  sageaudit top --sort idle --table sageaudit-history --output markdown"""


@click.command(epilog=_EPILOG)
@filters()
@asking.SORT_AMOUNTS
@asking.limit(10)
@asking.WHERE
@asking.SHOWN
def top(filters: Filters, sort: Sort, limit: int, where: HistoryOptions, shown: Shown) -> None:
    """Ranks jobs by their avoidable and lost dollars.

    Daily sums say in which families to look first. Jobs without such dollars are left out.
    """
    question = filters.question(asking.now(), sort)
    if question.rule is not None:
        raise BadUsage(
            "top ranks jobs, not findings: `sageaudit history --rule RULE --sort waste` ranks those"
        )
    listing = lists.by_amount(lists.TOP, question.sort)
    shown.of(listing)
    with where.open() as opened:
        reader, question = resolve(opened.history, question)
        page = answer.page(reader, question, limit, above_zero=True)
        days = asking.days_of(question.window)
        if not shown.write(page.rows, listing, asking.tail(reader.read), days):
            asking.say_nothing_found(reader, question)
    asking.say_rollups(page.rollup_kinds)
