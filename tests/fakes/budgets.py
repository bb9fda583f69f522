"""Months of budgets, made from the spend of days; and daily sums that cannot be read."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from sageaudit.domain.audit.sums import Scope, SumRow, Sums
from sageaudit.domain.budget import BudgetMonth, CoveredDays
from sageaudit.domain.policy.budgets import Budget

ALL_JOBS = Budget("all jobs", Decimal(1000))
NOVEMBER = date(2026, 11, 1)


def day_sums(usd: float | None, **counts: Any) -> Sums:
    """Returns the sums of one job with this bill; None is an unknown one."""
    if usd is None:
        return Sums(jobs=1, unpriced=1, **counts)
    return Sums(jobs=1, total_usd=Decimal(str(usd)), **counts)


def month_of(
    usd_by_day: Mapping[int, float | None],
    *,
    today: date,
    budget: Budget = ALL_JOBS,
    covered_since: date | None = NOVEMBER,
    covered_until: date | None = None,
    **counts: Any,
) -> BudgetMonth:
    """Returns November 2026 with these bills, by day of the month.

    `covered_until` is None if the history lacks no newer jobs.
    """
    rows = [
        SumRow(
            Scope.ACCOUNT,
            "111122223333",
            "eu-west-1",
            None,
            NOVEMBER.replace(day=day),
            day_sums(usd, **counts),
        )
        for day, usd in usd_by_day.items()
    ]
    return BudgetMonth.from_rows(
        budget, NOVEMBER, CoveredDays(covered_since, covered_until or today, today), rows
    )


def spoil_sums(path: Path, scope: Scope) -> None:
    """Makes all daily sums of a scope unreadable, in a history file."""
    with closing(sqlite3.connect(path)) as sql, sql:
        sql.execute("UPDATE daily_sums SET jobs = 'many' WHERE scope = ?", (scope.value,))
