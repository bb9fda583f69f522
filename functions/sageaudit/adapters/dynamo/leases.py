"""Decides the result of a claim from the notice's lease, without I/O; shared by both ledgers."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from sageaudit.domain.audit.record import Claim

MOST_TRIES = 2
"""One send, and one repeat, marked as such, if the first stopped and may have been posted."""
LEDGER_DAYS = 45
"""Longer than any redelivery: a stream keeps records for 1 day, SQS at most 14 days."""


class State(enum.Enum):
    """The state of a notice. After SENDING with an expired lease, it may have been posted."""

    SENDING = "SENDING"
    SENT = "SENT"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Lease:
    """A notice's state, number of tries, and end of its lease in epoch seconds."""

    state: State
    tries: int
    lease_until_s: int


def claim_of(lease: Lease | None, now_s: int) -> Claim:
    """The result of a claim; after FIRST or REPEAT, write a new lease before sending."""
    if lease is None:
        return Claim.FIRST
    if lease.state is not State.SENDING:
        return Claim.DONE
    if lease.lease_until_s > now_s:
        return Claim.BUSY
    return Claim.REPEAT if lease.tries < MOST_TRIES else Claim.DONE


def released(lease: Lease | None) -> Lease | None:
    """The lease as it was before the claim; None without an earlier try that may have posted."""
    if lease is None or lease.state is not State.SENDING:
        return lease
    return None if lease.tries <= 1 else Lease(State.SENDING, lease.tries - 1, 0)
