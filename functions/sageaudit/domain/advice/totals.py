"""What a family's open advices come to in a month, how severe that is, and the floors.

Also what the weekly digest rests on, and what a deployment itself costs a month.
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
_OCCASION_LENGTH = timedelta(hours=20)
"""Runs that end within it are one occasion, by which a family's first month is projected."""
_ONE_OCCASION_DAYS = 7
_MONTHLY_USD = {Severity.HIGH: Decimal(500), Severity.MEDIUM: Decimal(100)}
"""From so many USD a month a family's waste is high or medium. All of these are our choice."""

LOOK_BACK_DAYS = 180
"""The runs by which advices are judged: older ones say little of what is open now. Our choice."""

SAGEAUDIT_MONTH_USD = Decimal("6.47")
SAGEAUDIT_JOB_USD = Decimal("0.00068")
SAGEAUDIT_AUDIT_USD = Decimal("0.00036")
"""Of a job that was not watched while it ran."""
SAGEAUDIT_WRITE_USD = Decimal("0.00013")
"""What of a job's cost is for DynamoDB: its writes, and a year of storage."""


class Month(Struct, frozen=True):
    """What open advices of one worth come to in 30 days, in USD: `total` of `runs`, and
    `projected`, which is the total once the first of them is 29 days old.
    """

    worth: AmountKind
    total: Decimal
    projected: Decimal
    runs: int
    occasions: int = 1

    @property
    def is_single_occurrence(self) -> bool:
        """Whether one run, or one storm of them, is all that is known of a month: `projected` is
        then a guess that no text shows.
        """
        return self.occasions == 1 and self.projected != self.total

    @property
    def usd(self) -> Decimal | None:
        """The dollars that a message shows; None where they are not known."""
        if not self.projected:
            return None
        return self.total if self.is_single_occurrence else self.projected

    @property
    def severity(self) -> Severity:
        """By the projection."""
        return monthly_severity(self.projected)


def severity_min_usd(severity: Severity) -> Decimal:
    """From so many USD a month something has this severity."""
    return _MONTHLY_USD.get(severity, Decimal(0))


def monthly_severity(usd: Decimal) -> Severity:
    """Of so many USD a month."""
    return next((level for level, least in _MONTHLY_USD.items() if usd >= least), Severity.LOW)


def estimate_month(
    recommendations: Sequence[FamilyRecommendation], amount_kind: AmountKind, now: datetime
) -> Month:
    """What these advices come to in 30 days."""
    since = now - timedelta(days=MONTH_DAYS)
    hits = sorted(
        (at, amount or Decimal(0))
        for one in recommendations
        for at, amount in one.occurrences
        if at > since
    )
    total = sum((amount for _, amount in hits), Decimal(0))
    began = min((one.since for one in recommendations if one.occurrences), default=now)
    runs = len({at for at, _ in hits})
    if not hits or now - began >= _FULL_MONTH_AFTER:
        return Month(amount_kind, total, total, runs)
    occasions = [hits[0][0]]
    for at, _ in hits:
        if at - occasions[-1] > _OCCASION_LENGTH:
            occasions.append(at)
    count, days = len(occasions), Decimal(_ONE_OCCASION_DAYS)
    if count > 1:
        span_s = Decimal((occasions[-1] - occasions[0]).total_seconds())
        days = min(span_s / 86_400 * count / (count - 1), Decimal(MONTH_DAYS))
    return Month(amount_kind, total, total * MONTH_DAYS / days, runs, count)


def message_floor(amount_kind: AmountKind, policy: Policy) -> Decimal:
    """From how many USD on a worth has a message."""
    return policy.floor_usd if amount_kind is AmountKind.COUNTED else policy.trial_floor_usd


class Digest(Struct, frozen=True):
    """The week from `since` to `until`, both included, in days of UTC; `now`: of the advices.

    `before`: the sums of the week before, None where the history does not cover it; `changed`: the
    families whose spend changed since, the largest change first. `advices` are in any state, what
    counts first. `unsent`: the open ones that runs of the week had, and no message of the week.
    With a `route` all of it is of the jobs, and the advices, that the route is about.
    """

    since: date
    until: date
    now: datetime
    total: Sums
    previous_total: Sums | None
    changed_families: Sequence[ChangedFamily]
    advices: Sequence[FamilyRecommendation]
    unsent_recommendations: Sequence[FamilyRecommendation]
    route: Route | None = None
