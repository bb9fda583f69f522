"""Types of the history: keys and entries to write, queries and rows to read."""

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
"""How many earlier runs of its family a run is compared with: one query of about 80 KB."""
DETAIL_DAYS = 90
"""How long a detail is stored (docs/data-model.md); then the job cannot be judged again."""
UNKNOWN_NAME = "unknown"
"""The account or region, in rows and keys, of a run whose recording does not name it."""
NO_CREATION_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""Placeholder creation time; such runs are identified by their ARN alone."""

Row = TypeVar("Row")
Row_co = TypeVar("Row_co", covariant=True)


class Detail(Struct, frozen=True):
    """The data to audit a job again: stored Describe answer, tags and packed series."""

    describe: dict[str, object]
    tags: dict[str, str]
    series: bytes
    note: str | None


class AuditEntry(Struct, frozen=True):
    """One audit to record. `document["audit"]["version"]` is set by History.

    `last_modified_at` is the job's LastModifiedTime: an older state never overwrites a newer.
    `force_new_version`: also if nothing about the job changed (a new ruleset). `run_summary` has
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
    """The result of recording: a new version, or nothing (a second delivery or an older state)."""

    RECORDED = "recorded"
    DUPLICATE = "duplicate"
    OUTDATED = "older"


class RecordResult(Struct, frozen=True):
    """The outcome, with the version that is now the newest, and its summary."""

    outcome: RecordOutcome
    version: int
    summary: AuditSummary | None = None


class FindingRow(Struct, frozen=True, kw_only=True):
    """One finding of a job's newest version, as lists by rule show it."""

    rule_id: str
    rule: str
    severity: Severity
    confidence: Confidence
    bucket: Bucket
    saving_usd: Decimal | None = None
    saving_alone_usd: Decimal | None = None
    saving_up_to_usd: Decimal | None = None
    """The most that it may save: above `saving_usd` if nothing of a range is counted."""
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
        """Its run."""
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
    """By what the lists of a history are read; the values name the indexes of the table."""

    DAY = "by-day"
    FAMILY = "by-family"
    OWNER = "by-owner"
    ACCOUNT = "by-account"
    RULE = "by-rule"
    NAME = "by-name"
    DUE = "due"


class RunQuery(Struct, Generic[Row_co], frozen=True):
    """A list of a history to read: an index, and the values to look up in it."""

    index: RunIndex
    values: tuple[str, ...]

    @staticmethod
    def for_day(day: date) -> RunQuery[AuditSummary]:
        """Runs that ended on a day in UTC."""
        return RunQuery(RunIndex.DAY, (day.isoformat(),))

    @staticmethod
    def for_family(account: str, region: str, family: str) -> RunQuery[AuditSummary]:
        """Runs of one family."""
        return RunQuery(RunIndex.FAMILY, (account, region, family))

    @staticmethod
    def for_owner(owner: str) -> RunQuery[AuditSummary]:
        """Runs of one owner."""
        return RunQuery(RunIndex.OWNER, (owner,))

    @staticmethod
    def for_account(account: str) -> RunQuery[AuditSummary]:
        """Runs of one account."""
        return RunQuery(RunIndex.ACCOUNT, (account,))

    @staticmethod
    def for_name(name: str) -> RunQuery[AuditSummary]:
        """Runs of the jobs with a name, in any case, as ARNs have it in lower case."""
        return RunQuery(RunIndex.NAME, (name.lower(),))

    @staticmethod
    def for_rule(rule: str) -> RunQuery[RuleFinding]:
        """Findings of one rule."""
        return RunQuery(RunIndex.RULE, (rule,))

    @staticmethod
    def due_until(until: datetime) -> RunQuery[AuditSummary | BadHistory]:
        """Runs whose audit is due by `until`; the oldest first, unlike other lists.

        A row that cannot be read is in the list as its error.
        """
        return RunQuery(RunIndex.DUE, (until.isoformat(),))


class SendClaim(enum.Enum):
    """Whether a notice may be sent now."""

    FIRST = "first"
    """No try has posted it."""
    REPEAT = "repeat"
    """An earlier try may have posted it: send it once more, marked as a possible repeat."""
    EXHAUSTED = "spent"
    """Its first send and its repeat both ended without an answer: a third needs a person."""
    DONE = "done"
    """Sent: nothing to do."""
    BUSY = "busy"
    """Another delivery holds the lease: come back later."""
