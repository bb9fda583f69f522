"""`sageaudit history`: lists audits, or the findings of one rule."""

from __future__ import annotations

import click

from sageaudit.cli import asking, options
from sageaudit.cli.asking import Filters, HistoryOptions, Shown, filters
from sageaudit.cli.messages import say
from sageaudit.cli.views import lists
from sageaudit.cli.views.formats import ListLayout
from sageaudit.queries import answer
from sageaudit.queries.answer import AnswerPage
from sageaudit.queries.names import resolve
from sageaudit.queries.question import AMOUNTS, TIMES, Question, Sort

_EPILOG = """\b
Examples:
  sageaudit history
  sageaudit history --since 2026-11-01 --owner ana --sort waste
  sageaudit history --status completed --sort waiting
  sageaudit history --rule gpu-idle --severity high --table sageaudit-history
  sageaudit history --all --output csv > audits.csv"""


@click.command(epilog=_EPILOG)
@filters()
@click.option(
    "--sort",
    type=options.EnumChoice(Sort, (Sort.NEWEST, *AMOUNTS, *TIMES)),
    default=Sort.NEWEST.value,
    show_default=True,
    help="Order: by end, or by dollars or time, the most first; waste is avoidable plus lost.",
)
@asking.limit(20)
@asking.ALL
@asking.WHERE
@asking.SHOWN
def history(
    filters: Filters, sort: Sort, limit: int, every: bool, where: HistoryOptions, shown: Shown
) -> None:
    """Lists audits, newest first, or the findings of a rule.

    A tuning job repeats the dollars of its training jobs, so its row has only those that it adds:
    the columns add up to the sums of the days.
    """
    question = filters.question(asking.now(), sort)
    listing = _listing(question)
    heads = not {field.name for field in shown.of(listing)} <= {*lists.FINDINGS.exported}
    with where.open() as opened:
        reader, question = resolve(opened.history, question)
        found = AnswerPage((), more=False)
        if not every:
            found = answer.page(reader, question, limit, with_heads=heads)
        rows = answer.all_rows(reader, question, with_heads=heads) if every else found.rows
        tail, days = asking.tail(reader.read, more=found.more), asking.days_of(question.window)
        count = shown.write(rows, listing, tail, days)
        if not count:
            asking.say_nothing_found(reader, question)
    asking.say_rollups(found.rollup_kinds)
    if found.more:
        say("there are more rows: --all prints all of them")


def _listing(question: Question) -> ListLayout:
    if question.rule is not None:
        return lists.FINDINGS
    return lists.by_amount(lists.AUDITS, question.sort)
