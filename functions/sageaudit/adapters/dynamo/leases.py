"""Decides the answer to a claim from the notice's lease; pure, shared by both ledgers."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from sageaudit.domain.audit.record import Claim

MOST_TRIES = 2
"""One send, and one marked repeat when the first died after it may have been posted."""
LEDGER_DAYS = 45
"""Longer than any redelivery: streams keep a day, SQS at most 14."""


class State(enum.Enum):
    """The state of a notice. SENDING with an expired lease: it may or may not have been posted."""

    SENDING = "SENDING"
    SENT = "SENT"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Lease:
    """One notice in the ledger."""

    state: State
    tries: int
    lease_until_s: int


def claim_of(lease: Lease | None, now_s: int) -> Claim:
    """FIRST and REPEAT must then be written before the notice is sent."""
    if lease is None:
        return Claim.FIRST
    if lease.state is not State.SENDING:
        return Claim.DONE
    if lease.lease_until_s > now_s:
        return Claim.BUSY
    return Claim.REPEAT if lease.tries < MOST_TRIES else Claim.DONE


def released(lease: Lease | None) -> Lease | None:
    """The lease before it was claimed; an earlier try that may have been posted still counts."""
    if lease is None or lease.state is not State.SENDING:
        return lease
    return None if lease.tries <= 1 else Lease(State.SENDING, lease.tries - 1, 0)
