"""The monthly amounts of a family's open recommendations, their severity, and the floors.

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
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Route

MONTH_DAYS = 30
_FULL_MONTH_AFTER = timedelta(days=29)
"""The total of 30 days is known, and not projected, after this time."""
_OCCASION_LENGTH = timedelta(hours=20)
"""Runs that end within 20 hours of each other are one occasion. A family's first month is projected
from its occasions."""
_ONE_OCCASION_DAYS = 7
"""A single occasion is projected as if it occurred once in this many days."""
_MONTHLY_USD = {Severity.HIGH: Decimal(500), Severity.MEDIUM: Decimal(100)}
"""USD a month from which a family's waste is high or medium. Our choice."""

LOOK_BACK_DAYS = 180
"""Recommendations are judged by the runs of these days, since older ones say little. Our choice."""

SAGEAUDIT_MONTH_USD = Decimal("6.47")
SAGEAUDIT_JOB_USD = Decimal("0.00068")
"""The cost of a job that was not watched while it ran."""
SAGEAUDIT_AUDIT_USD = Decimal("0.00036")
"""The cost of a job that was not watched while it ran."""
SAGEAUDIT_WRITE_USD = Decimal("0.00013")
"""The part of a job's cost for DynamoDB: its writes, and a year of storage."""


class Month(Struct, frozen=True):
    """The sum of open recommendations of one amount kind in 30 days, in USD.

    `total`: of the runs so far. `projected`: for 30 days; it equals the total once the first
    recommendation is 29 days old.
    """

    amount_kind: AmountKind
    total: Decimal
    projected: Decimal
    runs: int
    occasions: int = 1

    @property
    def is_single_occurrence(self) -> bool:
        """Whether all runs of the month are one occasion. `projected` is then a guess that no text
        shows.
        """
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
    """Returns the USD a month from which waste has this severity."""
    return _MONTHLY_USD.get(severity, Decimal(0))


def monthly_severity(usd: Decimal) -> Severity:
    """Returns the severity of this amount a month."""
    return next((level for level, least in _MONTHLY_USD.items() if usd >= least), Severity.LOW)


def estimate_month(
    recommendations: Sequence[FamilyRecommendation], amount_kind: AmountKind, now: datetime
) -> Month:
    """Returns the amounts of these recommendations over 30 days, summed and projected."""
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
    """Returns the USD of 30 days from which an amount of this kind gets a message."""
    return policy.floor_usd if amount_kind is AmountKind.COUNTED else policy.trial_floor_usd


class Digest(Struct, frozen=True):
    """The week from `since` to `until` (UTC days, both included), with recommendations as of `now`.

    `previous_total`: the week before; None if the history does not cover it. `changed_families`:
    families whose spend changed since then, the largest change first. `recommendations`: in any
    state, counted ones first. `unsent_recommendations`: open ones of the week's runs that no
    message of the week had. With a `route`, everything is about the jobs and recommendations that
    it selects.
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
