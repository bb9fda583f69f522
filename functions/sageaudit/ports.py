"""What the flow asks of the world. Adapters implement these; fakes in tests do too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Protocol

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import (
    Claim,
    Detail,
    Entry,
    FindingRow,
    Head,
    JobKey,
    Page,
    Recorded,
)
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements


@dataclass(frozen=True, slots=True)
class LastNotice:
    """The last notice of a job: the version of its audit, and its severity and dollars."""

    version: int
    news: str


class Jobs(Protocol):
    """SageMaker, as it answers Describe*, ListTags and the children of a tuning job."""

    def describe(self, ref: JobRef) -> dict[str, Any]:
        """The Describe* answer. Raises JobNotFound, AccessDenied, Throttled or Unavailable."""

    def tags(self, ref: JobRef) -> dict[str, str]:
        """The job's tags. Raises AccessDenied, Throttled or Unavailable."""

    def children(self, ref: JobRef) -> Iterator[JobRef]:
        """The training jobs of a tuning job, paged as they are read."""


class Metrics(Protocol):
    """CloudWatch."""

    def read(self, job: Job, now: datetime) -> Measurements:
        """The job's series. What cannot be read is said in it; raises Throttled or Unavailable."""


class Markets(Protocol):
    """Instance types, and the prices of a job's own region and day."""

    def market(self, job: Job, now: datetime) -> Market:
        """What to bill this job with. Never raises for a price: what is not known is unknown."""


class History(Protocol):
    """The table of audits. Lists are newest first unless said otherwise.

    An iterator reads on as it is asked, and raises what the table answers only then; a page is for
    who comes back with its cursor.
    """

    def record(self, entry: Entry) -> Recorded:
        """Writes HEAD, version, findings and detail in one conditional transaction."""

    def head(self, key: JobKey) -> Head | None:
        """The newest version's row."""

    def audit(self, key: JobKey, version: int | None = None) -> AuditDocument | None:
        """One version's document, the newest by default."""

    def detail(self, key: JobKey) -> Detail | None:
        """What is needed to judge the job again, while it is kept."""

    def by_day(self, day: date) -> Iterator[Head]:
        """Jobs that ended on a day in UTC."""

    def by_family(
        self,
        account: str,
        region: str,
        family: str,
        *,
        before: datetime | None = None,
        limit: int | None = None,
    ) -> Iterator[Head]:
        """Runs of one family that ended before a moment (None: all), `limit` of them at most."""

    def by_owner(self, owner: str, *, limit: int, cursor: str | None = None) -> Page[Head]:
        """Jobs of one owner."""

    def by_account(self, account: str, month: str) -> Iterator[Head]:
        """`month` is YYYY-MM, by the job's end in UTC."""

    def by_rule(
        self, rule: str, month: str, *, limit: int, cursor: str | None = None
    ) -> Page[FindingRow]:
        """Findings of one rule in a month, YYYY-MM."""

    def due(self, before: datetime, *, limit: int, cursor: str | None = None) -> Page[Head]:
        """Heads of audits that are not final and were due before a time, the oldest first."""

    def family_avoidable_usd(
        self,
        account: str,
        region: str,
        family: str,
        *,
        since: datetime,
        enough_usd: Decimal,
        other_than: JobKey | None = None,
    ) -> Decimal:
        """Avoidable plus lost dollars of the family since then; stops counting at `enough_usd`.

        `other_than` is left out: an index may lag behind the stream, so a caller that holds an
        audit adds that audit's dollars itself.
        """


class Ledger(Protocol):
    """Which notices were sent: kept so that a second delivery never sends one twice."""

    def claim_family_day(self, family: str, day: date, audit: str) -> bool:
        """True when this audit is the family's message of the day, also when asked again."""

    def last_notice(self, job: str) -> LastNotice | None:
        """The last notice of this run of a job."""

    def remember_notice(self, job: str, notice: LastNotice) -> None:
        """Keeps it as the last one; an older version never replaces a newer one."""

    def claim_send(self, notice_id: str, now: datetime, lease_s: int) -> Claim:
        """Takes the lease to send one notice."""

    def mark_sent(self, notice_id: str, now: datetime) -> None:
        """It was posted: it is never sent again."""

    def mark_failed(self, notice_id: str, now: datetime, reason: str) -> None:
        """A permanent failure: it is not tried again."""

    def release(self, notice_id: str) -> None:
        """Gives the lease back when nothing was posted: the next claim is as this one was."""


class Queue(Protocol):
    """One SQS queue."""

    def send(
        self, body: str, *, delay_s: int = 0, attributes: dict[str, str] | None = None
    ) -> None:
        """`delay_s` 0..900; attributes are strings."""


class Channel(Protocol):
    """One way to send notices, connected to its address."""

    def as_repeat(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The payload, marked as one that may have been posted before."""

    def post(self, payload: dict[str, Any]) -> None:
        """Raises RateLimited, ChannelBroken (permanent), ChannelUnavailable or MaybeSent."""
