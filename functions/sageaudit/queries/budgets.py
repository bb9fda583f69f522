"""Reads the months of budgets from the daily sums of a history."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from itertools import islice

from sageaudit.domain.audit.sums import Scope, Sums, group_rows, tag_sum_name
from sageaudit.domain.budget import (
    BudgetMonth,
    CoveredDays,
    installation_day,
    last_day_of_month,
)
from sageaudit.domain.job.family import shared_name
from sageaudit.domain.policy.budgets import Budget
from sageaudit.ports import History
from sageaudit.queries.lists import HistoryLists, ReadCounts, audited_days, first_covered_day
from sageaudit.queries.question import Question
from sageaudit.queries.window import ONE_DAY, Window, make_window

MAX_FAMILY_ROWS = 20_000
"""The most daily sums of families that are read for a message: 650 families with jobs on every day
of the month. Our choice."""


def read_budget_month(
    history: History,
    budget: Budget,
    day: date,
    covered: CoveredDays,
    read_counts: ReadCounts | None = None,
) -> BudgetMonth:
    """Returns the budget's month that contains `day`. Raises AwsError.

    It reads only the daily sums of the budget's jobs: one request for each account with jobs in the
    month. `read_counts` counts them. If the history has left out anything that it cannot read, the
    month may lack jobs.
    """
    scope, name = _scope_and_name(budget)
    lists = HistoryLists(history, _month_window(day), read_counts or ReadCounts())
    rows = [*lists.daily_sums(scope, account=budget.account, name=name)]
    has_unreadable = bool(history.unreadable_items())
    return BudgetMonth.from_rows(budget, day, covered, rows, has_unreadable=has_unreadable)


def read_budget_months(
    history: History,
    budgets: Iterable[Budget],
    day: date,
    covered: CoveredDays,
    read_counts: ReadCounts | None = None,
) -> list[BudgetMonth]:
    """Returns the month that contains `day` for each budget, like `read_budget_month`."""
    return [read_budget_month(history, budget, day, covered, read_counts) for budget in budgets]


def covered_days(
    history: History,
    day: date,
    today: date,
    installed_at: datetime | None,
    *,
    is_deployment: bool = True,
) -> CoveredDays:
    """Returns the days that the history covers, as far as the month that contains `day` needs them.

    `installed_at`: the time of a deployment's installation; None if unknown. If that is before the
    month, the history is not asked. A deployment audits every job; a file, for which
    `is_deployment` is False, has the jobs up to the last scan, so it covers the days up to its
    newest job. Raises AwsError.
    """
    first_day, installed_on = day.replace(day=1), installation_day(installed_at)
    if installed_on is not None and installed_on <= first_day:
        return CoveredDays(first_day, today, today)
    window = _month_window(day)
    audited_day = first_covered_day(HistoryLists(history, window), Question(window), day)
    since = min(audited_day, installed_on or date.max)
    until = today
    if not is_deployment and (days := audited_days(history)) and days[-1] + ONE_DAY < today:
        until = days[-1]
    return CoveredDays(None if since == date.max else since, until, today)


def find_costliest_family(history: History, month: BudgetMonth) -> tuple[str, Sums] | None:
    """Returns the family with the most spend in the month, and its sums. Raises AwsError.

    Returns None for a budget of a family, an owner or a tag, since families have no daily sums by
    owner or tag; and if there are more than MAX_FAMILY_ROWS.
    """
    if month.budget.selector[0] not in {"", "account"}:
        return None
    lists = HistoryLists(history, _month_window(month.first_day))
    rows = [
        *islice(lists.daily_sums(Scope.FAMILY, account=month.budget.account), MAX_FAMILY_ROWS + 1)
    ]
    if len(rows) > MAX_FAMILY_ROWS:
        return None
    families = group_rows(
        (row for row in rows if row.name is not None), lambda row: shared_name(row.name or "")
    )
    return max(families.items(), key=lambda family: family[1].total_usd, default=None)


def _month_window(day: date) -> Window:
    return make_window(day.replace(day=1), last_day_of_month(day) + ONE_DAY)


def _scope_and_name(budget: Budget) -> tuple[Scope, str | None]:
    if budget.family is not None:
        return Scope.FAMILY, budget.family
    if budget.owner is not None:
        return Scope.OWNER, budget.owner
    if budget.tag is not None:
        return Scope.TAG, tag_sum_name(*budget.tag)
    return Scope.ACCOUNT, None
