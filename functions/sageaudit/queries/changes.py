"""Compares the days of a window with the same number before it, by family or another column."""

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
    """How the spend of a family, a team, ... changed."""

    NEW = "new"
    """None of its jobs ended before, in the whole history."""
    RETURNED = "returned"
    """None of its jobs ended in the days before, but some did earlier."""
    GONE = "gone"
    INCREASED = "increased"
    DECREASED = "decreased"
    SAME = "same"


class SpendChange(SumsRow, frozen=True, kw_only=True):
    """The sums of one value of a column, with `before`, the sums of the days before.

    `name` is the value, None for jobs without one. An unknown amount is None: all of the days
    before if the history does not cover them, and a change from or to an unknown amount.
    """

    name: Any
    change: ChangeKind | None
    recommendations: str | None = None
    """The family's recommendation in words, if it was asked for."""

    @property
    def jobs_before(self) -> int | None:
        """How many jobs ended in the days before."""
        return self.before.jobs if self.before else None

    @property
    def spend_qualifier_before(self) -> SpendQualifier:
        """How exactly the spend of the days before is known."""
        return self.before.spend_qualifier if self.before else SpendQualifier.UNKNOWN

    @property
    def total_change_usd(self) -> Decimal | None:
        """How many dollars more were spent than before."""
        return _difference(self.total_usd, self.total_before_usd)

    @property
    def waste_change_usd(self) -> Decimal | None:
        """How many more dollars were avoidable or lost than before."""
        return _difference(self.waste_usd, self.waste_before_usd)

    @property
    def change_qualifier(self) -> SpendQualifier:
        """How exactly the size of the change of spend is known, whatever its sign."""
        fell = (self.total_change_usd or 0) < 0
        return qualify_change(self.spend_qualifier, self.spend_qualifier_before, has_fallen=fell)


def window_before(window: Window) -> Window:
    """Returns the window of the same length just before a window."""
    return Window(window.since - (window.until - window.since), window.since)


def is_covered_before(lists: HistoryLists, question: Question) -> bool:
    """Whether the history has audits as old as the window before."""
    before = window_before(lists.window)
    wide = lists.in_window(Window(before.since, lists.window.until))
    return first_covered_day(wide, question, before.first_day) <= before.first_day


def find_changes(
    lists: HistoryLists,
    question: Question,
    column: Column,
    *,
    today: date,
    history_since: date | None = None,
) -> list[SpendChange]:
    """Returns each value of the column with its change of spend, the largest first, then waste.

    Tuning jobs, each a family of its own, are one family if the stems of their names agree. Values
    that ended only before `history_since` are new too; None: the whole history. Raises BadUsage for
    a column of time.
    """
    if column.length:
        raise BadUsage(
            f"changes are between times: by {column.name} is `sageaudit by {column.name}`"
        )
    earlier = lists.in_window(window_before(lists.window))
    covered = is_covered_before(lists, question)
    now, before = (_sums_by_name(each, question, column, today) for each in (lists, earlier))
    none = SumsRow(sums=Sums(), is_usage_type=column is GROUPABLE["usage_type"])
    names = {*now, *(name for name, total in before.items() if covered or total.jobs)}
    older: set[Any] = set()
    if covered and now.keys() - before:
        older = _names_seen_earlier(earlier, question, column, today, history_since)
    changes = []
    for name in names:
        total, then = now.get(name, none), before.get(name, none)
        row = SpendChange(
            **column_values([column], (name,)),
            name=name,
            change=_direction(total, then, was_seen_earlier=name in older, is_covered=covered),
            sums=total.sums,
            has_rule_dollars=total.has_rule_dollars,
            is_usage_type=total.is_usage_type,
            before=then if covered else None,
        )
        changes.append(row)
    return sorted(changes, key=_order)


def changed_families(rows: Iterable[SpendChange]) -> list[ChangedFamily]:
    """Returns the families whose spend is known to have changed, in the same order."""
    return [
        ChangedFamily(
            family=row.name,
            change=row.change.value,
            change_usd=row.total_change_usd,
            jobs_before=row.jobs_before or 0,
            jobs=row.jobs,
            qualifier=row.change_qualifier,
        )
        for row in rows
        if row.change and row.total_change_usd
    ]


def _sums_by_name(
    lists: HistoryLists, question: Question, column: Column, today: date
) -> dict[Any, SumsRow]:
    """Returns the sums by the names that similar families share (`shared_name`)."""
    rows: dict[Any, list[SumsRow]] = defaultdict(list)
    for row in sum_by(lists, question, [column], today=today):
        name = column.value_of(row)
        rows[shared_name(name) if isinstance(name, str) else name].append(row)
    return {name: combine(group) for name, group in rows.items()}


def _names_seen_earlier(
    earlier: HistoryLists, question: Question, column: Column, today: date, since: date | None
) -> set[Any]:
    """Returns the names with jobs that ended before the days before."""
    days = audited_days(earlier.history)
    if not days or days[0] >= earlier.window.first_day:
        return set()
    first = max(days[0], since or days[0])
    older = earlier.in_window(make_window(first, earlier.window.first_day))
    return {*_sums_by_name(older, question, column, today)}


def _direction(
    now: SumsRow, before: SumsRow, *, was_seen_earlier: bool, is_covered: bool
) -> ChangeKind | None:
    """Returns the kind of a change. GONE needs one job in the days before, the others all days."""
    if before.jobs and not now.jobs:
        return ChangeKind.GONE
    if not is_covered:
        return None
    if not before.jobs:
        return (ChangeKind.RETURNED if was_seen_earlier else ChangeKind.NEW) if now.jobs else None
    change_usd = _difference(now.total_usd, before.total_usd)
    if not change_usd:
        return None if change_usd is None else ChangeKind.SAME
    return ChangeKind.INCREASED if change_usd > 0 else ChangeKind.DECREASED


def _difference(usd: Decimal | None, before_usd: Decimal | None) -> Decimal | None:
    return None if usd is None or before_usd is None else usd - before_usd


def _order(change: SpendChange) -> tuple[Decimal, Decimal, str]:
    change_usd = change.total_usd if change.total_change_usd is None else change.total_change_usd
    return -abs(change_usd or Decimal(0)), -(change.waste_usd or Decimal(0)), str(change.name or "")
