"""One attempt to audit a run: its trigger, dependencies, waits and outcomes.

The message carries a counter for each wait reason. So a stale Describe answer never uses up the
waits for late metrics.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import RecordResult
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.ref import JobEndEvent
from sageaudit.domain.policy.policy import Policy
from sageaudit.ports import History, Jobs, Markets, Metrics
from sageaudit.rules.card import Ruleset

_MAX_DELAY_S = 900
"""The longest delay of a message in SQS."""


class AuditTrigger(enum.Enum):
    """What triggers an audit. The sweep's events are deliveries, like SageMaker's."""

    DELIVERY = enum.auto()
    """A message of the queue; it can be sent again later."""
    REDELIVERY = enum.auto()
    """The same message again: an earlier delivery may have stopped after recording the audit."""
    PERSON = enum.auto()
    """A command: it uses the data available now, and never waits."""


class WaitReason(enum.StrEnum):
    """Reasons for which an audit waits."""

    NOT_FOUND = "not_found"
    """Describe does not find the run yet, or its answer cannot be read."""
    DESCRIBE_STALE = "describe_stale"
    """Describe still says that the job runs. Waiting messages have the value in an attribute."""
    LATE_METRICS = "late_metrics"
    CHILDREN = "children"
    """Jobs that a roll-up launched are not audited yet."""
    TAGS = "tags"
    """ListTags was throttled or did not answer."""


DELAYS_S: Mapping[WaitReason, tuple[int, ...]] = {
    # Eventual consistency takes seconds; after six minutes the job is gone.
    WaitReason.NOT_FOUND: (60, 300),
    WaitReason.DESCRIBE_STALE: (60, 120, 240, 480, *[_MAX_DELAY_S] * 8),
    WaitReason.LATE_METRICS: (_MAX_DELAY_S,),
    WaitReason.CHILDREN: (_MAX_DELAY_S,) * 3,
    # Tags decide family and owner, so an audit waits out an hour of throttling.
    WaitReason.TAGS: (60, 120, 240, 480, *[_MAX_DELAY_S] * 5),
}
"""Seconds of each wait, by reason; after the last wait the job is audited without the data."""


class AuditDeferred(Struct, frozen=True):
    """The audit must wait: deliver the same event again after `delay_s` seconds."""

    delay_s: int
    wait_reason: WaitReason
    explanation: str


class AuditDependencies(Struct, frozen=True):
    """What an audit reads from, writes to and is judged by."""

    jobs: Jobs
    metrics: Metrics
    history: History
    markets: Markets
    policy: Policy
    ruleset: Ruleset
    fingerprint_key: Callable[[], bytes | None]
    is_history_persistent: bool = True
    """False for a temporary history: it lacks a family's runs, and no audit is repeated."""
    can_metrics_arrive: bool = True
    """False for a recording, which gets no further metrics."""
    has_all_tags: bool = True
    """False for a recording that may lack tags of the job."""
    notes: tuple[str, ...] = ()
    """What could not be read when the job was recorded."""


class Attempt(Struct, frozen=True):
    """One attempt to audit the run of `ended`, as of `now`.

    `wait_counts`: how often this event has waited, by reason. `force`: record the audit even if
    nothing about the run changed. `latest_summary`: the newest audit of the run; None with `force`,
    so that such an attempt is not a reaudit.
    """

    ended: JobEndEvent
    deps: AuditDependencies
    now: datetime
    caller: AuditTrigger
    wait_counts: Mapping[WaitReason, int]
    force: bool
    latest_summary: AuditSummary | None

    @property
    def is_reaudit(self) -> bool:
        """Whether the run's audit is due to be repeated."""
        return self.latest_summary is not None and self.latest_summary.is_due(self.now)

    def next_wait(self, reason: WaitReason, explanation: str) -> AuditDeferred | None:
        """Returns the next wait for this reason; None if this attempt cannot wait.

        All waits may be used up. A reaudit never waits: it is due again later if data is missing.
        """
        if self.caller is AuditTrigger.PERSON or self.is_reaudit:
            return None
        delays_s = DELAYS_S[reason][self.wait_counts.get(reason, 0) :]
        return AuditDeferred(delays_s[0], reason, explanation) if delays_s else None

    def is_already_audited(self, modified_at: datetime | None) -> bool:
        """Whether the history already has this state of the run, and its audit is not due.

        If a person requests the audit, it is repeated even before it is due, unless it is final.
        """
        summary = self.latest_summary
        if summary is None or summary.last_modified_at != modified_at or self.is_reaudit:
            return False
        is_requested = self.ended.is_replayed or self.caller is AuditTrigger.PERSON
        return summary.settled or (summary.due_at is not None and not is_requested)


class AuditRecorded(Struct, frozen=True):
    """The audit is in the history: recorded now, or by an earlier delivery.

    `audit` is None if the stored audit was only made final. `notes`: what could not be read or
    stored.
    """

    result: RecordResult
    key: JobKey
    document: AuditDocument
    audit: Audit | None
    notes: tuple[str, ...] = ()
    is_reaudit: bool = False


class AlreadyAudited(Struct, frozen=True):
    """The history already has this state of the run: only Describe and `summary` were read."""

    summary: AuditSummary


class EventDropped(Struct, frozen=True):
    """A person's replayed event names no finished run, so nothing is recorded."""

    reason: str


AuditOutcome = AuditRecorded | AuditDeferred | AlreadyAudited | EventDropped
