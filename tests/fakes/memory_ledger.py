"""Ledgers and notes in memory: the twins of those of DynamoDB; nothing here expires."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sageaudit.adapters.history.codec import epoch_s
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.send_ledger import (
    MOST_TRIES,
    Lease,
    NoticeState,
    claim_of,
    claimed,
)
from sageaudit.domain.advice.advice import Decision
from sageaudit.domain.alert.alert import ChannelHour, PastAlerts
from sageaudit.domain.audit.record import Claim
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.running import WatchState
from sageaudit.domain.sweep import ListOfJobs, ListState, SentNote
from sageaudit.ports import Circuit
from sageaudit.structs import replace


class MemoryAlertLedger:
    """Which alerts were sent. `newest`: the newest version of a run's audit, by partition key."""

    def __init__(self, newest: Callable[[str], int] = lambda _: 0) -> None:
        self._newest = newest
        self._runs: dict[str, PastAlerts] = {}
        self._groups: dict[str, PastAlerts] = {}
        self.hours: dict[tuple[str, datetime], ChannelHour] = {}
        self.running: dict[JobKey, WatchState] = {}
        self.notices: dict[tuple[str, str], tuple[str, str]] = {}
        """Channel and body by their keys, in the order in which they were written."""
        self.lines: set[str] = set()
        """The runs whose line was written, by partition key."""

    def past(self, key: JobKey, group: str) -> PastAlerts:
        """The last alert of a run, and those of its group of families."""
        return self._past(keys.job_pk(key), group)

    def _past(self, run: str, group: str) -> PastAlerts:
        empty = PastAlerts(run, group)
        known = self._groups.get(group, empty)
        last = self._runs.get(run, empty).last_of_run
        return replace(known, run=run, last_of_run=last)

    def hour(self, channel: str, began_at: datetime) -> ChannelHour:
        """The messages of one clock hour."""
        return self.hours.get((channel, began_at), ChannelHour(channel, began_at))

    def has_line(self, key: JobKey) -> bool:
        """Whether the line about the run was written."""
        return keys.job_pk(key) in self.lines

    def write(
        self,
        before: PastAlerts,
        after: PastAlerts,
        bodies: Mapping[str, str],
        now: datetime,
        hours: Sequence[ChannelHour] = (),
        *,
        line: bool = False,
    ) -> bool:
        """All or nothing, if nobody has written since."""
        known = self._past(before.run, before.group)
        seen, last = before.last_of_run, after.last_of_run
        if known.last_of_run != seen or (after is not before and known != before):
            return False
        alert = last if last is not seen else None
        version = alert.version if alert else 1
        if alert and self._newest(after.run) > version:
            return False
        if line and before.run in self.lines:
            return False
        if any(self.hour(one.channel, one.began_at).count != one.count - 1 for one in hours):
            return False
        self.hours |= {(one.channel, one.began_at): one for one in hours}
        if line:
            self.lines.add(after.run)
        if after is not before:
            self._groups[after.group] = after
        if alert:
            self._runs[after.run] = after
        for channel, body in bodies.items():
            place = keys.alert_pk(after.run), keys.notice_sk(version, channel)
            self.notices[place] = (channel, body)
        return True

    def watched(self, key: JobKey) -> WatchState:
        """What is kept of a running job."""
        return self.running.get(key, WatchState(key))

    def write_watched(self, state: WatchState, bodies: Mapping[str, str], now: datetime) -> bool:
        """All or nothing, if nobody has written since."""
        if self.running.get(state.key, WatchState(state.key)).revision != state.revision - 1:
            return False
        self.running[state.key] = state
        for channel, body in bodies.items():
            place = keys.watch_pk(state.key), keys.notice_sk(state.messages, channel)
            self.notices[place] = (channel, body)
        return True

    def notice(self, pk: str, sk: str) -> tuple[str, str] | None:
        """The channel and the body of a notice."""
        return self.notices.get((pk, sk))


class MemoryDecisions:
    """What people decided, for as long as the process lives."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, datetime], Decision] = {}

    def decisions(self) -> list[Decision]:
        """All of them."""
        return list(self._kept.values())

    def decide(self, decision: Decision) -> None:
        """Keeps it."""
        self._kept[decision.advice, decision.at] = decision


class MemorySendLedger:
    """Which notices were posted, for as long as the process lives."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}
        self._circuits: dict[str, Circuit] = {}
        self.hours: dict[tuple[str, datetime], ChannelHour] = {}

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
        self._leases[notice_id] = Lease(NoticeState.SENT, self._tries(notice_id), 0)

    def mark_failed(self, notice_id: str, now: datetime, why: str) -> None:
        """The first try posted nothing. No change of what was sent, or claimed again since."""
        if not self._is_sent(notice_id) and self._tries(notice_id) < MOST_TRIES:
            self._leases[notice_id] = Lease(NoticeState.FAILED, 1, 0)

    def mark_unknown(self, notice_id: str, now: datetime, why: str) -> None:
        """A try may have posted it. What was sent stays sent."""
        if not self._is_sent(notice_id):
            self._leases[notice_id] = Lease(NoticeState.UNKNOWN, self._tries(notice_id), 0)

    def hour(self, channel: str, began_at: datetime) -> ChannelHour:
        """The messages of one clock hour."""
        return self.hours.get((channel, began_at), ChannelHour(channel, began_at))

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
        return lease is not None and lease.state is NoticeState.SENT


@dataclass
class MemoryNotes:
    """Implements SweepNotes in memory, as the table does."""

    states: dict[ListOfJobs, ListState] = field(default_factory=dict)
    notes: dict[JobKey, SentNote] = field(default_factory=dict)
    installed: bool = False
    turn: tuple[str, datetime] | None = None

    def take_turn(self, owner: str, now: datetime, lease_s: int) -> bool:
        lease = timedelta(seconds=lease_s)
        if self.turn and self.turn[0] != owner and now < self.turn[1] <= now + 2 * lease:
            return False
        self.turn = owner, now + lease
        return True

    def end_turn(self, owner: str) -> None:
        if self.turn is not None and self.turn[0] == owner:
            self.turn = None

    def note_installation(self) -> None:
        self.installed = True

    def state(self, of: ListOfJobs) -> ListState | None:
        return self.states.get(of)

    def keep(self, of: ListOfJobs, state: ListState) -> None:
        self.states[of] = state

    def sent(self, key: JobKey) -> SentNote | None:
        return self.notes.get(key)

    def note_sent(self, key: JobKey, note: SentNote) -> None:
        self.notes[key] = note

    def note_came(self, key: JobKey, at: datetime) -> None:
        self.notes.setdefault(key, SentNote(at, None))
