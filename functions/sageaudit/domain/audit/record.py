"""Types of the history: keys and entries to write; queries, and rows to read."""

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
from sageaudit.errors import BadHistory

MAX_EARLIER_RUNS = 50
"""A run is compared with at most this many earlier runs of its family: one query of about 80 KB."""
DETAIL_DAYS = 90
"""How long a detail is stored (docs/data-model.md). Afterwards the job cannot be judged again."""
UNKNOWN_NAME = "unknown"
"""Replaces the account or region of a run whose recording does not name it, in rows and keys."""
NO_CREATION_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""Replaces an unknown creation time. Such runs are identified by their ARN alone."""

Row = TypeVar("Row")
Row_co = TypeVar("Row_co", covariant=True)


class Detail(Struct, frozen=True):
    """What is needed to audit a job again: stored Describe answer, tags and packed series."""

    describe: dict[str, object]
    tags: dict[str, str]
    series: bytes
    note: str | None


class AuditEntry(Struct, frozen=True):
    """One audit to record. History sets `document["audit"]["version"]`.

    `last_modified_at`: the job's LastModifiedTime; an older state never overwrites a newer one.
    `force_new_version`: even if nothing about the job changed (a new ruleset). `run_summary`:
    RUN_FIELDS for the family's later runs; None for a job that was never described. `earlier_runs`:
    the family's runs that this audit was compared with, newest first; None if none were read.
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
    """The result of recording: a new version or, for a repeated delivery or an older state,
    nothing.
    """

    RECORDED = "recorded"
    DUPLICATE = "duplicate"
    OUTDATED = "older"


class RecordResult(Struct, frozen=True):
    """The outcome, with the version that is now the newest and its summary."""

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
    saving_usd: Decimal | None = None
    saving_alone_usd: Decimal | None = None
    saving_up_to_usd: Decimal | None = None
    """The most that it may save. It is above `saving_usd` if nothing of a range is counted."""
    summary: str
    fix: str | None = None
    """What to change, in one line; None for a finding without a fix."""
    estimated: bool = False
    """Whether the dollars rest on an estimated rate."""


class RuleFinding(Struct, frozen=True):
    """A finding in a list of one rule, with its audit's summary.

    The summary's severity, and whether its dollars are estimates, are the finding's. Unless
    `is_loaded`, the summary has only the fields that the list itself contains.
    """

    finding: FindingRow
    summary: AuditSummary
    is_loaded: bool = False

    @property
    def key(self) -> JobKey:
        """The key of its run."""
        return self.summary.key

    @property
    def ended_at(self) -> datetime:
        """When its run ended."""
        return self.summary.ended_at

    @property
    def tags(self) -> Mapping[str, str | None]:
        """The values of the policy's cost tags."""
        return self.summary.tags


class RunIndex(enum.StrEnum):
    """The indexes by which a history is read; the values are their names in the table."""

    DAY = "by-day"
    FAMILY = "by-family"
    OWNER = "by-owner"
    ACCOUNT = "by-account"
    RULE = "by-rule"
    NAME = "by-name"
    DUE = "due"


class RunQuery(Struct, Generic[Row_co], frozen=True):
    """A query for a list of a history: an index, and the values to look up in it."""

    index: RunIndex
    values: tuple[str, ...]

    @staticmethod
    def for_day(day: date) -> RunQuery[AuditSummary]:
        """Queries the runs that ended on a day in UTC."""
        return RunQuery(RunIndex.DAY, (day.isoformat(),))

    @staticmethod
    def for_family(account: str, region: str, family: str) -> RunQuery[AuditSummary]:
        """Queries the runs of one family."""
        return RunQuery(RunIndex.FAMILY, (account, region, family))

    @staticmethod
    def for_owner(owner: str) -> RunQuery[AuditSummary]:
        """Queries the runs of one owner."""
        return RunQuery(RunIndex.OWNER, (owner,))

    @staticmethod
    def for_account(account: str) -> RunQuery[AuditSummary]:
        """Queries the runs of one account."""
        return RunQuery(RunIndex.ACCOUNT, (account,))

    @staticmethod
    def for_name(name: str) -> RunQuery[AuditSummary]:
        """Queries the runs of jobs with a name, ignoring its case, because ARNs have it in lower
        case.
        """
        return RunQuery(RunIndex.NAME, (name.lower(),))

    @staticmethod
    def for_rule(rule: str) -> RunQuery[RuleFinding]:
        """Queries the findings of one rule."""
        return RunQuery(RunIndex.RULE, (rule,))

    @staticmethod
    def due_until(until: datetime) -> RunQuery[AuditSummary | BadHistory]:
        """Queries the runs whose audit is due by `until`. Unlike other lists, the oldest come
        first.

        A row that cannot be read is returned as its error.
        """
        return RunQuery(RunIndex.DUE, (until.isoformat(),))


class SendClaim(enum.Enum):
    """Whether a notice may be sent now."""

    FIRST = "first"
    """No try has posted it."""
    REPEAT = "repeat"
    """An earlier try may have posted it: send it once more, marked as a possible repeat."""
    EXHAUSTED = "spent"
    """Its first send and its repeat both ended without an answer. A person must decide about a
    third."""
    DONE = "done"
    """Sent: nothing to do."""
    BUSY = "busy"
    """Another delivery has the lease: try again later."""
