"""Posts a notice on its channel. A notice that is known to be posted is never posted again.

notice -> is its hour over? -> is the circuit closed? -> secret -> claim -> post -> mark

A lease in the ledger prevents two posts at the same time. If it is unknown whether the first
attempt posted the notice, a second attempt follows, marked as a possible repeat. If that outcome is
unknown too, the notice becomes a dead letter, and a person can send it again. A notice that must
wait is delivered again later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from msgspec import Struct, field

from sageaudit.domain.alert.backoff import doubled_s
from sageaudit.domain.audit.record import SendClaim
from sageaudit.errors import (
    AwsError,
    ChannelBroken,
    ChannelError,
    ChannelUnavailable,
    PossiblySent,
    RateLimited,
    Unavailable,
)
from sageaudit.output.text import untrusted
from sageaudit.output.text.card import NO_OWNER_IDS, Notice, Writer, held_messages_card
from sageaudit.output.text.links import DEFAULT_HISTORY, HistoryLocation
from sageaudit.ports import Channel, Circuit, SendLedger
from sageaudit.structs import replace

LEASE_S = 180
"""The seconds that a lease lasts. They exceed the function's timeout, so the owner of an expired
lease no longer runs.
"""
LATEST_POST_START_S = 40
"""A post must begin within this many seconds of a delivery's start. The rest is for
recording it.
"""
RETRY_AFTER_S = 30
"""The shortest wait before a retry, so that a service that accepts one post a second
can catch up.
"""
REPEAT_AFTER_S = 300
"""The wait before a repeat, so that both attempts do not fail in the same short outage."""
MAX_BACKOFF_S = 3_600
"""Waits double up to this limit (our choice).

So a message is received fewer than 100 times in 3.5 days.
"""

HELD_HOUR_ENDS_AFTER_S = 3_600 + 300
"""Seconds from an hour's start until its held messages are written: an hour and the timeout of
`notify`.
"""

CIRCUIT_OPENS_AFTER = 3
"""After this many consecutive failed posts, the channel is paused (our choice)."""
MIN_PAUSE_S = 60
MAX_PAUSE_S = 3_600
"""The longest pause of a channel, also for its Retry-After."""
REPEAT_PAUSE_S = 1_800
"""Seconds after the end of a channel's pause from which a repeat may test the channel.

A repeat is a notice's last attempt, so other notices should test the channel first.
"""


class DeliverDependencies(Struct, frozen=True):
    """What `deliver` needs. `channels` and `writers` have the channel's name as key.

    `history_location` is the history that commands in messages read.
    """

    ledger: SendLedger
    channels: Mapping[str, Channel]
    clock: Callable[[], datetime]
    writers: Mapping[str, Writer] = field(default_factory=dict)
    history_location: HistoryLocation = DEFAULT_HISTORY


class NoticePosted(Struct, frozen=True):
    """The notice was posted. `may_be_duplicate` means that an earlier attempt may have posted it
    too.

    `mark_error` is the ledger's error if the post could not be recorded. Only a redelivery would
    then post the notice again, marked as a repeat.
    """

    may_be_duplicate: bool
    mark_error: AwsError | None = None


class AlreadySent(Struct, frozen=True):
    """An earlier delivery posted the notice."""


class NoticeAbandoned(Struct, frozen=True):
    """The notice needs a person, since a retry would end the same way.

    `code` is a stable word, `explanation` a sentence. `maybe_posted` means that an attempt may have
    posted the notice. The caller makes it a dead letter, then calls `record_abandoned`.
    """

    code: str
    explanation: str
    maybe_posted: bool

    @property
    def is_outcome_unknown(self) -> bool:
        """True if a person must check whether the notice was posted, since the service did not
        confirm it.
        """
        return self.code in (UNKNOWN_OUTCOME, UNEXPECTED_ANSWER)


class RetryLater(Struct, frozen=True):
    """The notice must be delivered again after `wait_s` seconds.

    `refusal` is the channel's error; None if the channel was not asked.
    """

    wait_s: int
    refusal: ChannelError | None = None


DeliveryOutcome = NoticePosted | AlreadySent | NoticeAbandoned | RetryLater

UNKNOWN_OUTCOME = "unknown_outcome"
UNEXPECTED_ANSWER = "unexpected_answer"
_TRIES_USED_UP = (
    "two tries ended without an answer: check whether the notice was posted; if not, send it"
    " again with `sageaudit redrive notices`"
)


def deliver(notice: Notice, deps: DeliverDependencies, *, receive_count: int) -> DeliveryOutcome:
    """Posts one notice. `receive_count` is the number of this delivery, from 1.

    Raises MalformedData if an hour's held messages cannot be read. Raises AwsError from the ledger.
    A lease then stays, since the notice may have been posted.
    """
    began_at = deps.clock()
    channel = deps.channels.get(notice.channel)
    if channel is None:
        reason = f"the deployed policy has no channel {notice.channel}"
        return _abandon_unposted(notice, deps, "no_channel", reason)
    if notice.held_hour is not None:
        wait_s = int((notice.held_hour - began_at).total_seconds()) + HELD_HOUR_ENDS_AFTER_S
        if wait_s > 0:
            return RetryLater(wait_s)
        notice = _with_held_messages(notice, notice.held_hour, deps)
    circuit = _circuit(notice.channel, deps, began_at)
    pause_left_s = circuit.open_until - int(began_at.timestamp())
    if pause_left_s > 0:
        return RetryLater(max(pause_left_s, _backoff_s(RETRY_AFTER_S, receive_count)))
    try:
        channel.prepare()
    except ChannelUnavailable as unavailable:
        return RetryLater(_backoff_s(RETRY_AFTER_S, receive_count), unavailable)
    except ChannelBroken as broken:
        return _abandon_unposted(notice, deps, broken.code, untrusted.for_log(str(broken)))
    claim = deps.ledger.claim_send(notice.notice_id, began_at, LEASE_S)
    match claim:
        case SendClaim.DONE:
            return AlreadySent()
        case SendClaim.BUSY:
            return RetryLater(LEASE_S)
        case SendClaim.EXHAUSTED:
            return NoticeAbandoned(UNKNOWN_OUTCOME, _TRIES_USED_UP, maybe_posted=True)
    leased = _LeasedNotice(notice, channel, deps, claim is SendClaim.REPEAT, receive_count)
    return leased.post(began_at, circuit)


def _with_held_messages(notice: Notice, began_at: datetime, deps: DeliverDependencies) -> Notice:
    hour = deps.ledger.channel_hour(notice.channel, began_at)
    if not hour.held:
        raise Unavailable("The table answered without the hour of a notice.")
    return replace(
        notice,
        payload=deps.writers[notice.channel](
            held_messages_card(hour, deps.history_location), NO_OWNER_IDS
        ),
    )


def _circuit(channel: str, deps: DeliverDependencies, now: datetime) -> Circuit:
    """Returns the channel's circuit. A circuit with an impossibly long pause is reset."""
    circuit = deps.ledger.circuit(channel)
    if circuit.open_until <= int(now.timestamp()) + MAX_PAUSE_S + LEASE_S:
        return circuit
    with suppress(AwsError):
        deps.ledger.replace_circuit(channel, circuit, Circuit(), now)
    return Circuit()


def record_abandoned(notice: Notice, abandoned: NoticeAbandoned, deps: DeliverDependencies) -> None:
    """Releases the claim of a notice that became a dead letter. Raises AwsError."""
    if abandoned.maybe_posted:
        deps.ledger.mark_unknown(notice.notice_id, deps.clock(), abandoned.explanation)
    else:
        deps.ledger.mark_failed(notice.notice_id, deps.clock(), abandoned.explanation)


def _abandon_unposted(
    notice: Notice, deps: DeliverDependencies, code: str, explanation: str
) -> DeliveryOutcome:
    """Returns NoticeAbandoned for a notice that cannot be posted.

    Returns AlreadySent if it was posted before, and RetryLater if another delivery has its lease.
    """
    claim = deps.ledger.claim_send(notice.notice_id, deps.clock(), LEASE_S)
    if claim is SendClaim.DONE:
        return AlreadySent()
    if claim is SendClaim.BUSY:
        return RetryLater(LEASE_S)
    return NoticeAbandoned(code, explanation, maybe_posted=claim is not SendClaim.FIRST)


class _LeasedNotice(Struct, frozen=True):
    """A notice for which this delivery has the lease."""

    notice: Notice
    channel: Channel
    deps: DeliverDependencies
    may_be_duplicate: bool
    receive_count: int

    def post(self, began_at: datetime, circuit: Circuit) -> DeliveryOutcome:
        now = self.deps.clock()
        if (now - began_at).total_seconds() > LATEST_POST_START_S:
            no_time = ChannelUnavailable("there was no time left to post")
            return self._retry_later(no_time, _backoff_s(RETRY_AFTER_S, self.receive_count))
        if circuit.failures >= CIRCUIT_OPENS_AFTER:
            test_circuit = self._start_test(circuit, now)
            if test_circuit is None:
                return self._retry_later(None, _backoff_s(RETRY_AFTER_S, self.receive_count))
            circuit = test_circuit
        payload = self.notice.payload
        try:
            self.channel.post(
                self.channel.mark_as_repeat(payload) if self.may_be_duplicate else payload
            )
        except ChannelError as error:
            return self._handle_error(error, circuit)
        try:
            self.deps.ledger.mark_sent(self.notice.notice_id, self.deps.clock())
        except AwsError as mark_error:
            return NoticePosted(self.may_be_duplicate, mark_error)
        self._store_circuit(circuit, Circuit())
        return NoticePosted(self.may_be_duplicate)

    def _start_test(self, circuit: Circuit, now: datetime) -> Circuit | None:
        """Pauses the channel for all other notices, and returns its new circuit.

        Returns None if this notice may not test the channel.
        """
        now_s = int(now.timestamp())
        if self.may_be_duplicate and now_s - circuit.open_until < REPEAT_PAUSE_S:
            return None
        test_circuit = replace(circuit, open_until=now_s + LEASE_S)
        was_replaced = self.deps.ledger.replace_circuit(
            self.notice.channel, circuit, test_circuit, now
        )
        return test_circuit if was_replaced else None

    def _handle_error(self, error: ChannelError, circuit: Circuit) -> DeliveryOutcome:
        """Records a failed post, first in the claim, then in the circuit. Returns the outcome."""
        new_circuit = Circuit()
        now_s = int(self.deps.clock().timestamp())
        outcome: DeliveryOutcome
        match error:
            case RateLimited(retry_after_s=requested_wait_s):
                wait_s = max(requested_wait_s, RETRY_AFTER_S)
                new_circuit = Circuit(0, now_s + wait_s)
                outcome = self._retry_later(
                    error, max(wait_s, _backoff_s(wait_s, self.receive_count))
                )
            case ChannelUnavailable():
                new_circuit = _circuit_after_failure(circuit, now_s)
                outcome = self._retry_later(error, _backoff_s(RETRY_AFTER_S, self.receive_count))
            case PossiblySent():
                new_circuit = _circuit_after_failure(circuit, now_s)
                outcome = self._handle_possibly_sent(error)
            case ChannelBroken(code=code):
                outcome = NoticeAbandoned(
                    code, untrusted.for_log(str(error)), maybe_posted=self.may_be_duplicate
                )
            case _:  # UnexpectedResponse
                reason = untrusted.for_log(str(error))
                outcome = NoticeAbandoned(UNEXPECTED_ANSWER, reason, maybe_posted=True)
        self._store_circuit(circuit, new_circuit)
        return outcome

    def _retry_later(self, refusal: ChannelError | None, wait_s: int) -> RetryLater:
        ledger, reason = self.deps.ledger, str(refusal or "another notice tests its channel")
        mark = ledger.mark_unknown if self.may_be_duplicate else ledger.mark_failed
        mark(self.notice.notice_id, self.deps.clock(), untrusted.for_log(reason))
        return RetryLater(wait_s, refusal)

    def _handle_possibly_sent(self, error: PossiblySent) -> DeliveryOutcome:
        reason = untrusted.for_log(str(error))
        if self.may_be_duplicate:
            return NoticeAbandoned(
                UNKNOWN_OUTCOME, f"{_TRIES_USED_UP}. The last answer: {reason}", maybe_posted=True
            )
        self.deps.ledger.mark_unknown(self.notice.notice_id, self.deps.clock(), reason)
        return RetryLater(max(REPEAT_AFTER_S, error.retry_after_s), error)

    def _store_circuit(self, old_circuit: Circuit, new_circuit: Circuit) -> None:
        # If the write fails, no notice is lost or sent twice.
        if old_circuit == new_circuit:
            return
        with suppress(AwsError):
            name, ledger = self.notice.channel, self.deps.ledger
            ledger.replace_circuit(name, old_circuit, new_circuit, self.deps.clock())


def _circuit_after_failure(circuit: Circuit, now_s: int) -> Circuit:
    # The pauses double.
    failures = circuit.failures + 1
    if failures < CIRCUIT_OPENS_AFTER:
        return Circuit(failures, 0)
    pause_s = doubled_s(MIN_PAUSE_S, failures - CIRCUIT_OPENS_AFTER, MAX_PAUSE_S)
    return Circuit(failures, now_s + pause_s)


def _backoff_s(base_s: int, receive_count: int) -> int:
    """Returns the seconds to wait, doubled with each receive, so that a long outage uses few
    receives.
    """
    return doubled_s(base_s, receive_count - 1, max(base_s, MAX_BACKOFF_S))
