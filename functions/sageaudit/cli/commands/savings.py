"""`sageaudit savings`: what followed recommendations saved, by the bills before and after."""

from __future__ import annotations

import click
from msgspec.structs import asdict

from sageaudit.cli import clock, query_options, query_output, recommendations
from sageaudit.cli.messages import print_message
from sageaudit.cli.query_options import HistoryChoice, OutputOptions
from sageaudit.cli.recommendations import RECOMMENDATION_FILTER_OPTIONS, RecommendationFilters
from sageaudit.domain.advice.advice import MEASURED
from sageaudit.domain.money import format_usd
from sageaudit.output.text.money import ROUND_NEAREST, Figure
from sageaudit.output.text.words import count_text

_EPILOG = """\b
Examples:
  sageaudit savings
  sageaudit savings --since 365d --owner ana
  sageaudit savings --output json --table NAME"""


@click.command(epilog=_EPILOG)
@RECOMMENDATION_FILTER_OPTIONS
@query_options.limit_option(recommendations.DEFAULT_LIMIT)
@query_options.ALL_OPTION
@query_options.HISTORY_OPTIONS
@query_options.output_options(recommendations.SAVINGS)
def savings(
    filters: RecommendationFilters,
    limit: int,
    print_all: bool,
    history_choice: HistoryChoice,
    output_options: OutputOptions,
) -> None:
    """Compares predicted with measured savings of followed advice.

    A measured saving is the median bill of three runs before, minus that of three runs after, times
    the runs since. If the change was undone, the row says so, with what it saved until then. The
    sums below the list are of all rows. Predicted savings, and savings that cannot be compared, are
    never added to measured ones. With --table, the estimated cost of sageaudit itself is printed
    too.
    """
    output_options.chosen_fields(recommendations.SAVINGS)
    with history_choice.open() as source:
        matching = filters.find_recommendations(source, clock.utc_now())
        own_usd = filters.own_cost_usd(source, clock.utc_now())
    rows = recommendations.followed_with_outcomes(matching)
    sums = recommendations.sum_savings(rows)
    query_output.show_rows(
        rows if print_all else rows[:limit],
        rows,
        recommendations.SAVINGS,
        output_options,
        lambda: {
            "sums": {outcome: asdict(outcome_sums) for outcome, outcome_sums in sums.items()},
            "own_cost_usd": own_usd,
        },
        filters.days_text,
    )
    if not rows:
        print_message(f"no recommendation was followed since {filters.since}")
    for outcome, outcome_sums in sums.items():
        if outcome_sums.recommendations:
            is_measured = outcome in {MEASURED, recommendations.UNDONE}
            saved = f", {format_usd(outcome_sums.measured_usd)} saved" if is_measured else ""
            if outcome == recommendations.UNDONE:
                saved += " until then"
            print_message(
                f"{count_text(outcome_sums.recommendations, 'recommendation')} {outcome}: "
                f"{format_usd(outcome_sums.predicted_usd)} predicted{saved}"
            )
    if own_usd is not None:
        cost = Figure(own_usd, estimated=True, rounding=ROUND_NEAREST)
        print_message(
            f"sageaudit itself cost {cost} at list prices; filter Cost Explorer by its tag for the"
            " bill"
        )
