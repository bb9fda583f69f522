"""`sageaudit owners`: owners by their avoidable and lost dollars, from daily sums."""

from __future__ import annotations

import click

from sageaudit.cli.support.history import asking, lists
from sageaudit.cli.support.history.asking import HistoryOptions, Shown, SumFilters
from sageaudit.queries import totals
from sageaudit.queries.lists import Lists
from sageaudit.queries.question import Sort

_EPILOG = """\b
Examples:
  sageaudit owners
  sageaudit owners --since 2026-11-01 --until 2026-11-30 --sort total
  sageaudit owners --account 111122223333 --table sageaudit-history --output csv"""


@click.command(epilog=_EPILOG)
@asking.sum_filters()
@asking.SORT_AMOUNTS
@asking.limit(20)
@asking.ALL
@asking.WHERE
@asking.SHOWN
def owners(
    filters: SumFilters, sort: Sort, limit: int, every: bool, where: HistoryOptions, shown: Shown
) -> None:
    """Ranks owners by the avoidable and lost dollars of their jobs.

    Reads daily sums, not audits: the cost of the question does not grow with the number of jobs.
    """
    listing = lists.by_amount(lists.OWNERS, sort)
    shown.of(listing)
    days = filters.days(asking.now())
    with where.open() as opened:
        reader = Lists(opened.history, days)
        found = totals.owners(reader, filters.wanted)
    ranked = totals.ranked(found, sort)
    asking.show_totals(ranked, None if every else limit, listing, shown, reader.read)
