"""`sageaudit savings`: what advices that were followed saved, by the bills before and after."""

from __future__ import annotations

import click
from msgspec.structs import asdict

from sageaudit.cli import advices, asking
from sageaudit.cli.advices import FILTERS, AdviceFilters
from sageaudit.cli.asking import HistoryOptions, Shown
from sageaudit.cli.messages import say
from sageaudit.domain.advice.advice import MEASURED
from sageaudit.output.text.money import NEAREST, Figure, usd
from sageaudit.output.text.words import counted

_EPILOG = """\b
Examples:
  sageaudit savings
  sageaudit savings --since 365d --owner ana
  sageaudit savings --output json --table NAME"""


@click.command(epilog=_EPILOG)
@FILTERS
@asking.WHERE
@asking.SHOWN
def savings(filters: AdviceFilters, where: HistoryOptions, shown: Shown) -> None:
    """Compares what followed advice was to save with what it saved.

    Measured are the medians of the bills of three runs before and after, times the runs since. If
    the change was undone, it is listed as ended, with what it saved until then.
    What is predicted, and what cannot be compared, is in no sum with it. With --table, what
    sageaudit itself cost is estimated beside them.
    """
    shown.of(advices.SAVINGS)
    with where.open() as opened:
        found = filters.advices(opened, asking.now())
        own_usd = filters.own_cost_usd(opened, asking.now())
    rows = advices.outcomes_of(found)
    sums = advices.savings_of(rows)
    shown.write(
        rows,
        advices.SAVINGS,
        lambda: {
            "sums": {state: asdict(row) for state, row in sums.items()},
            "own_cost_usd": own_usd,
        },
        filters.days,
    )
    if not rows:
        say(f"no advice was followed since {filters.since}")
    for state, row in sums.items():
        if row.advices:
            claimed = state in {MEASURED, advices.ENDED}
            measured = f", measured {usd(row.measured_usd)}" if claimed else ""
            predicted = f"predicted {usd(row.predicted_usd)}"
            say(f"{state}: {counted(row.advices, 'advice')}, {predicted}{measured}")
    if own_usd is not None:
        cost = Figure(own_usd, estimated=True, rough=NEAREST)
        say(f"sageaudit itself cost {cost} at list prices; its tag in Cost Explorer has the bill")
