"""Decides the result of a claim from the notice's lease, without I/O: no state, no clock."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from sageaudit.domain.audit.record import Claim

MOST_TRIES = 2
"""One send, and one repeat that says what it is, if the first may have been posted."""
LEDGER_DAYS = 45
"""Longer than any redelivery: a stream keeps records for 1 day, SQS at most 14 days."""


class State(enum.Enum):
    """The state of a notice. SENDING after the end of its lease is an unknown outcome too."""

    SENDING = "SENDING"
    SENT = "SENT"
    FAILED = "FAILED"
    """No try has posted it."""
    UNKNOWN = "UNKNOWN"
    """A try may have posted it, and none is under way."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A notice's state, number of tries, and end of its lease in epoch seconds.

    `tries` is 2 from the first claim on that follows a try that may have posted.
    """

    state: State
    tries: int
    lease_until_s: int


NO_LEASE = Lease(State.UNKNOWN, 1, 0)
"""For a row that cannot be read: whatever it said, the notice may have been posted."""


def claim_of(lease: Lease | None, now_s: int) -> Claim:
    """The result of a claim; after FIRST or REPEAT, write `claimed` before sending."""
    if lease is None:
        return Claim.FIRST
    match lease.state:
        case State.SENT:
            return Claim.DONE
        case State.UNKNOWN:
            return Claim.REPEAT
        case State.FAILED:
            return Claim.FIRST if lease.tries < MOST_TRIES else Claim.REPEAT
        case State.SENDING:
            if lease.lease_until_s > now_s:
                return Claim.BUSY
            return Claim.REPEAT if lease.tries < MOST_TRIES else Claim.SPENT


def claimed(claim: Claim, until_s: int) -> Lease:
    """The lease of whoever may send now."""
    return Lease(State.SENDING, MOST_TRIES if claim is Claim.REPEAT else 1, until_s)
