"""`sageaudit savings`: what followed recommendations saved, by the bills before and after."""

from __future__ import annotations

import click
from msgspec.structs import asdict

from sageaudit.cli import asking, recommendations
from sageaudit.cli.asking import HistoryChoice, OutputOptions
from sageaudit.cli.messages import print_message
from sageaudit.cli.recommendations import FILTERS, RecommendationFilters
from sageaudit.domain.advice.advice import MEASURED
from sageaudit.output.text.money import ROUND_NEAREST, Figure, format_usd
from sageaudit.output.text.words import count_text

_EPILOG = """\b
Examples:
  sageaudit savings
  sageaudit savings --since 365d --owner ana
  sageaudit savings --output json --table NAME"""


@click.command(epilog=_EPILOG)
@FILTERS
@asking.HISTORY_OPTIONS
@asking.OUTPUT_OPTIONS
def savings(filters: RecommendationFilters, where: HistoryChoice, shown: OutputOptions) -> None:
    """Compares what followed advice was to save with what it saved.

    Measured are the medians of the bills of three runs before and after, times the runs since. If
    the change was undone, it is listed as ended, with what it saved until then.
    What is predicted, and what cannot be compared, is in no sum with it. With --table, what
    sageaudit itself cost is estimated beside them.
    """
    shown.chosen_fields(recommendations.SAVINGS)
    with where.open() as opened:
        found = filters.find_recommendations(opened, asking.utc_now())
        own_usd = filters.own_cost_usd(opened, asking.utc_now())
    rows = recommendations.followed_with_outcomes(found)
    sums = recommendations.sum_savings(rows)
    shown.write_rows(
        rows,
        recommendations.SAVINGS,
        lambda: {
            "sums": {state: asdict(row) for state, row in sums.items()},
            "own_cost_usd": own_usd,
        },
        filters.days_text,
    )
    if not rows:
        print_message(f"no advice was followed since {filters.since}")
    for state, row in sums.items():
        if row.recommendations:
            claimed = state in {MEASURED, recommendations.ENDED}
            measured = f", measured {format_usd(row.measured_usd)}" if claimed else ""
            predicted = f"predicted {format_usd(row.predicted_usd)}"
            print_message(
                f"{state}: {count_text(row.recommendations, 'recommendation')}, "
                f"{predicted}{measured}"
            )
    if own_usd is not None:
        cost = Figure(own_usd, estimated=True, rounding=ROUND_NEAREST)
        print_message(
            f"sageaudit itself cost {cost} at list prices; its tag in Cost Explorer has the bill"
        )
