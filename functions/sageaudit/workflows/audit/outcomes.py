"""What an audit is made with, and what becomes of an event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Head, JobKey, Recorded
from sageaudit.domain.policy.policy import Policy
from sageaudit.ports import Buckets, History, Jobs, Markets, Metrics
from sageaudit.rules.card import Ruleset
from sageaudit.workflows.audit.waits import Later


@dataclass(frozen=True, slots=True)
class AuditDependencies:
    """What an audit reads from, writes to and is judged by."""

    jobs: Jobs
    metrics: Metrics
    history: History
    markets: Markets
    buckets: Buckets
    policy: Policy
    ruleset: Ruleset
    fingerprint_key: Callable[[], bytes | None]
    history_is_whole: bool = True
    """False for the command line's empty history: family rules then answer Unknown."""


@dataclass(frozen=True, slots=True)
class Done:
    """The audit is in the history: recorded now, or by an earlier delivery.

    `notes`: those of its audit that say what could not be read or kept.
    """

    recorded: Recorded
    key: JobKey
    audit: Audit
    document: AuditDocument
    notes: tuple[str, ...] = ()
    was_due: bool = False


@dataclass(frozen=True, slots=True)
class Repeated:
    """This state of the run is in the history already: nothing but Describe and `head` was read."""

    head: Head


@dataclass(frozen=True, slots=True)
class Dropped:
    """An event that a person sent again names no run that ended: nothing is recorded of it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Settled:
    """The last look at a run that Describe does not answer any more, by what the history keeps."""

    recorded: Recorded
    key: JobKey
    document: AuditDocument


Outcome = Done | Later | Repeated | Dropped | Settled
