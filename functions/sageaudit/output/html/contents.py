"""The data of a report: audits, measurements, sums and rows, all read before it is written."""

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
"""The maximum number of job rows in an account's report. A browser sorts this many in a second."""
MAX_DETAILED_JOBS = 200
"""The maximum number of jobs with their own section in an account's report, by `rank_key`."""


class JobReport(Struct, frozen=True):
    """One audit with its metric series.

    `usage` is None if the metrics were not recorded or kept. `guides` are shown only on the job's
    own page, and are empty in an account's report.
    """

    document: AuditDocument
    usage: Measurements | None
    guides: Sequence[GuideDocument] = ()


class PreviousPeriod(Struct, frozen=True):
    """The period before a report, of equally many days; `since` and `until` are included.

    `total`: the sums of all its jobs. `changes`: the families whose spend changed since then, the
    largest change first.
    """

    since: date
    until: date
    total: Sums
    changes: Sequence[ChangedFamily]


class ColumnSums(Struct, frozen=True):
    """Sums by the values of one column of the table of jobs.

    `previous`: the sums of the previous period; None if the history does not cover that period.
    """

    column: str
    sums: Mapping[str | None, Sums]
    previous: Mapping[str | None, Sums] | None = None


class TopChange(Struct, frozen=True):
    """A recommended change in a family: a finding of the run `summaries[summary_index]`."""

    family: str
    fix: FamilyFix
    summary_index: int


class AccountReport(Struct, frozen=True):
    """The audits of a period in UTC days; `since` and `until` are included.

    `summaries` are ordered by `rank_key`. `details` maps an index in `summaries` to the job's
    report; not every job has a report.
    `omitted_jobs`: the number of jobs that are only in the sums. `recommendations` are as of the
    end of the last day. `previous_period` is None if the history does not cover it.
    """

    scope: str
    since: date
    until: date
    total: Sums
    days: Mapping[date, Sums]
    column_sums: Sequence[ColumnSums]
    summaries: Sequence[AuditSummary]
    details: Mapping[int, JobReport]
    top_changes: Sequence[TopChange] = ()
    recommendations: Sequence[FamilyRecommendation] = ()
    previous_period: PreviousPeriod | None = None
    coverage: Coverage | None = None
    omitted_jobs: int = 0


def rank_key(summary: AuditSummary) -> tuple[Decimal, Decimal, str, str]:
    """Returns a sort key: most avoidable and lost dollars first, then highest cost, then name."""
    wasted_usd = (summary.avoidable_usd or Decimal(0)) + (summary.lost_usd or Decimal(0))
    return -wasted_usd, -(summary.total_usd or Decimal(0)), summary.job, summary.key.arn
