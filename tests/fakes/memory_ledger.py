"""Ledger in memory: the twin of both ledgers of DynamoDB, for the tests; nothing here expires."""

from __future__ import annotations

from datetime import date, datetime

from sageaudit.adapters.dynamo.leases import Lease, State, claim_of, released
from sageaudit.adapters.history.moments import epoch_s
from sageaudit.domain.audit.record import Claim
from sageaudit.ports import LastNotice


class MemoryLedger:
    """Which notices were sent, for as long as the process lives."""

    def __init__(self) -> None:
        self._days: dict[tuple[str, date], str] = {}
        self._last: dict[str, LastNotice] = {}
        self._leases: dict[str, Lease] = {}

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

    def claim_send(self, notice_id: str, now: datetime, lease_s: int) -> Claim:
        """Takes the lease to send one notice."""
        lease = self._leases.get(notice_id)
        claim = claim_of(lease, epoch_s(now))
        if claim in (Claim.FIRST, Claim.REPEAT):
            tries = 1 if lease is None else lease.tries + 1
            self._leases[notice_id] = Lease(State.SENDING, tries, epoch_s(now) + lease_s)
        return claim

    def mark_sent(self, notice_id: str, now: datetime) -> None:
        """It was posted: never again."""
        self._leases[notice_id] = Lease(State.SENT, 1, epoch_s(now))

    def mark_failed(self, notice_id: str, now: datetime, reason: str) -> None:
        """A permanent failure: it is not tried again. What was sent stays sent."""
        del reason
        lease = self._leases.get(notice_id)
        if lease is None or lease.state is not State.SENT:
            self._leases[notice_id] = Lease(State.FAILED, 1, epoch_s(now))

    def release(self, notice_id: str) -> None:
        """Gives the lease back when nothing was posted: the next claim is answered as this one."""
        lease = released(self._leases.pop(notice_id, None))
        if lease is not None:
            self._leases[notice_id] = lease
