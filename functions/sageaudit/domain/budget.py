"""A budget's month: what was spent, what is projected, and which message is due.

Spend is the sum of the bills of jobs that ended in the month (UTC), as the daily sums have it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from msgspec import Struct, field

from sageaudit.domain.audit.bill_document import SpendQualifier, qualify_amount
from sageaudit.domain.audit.sums import SumRow, Sums, project_spend, sum_rows
from sageaudit.domain.policy.budgets import Budget
from sageaudit.structs import replace

NEAR_PERCENT = 80
"""A first message is due at this percentage of a budget. Our choice."""
MIN_PROJECTION_DAYS = 5
"""Whole days of a month without which nothing is projected: fewer may all be a weekend. Our choice.
"""
LATE_AUDITS = timedelta(days=1)
"""For this time after its end a month is still checked, since the audits of its last jobs come
after it. Our choice."""
_ONE_DAY = timedelta(days=1)


class Threshold(enum.StrEnum):
    """What a message about a budget reports. Each is reported once a month."""

    NEAR = "near"
    EXCEEDED = "exceeded"
    PROJECTED = "projected"


class BudgetState(enum.StrEnum):
    """Where a budget stands. UNKNOWN: the spend is unknown, or a lower bound below the budget."""

    WITHIN = "within"
    NEAR = "near"
    PROJECTED = "projected"
    EXCEEDED = "exceeded"
    UNKNOWN = "unknown"
    NO_JOBS = "no jobs"


class CoveredDays(Struct, frozen=True):
    """The days (UTC) whose jobs a history has, `since` and `until` included.

    `since` is None if it has none. `until` is `today` unless the history lacks newer jobs.
    """

    since: date | None
    until: date
    today: date


class BudgetMonth(Struct, frozen=True):
    """A month (UTC) of a budget, as of the day `as_of`: all days before it are whole days.

    `covered_since`, `covered_until`: the first and the last day of the month that the history
    covers; None if it covers none. `total`: the sums of the month so far. `finished`: the part of
    the days before `as_of`. `lacks_days`: whether the history lacks days after `covered_until`.
    `has_unreadable`: whether the sums may lack some that cannot be read.
    """

    budget: Budget
    first_day: date
    as_of: date
    covered_since: date | None
    covered_until: date | None
    total: Sums
    finished: Sums
    lacks_days: bool
    has_unreadable: bool

    @classmethod
    def from_rows(
        cls,
        budget: Budget,
        day: date,
        covered: CoveredDays,
        rows: Iterable[SumRow],
        *,
        has_unreadable: bool = False,
    ) -> BudgetMonth:
        """Returns the month that contains `day`, from the daily sums of the budget's jobs.

        `has_unreadable`: whether `rows` may lack sums that cannot be read.
        """
        first_day, last_day = day.replace(day=1), last_day_of_month(day)
        month_rows = [row for row in rows if first_day <= row.day <= last_day]
        as_of = min(covered.today, covered.until + _ONE_DAY)
        since, until = max(covered.since or date.max, first_day), min(covered.until, last_day)
        is_covered = since <= until
        return cls(
            budget,
            first_day,
            as_of,
            since if is_covered else None,
            until if is_covered else None,
            sum_rows(month_rows),
            sum_rows(row for row in month_rows if row.day < as_of),
            until < min(covered.today, last_day),
            has_unreadable,
        )

    @property
    def label(self) -> str:
        """The month as YYYY-MM."""
        return f"{self.first_day:%Y-%m}"

    @property
    def last_day(self) -> date:
        """The last day of the month."""
        return last_day_of_month(self.first_day)

    @property
    def is_over(self) -> bool:
        """Whether the month has ended, as far as the history knows."""
        return self.as_of > self.last_day

    @property
    def jobs(self) -> int:
        """The number of jobs that ended in the month."""
        return self.total.jobs

    @property
    def is_covered_in_part(self) -> bool:
        """Whether the history begins within the month, so that the spend lacks earlier days."""
        return self.covered_since is None or self.covered_since > self.first_day

    @property
    def spent_usd(self) -> Decimal | None:
        """The known spend; None if no job has a known bill, or the history covers no day."""
        return None if self.covered_since is None else self.total.known_total_usd

    @property
    def is_lower_bound(self) -> bool:
        """Whether the spend lacks a part: of bills, of stored sums, or of the month."""
        is_bill_missing = self.total.incomplete or self.total.total_unknown_count
        is_month_missing = self.is_covered_in_part or self.lacks_days
        return is_month_missing or self.has_unreadable or bool(is_bill_missing)

    @property
    def may_be_lower(self) -> bool:
        """Whether the true spend may be lower, so that an exceeded budget may not be."""
        return bool(self.total.upper_bounds)

    @property
    def spend_qualifier(self) -> SpendQualifier:
        """How exactly the spend is known."""
        return qualify_amount(
            is_known=self.spent_usd is not None,
            lower_bound=self.is_lower_bound,
            upper_bound=self.may_be_lower,
            estimated=bool(self.total.estimated),
        )

    @property
    def spent_percent(self) -> Decimal | None:
        """The spend in percent of the budget; None if unknown."""
        spent = self.spent_usd
        return None if spent is None else 100 * spent / self.budget.usd_per_month

    @property
    def finished_days(self) -> int:
        """The number of whole days of the month that the history covers."""
        if self.covered_since is None:
            return 0
        return max((min(self.as_of, self.last_day + _ONE_DAY) - self.covered_since).days, 0)

    @property
    def projected_usd(self) -> Decimal | None:
        """The projected spend of the current month.

        None before MIN_PROJECTION_DAYS whole days, after the month, and if the spend is unknown.
        """
        finished_usd = self.finished.known_total_usd
        is_too_early = self.finished_days < MIN_PROJECTION_DAYS
        if self.is_over or is_too_early or finished_usd is None or self.spent_usd is None:
            return None
        today_usd = self.spent_usd - finished_usd
        days_left = (self.last_day - self.as_of).days
        return project_spend(finished_usd, today_usd, self.finished_days, days_left)

    @property
    def reached(self) -> dict[Threshold, Decimal]:
        """The spend or projection (USD) of each threshold that the month has reached.

        An exceeded budget has no projection.
        """
        amounts = {
            Threshold.EXCEEDED: self.spent_usd,
            Threshold.NEAR: self.spent_usd,
            Threshold.PROJECTED: self.projected_usd,
        }
        reached = {
            threshold: usd
            for threshold, usd in amounts.items()
            if usd is not None and _is_reached(threshold, usd, self.budget)
        }
        if Threshold.EXCEEDED in reached:
            reached.pop(Threshold.PROJECTED, None)
        return reached

    @property
    def state(self) -> BudgetState:
        """Where the budget stands. A lower bound can exceed a budget, but is never within it."""
        reached = self.reached
        if Threshold.EXCEEDED in reached:
            return BudgetState.EXCEEDED
        if Threshold.PROJECTED in reached:
            return BudgetState.PROJECTED
        if Threshold.NEAR in reached:
            return BudgetState.NEAR
        if self.is_lower_bound:
            return BudgetState.UNKNOWN
        return BudgetState.WITHIN if self.jobs else BudgetState.NO_JOBS


class SentBudgetMessages(Struct, frozen=True):
    """The messages about one budget in one month.

    `selector` identifies the budget. `sent` has the spend or projection (USD) with which each
    threshold was reported. `messages` counts the messages.
    """

    month: str
    selector: tuple[str, str]
    sent: Mapping[Threshold, Decimal] = field(default_factory=dict)
    messages: int = 0


def due_threshold(month: BudgetMonth, past: SentBudgetMessages) -> Threshold | None:
    """Returns the threshold that a message must report; None if no message is due.

    If several are reached, one message reports the first of them in this order: 100%, 80%, the
    projection. After 100% no message is due.
    """
    standing = _standing(month.budget, past)
    if Threshold.EXCEEDED in standing:
        return None
    return next((threshold for threshold in month.reached if threshold not in standing), None)


def after_message(month: BudgetMonth, past: SentBudgetMessages) -> SentBudgetMessages:
    """Returns what was sent once the due message is written: all thresholds that are reached."""
    sent = month.reached | _standing(month.budget, past)
    return replace(past, sent=sent, messages=past.messages + 1)


def _standing(budget: Budget, past: SentBudgetMessages) -> dict[Threshold, Decimal]:
    # What was reported at an amount that no longer reaches the threshold of a raised budget may be
    # reported again. A corrected bill changes nothing.
    return {
        threshold: usd
        for threshold, usd in past.sent.items()
        if _is_reached(threshold, usd, budget)
    }


def _is_reached(threshold: Threshold, usd: Decimal, budget: Budget) -> bool:
    limit = budget.usd_per_month
    match threshold:
        case Threshold.NEAR:
            return 100 * usd >= NEAR_PERCENT * limit
        case Threshold.EXCEEDED:
            return usd >= limit
        case Threshold.PROJECTED:
            return usd > limit


def installation_day(installed_at: datetime | None) -> date | None:
    """Returns the day (UTC) of the installation; None if its time is unknown."""
    return installed_at.astimezone(UTC).date() if installed_at else None


def months_to_check(now_day: date, installed_on: date | None) -> list[date]:
    """Returns a day of each month whose budgets are checked: this month, at first also the last.

    The month before the installation is not checked: nobody needs messages about old spend.
    """
    previous = now_day.replace(day=1) - _ONE_DAY
    is_recent = now_day - previous <= LATE_AUDITS
    is_audited = installed_on is not None and installed_on <= previous
    return [previous, now_day] if is_recent and is_audited else [now_day]


def last_day_of_month(day: date) -> date:
    """Returns the last day of a day's month."""
    return (day.replace(day=1) + 31 * _ONE_DAY).replace(day=1) - _ONE_DAY
