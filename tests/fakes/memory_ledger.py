"""Ledger in memory: the twin of both ledgers of DynamoDB, for the tests; nothing here expires."""

from __future__ import annotations

from datetime import date, datetime

from sageaudit.adapters.history.dynamo.leases import MOST_TRIES, Lease, State, claim_of, claimed
from sageaudit.adapters.history.moments import epoch_s
from sageaudit.domain.alert.family_day import FamilyDay
from sageaudit.domain.alert.run_told import RunTold
from sageaudit.domain.audit.record import Claim
from sageaudit.ports import Circuit


class MemoryLedger:
    """Which notices were sent, for as long as the process lives."""

    def __init__(self) -> None:
        self._days: dict[tuple[str, date], FamilyDay] = {}
        self._runs: dict[str, RunTold] = {}
        self._leases: dict[str, Lease] = {}
        self._circuits: dict[str, Circuit] = {}

    def family_day(self, family: str, day: date) -> FamilyDay:
        """What the family was told on a day."""
        return self._days.get((family, day), FamilyDay())

    def run_told(self, run: str) -> RunTold:
        """What was told of a run."""
        return self._runs.get(run, RunTold())

    def write(
        self, family: str, day: date, changed: FamilyDay, told: tuple[str, RunTold] | None = None
    ) -> bool:
        """Both or neither, if nobody has written either since."""
        if self.family_day(family, day).revision != changed.revision - 1:
            return False
        if told is not None and not self.write_run(*told):
            return False
        self._days[family, day] = changed
        return True

    def write_run(self, run: str, told: RunTold) -> bool:
        """If nobody has written it since."""
        if self.run_told(run).revision != told.revision - 1:
            return False
        self._runs[run] = told
        return True

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
