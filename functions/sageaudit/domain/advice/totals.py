"""Sums of a family's open recommendations over 30 days, with their severity and minimum amounts.

Also the data of the weekly digest, and what a deployment itself costs a month.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.advice.advice import FamilyRecommendation
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.audit.sums import ChangedFamily, Sums
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.budget import BudgetMonth
from sageaudit.domain.members import Member
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Route
from sageaudit.errors import UnreadableItem

MONTH_DAYS = 30
"""The length of a month in sums and projections."""
_FULL_MONTH_AFTER = timedelta(days=29)
"""A recommendation of at least this age has a full month, which is not projected."""
_OCCASION_LENGTH = timedelta(hours=20)
"""Runs that end within this time of an occasion's first run belong to the same occasion."""
_ONE_OCCASION_DAYS = 7
"""A single occasion is projected as if it occurred once in this many days."""
_MONTHLY_USD = {Severity.HIGH: Decimal(500), Severity.MEDIUM: Decimal(100)}
"""The least USD a month of a family's waste, by severity. Our choice."""

LOOK_BACK_DAYS = 180
"""The number of days whose runs are read for recommendations. Our choice."""

SAGEAUDIT_MONTH_USD = Decimal("10.15")
"""What a deployment costs a month in USD, without jobs."""
SAGEAUDIT_JOB_USD = Decimal("0.00061")
"""What sageaudit costs for a job in USD, including checks while the job ran."""
SAGEAUDIT_AUDIT_USD = Decimal("0.00048")
"""What sageaudit costs in USD for a job that was not watched while it ran."""
SAGEAUDIT_WRITE_USD = Decimal("0.00013")
"""The part of a job's cost for DynamoDB, in USD: its writes, and a year of storage."""


class Month(Struct, frozen=True):
    """The amounts of open recommendations of one kind over 30 days, in USD.

    `total`: that of the runs so far. `projected`: the total for 30 days. It equals `total` once the
    first recommendation is 29 days old. `occasions`: the number of groups of runs that ended close
    together.
    """

    amount_kind: AmountKind
    total: Decimal
    projected: Decimal
    runs: int
    occasions: int = 1

    @property
    def is_single_occurrence(self) -> bool:
        """Whether all runs are one occasion, so that `projected` is a guess that no text shows."""
        return self.occasions == 1 and self.projected != self.total

    @property
    def usd(self) -> Decimal | None:
        """The dollars that a message shows; None if they are unknown."""
        if not self.projected:
            return None
        return self.total if self.is_single_occurrence else self.projected

    @property
    def severity(self) -> Severity:
        """The severity of the projected amount."""
        return monthly_severity(self.projected)


def severity_min_usd(severity: Severity) -> Decimal:
    """Returns the least USD a month of this severity."""
    return _MONTHLY_USD.get(severity, Decimal(0))


def monthly_severity(usd: Decimal) -> Severity:
    """Returns the severity of this amount a month."""
    return next((level for level, least in _MONTHLY_USD.items() if usd >= least), Severity.LOW)


def estimate_month(
    recommendations: Sequence[FamilyRecommendation], amount_kind: AmountKind, now: datetime
) -> Month:
    """Returns the amounts of these recommendations over the last 30 days, summed and projected."""
    since = now - timedelta(days=MONTH_DAYS)
    occurrences = sorted(
        (at, amount or Decimal(0))
        for recommendation in recommendations
        for at, amount in recommendation.occurrences
        if at > since
    )
    total = sum((amount for _, amount in occurrences), Decimal(0))
    began_at = min(
        (row.since for row in recommendations if row.occurrences),
        default=now,
    )
    runs = len({at for at, _ in occurrences})
    if not occurrences or now - began_at >= _FULL_MONTH_AFTER:
        return Month(amount_kind, total, total, runs)
    occasions = [occurrences[0][0]]
    for at, _ in occurrences:
        if at - occasions[-1] > _OCCASION_LENGTH:
            occasions.append(at)
    count, days = len(occasions), Decimal(_ONE_OCCASION_DAYS)
    if count > 1:
        span_s = Decimal((occasions[-1] - occasions[0]).total_seconds())
        days = min(span_s / 86_400 * count / (count - 1), Decimal(MONTH_DAYS))
    return Month(amount_kind, total, total * MONTH_DAYS / days, runs, count)


def message_floor(amount_kind: AmountKind, policy: Policy) -> Decimal:
    """Returns the least USD in 30 days for a message about amounts of this kind."""
    return policy.floor_usd if amount_kind is AmountKind.COUNTED else policy.trial_floor_usd


class Digest(Struct, frozen=True):
    """The data of a weekly digest: the days from `since` to `until` (UTC, both included).

    `previous_total`: the sums of the week before; None if the history does not cover it.
    `changed_families`: the largest change first. `recommendations`: all states, counted ones first.
    `unsent_recommendations`: open recommendations of the week's runs that no message had. `route`:
    limits everything to what the route selects.
    `unreadable_items`: stored items that all figures lack, as they cannot be read.
    `unreadable_members`: accounts and regions that deny access, so that their jobs may be missing.
    `budgets`: the month of `until`, for each budget.
    """

    since: date
    until: date
    now: datetime
    total: Sums
    previous_total: Sums | None
    changed_families: Sequence[ChangedFamily]
    recommendations: Sequence[FamilyRecommendation]
    unsent_recommendations: Sequence[FamilyRecommendation]
    route: Route | None = None
    unreadable_items: tuple[UnreadableItem, ...] = ()
    unreadable_members: tuple[Member, ...] = ()
    budgets: tuple[BudgetMonth, ...] = ()
