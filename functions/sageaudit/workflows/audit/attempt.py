"""One attempt to audit a run: its trigger, dependencies, waits and outcomes.

A message counts its waits by reason. So waits for a stale Describe answer do not use up the waits
for late metrics.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import RecordResult
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.describe import ParsedAnswer, parse_answer
from sageaudit.domain.job.ref import JobEndEvent
from sageaudit.domain.policy.policy import Policy
from sageaudit.ports import History, Jobs, Markets, Metrics
from sageaudit.rules.card import Ruleset

_MAX_DELAY_S = 900
"""The longest delay of an SQS message, in seconds."""


class AuditTrigger(enum.Enum):
    """What triggers an audit. Events from the sweep count as DELIVERY, like SageMaker's."""

    DELIVERY = enum.auto()
    """A message's first delivery. The event can be sent again later."""
    REDELIVERY = enum.auto()
    """A repeated delivery. An earlier one may have stopped after it recorded the audit."""
    PERSON = enum.auto()
    """A command. The audit uses the available data and never waits."""


class WaitReason(enum.StrEnum):
    """Why an audit waits. The values are attributes of waiting messages."""

    NOT_FOUND = "not_found"
    """Describe does not find the run yet, or its answer cannot be read."""
    DESCRIBE_STALE = "describe_stale"
    """Describe still says that the job runs."""
    LATE_METRICS = "late_metrics"
    CHILDREN = "children"
    """Some jobs that a roll-up launched have no audit yet."""
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
"""The seconds of each wait, by reason. After the last wait, the job is audited without the data."""


class AuditDeferred(Struct, frozen=True):
    """The audit must wait. The event must be delivered again after `delay_s` seconds."""

    delay_s: int
    wait_reason: WaitReason
    explanation: str


class AuditDependencies(Struct, frozen=True):
    """The ports, policy and rules that an audit uses."""

    jobs: Jobs
    metrics: Metrics
    history: History
    markets: Markets
    policy: Policy
    ruleset: Ruleset
    fingerprint_key: Callable[[], bytes | None]
    is_history_persistent: bool = True
    """False for a temporary history, which lacks earlier runs. Its audits are not repeated."""
    parse_answer: Callable[[Mapping[str, Any]], ParsedAnswer] = parse_answer
    """Parses a Describe answer. It may return what was parsed before the audit."""
    can_metrics_arrive: bool = True
    """False for a recording, which gets no further metrics."""
    has_all_tags: bool = True
    """False for a recording that may lack some of the job's tags."""
    notes: tuple[str, ...] = ()
    """Sentences about data that could not be read when the job was recorded."""


class Attempt(Struct, frozen=True):
    """One attempt to audit the run of `end_event`, as of `now`.

    `wait_counts` says how often this event has waited. `force` records the audit even if nothing
    changed. `latest_summary` is the run's newest audit; None without one, or with `force`.
    """

    end_event: JobEndEvent
    deps: AuditDependencies
    now: datetime
    caller: AuditTrigger
    wait_counts: Mapping[WaitReason, int]
    force: bool
    latest_summary: AuditSummary | None

    @property
    def is_reaudit(self) -> bool:
        """True if this attempt repeats an audit that is due."""
        return self.latest_summary is not None and self.latest_summary.is_due(self.now)

    def next_wait(self, reason: WaitReason, explanation: str) -> AuditDeferred | None:
        """Returns the next wait for this reason; None if this attempt may not wait.

        Commands and reaudits never wait. Other attempts wait until DELAYS_S is used up.
        """
        if self.caller is AuditTrigger.PERSON or self.is_reaudit:
            return None
        delays_s = DELAYS_S[reason][self.wait_counts.get(reason, 0) :]
        return AuditDeferred(delays_s[0], reason, explanation) if delays_s else None

    def is_already_audited(self, modified_at: datetime | None) -> bool:
        """Returns True if the stored audit is of this state of the run and need not be repeated.

        `modified_at`: the time of the run's last change, from Describe. An audit that is not final
        is repeated when it is due, or earlier if a person requests it.
        """
        summary = self.latest_summary
        if summary is None or summary.last_modified_at != modified_at or self.is_reaudit:
            return False
        is_requested = self.end_event.is_replayed or self.caller is AuditTrigger.PERSON
        return summary.settled or (summary.due_at is not None and not is_requested)


class AuditRecorded(Struct, frozen=True):
    """The audit is in the history. This attempt or an earlier delivery recorded it.

    `audit` is None if the stored audit was only made final. `notes` are sentences about data that
    could not be read or stored.
    """

    result: RecordResult
    key: JobKey
    document: AuditDocument
    audit: Audit | None
    notes: tuple[str, ...] = ()
    is_reaudit: bool = False


class AlreadyAudited(Struct, frozen=True):
    """`summary` is the history's audit of this state of the run."""

    summary: AuditSummary


class EventDropped(Struct, frozen=True):
    """A replayed event names no finished run, so nothing is recorded."""

    reason: str


AuditOutcome = AuditRecorded | AuditDeferred | AlreadyAudited | EventDropped
