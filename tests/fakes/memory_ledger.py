"""In-memory versions of DynamoDB's ledgers and notes; nothing expires."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sageaudit.adapters.history.codec import epoch_s
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.send_ledger import (
    MAX_TRIES,
    Lease,
    NoticeState,
    decide_claim,
    lease_for,
)
from sageaudit.domain.advice.advice import Decision
from sageaudit.domain.alert.alert import ChannelHour, PastAlerts
from sageaudit.domain.audit.record import SendClaim
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import Denial, Member, WaitingEvent
from sageaudit.domain.running import WatchState
from sageaudit.domain.sweep import SentEvent, SweptRegion
from sageaudit.errors import UnreadableItem
from sageaudit.ports import Circuit
from sageaudit.structs import replace


class MemoryAlertLedger:
    """Implements AlertLedger. `newest`: the newest audit version of a run, by partition key."""

    def __init__(self, newest: Callable[[str], int] = lambda _: 0) -> None:
        self._newest = newest
        self._runs: dict[str, PastAlerts] = {}
        self._groups: dict[str, PastAlerts] = {}
        self.hours: dict[tuple[str, datetime], ChannelHour] = {}
        self.running: dict[JobKey, WatchState] = {}
        self.notices: dict[tuple[str, str], tuple[str, str]] = {}
        """Channel and body by the notice's keys, in the order of writing."""
        self.lines: set[str] = set()
        """Partition keys of the runs whose job line was written."""

    def past_alerts(self, key: JobKey, subject: str) -> PastAlerts:
        """Returns the last alert of a run and the alerts of its group of families."""
        return self._past(keys.job_pk(key), subject)

    def _past(self, run: str, group: str) -> PastAlerts:
        empty = PastAlerts(run, group)
        group_alerts = self._groups.get(group, empty)
        last = self._runs.get(run, empty).last_run_alert
        return replace(group_alerts, run=run, last_run_alert=last)

    def channel_hour(self, channel: str, began_at: datetime) -> ChannelHour:
        """Returns the messages of one clock hour."""
        return self.hours.get((channel, began_at), ChannelHour(channel, began_at))

    def has_job_line(self, key: JobKey) -> bool:
        """Whether the job line of the run was written."""
        return keys.job_pk(key) in self.lines

    def write_alert(
        self,
        previous_alerts: PastAlerts,
        new_alerts: PastAlerts,
        bodies: Mapping[str, str],
        now: datetime,
        hours: Sequence[ChannelHour] = (),
        *,
        includes_job_line: bool = False,
    ) -> bool:
        """Writes all, or nothing if another process has written since; returns whether it did."""
        stored = self._past(previous_alerts.run, previous_alerts.group)
        seen, last = previous_alerts.last_run_alert, new_alerts.last_run_alert
        if stored.last_run_alert != seen or (
            new_alerts is not previous_alerts and stored != previous_alerts
        ):
            return False
        alert = last if last is not seen else None
        version = alert.version if alert else 1
        if alert and self._newest(new_alerts.run) > version:
            return False
        if includes_job_line and previous_alerts.run in self.lines:
            return False
        if any(
            self.channel_hour(hour.channel, hour.began_at).count != hour.count - 1 for hour in hours
        ):
            return False
        self.hours |= {(hour.channel, hour.began_at): hour for hour in hours}
        if includes_job_line:
            self.lines.add(new_alerts.run)
        if new_alerts is not previous_alerts:
            self._groups[new_alerts.group] = new_alerts
        if alert:
            self._runs[new_alerts.run] = new_alerts
        for channel, body in bodies.items():
            place = keys.run_alerts_pk(new_alerts.run), keys.notice_sk(version, channel)
            self.notices[place] = (channel, body)
        return True

    def watch_state(self, key: JobKey) -> WatchState:
        """Returns the watch state of a running job."""
        return self.running.get(key, WatchState(key))

    def write_watch_state(
        self, state: WatchState, bodies: Mapping[str, str], now: datetime
    ) -> bool:
        """Writes all, or nothing if another process has written since; returns whether it did."""
        if self.running.get(state.key, WatchState(state.key)).revision != state.revision - 1:
            return False
        self.running[state.key] = state
        for channel, body in bodies.items():
            place = keys.watch_pk(state.key), keys.notice_sk(state.messages, channel)
            self.notices[place] = (channel, body)
        return True

    def notice(self, pk: str, sk: str) -> tuple[str, str] | None:
        """Returns the channel and the body of a notice."""
        return self.notices.get((pk, sk))


class MemoryDecisions:
    """Implements Decisions."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, datetime], Decision] = {}

    def decisions(self) -> list[Decision]:
        """Returns all decisions."""
        return list(self._kept.values())

    def save_decision(self, decision: Decision) -> None:
        """Saves a decision."""
        self._kept[decision.recommendation_id, decision.at] = decision


class MemorySendLedger:
    """Implements SendLedger."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}
        self._circuits: dict[str, Circuit] = {}
        self.hours: dict[tuple[str, datetime], ChannelHour] = {}

    def state(self, notice_id: str) -> str | None:
        """Returns the state of a notice; None if no delivery has claimed it."""
        lease = self._leases.get(notice_id)
        return None if lease is None else lease.state.value

    def claim_send(self, notice_id: str, now: datetime, lease_s: int) -> SendClaim:
        """Claims the right to send a notice for `lease_s` seconds."""
        claim = decide_claim(self._leases.get(notice_id), epoch_s(now))
        if claim in (SendClaim.FIRST, SendClaim.REPEAT):
            self._leases[notice_id] = lease_for(claim, epoch_s(now) + lease_s)
        return claim

    def mark_sent(self, notice_id: str, now: datetime) -> None:
        """Marks a notice as posted, so that it is never posted again."""
        self._leases[notice_id] = Lease(NoticeState.SENT, self._tries(notice_id), 0)

    def mark_failed(self, notice_id: str, now: datetime, reason: str) -> None:
        """Marks that the first try posted nothing, unless it was sent or claimed again since."""
        if not self._is_sent(notice_id) and self._tries(notice_id) < MAX_TRIES:
            self._leases[notice_id] = Lease(NoticeState.FAILED, 1, 0)

    def mark_unknown(self, notice_id: str, now: datetime, reason: str) -> None:
        """Marks that a try may have posted it, unless it is known to be sent."""
        if not self._is_sent(notice_id):
            self._leases[notice_id] = Lease(NoticeState.UNKNOWN, self._tries(notice_id), 0)

    def channel_hour(self, channel: str, began_at: datetime) -> ChannelHour:
        """Returns the messages of one clock hour."""
        return self.hours.get((channel, began_at), ChannelHour(channel, began_at))

    def circuit(self, channel: str) -> Circuit:
        """Returns the circuit breaker of a channel."""
        return self._circuits.get(channel, Circuit())

    def replace_circuit(
        self, channel: str, expected: Circuit, new_circuit: Circuit, now: datetime
    ) -> bool:
        """Stores the new circuit if the stored one equals `expected`; returns whether it did."""
        if self.circuit(channel) != expected:
            return False
        self._circuits[channel] = new_circuit
        return True

    def _tries(self, notice_id: str) -> int:
        lease = self._leases.get(notice_id)
        return 1 if lease is None else lease.tries

    def _is_sent(self, notice_id: str) -> bool:
        lease = self._leases.get(notice_id)
        return lease is not None and lease.state is NoticeState.SENT


@dataclass
class MemorySweepStore:
    """Implements SweepStore."""

    regions: dict[AccountRegion, SweptRegion] = field(default_factory=dict)
    notes: dict[JobKey, SentEvent] = field(default_factory=dict)
    installed: bool = False
    turn: tuple[str, datetime] | None = None

    def acquire_lease(self, owner: str, now: datetime, lease_s: int) -> bool:
        lease = timedelta(seconds=lease_s)
        if self.turn and self.turn[0] != owner and now < self.turn[1] <= now + 2 * lease:
            return False
        self.turn = owner, now + lease
        return True

    def release_lease(self, owner: str) -> None:
        if self.turn is not None and self.turn[0] == owner:
            self.turn = None

    def record_installation(self) -> None:
        self.installed = True

    def swept_regions(self) -> dict[AccountRegion, SweptRegion]:
        return dict(self.regions)

    def save_swept_region(self, account_region: AccountRegion, swept: SweptRegion) -> None:
        self.regions[account_region] = swept

    def event_record(self, key: JobKey) -> SentEvent | None:
        return self.notes.get(key)

    def record_event_sent(self, key: JobKey, event_record: SentEvent) -> None:
        self.notes[key] = event_record

    def record_event_arrival(self, key: JobKey, at: datetime) -> None:
        self.notes.setdefault(key, SentEvent(at, None))


@dataclass
class MemoryMemberRegistry:
    """Implements MemberRegistry."""

    stored: dict[AccountRegion, Member] = field(default_factory=dict)
    waiting: dict[JobKey, WaitingEvent] = field(default_factory=dict)
    repeated_at: dict[AccountRegion, datetime] = field(default_factory=dict)

    def members(self) -> dict[AccountRegion, Member]:
        return dict(self.stored)

    def take_unreadable(self) -> tuple[UnreadableItem, ...]:
        return ()

    def _member(self, account_region: AccountRegion) -> Member:
        return self.stored.get(account_region, Member(account_region))

    def record_seen(
        self, account_region: AccountRegion, seen_at: datetime, template_version: int | None
    ) -> None:
        member = self._member(account_region)
        version = member.template_version if template_version is None else template_version
        if member.last_seen_at is None or member.last_seen_at < seen_at:
            first_seen_at = member.first_seen_at or seen_at
            member = replace(member, first_seen_at=first_seen_at, last_seen_at=seen_at)
        self.stored[account_region] = replace(member, template_version=version)

    def add_denial(self, account_region: AccountRegion, denial: Denial) -> None:
        member = self._member(account_region)
        self.stored[account_region] = replace(member, denial=member.denial or denial)
        self.repeated_at[account_region] = denial.checked_at

    def replace_denial(self, account_region: AccountRegion, denial: Denial) -> None:
        self.stored[account_region] = replace(self._member(account_region), denial=denial)

    def clear_denial(self, account_region: AccountRegion, asked_at: datetime) -> bool:
        repeated_at = self.repeated_at.get(account_region)
        if repeated_at is not None and repeated_at >= asked_at:
            return False
        self.stored[account_region] = replace(self._member(account_region), denial=None)
        return True

    def add_waiting_event(self, key: JobKey, event: WaitingEvent) -> None:
        self.waiting[key] = event

    def waiting_events(
        self, account_region: AccountRegion
    ) -> Iterator[tuple[JobKey, WaitingEvent]]:
        events = list(self.waiting.items())
        return (pair for pair in events if pair[1].account_region == account_region)

    def remove_waiting_event(self, key: JobKey, event: WaitingEvent) -> None:
        del event
        self.waiting.pop(key, None)
