"""Days, weeks and months that sums are compared by, in UTC."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

from sageaudit.domain.audit.sums import Scope
from sageaudit.ports import History
from sageaudit.queries.lists import Lists
from sageaudit.queries.question import Question
from sageaudit.queries.window import FIRST, Window

ONE_DAY = timedelta(days=1)
_LAST_YEAR = 2099
_LONGEST_GAP = timedelta(days=90)
"""Our choice: a history without an audit for so long is taken to begin after it."""


class Length(enum.StrEnum):
    """How long a period is: a day, a week from Monday, or a month."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    def first_day(self, day: date) -> date:
        """The first day of the period that a day is in."""
        if self is Length.WEEK:
            return day - day.weekday() * ONE_DAY
        return day.replace(day=1) if self is Length.MONTH else day

    def next(self, first_day: date) -> date:
        """The first day of the period after."""
        days = {Length.DAY: 1, Length.WEEK: 7, Length.MONTH: 32}[self]
        return self.first_day(first_day + days * ONE_DAY)

    def before(self, first_day: date) -> date:
        """The first day of the period before."""
        return self.first_day(first_day - ONE_DAY)

    def label(self, first_day: date) -> str:
        """`2026-11-20`, `2026-W47` or `2026-11`."""
        forms = {Length.DAY: "%Y-%m-%d", Length.WEEK: "%G-W%V", Length.MONTH: "%Y-%m"}
        return first_day.strftime(forms[self])

    def whole(self, window: Window, today: date) -> Window:
        """The window with all days of its first and last periods, until today at the latest."""
        after = min(self.next(self.first_day(window.last_day)), today + ONE_DAY)
        return window_of(self.first_day(window.first_day), after)

    def starts(self, window: Window, today: date) -> list[date]:
        """The first days of the periods in a window, until today at the latest."""
        first, starts = self.first_day(window.first_day), []
        while first <= min(window.last_day, today):
            starts.append(first)
            first = self.next(first)
        return starts


def days_between(first: date, last: date) -> Iterator[date]:
    """Each day from the first to the last."""
    return (first + number * ONE_DAY for number in range((last - first).days + 1))


def window_of(first: date, after: date) -> Window:
    """The days from the first on, without the day `after`."""
    return Window(datetime.combine(first, time(), UTC), datetime.combine(after, time(), UTC))


def audited_days(history: History) -> list[date] | None:
    """The days of all times on which audited jobs ended, in order; None without any."""
    rows = history.sums(Scope.ACCOUNT, FIRST.date(), date(_LAST_YEAR, 12, 31))
    return sorted({row.day for row in rows}) or None


def first_covered(lists: Lists, question: Question, day: date) -> date:
    """The first day with an audit in the question's account and region, from some time before a
    day on: a history says nothing about days before it. The last of all dates without any.
    """
    earlier = window_of(day - _LONGEST_GAP, lists.window.last_day + ONE_DAY)
    rows = lists.within(earlier).sums(
        Scope.ACCOUNT, account=question.account, region=question.region
    )
    return min((row.day for row in rows), default=date.max)
