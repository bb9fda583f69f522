"""The days of a window against as many days before it, family by family."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from sageaudit.domain.audit.sums import Sums
from sageaudit.queries.by import Column, by
from sageaudit.queries.lists import Lists
from sageaudit.queries.periods import first_covered
from sageaudit.queries.question import Question
from sageaudit.queries.total import Total, percent, total_of
from sageaudit.queries.window import Window


class ChangeWord(enum.StrEnum):
    """What became of a family's spend."""

    NEW = "new"
    """No job of it ended in the days before."""
    GONE = "gone"
    DEARER = "dearer"
    CHEAPER = "cheaper"
    SAME = "same"


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyChange:
    """A family now and before. What is not known is None: all of the days before, if the history
    does not cover them, and a change from or to an amount that is not known.
    """

    family: str | None
    change: ChangeWord | None
    jobs_before: int | None
    jobs: int
    total_before_usd: Decimal | None
    total_usd: Decimal | None
    total_change_usd: Decimal | None
    total_change_percent: Decimal | None
    waste_before_usd: Decimal | None
    waste_usd: Decimal | None
    waste_change_usd: Decimal | None


def window_before(window: Window) -> Window:
    """As much time before a window."""
    return Window(window.since - (window.until - window.since), window.since)


def covers_before(lists: Lists, question: Question) -> bool:
    """Whether the history has audits of as long ago as the window before."""
    before = window_before(lists.window)
    wide = lists.within(Window(before.since, lists.window.until))
    return first_covered(wide, question, before.first_day) <= before.first_day


def changes(lists: Lists, question: Question, *, today: date) -> list[FamilyChange]:
    """Each family with its change of spend, the largest first, then the most waste."""
    earlier = lists.within(window_before(lists.window))
    covered = covers_before(lists, question)
    now, before = (
        {row.family: row for row in by(of, question, [Column.FAMILY], today=today)}
        for of in (lists, earlier)
    )
    none = total_of(Sums())
    names = {**now, **before} if covered else now
    found = [
        _change(name, now.get(name, none), before.get(name, none), covered=covered)
        for name in names
    ]
    return sorted(found, key=_order)


def _change(family: str | None, now: Total, before: Total, *, covered: bool) -> FamilyChange:
    total_usd, waste_usd = (before.total_usd, before.waste_usd) if covered else (None, None)
    change_usd = _less(now.total_usd, total_usd)
    return FamilyChange(
        family=family,
        change=_direction(now, before, change_usd) if covered else None,
        jobs_before=before.jobs if covered else None,
        jobs=now.jobs,
        total_before_usd=total_usd,
        total_usd=now.total_usd,
        total_change_usd=change_usd,
        total_change_percent=percent(now.total_usd, total_usd),
        waste_before_usd=waste_usd,
        waste_usd=now.waste_usd,
        waste_change_usd=_less(now.waste_usd, waste_usd),
    )


def _direction(now: Total, before: Total, change_usd: Decimal | None) -> ChangeWord | None:
    if not before.jobs:
        return ChangeWord.NEW if now.jobs else None
    if not now.jobs:
        return ChangeWord.GONE
    if not change_usd:
        return None if change_usd is None else ChangeWord.SAME
    return ChangeWord.DEARER if change_usd > 0 else ChangeWord.CHEAPER


def _less(usd: Decimal | None, before_usd: Decimal | None) -> Decimal | None:
    return None if usd is None or before_usd is None else usd - before_usd


def _order(of: FamilyChange) -> tuple[Decimal, Decimal, str]:
    change_usd = of.total_usd if of.total_change_usd is None else of.total_change_usd
    return -abs(change_usd or Decimal(0)), -(of.waste_usd or Decimal(0)), of.family or ""
