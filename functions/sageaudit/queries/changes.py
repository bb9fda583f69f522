"""Compares a window with the same number of days before it, by family or another column."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.bill_document import SpendQualifier, qualify_change
from sageaudit.domain.audit.sums import ChangedFamily, Sums
from sageaudit.domain.job.family import shared_name
from sageaudit.errors import BadUsage
from sageaudit.queries.by import column_values, sum_by
from sageaudit.queries.columns import GROUPABLE, Column
from sageaudit.queries.lists import HistoryLists, audited_days, first_covered_day
from sageaudit.queries.question import Question
from sageaudit.queries.total import SumsRow, combine
from sageaudit.queries.window import Window, make_window


class ChangeKind(enum.StrEnum):
    """How the spend of a family, a team or another value changed."""

    NEW = "new"
    """No job of the value ended earlier, in the whole history."""
    RETURNED = "returned"
    """No job of the value ended in the days before, but some jobs ended earlier."""
    GONE = "gone"
    INCREASED = "increased"
    DECREASED = "decreased"
    SAME = "same"


class SpendChange(SumsRow, frozen=True, kw_only=True):
    """The sums of one value of a column in a window, and in as many days before (`before`).

    `name` is the value; None for jobs without a value. If an amount is unknown, it and its change
    are None. If the history does not cover the days before, all amounts of those days are unknown.
    """

    name: Any
    change: ChangeKind | None
    recommendations: str | None = None
    """The states of the family's recommendations as text, with `--advice`."""

    @property
    def jobs_before(self) -> int | None:
        """The number of jobs that ended in the days before; None if unknown."""
        return self.before.jobs if self.before else None

    @property
    def spend_qualifier_before(self) -> SpendQualifier:
        """How exactly the spend of the days before is known."""
        return self.before.spend_qualifier if self.before else SpendQualifier.UNKNOWN

    @property
    def total_change_usd(self) -> Decimal | None:
        """The increase of the spend in USD."""
        return _difference(self.total_usd, self.total_before_usd)

    @property
    def waste_change_usd(self) -> Decimal | None:
        """The increase of avoidable plus lost dollars."""
        return _difference(self.waste_usd, self.waste_before_usd)

    @property
    def change_qualifier(self) -> SpendQualifier:
        """How exactly the size of the spend's change is known, whatever its sign."""
        has_fallen = (self.total_change_usd or 0) < 0
        return qualify_change(
            self.spend_qualifier, self.spend_qualifier_before, has_fallen=has_fallen
        )


def window_before(window: Window) -> Window:
    """Returns the window of the same length just before a window."""
    return Window(window.since - (window.until - window.since), window.since)


def is_covered_before(lists: HistoryLists, question: Question) -> bool:
    """Returns True if the history covers the same number of days before the question's window."""
    before = window_before(lists.window)
    wide_lists = lists.in_window(Window(before.since, lists.window.until))
    return first_covered_day(wide_lists, question, before.first_day) <= before.first_day


def find_changes(
    lists: HistoryLists,
    question: Question,
    column: Column,
    *,
    today: date,
    history_since: date | None = None,
) -> list[SpendChange]:
    """Returns the change of spend of each value of the column, the largest first.

    Tuning jobs whose names share a stem are one family. A value is new if no job since
    `history_since` had it; None searches the whole history. Raises BadUsage for a day, week or
    month.
    """
    if column.period_length:
        raise BadUsage(
            f"changes are not by {column.name}: `sageaudit by {column.name}` compares periods"
        )
    earlier_lists = lists.in_window(window_before(lists.window))
    is_covered = is_covered_before(lists, question)
    now, before = (
        _sums_by_name(lists_of_period, question, column, today)
        for lists_of_period in (lists, earlier_lists)
    )
    empty_row = SumsRow(sums=Sums(), is_usage_type=column is GROUPABLE["usage_type"])
    names = {*now, *(name for name, total in before.items() if is_covered or total.jobs)}
    seen_earlier: set[Any] = set()
    if is_covered and now.keys() - before:
        seen_earlier = _names_seen_earlier(earlier_lists, question, column, today, history_since)
    changes = []
    for name in names:
        total, total_before = now.get(name, empty_row), before.get(name, empty_row)
        row = SpendChange(
            **column_values([column], (name,)),
            name=name,
            change=_direction(
                total, total_before, was_seen_earlier=name in seen_earlier, is_covered=is_covered
            ),
            sums=total.sums,
            has_rule_dollars=total.has_rule_dollars,
            is_usage_type=total.is_usage_type,
            before=total_before if is_covered else None,
        )
        changes.append(row)
    return sorted(changes, key=_sort_key)


def changed_families(rows: Iterable[SpendChange]) -> list[ChangedFamily]:
    """Returns the families whose spend is known to have changed, in the same order."""
    return [
        ChangedFamily(
            family=row.name,
            change=row.change.value,
            change_usd=row.total_change_usd,
            sums=row.sums,
            previous_sums=row.before.sums if row.before else Sums(),
            qualifier=row.change_qualifier,
        )
        for row in rows
        if row.change and row.total_change_usd
    ]


def _sums_by_name(
    lists: HistoryLists, question: Question, column: Column, today: date
) -> dict[Any, SumsRow]:
    rows: dict[Any, list[SumsRow]] = defaultdict(list)
    for row in sum_by(lists, question, [column], today=today):
        name = column.value_of(row)
        rows[shared_name(name) if isinstance(name, str) else name].append(row)
    return {name: combine(group) for name, group in rows.items()}


def _names_seen_earlier(
    earlier_lists: HistoryLists, question: Question, column: Column, today: date, since: date | None
) -> set[Any]:
    days = audited_days(earlier_lists.history)
    if not days or days[0] >= earlier_lists.window.first_day:
        return set()
    first = max(days[0], since or days[0])
    seen_earlier = earlier_lists.in_window(make_window(first, earlier_lists.window.first_day))
    return {*_sums_by_name(seen_earlier, question, column, today)}


def _direction(
    now: SumsRow, earlier_sums: SumsRow, *, was_seen_earlier: bool, is_covered: bool
) -> ChangeKind | None:
    """Returns how the spend changed; None if that is unknown.

    GONE needs one earlier job. The other kinds need a history that covers all days before.
    """
    if earlier_sums.jobs and not now.jobs:
        return ChangeKind.GONE
    if not is_covered:
        return None
    if not earlier_sums.jobs:
        return (ChangeKind.RETURNED if was_seen_earlier else ChangeKind.NEW) if now.jobs else None
    change_usd = _difference(now.total_usd, earlier_sums.total_usd)
    if not change_usd:
        return None if change_usd is None else ChangeKind.SAME
    return ChangeKind.INCREASED if change_usd > 0 else ChangeKind.DECREASED


def _difference(usd: Decimal | None, before_usd: Decimal | None) -> Decimal | None:
    return None if usd is None or before_usd is None else usd - before_usd


def _sort_key(change: SpendChange) -> tuple[Decimal, Decimal, str]:
    change_usd = change.total_usd if change.total_change_usd is None else change.total_change_usd
    return -abs(change_usd or Decimal(0)), -(change.waste_usd or Decimal(0)), str(change.name or "")
