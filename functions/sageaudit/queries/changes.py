"""The days of a window against as many days before it, by family or another column."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.spend_qualifier import SpendQualifier, qualifier_of_change
from sageaudit.domain.audit.sums import ChangedFamily, Sums
from sageaudit.domain.job.family import shared_name
from sageaudit.errors import BadUsage
from sageaudit.queries.by import by, column_values
from sageaudit.queries.columns import Column
from sageaudit.queries.lists import Lists, audited_days, first_covered
from sageaudit.queries.question import Question
from sageaudit.queries.total import Total, together
from sageaudit.queries.window import Window, window_of


class ChangeWord(enum.StrEnum):
    """What became of the spend of a family, a team, ..."""

    NEW = "new"
    """No job of it ended before, in the whole history."""
    BACK = "back"
    """No job of it ended in the days before, but some did earlier."""
    GONE = "gone"
    DEARER = "dearer"
    CHEAPER = "cheaper"
    SAME = "same"


class SpendChange(Total, frozen=True, kw_only=True):
    """The sums of a value of a column, `before` those of the days before.

    `name` is that value, None of jobs without one. What is not known is None: all of the days
    before, if the history does not cover them, and a change from or to an amount that is not known.
    """

    name: Any
    change: ChangeWord | None
    advice: str | None = None
    """What a family was advised, in words, where it was asked for."""

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
        return _less(self.total_usd, self.total_before_usd)

    @property
    def waste_change_usd(self) -> Decimal | None:
        """The same of the avoidable and lost dollars."""
        return _less(self.waste_usd, self.waste_before_usd)

    @property
    def change_qualifier(self) -> SpendQualifier:
        """How exactly the size of the change of spend is known, whatever its sign."""
        fell = (self.total_change_usd or 0) < 0
        return qualifier_of_change(self.spend_qualifier, self.spend_qualifier_before, fell=fell)


def window_before(window: Window) -> Window:
    """As much time before a window."""
    return Window(window.since - (window.until - window.since), window.since)


def covers_before(lists: Lists, question: Question) -> bool:
    """Whether the history has audits of as long ago as the window before."""
    before = window_before(lists.window)
    wide = lists.within(Window(before.since, lists.window.until))
    return first_covered(wide, question, before.first_day) <= before.first_day


def changes(
    lists: Lists,
    question: Question,
    column: Column,
    *,
    today: date,
    known_since: date | None = None,
) -> list[SpendChange]:
    """Each value of the column with its change of spend, the largest first, then the most waste.

    Tuning jobs, each a family of its own, are one family where the stems of their names agree.
    `known_since`: what ended only before is new, too; None for the whole history. Raises BadUsage
    for a column of time.
    """
    if column.length:
        raise BadUsage(
            f"changes are between times: by {column.name} is `sageaudit by {column.name}`"
        )
    earlier = lists.within(window_before(lists.window))
    covered = covers_before(lists, question)
    now, before = (_by_name(of, question, column, today) for of in (lists, earlier))
    none = Total(sums=Sums())
    names = {*now, *(name for name, total in before.items() if covered or total.jobs)}
    older: set[Any] = set()
    if covered and now.keys() - before:
        older = _older(earlier, question, column, today, known_since)
    found = []
    for name in names:
        total, then = now.get(name, none), before.get(name, none)
        row = SpendChange(
            **column_values([column], (name,)),
            name=name,
            change=_direction(total, then, older=name in older, covered=covered),
            sums=total.sums,
            of_rules=total.of_rules,
            before=then if covered else None,
        )
        found.append(row)
    return sorted(found, key=_order)


def changed_families(rows: Iterable[SpendChange]) -> list[ChangedFamily]:
    """The families whose spend is known to have changed, in the same order."""
    return [
        ChangedFamily(
            family=row.name,
            word=row.change.value,
            change_usd=row.total_change_usd,
            jobs_before=row.jobs_before or 0,
            jobs=row.jobs,
            qualifier=row.change_qualifier,
        )
        for row in rows
        if row.change and row.total_change_usd
    ]


def _by_name(lists: Lists, question: Question, column: Column, today: date) -> dict[Any, Total]:
    """The sums by the names that runs of months share."""
    rows: dict[Any, list[Total]] = defaultdict(list)
    for row in by(lists, question, [column], today=today):
        name = column.of(row)
        rows[shared_name(name) if isinstance(name, str) else name].append(row)
    return {name: together(of) for name, of in rows.items()}


def _older(
    earlier: Lists, question: Question, column: Column, today: date, since: date | None
) -> set[Any]:
    """The names with jobs that ended before the days before."""
    days = audited_days(earlier.history)
    if not days or days[0] >= earlier.window.first_day:
        return set()
    first = max(days[0], since or days[0])
    older = earlier.within(window_of(first, earlier.window.first_day))
    return {*_by_name(older, question, column, today)}


def _direction(now: Total, before: Total, *, older: bool, covered: bool) -> ChangeWord | None:
    """One job in the days before is enough to be gone; all else needs all of these days."""
    if before.jobs and not now.jobs:
        return ChangeWord.GONE
    if not covered:
        return None
    if not before.jobs:
        return (ChangeWord.BACK if older else ChangeWord.NEW) if now.jobs else None
    change_usd = _less(now.total_usd, before.total_usd)
    if not change_usd:
        return None if change_usd is None else ChangeWord.SAME
    return ChangeWord.DEARER if change_usd > 0 else ChangeWord.CHEAPER


def _less(usd: Decimal | None, before_usd: Decimal | None) -> Decimal | None:
    return None if usd is None or before_usd is None else usd - before_usd


def _order(of: SpendChange) -> tuple[Decimal, Decimal, str]:
    change_usd = of.total_usd if of.total_change_usd is None else of.total_change_usd
    return -abs(change_usd or Decimal(0)), -(of.waste_usd or Decimal(0)), str(of.name or "")
