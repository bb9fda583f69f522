"""`sageaudit budgets`: the monthly budgets of the policy, and what was spent of them."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

import click

from sageaudit.cli import clock, options, query_options, query_output
from sageaudit.cli.messages import print_message
from sageaudit.cli.query_options import HistoryChoice, OutputOptions
from sageaudit.cli.views import lists
from sageaudit.domain.budget import (
    MIN_PROJECTION_DAYS,
    BudgetMonth,
    BudgetState,
    last_day_of_month,
)
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadUsage
from sageaudit.output.text.budget import selector_text
from sageaudit.queries.budgets import covered_days, read_budget_months
from sageaudit.queries.lists import ReadCounts
from sageaudit.queries.window import FIRST_MOMENT, ONE_DAY, make_window

_MONTH = re.compile(r"\d{4}-\d\d", re.ASCII)
_LAST_MONTH = "last-month"
_EPILOG = """\b
Examples:
  sageaudit budgets --policy policy.toml
  sageaudit budgets --month last-month --policy policy.toml --table NAME
  sageaudit budgets --policy policy.toml --output csv > budgets.csv"""


@click.command(epilog=_EPILOG)
@click.option(
    "--month", metavar="YYYY-MM", help="The month (UTC), or last-month; by default the current one."
)
@options.POLICY_OPTION
@query_options.HISTORY_OPTIONS
@query_options.output_options(lists.BUDGETS)
def budgets(
    month: str | None,
    policy: Policy,
    history_choice: HistoryChoice,
    output_options: OutputOptions,
) -> None:
    """Lists budgets, and how much of each was spent.

    Budgets come from the policy. Spend is the sum of the bills of jobs that ended in the month, at
    list prices or the policy's own rates; it is not your invoice. A projection of the month needs
    five whole days.
    """
    now = clock.utc_now()
    day, today = _parse_month(month, now), now.date()
    output_options.chosen_fields(lists.BUDGETS)
    if not policy.budgets:
        raise BadUsage(
            "the policy has no budget: name its file with --policy policy.toml (also with --table,"
            " since a table does not store the policy), and add a [[budget]] with usd_per_month"
        )
    read_counts = ReadCounts()
    with history_choice.open() as source:
        covered = covered_days(
            source.history,
            day,
            today,
            source.installed_at(),
            is_deployment=source.is_table,
        )
        months = read_budget_months(source.history, policy.budgets, day, covered, read_counts)
    last_day = min(months[0].last_day, today)
    header = query_output.period_text(make_window(months[0].first_day, last_day + ONE_DAY))
    output_options.write_rows(months, lists.BUDGETS, query_output.json_tail(read_counts), header)
    if output_options.output == "table":
        _explain(months)
        if months[0].lacks_days:
            print_message(
                f"the newest audited job ended on {covered.until}: `sageaudit scan` audits later"
                " jobs"
            )


def _explain(months: list[BudgetMonth]) -> None:
    month = months[0]  # the history covers the same days for all
    if not month.is_over and month.finished_days < MIN_PROJECTION_DAYS:
        print_message(f"a projection needs {MIN_PROJECTION_DAYS} whole days of the month")
    if month.covered_since is None:
        print_message(f"the history has no audits of {month.label}")
    elif month.is_covered_in_part:
        print_message(f"the history has no audits before {month.covered_since}")
    for row in months:
        if row.state is BudgetState.NO_JOBS:
            jobs_text = f"job of {selector_text(row.budget)}" if row.budget.selector[0] else "job"
            print_message(f"no {jobs_text} ended in {row.label}")


def _parse_month(text: str | None, now: datetime) -> date:
    """Returns a day of the month. Raises BadUsage for another text, and for the future."""
    today = now.date()
    if text is None:
        return today
    if text == _LAST_MONTH:
        return today.replace(day=1) - timedelta(days=1)
    try:
        day = date.fromisoformat(f"{text}-01") if _MONTH.fullmatch(text) else None
    except ValueError:
        day = None
    if day is None:
        raise BadUsage(f"--month {text} is not a month: write 2026-08 or {_LAST_MONTH}")
    if day > today:
        raise BadUsage(f"--month {text} is in the future: this computer's date is {now:%Y-%m-%d}")
    if last_day_of_month(day) < FIRST_MOMENT.date():
        raise BadUsage(f"--month {text} is before the first SageMaker job, of {FIRST_MOMENT:%Y-%m}")
    return day
