"""`sageaudit families`: families by their avoidable and lost dollars, from daily sums."""

from __future__ import annotations

import click

from sageaudit.cli.support.history import asking, lists
from sageaudit.cli.support.history.asking import HistoryOptions, Shown, SumFilters
from sageaudit.queries import totals
from sageaudit.queries.lists import Lists
from sageaudit.queries.question import Sort

_EPILOG = """\b
Examples:
  sageaudit families
  sageaudit families --since 2026-11-01 --until 2026-11-30 --sort total
  sageaudit families --account 111122223333 --table sageaudit-history --output csv"""


@click.command(epilog=_EPILOG)
@asking.sum_filters()
@asking.SORT_AMOUNTS
@asking.limit(20)
@asking.ALL
@asking.WHERE
@asking.SHOWN
def families(
    filters: SumFilters, sort: Sort, limit: int, every: bool, where: HistoryOptions, shown: Shown
) -> None:
    """Ranks families by their avoidable and lost dollars.

    Reads daily sums, not audits: the cost of the question does not grow with the number of jobs.
    """
    shown.of(lists.FAMILIES)
    days = filters.days(asking.now())
    with where.open() as opened:
        reader = Lists(opened.history, days)
        found = totals.families(reader, filters.wanted)
    ranked = totals.ranked(found, sort)
    listing = lists.by_amount(lists.of_families(ranked), sort)
    asking.show_totals(ranked, None if every else limit, listing, shown, reader.read)
