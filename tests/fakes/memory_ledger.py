"""Ledger in memory: the twin of both ledgers of DynamoDB, for the tests; nothing here expires."""

from __future__ import annotations

from datetime import date, datetime

from sageaudit.adapters.dynamo.leases import MOST_TRIES, Lease, State, claim_of, claimed
from sageaudit.adapters.history.moments import epoch_s
from sageaudit.domain.audit.record import Claim
from sageaudit.ports import Circuit, LastNotice


class MemoryLedger:
    """Which notices were sent, for as long as the process lives."""

    def __init__(self) -> None:
        self._days: dict[tuple[str, date], str] = {}
        self._last: dict[str, LastNotice] = {}
        self._leases: dict[str, Lease] = {}
        self._circuits: dict[str, Circuit] = {}

    def claim_family_day(self, family: str, day: date, audit: str) -> bool:
        """True when this audit is the family's message of the day, also when asked again."""
        return self._days.setdefault((family, day), audit) == audit

    def last_notice(self, job: str) -> LastNotice | None:
        """The last notice of this run of a job."""
        return self._last.get(job)

    def remember_notice(self, job: str, notice: LastNotice) -> None:
        """Keeps it as the last one; an older version never replaces a newer one."""
        last = self._last.get(job)
        if last is None or notice.version >= last.version:
            self._last[job] = notice

    def state(self, notice_id: str) -> str | None:
        """What became of a notice; None where no delivery has claimed it."""
        lease = self._leases.get(notice_id)
        return None if lease is None else lease.state.value

    def claim_send(self, notice_id: str, now: datetime, lease_s: int) -> Claim:
        """Takes the lease to send one notice."""
        claim = claim_of(self._leases.get(notice_id), epoch_s(now))
        if claim in (Claim.FIRST, Claim.REPEAT):
            self._leases[notice_id] = claimed(claim, epoch_s(now) + lease_s)
        return claim

    def mark_sent(self, notice_id: str, now: datetime) -> None:
        """It was posted: never again."""
        self._leases[notice_id] = Lease(State.SENT, self._tries(notice_id), 0)

    def mark_failed(self, notice_id: str, now: datetime, why: str) -> None:
        """The first try posted nothing. No change of what was sent, or claimed again since."""
        if not self._is_sent(notice_id) and self._tries(notice_id) < MOST_TRIES:
            self._leases[notice_id] = Lease(State.FAILED, 1, 0)

    def mark_unknown(self, notice_id: str, now: datetime, why: str) -> None:
        """A try may have posted it. What was sent stays sent."""
        if not self._is_sent(notice_id):
            self._leases[notice_id] = Lease(State.UNKNOWN, self._tries(notice_id), 0)

    def circuit(self, channel: str) -> Circuit:
        """How this channel answered last."""
        return self._circuits.get(channel, Circuit())

    def change_circuit(self, channel: str, before: Circuit, after: Circuit, now: datetime) -> bool:
        """Stores `after`, unless it was changed since."""
        if self.circuit(channel) != before:
            return False
        self._circuits[channel] = after
        return True

    def _tries(self, notice_id: str) -> int:
        lease = self._leases.get(notice_id)
        return 1 if lease is None else lease.tries

    def _is_sent(self, notice_id: str) -> bool:
        lease = self._leases.get(notice_id)
        return lease is not None and lease.state is State.SENT
