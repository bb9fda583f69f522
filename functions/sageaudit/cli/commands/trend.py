"""`sageaudit trend`: dollars by week or month, with the change against the period before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import click
from rich.text import Text

from sageaudit.cli import asking
from sageaudit.cli.asking import Shown, SumFilters, Where
from sageaudit.cli.exits import Exit
from sageaudit.cli.views import lists
from sageaudit.cli.views.layout import console_for
from sageaudit.queries import totals
from sageaudit.queries.lists import Reading
from sageaudit.queries.totals import Total, TrendPeriod
from sageaudit.text.money import usd
from sageaudit.text.sparkline import marks

_SINCE = {TrendPeriod.WEEK: "56d", TrendPeriod.MONTH: "180d"}
_EPILOG = """\b
Examples:
  sageaudit trend
  sageaudit trend --by month --family training/-/train.py/resnet
  sageaudit trend --rule gpu-idle --since 2026-09-01 --output csv"""


@click.command(epilog=_EPILOG)
@click.option(
    "--by",
    type=click.Choice([period.value for period in TrendPeriod]),
    default=TrendPeriod.WEEK.value,
    show_default=True,
    help="Length of a period: weeks begin on Monday; days are those of UTC.",
)
@asking.sum_filters(None, "56d for weeks, 180d for months")
@asking.RULE
@asking.WHERE
@asking.SHOWN
def trend(by: str, filters: SumFilters, rule: str | None, where: Where, shown: Shown) -> int:
    """Shows dollars by week or month, and how they changed.

    The change is that of avoidable plus lost dollars against the period before. A period that
    lasts is compared with as many days of the one before. Reads daily sums, not audits.
    """
    period, now, reading = TrendPeriod(by), asking.now(), Reading()
    filters = replace(filters, since=filters.since or _SINCE[period])
    days, wanted = filters.days(now), filters.wanted
    shown.of(lists.TREND)
    with where.open() as opened:
        rows = totals.trend(
            opened.history,
            days,
            wanted,
            period,
            reading,
            today=now.date(),
            rule=None if rule is None else asking.rule_named(rule),
        )
    if shown.output == "table":
        _sparkline(rows, shown)
    read = {"rows": 0, "sums": reading.sums}
    shown.write(rows, lists.TREND, lambda: {"cursor": None, "read": read})
    return int(Exit.DONE)


def _sparkline(rows: Sequence[Total], shown: Shown) -> None:
    console = console_for(no_color=shown.no_color)
    values = [row.waste_usd for row in rows]
    known = [value for value in values if value is not None]
    if any(known):
        drawn = marks(values, ascii_only=console.options.ascii_only)
        most = usd(max(known, default=Decimal(0)))
        console.print(Text(f"Avoidable+lost  {drawn}  up to {most}", "bold"))
