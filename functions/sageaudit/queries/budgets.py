"""Reads the months of budgets from the daily sums of a history."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from sageaudit.domain.audit.sums import Scope, tag_sum_name
from sageaudit.domain.budget import BudgetMonth, last_day_of_month
from sageaudit.domain.policy.budgets import Budget
from sageaudit.ports import History
from sageaudit.queries.lists import HistoryLists, ReadCounts, first_covered_day
from sageaudit.queries.question import Question
from sageaudit.queries.window import ONE_DAY, make_window


def read_budget_month(
    history: History,
    budget: Budget,
    day: date,
    today: date,
    covered_since: date | None,
    read_counts: ReadCounts | None = None,
) -> BudgetMonth:
    """Returns the budget's month that contains `day`, as of `today`. Raises AwsError.

    `covered_since`: the first day that the history covers; None if it is not known. It reads only
    the daily sums of the budget's jobs: one request for each account with jobs in the month.
    `read_counts` counts them.
    """
    window = make_window(day.replace(day=1), last_day_of_month(day) + ONE_DAY)
    scope, name = _scope_and_name(budget)
    lists = HistoryLists(history, window, read_counts or ReadCounts())
    rows = lists.daily_sums(scope, account=budget.account, name=name)
    return BudgetMonth.from_rows(budget, day, today, covered_since, [*rows])


def read_budget_months(
    history: History,
    budgets: Iterable[Budget],
    day: date,
    today: date,
    read_counts: ReadCounts | None = None,
) -> list[BudgetMonth]:
    """Returns the month that contains `day` for each budget; reads nothing without a budget.

    The history's first audit says what it covers. `read_counts`: see `read_budget_month`.
    """
    listed = [*budgets]
    covered_day = covered_since(history, day, None) if listed else None
    return [
        read_budget_month(history, budget, day, today, covered_day, read_counts)
        for budget in listed
    ]


def covered_since(history: History, day: date, installed_on: date | None) -> date | None:
    """Returns a day from which on the history covers the month that contains `day`; None if none.

    If a deployment is older than the month, the history is not asked. `installed_on` is the day of
    its installation; None for a history without one.
    """
    first_day = day.replace(day=1)
    if installed_on is not None and installed_on <= first_day:
        return first_day
    window = make_window(first_day, last_day_of_month(day) + ONE_DAY)
    audited_day = first_covered_day(HistoryLists(history, window), Question(window), day)
    covered_day = min(audited_day, installed_on or date.max)
    return None if covered_day == date.max else covered_day


def _scope_and_name(budget: Budget) -> tuple[Scope, str | None]:
    if budget.family is not None:
        return Scope.FAMILY, budget.family
    if budget.owner is not None:
        return Scope.OWNER, budget.owner
    if budget.tag is not None:
        return Scope.TAG, tag_sum_name(*budget.tag)
    return Scope.ACCOUNT, None
