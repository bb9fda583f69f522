"""The interfaces that the workflows need. Adapters and tests' fakes implement them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct

if TYPE_CHECKING:  # every command and function imports this module, few import all of these
    from sageaudit.domain.advice.advice import Decision
    from sageaudit.domain.alert.alert import Alert, ChannelHour, PastAlerts
    from sageaudit.domain.audit.document import AuditDocument
    from sageaudit.domain.audit.record import (
        AuditEntry,
        Detail,
        RecordResult,
        Row,
        RunQuery,
        SendClaim,
    )
    from sageaudit.domain.audit.sum_parts import SumPart
    from sageaudit.domain.audit.summary import AuditSummary, JobKey
    from sageaudit.domain.audit.sums import Scope, SumRow
    from sageaudit.domain.budget import SentBudgetMessages
    from sageaudit.domain.job.job import Job
    from sageaudit.domain.job.kinds import JobKind
    from sageaudit.domain.job.ref import AccountRegion, JobRef
    from sageaudit.domain.members import Denial, Member, WaitingEvent
    from sageaudit.domain.prices.market import Market
    from sageaudit.domain.running import WatchState
    from sageaudit.domain.sweep import JobList, ListedJob, Period, SentEvent, SweptRegion
    from sageaudit.domain.usage.measurements import Measurements
    from sageaudit.errors import UnreadableItem

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Circuit(Struct, frozen=True):
    """The state of a channel's circuit breaker. `failures` counts consecutive posts without a
    response.

    No post is made before `open_until`, in epoch seconds.
    """

    failures: int = 0
    open_until: int = 0


class QueueDepth(Struct, frozen=True):
    """The approximate number of messages in a queue, and how long the queue keeps them."""

    visible: int
    in_flight: int
    retention_s: int


class PendingCall(Protocol[T_co]):
    """A call that was submitted to a worker."""

    def result(self) -> T_co:
        """Waits for the call's result. Raises what the call raised."""

    def cancel(self) -> bool:
        """Cancels the call. Returns False if the call has started."""


class Workers(Protocol):
    """Runs calls at the same time."""

    def submit(self, call: Callable[[], T]) -> PendingCall[T]:
        """Submits the call to a worker."""

    def wait_for_any(self, pending_calls: Collection[PendingCall[T]]) -> Collection[PendingCall[T]]:
        """Waits for these calls, and returns the finished ones.

        It may return none, so that the caller can check whether to stop.
        """


class Jobs(Protocol):
    """SageMaker's Describe*, ListTags, and the lists of jobs that a roll-up launched."""

    def describe(self, ref: JobRef) -> dict[str, Any]:
        """Returns the Describe* response.

        Raises JobNotFound, AccessDenied, Throttled or Unavailable.
        """

    def tags(self, ref: JobRef) -> dict[str, str]:
        """Returns the job's tags. Raises AccessDenied, Throttled or Unavailable."""

    def children(self, ref: JobRef) -> Iterable[JobRef] | None:
        """Returns the jobs that a roll-up launched; None if not known. Reads pages only as needed.

        Raises AccessDenied, Throttled or Unavailable.
        """


class JobLists(Protocol):
    """SageMaker's List* of jobs."""

    def list_jobs(self, kind: JobKind, region: str, period: Period) -> Iterator[ListedJob]:
        """Yields at least the jobs of a kind that run or may have ended in the period.

        Reads pages only as needed. Raises AccessDenied, NoCredentials, Throttled or Unavailable.
        """


class JobPageSource(Protocol):
    """SageMaker's lists of jobs, page by page, the newest creation first."""

    def pages(
        self, job_list: JobList, *, created_after: datetime, created_before: datetime
    ) -> Iterator[Sequence[ListedJob]]:
        """Yields the jobs that were created in this interval, page by page. A page may be empty.

        Reads pages only as needed. Raises AwsError, also if the pages never end.
        """


class SweepStore(Protocol):
    """What sweeps store: how far each list was swept, which events were sent, and the lease."""

    def acquire_lease(self, owner: str, now: datetime, lease_s: int) -> bool:
        """Takes the lease for `lease_s` seconds. Returns False while another sweep holds it."""

    def release_lease(self, owner: str) -> None:
        """Releases the lease if the owner still holds it."""

    def record_installation(self) -> None:
        """Stores the table's creation time as the time of the installation, if none is stored."""

    def swept_regions(self) -> dict[AccountRegion, SweptRegion]:
        """Returns the readable states of all accounts and regions that were ever swept."""

    def save_swept_region(self, account_region: AccountRegion, swept: SweptRegion) -> None:
        """Replaces the state of one account and region."""

    def event_record(self, key: JobKey) -> SentEvent | None:
        """Returns when this run's event was last sent or arrived; None if there was none in recent
        weeks.
        """

    def record_event_sent(self, key: JobKey, event_record: SentEvent) -> None:
        """Stores that the run's event was sent."""

    def record_event_arrival(self, key: JobKey, arrived_at: datetime) -> None:
        """Stores that the run's own event arrived, unless an event is already stored."""


class MemberRegistry(Protocol):
    """What is known of members, and the events that wait until a member can be read."""

    def members(self) -> dict[AccountRegion, Member]:
        """Returns the readable members."""

    def take_unreadable(self) -> tuple[UnreadableItem, ...]:
        """Returns the items that were left out since they were last taken, and forgets them."""

    def record_seen(
        self, account_region: AccountRegion, seen_at: datetime, template_version: int | None
    ) -> None:
        """Stores when an event of the member arrived, unless a later one has arrived.

        `template_version` is None for an event other than a heartbeat.
        """

    def add_denial(self, account_region: AccountRegion, denial: Denial) -> None:
        """Stores what the member denies. Keeps an earlier denial, and when it was last repeated."""

    def replace_denial(self, account_region: AccountRegion, denial: Denial) -> None:
        """Replaces what the member denies."""

    def clear_denial(self, account_region: AccountRegion, asked_at: datetime) -> bool:
        """Removes a denial, unless it was repeated since `asked_at`. Returns whether it did."""

    def add_waiting_event(self, key: JobKey, event: WaitingEvent) -> None:
        """Stores an event until its account and region can be read."""

    def waiting_events(
        self, account_region: AccountRegion
    ) -> Iterator[tuple[JobKey, WaitingEvent]]:
        """Yields the member's waiting events. Reads pages only as needed."""

    def remove_waiting_event(self, key: JobKey, event: WaitingEvent) -> None:
        """Removes a waiting event."""


class Metrics(Protocol):
    """Reads a job's metrics from CloudWatch."""

    def read(self, job: Job, now: datetime) -> Measurements:
        """Returns the job's series, with a reason for each metric that could not be read.

        Raises Throttled or Unavailable.
        """


class Markets(Protocol):
    """Instance types, and the prices of a job's own region and day."""

    def market(self, job: Job, now: datetime) -> Market:
        """Returns instance types and prices to bill this job with. Unknown prices do not raise."""


class History(Protocol):
    """The table of audits."""

    def record(self, entry: AuditEntry) -> RecordResult:
        """Writes a new version of an audit in one transaction, unless nothing changed.

        Returns the outcome and the newest version.
        """

    def recheck_family(
        self,
        key: JobKey,
        *,
        account: str,
        region: str,
        family: str,
        ended_at: datetime,
        due_at: datetime,
    ) -> tuple[JobKey, ...]:
        """Schedules new audits of runs that were judged without an earlier run of their family.

        Checks the newly recorded run `key`, and the MAX_EARLIER_RUNS runs before and after it.
        Returns the keys of the scheduled runs. Each call returns a key until its run is audited
        again.
        """

    def schedule_reaudit(self, key: JobKey, due_at: datetime) -> None:
        """Schedules a new audit of a run at `due_at`.

        Does nothing if the run was never audited, or if its audit is due earlier.
        """

    def summary(self, key: JobKey) -> AuditSummary | None:
        """Returns the summary of the job's newest version; None if the job was never audited."""

    def audit(self, key: JobKey, version: int | None = None) -> AuditDocument | None:
        """Returns one version's document, by default the newest; None if there is none."""

    def detail(self, key: JobKey) -> Detail | None:
        """Returns the data that a new audit of the job needs; None once it has
        expired (90 days).
        """

    def runs(
        self,
        query: RunQuery[Row],
        *,
        ended_before: datetime | None = None,
        page_size: int | None = None,
        fields: Collection[str] | None = None,
    ) -> Iterator[Row]:
        """Yields the rows of one list, newest end first. For RunQuery.due_until, the row that is
        due for the longest time comes first.

        The history is read while the iterator is consumed, so any row can raise AwsError.
        `ended_before` selects runs that ended before this time. `page_size`: how many rows the
        caller expects to take. The first request reads about this many, later requests read more.
        `fields`: the fields of summaries to read, as PartialSummary; None for all. Findings are
        always read whole.
        """

    def sum_parts(
        self,
        query: RunQuery[AuditSummary],
        label: Callable[[AuditSummary], object],
        fields: Collection[str],
        *,
        ended_before: datetime | None = None,
        with_usage: bool = False,
    ) -> Iterator[SumPart]:
        """Yields what each audit of one list adds to sums, newest end first.

        `label` returns what to sum the audit by, or None to leave it out. It gets a summary that
        has only `fields`, and may be called once for all audits with equal values of them.
        `with_usage`: also reads the figures by usage type.
        """

    def unreadable_items(self) -> tuple[UnreadableItem, ...]:
        """Returns the stored items that lists, sums and decisions have left out because they cannot
        be read, each once, since they were last taken.

        Reading such an item by its key raises UnreadableItem.
        """

    def take_unreadable(self) -> tuple[UnreadableItem, ...]:
        """Returns `unreadable_items`, and forgets them."""

    def daily_sums(
        self,
        scope: Scope,
        since: date,
        until: date,
        *,
        account: str | None = None,
        region: str | None = None,
        name: str | None = None,
    ) -> Iterator[SumRow]:
        """Yields one scope's daily sums from `since` to `until` (both included), in any order.

        Within a scope, each audit counts in exactly one row, with its newest version. Rows of zeros
        are left out. `name`: the family, owner or type to select; None selects all. Audits that
        were recorded before the call are included.
        """


class Decisions(Protocol):
    """People's decisions about recommendations. There are few, so all are read together."""

    def decisions(self) -> Sequence[Decision]:
        """Returns all stored decisions, in any order."""

    def save_decision(self, decision: Decision) -> None:
        """Stores a decision."""


class AlertLedger(Protocol):
    """Stores each alert with its notices, so that a redelivered event leads to the
    same decision.
    """

    def past_alerts(self, key: JobKey, subject: str) -> PastAlerts:
        """Returns the last alert of a run, and the alerts of the run's subject."""

    def has_job_line(self, key: JobKey) -> bool:
        """Returns True if the one-line message about this run was already written."""

    def channel_hour(self, channel: str, began_at: datetime) -> ChannelHour:
        """Returns how many messages went to a channel in a clock hour."""

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
        """Writes the new alerts, and the bodies of their notices by channel.

        `hours` already count the new message. `includes_job_line`: some bodies are the one-line
        message about the job. Returns False, and writes nothing, if `previous_alerts` or an hour
        has changed in the table. It does the same if the run has a newer version, or if its
        one-line message was written before.
        """

    def notice(self, pk: str, sk: str) -> tuple[str, str] | None:
        """Returns a notice's channel and body by its keys; None if there is no such notice."""


class DigestLedger(Protocol):
    """The written digests with their notices, and the alerts of a subject."""

    def alerts(self, subject: str) -> Sequence[Alert]:
        """Returns the alerts of a subject (account, region and name), oldest first."""

    def unreadable_items(self) -> tuple[UnreadableItem, ...]:
        """Returns the alerts that were left out because they cannot be read."""

    def has_digest(self, last_day: date) -> bool:
        """Returns True if the digest of the week that ended on this day was written."""

    def write_digest(
        self, last_day: date, bodies: Mapping[tuple[int, str], str], now: datetime
    ) -> bool:
        """Writes a digest, and the bodies of its notices by route number and channel.

        Returns False, and writes nothing, if the digest was written before.
        """


class WatchLedger(Protocol):
    """The stored state of watched running jobs, with the notices about them."""

    def watch_state(self, key: JobKey) -> WatchState:
        """Returns the state of a run. It has revision 0 if none is stored."""

    def write_watch_state(
        self, state: WatchState, bodies: Mapping[str, str], now: datetime
    ) -> bool:
        """Writes the state, and the bodies of its newest message's notices by channel.

        Returns False, and writes nothing, if the stored state is not the previous revision.
        """


class BudgetLedger(Protocol):
    """The messages about budgets, with their notices."""

    def budget_messages(self, month: str, selector: tuple[str, str]) -> SentBudgetMessages:
        """Returns what was sent about a budget in a month (YYYY-MM)."""

    def write_budget_message(
        self, messages: SentBudgetMessages, bodies: Mapping[str, str], now: datetime
    ) -> bool:
        """Writes what was sent, and the bodies of the newest message's notices by channel.

        Returns False, and writes nothing, if another message was written since.
        """


class ReportStore(Protocol):
    """Stores reports for people who can use the account."""

    def put(self, name: str, page: str) -> str:
        """Stores an HTML page and returns its URL. Raises AwsError."""


class SendLedger(Protocol):
    """Stores which notices were sent, and which channels respond.

    No notice is posted twice without a mark as a possible repeat. Every method raises AwsError if
    the table does not respond.
    """

    def claim_send(self, notice_id: str, now: datetime, lease_s: int) -> SendClaim:
        """Tries to take the lease on a notice for `lease_s` seconds, and returns the outcome.

        The caller may send the notice only after FIRST or REPEAT.
        """

    def mark_sent(self, notice_id: str, now: datetime) -> None:
        """Records that the notice was posted, so that it is never sent again."""

    def mark_failed(self, notice_id: str, now: datetime, reason: str) -> None:
        """Records that a FIRST claim posted nothing, so that the next claim is FIRST again."""

    def mark_unknown(self, notice_id: str, now: datetime, reason: str) -> None:
        """Records that an attempt may have posted the notice, so that the next claim
        is a REPEAT.
        """

    def channel_hour(self, channel: str, began_at: datetime) -> ChannelHour:
        """Returns how many messages went to a channel in a clock hour."""

    def circuit(self, channel: str) -> Circuit:
        """Returns the stored state of this channel."""

    def replace_circuit(
        self, channel: str, expected_circuit: Circuit, new_circuit: Circuit, now: datetime
    ) -> bool:
        """Stores `new_circuit` and returns True if the stored state is `expected_circuit`.

        Otherwise returns False and changes nothing.
        """


class Queue(Protocol):
    """One SQS queue."""

    def send(
        self, body: str, *, delay_s: int = 0, attributes: dict[str, str] | None = None
    ) -> None:
        """Sends a message, which is visible after `delay_s` (0 to 900) seconds."""


class PacedQueue(Protocol):
    """One SQS queue whose depth is known, so that it is filled no faster than it is read."""

    def send_batch(self, bodies: Sequence[str], *, delay_s: int = 0) -> dict[int, str]:
        """Sends messages. Returns the reasons for refused messages by their index in `bodies`."""

    def depth(self) -> QueueDepth:
        """Returns the number of messages in the queue."""


class Channel(Protocol):
    """A way to post notices to one address."""

    def prepare(self) -> None:
        """Reads what `post` needs. Raises ChannelBroken or ChannelUnavailable; posts nothing."""

    def mark_as_repeat(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Returns the payload, marked as possibly posted before."""

    def post(self, payload: dict[str, Any]) -> None:
        """Posts the payload once. Raises a ChannelError.

        After PossiblySent or UnexpectedResponse, the payload may have been posted.
        """
