"""Ledger in memory: the twin of both ledgers of DynamoDB, for the tests; nothing here expires."""

from __future__ import annotations

from datetime import date, datetime

from sageaudit.adapters.dynamo.leases import Lease, State, claim_of, released
from sageaudit.adapters.history.moments import epoch_s
from sageaudit.domain.audit.record import Claim
from sageaudit.domain.telling.family_day import FamilyDay
from sageaudit.domain.telling.news import Said


class MemoryLedger:
    """Which notices were sent, for as long as the process lives."""

    def __init__(self) -> None:
        self._days: dict[tuple[str, date], FamilyDay] = {}
        self._last: dict[str, Said] = {}
        self._leases: dict[str, Lease] = {}

    def family_day(self, family: str, day: date) -> FamilyDay:
        """What the family was told on a day."""
        return self._days.get((family, day), FamilyDay())

    def last_notice(self, run: str) -> Said | None:
        """What was told last of a run."""
        return self._last.get(run)

    def write(
        self, family: str, day: date, changed: FamilyDay, notice: tuple[str, Said] | None = None
    ) -> bool:
        """Both or neither, if nobody has written the day since, and no newer notice is there."""
        if self.family_day(family, day).revision != changed.revision - 1:
            return False
        if notice is not None:
            run, said = notice
            last = self._last.get(run)
            if last is not None and last.version > said.version:
                return False
            self._last[run] = said
        self._days[family, day] = changed
        return True

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
