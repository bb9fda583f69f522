"""Types of the history: keys and entries that are written, queries and rows that are read."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.earlier import EarlierRun, RunFacts
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.spend_qualifier import SpendQualifier
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.bill.finding import Bucket, Confidence, Severity
from sageaudit.errors import BadHistory

FAMILY_RUNS = 50
"""How many earlier runs of its family a run is compared with: one query of some 50 KB."""
DETAIL_DAYS = 90
"""How long a detail is kept, as docs/data-model.md says; after them a job is not judged again."""
NOT_NAMED = "unknown"
"""The account or region, in rows and keys, of a run whose recording does not name it."""
NO_CREATION_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""Placeholder creation time; such runs are identified by their ARN alone."""

Row = TypeVar("Row")
Row_co = TypeVar("Row_co", covariant=True)


@dataclass(frozen=True, slots=True)
class JobKey:
    """One run of a job: its ARN and creation time (a deleted job's name can be used again).

    `created_at` is the start time where the creation time is not known.
    """

    arn: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Detail:
    """What is needed to audit a job again: kept Describe answer, tags and packed series."""

    describe: dict[str, object]
    tags: dict[str, str]
    series: bytes
    note: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One audit to record. `document["audit"]["version"]` is set by History.

    `last_modified_at` is the job's LastModifiedTime: an older state never overwrites a newer.
    `fingerprint` is the keyed hash of image, data, entry point and hyperparameters, if any.
    `again` records a new version even if nothing about the job changed (a new ruleset).
    `facts` are stored in lists for the family's later runs; None for a job never described.
    `compared` are the family's earlier runs as they were read for this audit, newest first; None
    when no history was read.
    """

    key: JobKey
    last_modified_at: datetime
    document: AuditDocument
    family_version: int
    fingerprint: str | None
    detail: Detail | None
    again: bool = False
    facts: RunFacts | None = None
    compared: tuple[Head, ...] | None = None


class Verdict(enum.Enum):
    """What recording did: a new version, or nothing (a second delivery, or an older state)."""

    RECORDED = "recorded"
    DUPLICATE = "duplicate"
    OLDER = "older"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outcome, with the version that is now the newest, and its head."""

    verdict: Verdict
    version: int
    head: Head | None = field(default=None, compare=False)


class Unread:
    """A row of which some fields are read when one of them is first asked for."""

    __slots__ = ("_read",)

    @classmethod
    def partly(cls, known: Mapping[str, Any], read: Callable[[str], Mapping[str, Any]]) -> Self:
        """A row of `known` fields; `read` gives the one that is asked for, and perhaps others."""
        row, put = object.__new__(cls), object.__setattr__
        for name, value in known.items():
            put(row, name, value)
        put(row, "_read", read)
        return row

    if not TYPE_CHECKING:  # a type checker knows the fields

        def __getattr__(self, name: str) -> Any:
            for field_name, value in object.__getattribute__(self, "_read")(name).items():
                object.__setattr__(self, field_name, value)
            return object.__getattribute__(self, name)


@dataclass(frozen=True, slots=True)
class Head(Unread):
    """The newest version of one job, for lists and for comparison with the next delivery.

    Unknown dollars are None. `digest` is equal for two audits with the same content;
    `finding_ids` are the rules that have a row.
    """

    key: JobKey
    version: int
    settled: bool
    due_at: datetime | None
    last_modified_at: datetime
    job: str
    """Its name."""
    kind: str
    status: str
    account: str
    region: str
    family: str
    owner: str | None
    ended_at: datetime
    rollup: bool
    total_usd: Decimal | None
    avoidable_usd: Decimal | None
    lost_usd: Decimal | None
    top_rule: str | None
    unauditable: str | None
    digest: str
    ruleset: str
    policy: str
    family_version: int
    fingerprint: str | None
    finding_ids: tuple[str, ...]
    facts: RunFacts | None = None
    judged: Judged | None = None
    """None for an audit that was stored before audits said so."""
    spend_qualifier: SpendQualifier = SpendQualifier.UNKNOWN
    """How exactly the total is known."""
    estimated: bool | None = None
    """True where the dollars rest on an estimated rate, else None."""
    incomplete: bool | None = None
    """True where the total lacks a part, such as storage without a price, else None."""
    stamp: str | None = None
    """Changes with anything that a later run of the family may be judged by; None for a run that
    none is compared with."""
    findings_without_row: int | None = None
    """Findings that are in the document alone, as an audit has at most 40 rows; None where each has
    one. A list that shows this audit says so."""
    sums: Sums = Sums()
    """What this version adds to the daily sums."""
    severity: Severity | None = None
    """Of the most severe standing finding; None without one."""
    tags: Mapping[str, str | None] = field(default_factory=dict)
    """The policy's cost tags; None for one that the job does not have."""
    image: str | None = None
    duration_s: int | None = None
    """From start to end, and `waiting_s` from creation to start."""
    waiting_s: int | None = None
    instance_s: int | None = None
    """Billed seconds of all instances together."""
    gpu_s: int | None = None
    """Billed seconds of all GPUs together, and `idle_gpu_s` those of them that were not used; None
    where that could not be judged.
    """
    idle_gpu_s: int | None = None
    storage_usd: Decimal | None = None
    """Parts of the total, and `spot_saved_usd` what spot took off it. A roll-up has none."""
    warm_pool_usd: Decimal | None = None
    """Retained instances and their volumes."""
    spot_saved_usd: Decimal | None = None
    usage_quantities: Mapping[str, Decimal | None] = field(default_factory=dict)
    """By usage type of the bill, hours or GB-months, and `usage_costs` in USD; None if unknown.
    Prepaid and free capacity is left out, as AWS bills it elsewhere. A roll-up has none."""
    usage_costs: Mapping[str, Decimal | None] = field(default_factory=dict)
    instance: str | None = None
    """What it ran on, for people: `2 x ml.g5.xlarge`, or several groups joined by ` + `."""
    possible_usd: Decimal | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether its audit is to be made again by now."""
        return self.due_at is not None and self.due_at <= now


def earlier_run(head: Head) -> EarlierRun | None:
    """The run for comparison in rules; None for roll-ups and jobs that could not be audited."""
    if head.facts is None or head.rollup:
        return None
    return EarlierRun(
        name=head.job,
        kind=head.kind,
        status=head.status,
        family=head.family,
        owner=head.owner,
        ended_at=head.ended_at,
        total_usd=head.total_usd,
        avoidable_usd=head.avoidable_usd,
        lost_usd=head.lost_usd,
        facts=head.facts,
        judged=head.judged,
        estimated=bool(head.estimated),
    )


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding of one job's newest version, as lists show it."""

    key: JobKey
    rule_id: str
    rule: str
    severity: Severity
    confidence: Confidence
    bucket: Bucket
    job: str
    family: str
    owner: str | None
    ended_at: datetime
    saving_usd: Decimal | None
    saving_alone_usd: Decimal | None
    summary: str
    fix: str | None = None
    """What to change, in one line; None for a finding without advice."""
    estimated: bool | None = None
    """True where the dollars rest on an estimated rate, else None."""
    saving_up_to_usd: Decimal | None = None
    """What it may save at most: more than `saving_usd` where nothing is counted of a range."""


class RunIndex(enum.StrEnum):
    """What the lists of a history are ordered by; the values name the indexes of the table."""

    DAY = "by-day"
    FAMILY = "by-family"
    OWNER = "by-owner"
    ACCOUNT = "by-account"
    RULE = "by-rule"
    NAME = "by-name"
    DUE = "due"


@dataclass(frozen=True, slots=True)
class RunQuery(Generic[Row_co]):
    """Which list of a history to read: an index and the values that it is asked for."""

    index: RunIndex
    values: tuple[str, ...]

    @staticmethod
    def of_day(day: date) -> RunQuery[Head]:
        """Runs that ended on a day in UTC."""
        return RunQuery(RunIndex.DAY, (day.isoformat(),))

    @staticmethod
    def of_family(account: str, region: str, family: str) -> RunQuery[Head]:
        """Runs of one family."""
        return RunQuery(RunIndex.FAMILY, (account, region, family))

    @staticmethod
    def of_owner(owner: str) -> RunQuery[Head]:
        """Runs of one owner."""
        return RunQuery(RunIndex.OWNER, (owner,))

    @staticmethod
    def of_account(account: str) -> RunQuery[Head]:
        """Runs of one account."""
        return RunQuery(RunIndex.ACCOUNT, (account,))

    @staticmethod
    def of_name(name: str) -> RunQuery[Head]:
        """Runs of the jobs with a name, in small letters or not, as ARNs have it."""
        return RunQuery(RunIndex.NAME, (name.lower(),))

    @staticmethod
    def of_rule(rule: str) -> RunQuery[FindingRow]:
        """Findings of one rule."""
        return RunQuery(RunIndex.RULE, (rule,))

    @staticmethod
    def due(until: datetime) -> RunQuery[Head | BadHistory]:
        """Runs whose recheck time is at or before `until`; the oldest first, unlike the others.

        A row that cannot be read is in the list as the error that says why.
        """
        return RunQuery(RunIndex.DUE, (until.isoformat(),))


class Claim(enum.Enum):
    """May this notice be sent now?"""

    FIRST = "first"
    """No try has posted it."""
    REPEAT = "repeat"
    """An earlier try may have posted it: send it once more, marked as a possible repeat."""
    SPENT = "spent"
    """Its first send and its repeat both ended without an answer: a third needs a person."""
    DONE = "done"
    """Sent: nothing to do."""
    BUSY = "busy"
    """Another delivery holds the lease: come back later."""
