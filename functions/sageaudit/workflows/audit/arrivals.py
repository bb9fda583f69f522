"""Records events that arrived: whose they are, that they wait, or that they were not lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime

from msgspec import Struct, field

from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.ref import AccountRegion, JobEndEvent
from sageaudit.domain.members import AuditScope, Denial, Heartbeat, WaitingEvent
from sageaudit.domain.sweep import SentEvent
from sageaudit.errors import AwsError
from sageaudit.ports import MemberRegistry, SweepStore


class EventArrivals(Struct, frozen=True):
    """Records the arrival of events.

    `seen_today` has the members whose event this process has recorded, with the day.
    """

    scope: AuditScope
    registry: MemberRegistry
    sweep_store: SweepStore
    clock: Callable[[], datetime]
    seen_today: dict[AccountRegion, date] = field(default_factory=dict)

    def record_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Records that a member is there, and the version of its template. Raises AwsError."""
        seen_at = min(heartbeat.sent_at, self.clock())
        self.registry.record_seen(heartbeat.account_region, seen_at, heartbeat.template_version)

    def record_member(self, end_event: JobEndEvent) -> None:
        """Records that an event of this account and region arrived from AWS, once a day.

        If it cannot be recorded, the next event is.
        """
        account_region, now = end_event.ref.account_region, self.clock()
        if (
            end_event.is_from_aws
            and account_region != self.scope.home
            and self.seen_today.get(account_region) != now.date()
        ):
            with suppress(AwsError):
                self.registry.record_seen(account_region, now, None)
                self.seen_today[account_region] = now.date()

    def record_unaudited(self, end_event: JobEndEvent) -> None:
        """Records that the event of a run without an audit arrived, so that the sweep does not send
        it again.

        Events replayed by hand are not recorded, since their runs may not have ended.
        """
        if end_event.created_at is None or end_event.is_replayed:
            return
        key = JobKey(end_event.ref.arn, end_event.created_at)
        with suppress(AwsError):
            self.sweep_store.record_event_arrival(key, self.clock())

    def wait_for_member(self, body: str, end_event: JobEndEvent, error: Exception) -> bool:
        """Stores an event until its member can be read. Returns False if no member denies access.

        `body` is the event as JSON, and `error` the one that its audit raised. Raises AwsError.
        """
        account_region, created_at = end_event.ref.account_region, end_event.created_at
        if (
            created_at is None
            or not isinstance(error, AwsError)
            or not self.scope.is_denied_by_member(account_region, error)
        ):
            return False
        key, now = JobKey(end_event.ref.arn, created_at), self.clock()
        event = WaitingEvent(account_region, end_event.ref.kind, body, now)
        self.registry.add_waiting_event(key, event)
        last_record = self.sweep_store.event_record(key)
        self.sweep_store.record_event_sent(key, SentEvent(now, None, waited_for_member=True))
        # An event that waits again was just sent by a sweep, to which all actions seemed permitted.
        has_waited = last_record is not None and last_record.waited_for_member
        # The denial is last: the sweep that it causes then finds the event. Its time is read after
        # the event is stored: a sweep that has not seen the event then does not clear the denial.
        denial = Denial.from_error(error, self.clock(), is_confirmed=has_waited)
        self.registry.add_denial(account_region, denial)
        return True
