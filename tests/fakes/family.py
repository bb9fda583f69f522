"""Audits of one family over some days, and the alert decisions about them."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeGuard, cast

from msgspec import Struct

from sageaudit.adapters.channels.services import channel_writers
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.rows import make_summary
from sageaudit.adapters.lambda_runtime.records import parse_version
from sageaudit.domain.alert.alert import AlertDecision, AlertKind
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import AuditEntry, RunQuery
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Routes
from sageaudit.errors import AwsError
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows.notify import Notification, NotifyDependencies, notify
from tests.fakes.deliver_function import CHANNELS
from tests.fakes.documents import document, finding, idle_capacity
from tests.fakes.families import run_summary
from tests.fakes.lambda_events import PK
from tests.fakes.memory_ledger import MemoryAlertLedger, MemoryDecisions
from tests.fakes.queues import FakeQueue
from tests.fakes.sample_documents import EXEMPT

FACTS = run_summary(Purchase.ON_DEMAND)
MORNING = datetime(2026, 5, 20, 9, 0, tzinfo=UTC)


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
    """Returns an audit with one finding per kind of dollars; None means unknown.

    `idle`: keywords of its idle capacity.
    """
    up_to = lost_up_to or lost
    amounts = [Decimal(usd) for usd in (avoidable, up_to, exempt, possible) if usd]
    is_unknown = avoidable is None and lost is None
    total = Decimal(whole) if whole else max(sum(amounts, Decimal(0)), Decimal("0.01"))
    findings = []
    if avoidable is None or Decimal(avoidable):
        findings.append(_finding("gpu-idle", severity, avoidable))
    if (lost is not None and Decimal(up_to or 0)) or (lost is None and avoidable is not None):
        span = [Decimal(lost or 0), Decimal(lost_up_to)] if lost_up_to else None
        findings.append(_finding("failed-spend", severity, lost, saving_range_usd=span))
    if exempt:
        alone: dict[str, Any] = {"saving_alone_usd": Decimal(exempt), "exempt": EXEMPT}
        findings.append(_finding("gpu-underused", severity, "0", **alone))
    if Decimal(possible):
        findings.append(_finding("spot-not-used", "low", possible))
    audited: dict[str, Any] = {
        "job": {"name": name, "ended_at": ended_at},
        "bill": {
            "total_usd": None if is_unknown else total,
            "complete": not is_unknown,
            "lines": [],
        },
        "phases": [],
        "findings": findings,
        "unknown": [],
        "waterfall": [],
        "possible_usd": Decimal(possible),
        "idle_capacity": _idle(**idle) if idle else None,
    }
    return document(**audited | overrides)


def _finding(rule: str, severity: str, saving: str | None, **more: Any) -> Any:
    return finding(
        rule,
        id="SA201",
        severity=severity,
        summary="The GPUs did nothing for most of the run.",
        saving_usd=None if saving is None else Decimal(saving),
        fix=[],
        **more,
    )


def _idle(
    hours: str, *, paid: str | None = None, unit: str = "gpu_hours", usd: str | None = None
) -> Any:
    whole = Decimal(paid) if paid else Decimal(hours) * Decimal("1.2")
    return idle_capacity(str(whole), str(whole - Decimal(hours)), usd, unit=unit)


@dataclass
class FamilyHistory:
    """Fakes History for one family: all versions of its audits."""

    documents: dict[tuple[JobKey, int], AuditDocument] = field(default_factory=dict)
    facts: dict[JobKey, AuditSummary] = field(default_factory=dict)

    def newest(self, key: JobKey) -> int:
        return max(
            (version for other_key, version in self.documents if other_key == key), default=0
        )

    def summary(self, key: JobKey) -> AuditSummary | None:
        version = self.newest(key)
        if not version:
            return None
        whole = self.documents[key, version]
        entry = AuditEntry(key, MORNING, whole, 1, None, run_summary=self.facts.get(key, FACTS))
        return make_summary(entry, version, "digest")

    def take_unreadable(self) -> tuple[()]:
        return ()

    def runs(self, query: RunQuery[AuditSummary], **_: Any) -> Iterator[AuditSummary]:
        """Yields the runs of the queried family, newest first; other queries yield nothing."""
        ends = {key: whole["job"]["ended_at"] for (key, _), whole in self.documents.items()}
        for key in sorted(ends, key=lambda key: str(ends[key]), reverse=True):
            head = self.summary(key)
            if head and (head.account, head.region, head.family) == query.values:
                yield head

    def audit(self, key: JobKey, version: int | None = None) -> AuditDocument | None:
        return self.documents.get((key, version or self.newest(key)))


@dataclass
class Message:
    """One message as posted to SNS."""

    first_line: str
    text: str
    subject: str
    at: datetime


class WrittenAudit(Struct, frozen=True):
    """A version of an audit in the history."""

    key: JobKey
    version: int
    document: AuditDocument

    @property
    def pk(self) -> str:
        """The partition key of its run."""
        return keys.job_pk(self.key)


def is_sent(outcome: AlertDecision | AwsError) -> TypeGuard[AlertDecision]:
    """Whether the outcome is a message to send."""
    return isinstance(outcome, AlertDecision) and not outcome.suppressed_because


def is_first_alert(outcome: AlertDecision | AwsError) -> bool:
    """Whether it is a subject's first message, without any text about what changed."""
    if not is_sent(outcome) or outcome.kind is not AlertKind.FIRST:
        return False
    return not any(
        (outcome.news_text, outcome.follow_up_reason, outcome.previous_alert, outcome.spike)
    )


def is_suppressed(outcome: AlertDecision | AwsError) -> TypeGuard[AlertDecision]:
    """Whether the outcome is a decision to send nothing."""
    return isinstance(outcome, AlertDecision) and bool(outcome.suppressed_because)


class FamilyStory:
    """Writes audits of one family and decides about them as `notify` does; records the messages."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.history = FamilyHistory()
        self.ledger: Any = MemoryAlertLedger(self._newest)
        self.decisions = MemoryDecisions()
        self.slack = FakeQueue()
        self.sns = FakeQueue()
        self.installed_at: datetime | None = None
        self.messages: list[Message] = []
        self.queued_notices: set[tuple[str, str]] = set()
        self.notification: Notification | None = None
        """The result of the last decision."""

    def _newest(self, run: str) -> int:
        return self.history.newest(parse_version(run, "AUDIT#00001")[0])

    def write_and_decide(
        self, whole: AuditDocument, at: datetime, *, version: int = 1, now: datetime | None = None
    ) -> AlertDecision | AwsError:
        """Writes an audit at a time and decides about it then or at `now`; returns errors."""
        return self.decide(self.audit(whole, at, version=version), now or at)

    def audit(self, whole: AuditDocument, at: datetime, *, version: int = 1) -> WrittenAudit:
        """Writes an audit; returns it as `notify` gets it."""
        pk = PK.replace("train-bert-0412", whole["job"]["name"])
        key, version = parse_version(pk, f"AUDIT#{version:05d}")
        self.history.documents[key, version] = whole
        return WrittenAudit(key, version, whole)

    def decide(self, audit: WrittenAudit, now: datetime) -> AlertDecision | AwsError:
        """Delivers an audit once and queues its notices."""
        try:
            deps = self.dependencies()
            self.notification = notify(audit.key, audit.version, audit.document, deps, now=now)
        except AwsError as error:
            return error
        else:
            return self.notification.alert_decision
        finally:
            self.queue_notices(now)

    def queue_notices(self, now: datetime) -> None:
        """Queues the notices; if a queue fails, its notice is queued at the next call."""
        for place, (channel, body) in self.ledger.notices.items():
            if place in self.queued_notices:
                continue
            with suppress(AwsError):
                self.queues[channel].send(body)
                self.queued_notices.add(place)
                if channel == "sns":
                    self.messages.append(_message(body, now))

    @property
    def queues(self) -> dict[str, Any]:
        """The queues by channel."""
        return {"sns": self.sns, "slack": self.slack}

    def dependencies(self) -> NotifyDependencies:
        """Returns the dependencies of `notify`; with two channels if the policy names none."""
        policy = self.policy
        if len(policy.channels) == 1:
            policy = replace(policy, channels=CHANNELS, routes=Routes(tuple(CHANNELS)))
        return NotifyDependencies(
            history=cast("History", self.history),
            ledger=self.ledger,
            decisions=self.decisions,
            policy=policy,
            writers=channel_writers(policy.channels),
            installed_at=lambda: self.installed_at,
        )

    def notice_ids(self) -> set[str]:
        """Returns the ids of all queued notices."""
        return {json.loads(body)["notice_id"] for body, _ in (*self.sns.sent, *self.slack.sent)}


def _message(body: str, at: datetime) -> Message:
    payload = json.loads(body)["payload"]
    text = payload["message"]
    return Message(text.split("\n", 1)[0], text, payload["subject"], at)


def clock(text: str, day: datetime = MORNING) -> datetime:
    """Parses `09:10`, `yesterday 23:50` or `00:00:00` into a time on or before `day`."""
    word, _, rest = text.rpartition(" ")
    hours, minutes, *seconds = (int(part) for part in rest.split(":"))
    moment = day.replace(hour=hours, minute=minutes, second=seconds[0] if seconds else 0)
    return moment - timedelta(days=1) if word == "yesterday" else moment
