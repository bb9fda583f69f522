"""What a report is made of: audits, measurements, sums and rows, all read before it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.advice.advice import FamilyRecommendation
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.ranking import FamilyFix
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import ChangedFamily, Sums
from sageaudit.domain.guides import GuideDocument
from sageaudit.domain.reconcile.coverage import Coverage
from sageaudit.domain.usage.measurements import Measurements

MAX_LISTED_JOBS = 20_000
"""Jobs of an account's report that have a row: a browser sorts as many in a second."""
MAX_DETAILED_JOBS = 200
"""Jobs with a section of their own in an account's report: those that come first in `by_rank`."""


class JobReport(Struct, frozen=True):
    """One audit with the series it was judged by; None where they were not recorded or kept.

    `guides`: those of its own page; a job in an account's report has none.
    """

    document: AuditDocument
    usage: Measurements | None
    guides: Sequence[GuideDocument] = ()


class PeriodBefore(Struct, frozen=True):
    """As many days before those of a report, both included, with their sums.

    `changes`: the families whose spend changed since, the largest change first.
    """

    since: date
    until: date
    total: Sums
    changes: Sequence[ChangedFamily]


class SumsBy(Struct, frozen=True):
    """Daily sums by the values of one column of the table of jobs.

    `before`: those of the days before; None where the history does not cover them.
    """

    column: str
    sums: Mapping[str | None, Sums]
    before: Mapping[str | None, Sums] | None = None


class TopChange(Struct, frozen=True):
    """What to change in a family: a finding of its run `heads[at]`."""

    family: str
    fix: FamilyFix
    summary_index: int


class AccountReport(Struct, frozen=True):
    """The audits of a period, `since` and `until` included, in days of UTC.

    `total`, `days` and `by` are daily sums. `heads` are in the order of `by_rank`; `details` are of
    some of them, by their place. `before` is None where the history does not cover the days before.
    `recommendations`: advices as they stand at the end of the last day. `left_out`: how many jobs
    come after these heads, and are in the sums alone.
    """

    scope: str
    since: date
    until: date
    total: Sums
    days: Mapping[date, Sums]
    by: Sequence[SumsBy]
    summaries: Sequence[AuditSummary]
    details: Mapping[int, JobReport]
    top_changes: Sequence[TopChange] = ()
    recommendations: Sequence[FamilyRecommendation] = ()
    period_before: PeriodBefore | None = None
    coverage: Coverage | None = None
    left_out: int = 0


def rank_key(head: AuditSummary) -> tuple[Decimal, Decimal, str, str]:
    """Sort key: avoidable and lost dollars first, then the cost, then the name."""
    wasted = (head.avoidable_usd or Decimal(0)) + (head.lost_usd or Decimal(0))
    return -wasted, -(head.total_usd or Decimal(0)), head.job, head.key.arn
