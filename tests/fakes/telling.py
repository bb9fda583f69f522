"""A family over some days: runs are audited, decided about and told, as a scenario says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

from sageaudit.adapters.channels.catalogue import writers
from sageaudit.adapters.lambda_runtime.stream import Change
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Head, JobKey
from sageaudit.domain.audit.sums import Scope, SumRow, Sums
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import AwsError
from sageaudit.ports import History, Queue, TellLedger
from sageaudit.workflows.notify.decide import (
    Later,
    NewAudit,
    NotifyDependencies,
    Queued,
    Quiet,
    notify,
)
from tests.fakes.delivering import PK, RecordingQueue, stream_record
from tests.fakes.documents import document, finding, job
from tests.fakes.memory_ledger import MemoryLedger

MORNING = datetime(2026, 5, 20, 9, 0, tzinfo=UTC)
EXEMPT = {"by": "policy", "until": "2026-12-31", "reason": "benchmark"}


def run_document(
    name: str = "train-bert-0412",
    *,
    severity: str = "low",
    avoidable: str | None = "0",
    lost: str | None = "0",
    lost_up_to: str | None = None,
    exempt: str | None = None,
    possible: str = "0",
    idle: dict[str, Any] | None = None,
    ended_at: datetime = MORNING,
    whole: str | None = None,
    **overrides: Any,
) -> AuditDocument:
    """An audit with one finding for each kind of dollars; None is unknown. `idle`: its figures."""
    up_to = lost_up_to or lost
    amounts = [Decimal(one) for one in (avoidable, up_to, exempt, possible) if one]
    total = Decimal(whole) if whole else max(sum(amounts, Decimal(0)), Decimal("0.01"))
    unknown = avoidable is None and lost is None
    findings = []
    if avoidable is None or Decimal(avoidable):
        findings.append(_finding("gpu-idle", severity, "avoidable", avoidable))
    if (lost is not None and Decimal(up_to or 0)) or (lost is None and avoidable is not None):
        span = [Decimal(lost or 0), Decimal(lost_up_to)] if lost_up_to else None
        one = _finding("failed-spend", severity, "lost", lost)
        findings.append({**one, "saving_range_usd": span})
    if exempt:
        one = _finding("gpu-underused", severity, "avoidable", "0")
        findings.append({**one, "saving_alone_usd": Decimal(exempt), "exempt": EXEMPT})
    if Decimal(possible):
        findings.append(_finding("spot-not-used", "low", "possible", possible))
    bill = {
        **document()["bill"],
        "total_usd": None if unknown else total,
        "complete": not unknown,
        "lines": [],
    }
    return document(
        job=job(name=name, ended_at=ended_at.isoformat().replace("+00:00", "Z")),
        bill=bill,
        phases=[],
        avoidable_usd=None if avoidable is None else Decimal(avoidable),
        lost_usd=None if lost is None else Decimal(lost),
        lost_up_to_usd=None if up_to is None else Decimal(up_to),
        possible_usd=Decimal(possible),
        findings=findings,
        unknown=[],
        waterfall=[],
        **{"idle_capacity": _idle(**idle) if idle else None, **overrides},
    )


def _finding(rule: str, severity: str, bucket: str, saving: str | None) -> Any:
    usd = None if saving is None else Decimal(saving)
    return finding(
        rule=rule,
        id="SA201",
        severity=severity,
        bucket=bucket,
        summary="The GPUs did nothing for most of the run.",
        saving_usd=usd,
        saving_alone_usd=usd,
        fix=[],
    )


def _idle(
    hours: str, *, paid: str | None = None, unit: str = "gpu_hours", usd: str | None = None
) -> Any:
    idle = Decimal(hours)
    whole = Decimal(paid) if paid else idle * Decimal("1.2")
    return {
        "unit": unit,
        "paid": whole,
        "worked": whole - idle,
        "idle": idle,
        "list_usd": None if usd is None else Decimal(usd),
        "counted_usd": None if usd is None else Decimal(0),
        "look_at": [],
    }


@dataclass
class FamilyHistory:
    """What the table has of the family: the newest version of each run, and its other dollars."""

    documents: dict[tuple[JobKey, int], AuditDocument] = field(default_factory=dict)
    others_usd: Decimal = Decimal(0)
    ahead: int = 0
    """By how many versions the newest one is ahead of the one in hand."""

    def head(self, key: JobKey) -> Head | None:
        versions = [version for one, version in self.documents if one == key]
        if not versions:
            return None
        newest = max(versions) + self.ahead
        return cast("Head", _Head(newest, "111122223333", "us-east-1", "train-bert", None))

    def audit(self, key: JobKey, version: int | None = None) -> AuditDocument | None:
        return self.documents.get((key, version or 1))

    def sums(self, scope: Scope, since: date, until: date, **of: Any) -> Iterator[SumRow]:
        row = SumRow(scope, of["account"], of["region"], of["name"], until, Sums())
        yield replace(row, sums=Sums(avoidable_usd=self.others_usd))


@dataclass(frozen=True)
class _Head:
    version: int
    account: str
    region: str
    family: str
    sums: None


@dataclass
class Told:
    """One message: its first line, without the channel that it came by."""

    first_line: str
    text: str
    subject: str
    at: datetime


class FamilyStory:
    """Decides about audits of one family as `notify` does; remembers the messages."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.ledger: Any = MemoryLedger()
        self.history = FamilyHistory()
        self.queue = RecordingQueue()
        self.sns = RecordingQueue()
        self.installed_at: datetime | None = None
        self.messages: list[Told] = []
        self.read = 0

    def audited(
        self,
        whole: AuditDocument,
        at: datetime,
        *,
        version: int = 1,
        now: datetime | None = None,
    ) -> Queued | Quiet | Later | AwsError:
        """Writes an audit at a moment and decides about it, then or later; errors are returned."""
        audit = self.audit(whole, at, version=version)
        self.history.documents[audit.key, version] = whole
        return self.decided(audit, now or at)

    def audit(self, whole: AuditDocument, at: datetime, *, version: int = 1) -> NewAudit:
        """The audit as `notify` gets it."""
        pk = PK.replace("train-bert-0412", whole["job"]["name"])
        pk, key, version = Change(stream_record(whole, version=version, pk=pk)).run()
        return NewAudit(pk, key, version, at, whole)

    def decided(self, audit: NewAudit, now: datetime) -> Queued | Quiet | Later | AwsError:
        """One delivery of an audit."""
        try:
            return notify(audit, self.dependencies(), now=now)
        except AwsError as error:
            return error
        finally:
            new = self.sns.sent[self.read :]
            self.read = len(self.sns.sent)
            self.messages += [_told(body, now) for body, _ in new]

    def dependencies(self) -> NotifyDependencies:
        """Two channels, each with its queue."""
        return NotifyDependencies(
            history=cast("History", self.history),
            ledger=cast("TellLedger", self.ledger),
            queues={"sns": cast("Queue", self.sns), "slack": cast("Queue", self.queue)},
            policy=self.policy,
            writers=writers(("sns", "slack")),
            installed_at=lambda: self.installed_at,
        )

    def notice_ids(self) -> set[str]:
        """What deliver would post, each once."""
        return {json.loads(body)["notice_id"] for body, _ in (*self.sns.sent, *self.queue.sent)}


def _told(body: str, at: datetime) -> Told:
    payload = json.loads(body)["payload"]
    text = payload["message"]
    return Told(text.split("\n", 1)[0], text, payload["subject"], at)


def clock(text: str, day: datetime = MORNING) -> datetime:
    """`09:10`, `yesterday 23:50` or `00:00:00` as a moment."""
    word, _, rest = text.rpartition(" ")
    hours, minutes, *seconds = (int(part) for part in rest.split(":"))
    moment = day.replace(hour=hours, minute=minutes, second=seconds[0] if seconds else 0)
    return moment - timedelta(days=1) if word == "yesterday" else moment
