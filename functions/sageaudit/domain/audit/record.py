"""Types of the history: keys, entries to write, queries, and the rows that queries return."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Generic, TypeVar

from msgspec import Struct

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.bill.finding import Bucket, Confidence, Severity

MAX_EARLIER_RUNS = 50
"""The most earlier runs that a run is compared with: one query of about 80 KB."""
DETAIL_DAYS = 90
"""The days for which a detail is stored (docs/data-model.md)."""
UNKNOWN_NAME = "unknown"
"""Replaces the account or region of a run in rows and keys if its recording does not name it."""
NO_CREATION_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""Replaces an unknown creation time. A run with this time is identified by its ARN alone."""

Row = TypeVar("Row")
Row_co = TypeVar("Row_co", covariant=True)


class Detail(Struct, frozen=True):
    """What is needed to audit a job again: the Describe answer, tags and packed series.

    `note`: which series were too large to store; None if all are stored.
    """

    describe: dict[str, object]
    tags: dict[str, str]
    series: bytes
    note: str | None


class AuditEntry(Struct, frozen=True):
    """One audit to record. History sets `document["audit"]["version"]`.

    `last_modified_at`: the job's LastModifiedTime; an older state never overwrites a newer one.
    `force_new_version`: records a version even if nothing about the job changed. `run_summary`:
    what the family's later runs read; None if the job was never described. `earlier_runs`: the runs
    that this audit was compared with; None if none were read.
    """

    key: JobKey
    last_modified_at: datetime
    document: AuditDocument
    family_version: int
    detail: Detail | None
    force_new_version: bool = False
    run_summary: AuditSummary | None = None
    earlier_runs: tuple[AuditSummary, ...] | None = None


class RecordOutcome(enum.Enum):
    """The result of recording an audit.

    Nothing is recorded for a repeated delivery or an older state of the job.
    """

    RECORDED = "recorded"
    DUPLICATE = "duplicate"
    OUTDATED = "older"


class RecordResult(Struct, frozen=True):
    """The outcome of recording an audit, and the newest version with its summary."""

    outcome: RecordOutcome
    version: int
    summary: AuditSummary | None = None


class FindingRow(Struct, frozen=True, kw_only=True):
    """One finding of a job's newest version, for lists by rule."""

    rule_id: str
    rule: str
    severity: Severity
    confidence: Confidence
    bucket: Bucket
    """The sum that the finding's dollars belong to."""
    saving_usd: Decimal | None = None
    saving_alone_usd: Decimal | None = None
    saving_up_to_usd: Decimal | None = None
    """The most that the finding may save. It is above `saving_usd` if a range's upper end is not
    counted."""
    summary: str
    fix: str | None = None
    """What to change, in one line; None for a finding without a fix."""
    estimated: bool = False
    """Whether the dollars depend on an estimated rate."""


class RuleFinding(Struct, frozen=True):
    """A finding in a list of one rule, with its audit's summary.

    `is_loaded`: False if the summary has only the fields that the list contains.
    """

    finding: FindingRow
    summary: AuditSummary
    is_loaded: bool = False

    @property
    def key(self) -> JobKey:
        """The key of the finding's run."""
        return self.summary.key

    @property
    def ended_at(self) -> datetime:
        """When the finding's run ended."""
        return self.summary.ended_at

    @property
    def tags(self) -> Mapping[str, str | None]:
        """The values of the policy's cost tags for the finding's run."""
        return self.summary.tags


class RunIndex(enum.StrEnum):
    """The indexes of a history. The values are their names in the table."""

    DAY = "by-day"
    FAMILY = "by-family"
    OWNER = "by-owner"
    ACCOUNT = "by-account"
    RULE = "by-rule"
    NAME = "by-name"
    DUE = "due"


class RunQuery(Struct, Generic[Row_co], frozen=True):
    """A query of a history: an index, and the values to look up in it."""

    index: RunIndex
    values: tuple[str, ...]

    @staticmethod
    def for_day(day: date) -> RunQuery[AuditSummary]:
        """Returns the query for the runs that ended on a day in UTC."""
        return RunQuery(RunIndex.DAY, (day.isoformat(),))

    @staticmethod
    def for_family(account: str, region: str, family: str) -> RunQuery[AuditSummary]:
        """Returns the query for the runs of one family."""
        return RunQuery(RunIndex.FAMILY, (account, region, family))

    @staticmethod
    def for_owner(owner: str) -> RunQuery[AuditSummary]:
        """Returns the query for the runs of one owner."""
        return RunQuery(RunIndex.OWNER, (owner,))

    @staticmethod
    def for_account(account: str) -> RunQuery[AuditSummary]:
        """Returns the query for the runs of one account."""
        return RunQuery(RunIndex.ACCOUNT, (account,))

    @staticmethod
    def for_name(name: str) -> RunQuery[AuditSummary]:
        """Returns the query for the runs of jobs with this name, ignoring case.

        ARNs have the name in lower case.
        """
        return RunQuery(RunIndex.NAME, (name.lower(),))

    @staticmethod
    def for_rule(rule: str) -> RunQuery[RuleFinding]:
        """Returns the query for the findings of one rule."""
        return RunQuery(RunIndex.RULE, (rule,))

    @staticmethod
    def due_until(until: datetime) -> RunQuery[AuditSummary]:
        """Returns the query for the runs whose audit is due by `until`, the oldest first."""
        return RunQuery(RunIndex.DUE, (until.isoformat(),))


class SendClaim(enum.Enum):
    """Whether a notice may be sent now."""

    FIRST = "first"
    """No try has posted the notice."""
    REPEAT = "repeat"
    """An earlier try may have posted the notice. Send it once more, marked as a possible repeat."""
    EXHAUSTED = "spent"
    """Neither the first send nor the repeat was answered. A person must decide about a third."""
    DONE = "done"
    """The notice was sent: nothing to do."""
    BUSY = "busy"
    """Another delivery has the lease: try again later."""
