"""`sageaudit history`: lists audits, or the findings of one rule."""

from __future__ import annotations

import click

from sageaudit.cli import options
from sageaudit.cli.support.history import asking, lists
from sageaudit.cli.support.history.asking import HistoryOptions, Shown
from sageaudit.cli.support.history.filters import Filters, filters
from sageaudit.cli.support.history.formats import ListLayout
from sageaudit.errors import BadUsage
from sageaudit.queries import answer
from sageaudit.queries.cursor import cursor_of, read_cursor
from sageaudit.queries.lists import Lists
from sageaudit.queries.names import named
from sageaudit.queries.question import AMOUNTS, Question, Sort
from sageaudit.queries.rows import OF_A_FINDING

_EPILOG = """\b
Examples:
  sageaudit history
  sageaudit history --since 2026-11-01 --owner ana --sort waste
  sageaudit history --rule gpu-idle --severity high --table sageaudit-history
  sageaudit history --all --output csv > audits.csv"""


@click.command(epilog=_EPILOG)
@filters()
@click.option(
    "--sort",
    type=options.EnumChoice(Sort, (Sort.NEWEST, *AMOUNTS)),
    default=Sort.NEWEST.value,
    show_default=True,
    help="Order: by end, or by dollars, the most first; waste is avoidable plus lost.",
)
@asking.limit(20)
@asking.ALL
@click.option("--cursor", help="Continue after the rows of an earlier call, which printed this.")
@asking.WHERE
@asking.SHOWN
def history(
    filters: Filters,
    sort: Sort,
    limit: int,
    every: bool,
    cursor: str | None,
    where: HistoryOptions,
    shown: Shown,
) -> None:
    """Lists audits, newest first, or the findings of a rule.

    A tuning job repeats the dollars of its training jobs, so its row has only those that it adds:
    the columns add up to the sums of the days.
    """
    question = filters.question(asking.now(), sort)
    shown.of(_listing(question))
    if every and cursor:
        raise BadUsage("--all prints the rows from the first on: leave out --cursor")
    with where.open() as opened:
        reader = Lists(opened.history, question.window)
        question = named(reader, question)
        if every:
            _all(reader, question, shown)
        else:
            _page(reader, question, limit, cursor, shown)


def _page(reader: Lists, question: Question, limit: int, cursor: str | None, shown: Shown) -> None:
    after = None if cursor is None else read_cursor(question, cursor)
    heads = _needs_heads(question, shown)
    page = answer.page(reader, question, limit, after=after, with_heads=heads)
    days = asking.days_of(question.window)
    following = None if page.next is None else cursor_of(question, page.next)
    count = shown.write(page.rows, _listing(question), asking.tail(reader.read, following), days)
    _say(question, reader, count, rollups=any(row.rollup for row in page.rows))
    asking.say_next(following)


def _all(reader: Lists, question: Question, shown: Shown) -> None:
    rows = answer.all_rows(reader, question, with_heads=_needs_heads(question, shown))
    days = asking.days_of(question.window)
    count = shown.write(rows, _listing(question), asking.tail(reader.read), days)
    _say(question, reader, count, rollups=False)


def _listing(question: Question) -> ListLayout:
    if question.rule is not None:
        return lists.FINDINGS
    return lists.by_amount(lists.AUDITS, question.sort)


def _needs_heads(question: Question, shown: Shown) -> bool:
    """Whether a list of findings is asked for more than findings tell."""
    if question.rule is None:
        return False
    return not {field.name for field in shown.of(lists.FINDINGS)} <= OF_A_FINDING


def _say(question: Question, reader: Lists, count: int, *, rollups: bool) -> None:
    asking.say_read(question, reader.read, count)
    if not count:
        asking.say_nothing_found(reader, question)
    if rollups:
        asking.say_rollups()
