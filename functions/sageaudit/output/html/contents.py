"""The data of a report, all read before the report is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.advice.advice import FamilyRecommendation
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.ranking import FamilyFix
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import ChangedFamily, Sums
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.guides import GuideDocument
from sageaudit.domain.reconcile.coverage import Coverage
from sageaudit.domain.usage.measurements import Measurements

MAX_LISTED_JOBS = 20_000
"""The maximum number of jobs in the table. A browser sorts this many in a second."""
MAX_DETAILED_JOBS = 200
"""The maximum number of jobs with a section of their own."""
MAX_CARD_FAMILIES = 100
"""The maximum number of families that are searched for equal changes, those with the most dollars
first. One audit is read for each."""


class RuleExplanation(Struct, frozen=True):
    """What a rule's page says, for a reader of a finding.

    `title`: the rule in one sentence. `checks` and `errors`: what the rule checks, and when it is
    wrong. Each is a paragraph, and then items that begin with `- `.
    """

    title: str
    checks: Sequence[str]
    errors: Sequence[str]


class JobReport(Struct, frozen=True):
    """One audit with the metrics of its run.

    `usage` is None if the metrics were not recorded or kept. `guides` are empty in an account's
    report. `rules`: an explanation of each rule by its name.
    """

    document: AuditDocument
    usage: Measurements | None
    guides: Sequence[GuideDocument] = ()
    rules: Mapping[str, RuleExplanation] = {}


class PreviousPeriod(Struct, frozen=True):
    """The period before a report, with the same number of days.

    `since` and `until` belong to the period. `changes`: the families whose spend has changed since,
    the largest change first.
    """

    since: date
    until: date
    total: Sums
    changes: Sequence[ChangedFamily]


class ColumnSums(Struct, frozen=True):
    """Sums for each value of one column of the jobs table.

    `previous` is None if the history does not cover the previous period.
    """

    column: str
    sums: Mapping[str | None, Sums]
    previous: Mapping[str | None, Sums] | None = None


def family_sums(column_sums: Iterable[ColumnSums]) -> ColumnSums:
    """Returns the sums by family; without rows for a period without jobs."""
    by_family = (part for part in column_sums if part.column == "Family")
    return next(by_family, ColumnSums("Family", {}))


class FamilyChange(Struct, frozen=True):
    """A recommended change in a family.

    `summary_index`: the index, in the report's `summaries`, of the run that has the finding.
    """

    family: str
    fix: FamilyFix
    summary_index: int


class TopChange(Struct, frozen=True):
    """A change that is recommended in one family or several, those with the most dollars first.

    In all families it has the same parameters with the same old and new values, and the same bucket
    of dollars.
    """

    families: Sequence[FamilyChange]

    @property
    def example(self) -> FamilyChange:
        """The family with the most dollars."""
        return self.families[0]

    @property
    def is_counted(self) -> bool:
        """Whether its dollars are avoidable or lost, and not only possible."""
        return Bucket(self.example.fix.finding["bucket"]).is_counted


class AccountReport(Struct, frozen=True):
    """The audits of a period in UTC days; `since` and `until` belong to it.

    `summaries` are sorted by `rank_key`. `details` maps an index in `summaries` to the report of
    that job. `omitted_jobs`: how many jobs are only in the sums.

    `unreadable_items`: how many stored items all figures lack, as they cannot be read.

    `recommendations_at`: now, or the end of a past period; recommendations have their states and
    30-day amounts then. `previous_period` is None if the history does not cover it.
    `rules`: an explanation of each rule by its name.
    """

    scope: str
    since: date
    until: date
    total: Sums
    days: Mapping[date, Sums]
    column_sums: Sequence[ColumnSums]
    summaries: Sequence[AuditSummary]
    details: Mapping[int, JobReport]
    recommendations_at: datetime
    top_changes: Sequence[TopChange] = ()
    recommendations: Sequence[FamilyRecommendation] = ()
    previous_period: PreviousPeriod | None = None
    coverage: Coverage | None = None
    omitted_jobs: int = 0
    unreadable_items: int = 0
    rules: Mapping[str, RuleExplanation] = {}

    @property
    def family_sums(self) -> ColumnSums:
        """The sums by family."""
        return family_sums(self.column_sums)


def rank_key(summary: AuditSummary) -> tuple[Decimal, Decimal, str, str]:
    """Returns a sort key: most avoidable and lost dollars first, then highest cost, then name."""
    wasted_usd = (summary.avoidable_usd or Decimal(0)) + (summary.lost_usd or Decimal(0))
    return -wasted_usd, -(summary.total_usd or Decimal(0)), summary.job, summary.key.arn
