"""One attempt to audit a run: who asks, with what, what it may wait for, and how it ends.

Each reason to wait has a counter of its own, which travels with the message: a Describe answer that
is behind never uses up the time that late metrics have.
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
"""The longest delay that SQS gives a message."""


class AuditTrigger(enum.Enum):
    """Who has a run audited. What the sweep sends comes as a delivery, like SageMaker's events."""

    DELIVERY = enum.auto()
    """A message of the queue: it can be sent again later."""
    REDELIVERY = enum.auto()
    """The same message once more: an earlier delivery may have recorded the audit, and no more."""
    PERSON = enum.auto()
    """A command: it takes the data that there is now, and never waits."""


class WaitReason(enum.StrEnum):
    """Why an audit waits."""

    NOT_FOUND = "not_found"
    """Describe does not find the run yet, or its answer cannot be read."""
    DESCRIBE_BEHIND = "describe_behind"
    """Describe says that the job still runs."""
    LATE_METRICS = "late_metrics"
    CHILDREN = "children"
    """Jobs that a roll-up launched are not audited yet."""
    TAGS = "tags"
    """ListTags was throttled or did not answer."""


DELAYS_S: Mapping[WaitReason, tuple[int, ...]] = {
    # Eventual consistency takes seconds; after six minutes the job is gone.
    WaitReason.NOT_FOUND: (60, 300),
    WaitReason.DESCRIBE_BEHIND: (60, 120, 240, 480, *[_MAX_DELAY_S] * 8),
    WaitReason.LATE_METRICS: (_MAX_DELAY_S,),
    WaitReason.CHILDREN: (_MAX_DELAY_S,) * 3,
    # Tags decide family and owner: an hour of throttling is waited out.
    WaitReason.TAGS: (60, 120, 240, 480, *[_MAX_DELAY_S] * 5),
}
"""The delay of each wait of a reason in seconds; after the last one the audit does without."""


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
    """False for one that is thrown away: it lacks a family's runs, and no audit is made again."""
    can_metrics_arrive: bool = True
    """False for a recording, which gets no more of them."""
    has_all_tags: bool = True
    """False for a recording that may lack tags of the job."""
    notes: tuple[str, ...] = ()
    """What could not be read when the job was recorded."""


class Attempt(Struct, frozen=True):
    """One attempt to audit the run of `ended`, as of `now`.

    `waited`: how often this event has waited, by reason. `again`: the audit is recorded although
    nothing about the run changed. `known`: the newest audit of the run; None with `again`, so that
    such an attempt is no reaudit.
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
        """Whether the run's audit is due to be made once more."""
        return self.latest_summary is not None and self.latest_summary.is_due(self.now)

    def next_wait(self, wait: WaitReason, reason: str) -> AuditDeferred | None:
        """The next wait for this reason; None when all are used up, or it cannot wait.

        What a reaudit misses is due once more, so that it waits for nothing.
        """
        if self.caller is AuditTrigger.PERSON or self.is_reaudit:
            return None
        left = DELAYS_S[wait][self.wait_counts.get(wait, 0) :]
        return AuditDeferred(left[0], wait, reason) if left else None

    def is_already_audited(self, modified_at: datetime | None) -> bool:
        """Whether this state of the run is in the history already, and not due.

        A person who asks for a job has its audit made anew before it is due, unless it is final.
        """
        known = self.latest_summary
        if known is None or known.last_modified_at != modified_at or self.is_reaudit:
            return False
        asked_for = self.ended.is_replayed or self.caller is AuditTrigger.PERSON
        return known.settled or (known.due_at is not None and not asked_for)


class AuditRecorded(Struct, frozen=True):
    """The audit is in the history: recorded now, or by an earlier delivery.

    `audit` is None where the stored one was only closed. `notes`: those of the audit that say what
    could not be read or kept.
    """

    result: RecordResult
    key: JobKey
    document: AuditDocument
    audit: Audit | None
    notes: tuple[str, ...] = ()
    is_reaudit: bool = False


class AlreadyAudited(Struct, frozen=True):
    """This state of the run is in the history already: nothing but Describe and `head` was read."""

    summary: AuditSummary


class EventDropped(Struct, frozen=True):
    """An event that a person sent again names no run that ended: nothing is recorded of it."""

    reason: str


AuditOutcome = AuditRecorded | AuditDeferred | AlreadyAudited | EventDropped
