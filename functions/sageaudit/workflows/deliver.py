"""Posts a notice on its channel. Only a notice that was sent is never sent again.

notice -> its hour over? -> circuit closed? -> secret -> claim -> post -> mark

A lease in the ledger prevents a second post. If it is not known whether a try posted, one repeat
follows, marked as a possible repeat. If that is not known of the repeat either, the notice is
abandoned: the caller moves it to the dead letters, from which a person can send it again.
Nothing sleeps here: a notice that must wait is delivered again later.
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
"""Longer than the function's timeout: the holder of an expired lease is no longer running."""
POST_TIMEOUT_S = 40
"""The latest start of a post after its delivery began: post and mark need the remaining time."""
RETRY_AFTER_S = 30
"""Also the least after "too many requests": a service of one post a second then has caught up."""
REPEAT_AFTER_S = 300
"""A repeat waits until a short outage is over; otherwise both tries would fail in it."""
MAX_BACKOFF_S = 3_600
"""Waits doubled up to this use fewer than 100 receives in 3.5 days: our choice."""

HELD_HOUR_ENDS_AFTER_S = 3_600 + 300
"""Counted from the start of an hour: all its messages are written before `notify` times
out."""

CIRCUIT_OPENS_AFTER = 3
"""Consecutive posts without an answer after which a channel gets a pause: our choice."""
MIN_PAUSE_S = 60
MAX_PAUSE_S = 3_600
"""Also the upper limit of a channel's Retry-After."""
REPEAT_PAUSE_S = 1_800
"""A repeat, its notice's last try, tests a silent channel only if no other notice has tested it for
this long."""


class DeliverDependencies(Struct, frozen=True):
    """What `deliver` works with, by channel name; `clock` is read again after a post.

    `history_location`: the history that the commands in messages read.
    """

    ledger: SendLedger
    channels: Mapping[str, Channel]
    clock: Callable[[], datetime]
    writers: Mapping[str, Writer] = field(default_factory=dict)
    history_location: HistoryLocation = DEFAULT_HISTORY


class NoticePosted(Struct, frozen=True):
    """The notice was posted; `may_be_duplicate`: an earlier try may have posted it too.

    `mark_error` is the ledger's error if the post could not be recorded. The message is still done;
    only a second delivery of it would post again, as a repeat.
    """

    may_be_duplicate: bool
    mark_error: AwsError | None = None


class AlreadySent(Struct, frozen=True):
    """An earlier delivery posted the notice."""


class NoticeAbandoned(Struct, frozen=True):
    """The notice needs a person; a retry would end the same way.

    `code` is a stable word, `explanation` a sentence. The caller moves the notice to the dead
    letters, then calls `record_abandoned`.
    """

    code: str
    explanation: str
    maybe_posted: bool

    @property
    def is_outcome_unknown(self) -> bool:
        """Whether it is not known if the notice was posted, so that a person has to look."""
        return self.code in (UNKNOWN_OUTCOME, UNEXPECTED_ANSWER)


class RetryLater(Struct, frozen=True):
    """Deliver the notice again after `wait_s` seconds; `refusal` is the channel's error, if any."""

    wait_s: int
    refusal: ChannelError | None = None


DeliveryOutcome = NoticePosted | AlreadySent | NoticeAbandoned | RetryLater

UNKNOWN_OUTCOME = "unknown_outcome"
UNEXPECTED_ANSWER = "unexpected_answer"
_SPENT = (
    "two tries ended without an answer: look whether the notice was posted; if it was not, send it"
    " again with `sageaudit redrive notices`"
)


def deliver(notice: Notice, deps: DeliverDependencies, *, receive_count: int) -> DeliveryOutcome:
    """Posts one notice; `receive_count` is the number of this delivery, from 1.

    Raises AwsError from the ledger, or MalformedData for an hour that cannot be read. Any error but
    a ChannelError leaves the lease in place, since the notice may have been posted.
    """
    began = deps.clock()
    channel = deps.channels.get(notice.channel)
    if channel is None:
        reason = f"the policy that is deployed has no channel {notice.channel}"
        return _abandon_unposted(notice, deps, "no_channel", reason)
    if notice.held_hour is not None:
        wait_s = int((notice.held_hour - began).total_seconds()) + HELD_HOUR_ENDS_AFTER_S
        if wait_s > 0:
            return RetryLater(wait_s)
        notice = _with_held_messages(notice, notice.held_hour, deps)
    circuit = _circuit(notice.channel, deps, began)
    rest_s = circuit.open_until - int(began.timestamp())
    if rest_s > 0:
        return RetryLater(max(rest_s, _backoff_s(RETRY_AFTER_S, receive_count)))
    try:
        channel.prepare()
    except ChannelUnavailable as unavailable:
        return RetryLater(_backoff_s(RETRY_AFTER_S, receive_count), unavailable)
    except ChannelBroken as broken:
        return _abandon_unposted(notice, deps, broken.code, untrusted.for_log(str(broken)))
    claim = deps.ledger.claim_send(notice.notice_id, began, LEASE_S)
    match claim:
        case SendClaim.DONE:
            return AlreadySent()
        case SendClaim.BUSY:
            return RetryLater(LEASE_S)
        case SendClaim.EXHAUSTED:
            return NoticeAbandoned(UNKNOWN_OUTCOME, _SPENT, maybe_posted=True)
    leased = _LeasedNotice(notice, channel, deps, claim is SendClaim.REPEAT, receive_count)
    return leased.post(began, circuit)


def _with_held_messages(notice: Notice, began_at: datetime, deps: DeliverDependencies) -> Notice:
    """The notice with the messages that were held for its channel in a past hour."""
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
    """The channel's circuit. A pause longer than possible is reset to none."""
    circuit = deps.ledger.circuit(channel)
    if circuit.open_until <= int(now.timestamp()) + MAX_PAUSE_S + LEASE_S:
        return circuit
    with suppress(AwsError):
        deps.ledger.replace_circuit(channel, circuit, Circuit(), now)
    return Circuit()


def record_abandoned(notice: Notice, given_up: NoticeAbandoned, deps: DeliverDependencies) -> None:
    """Releases the claim of a notice that is in the dead letters. Raises AwsError."""
    if given_up.maybe_posted:
        deps.ledger.mark_unknown(notice.notice_id, deps.clock(), given_up.explanation)
    else:
        deps.ledger.mark_failed(notice.notice_id, deps.clock(), given_up.explanation)


def _abandon_unposted(
    notice: Notice, deps: DeliverDependencies, code: str, why: str
) -> DeliveryOutcome:
    """Abandons a notice that cannot be posted, unless it was sent before."""
    claim = deps.ledger.claim_send(notice.notice_id, deps.clock(), LEASE_S)
    if claim is SendClaim.DONE:
        return AlreadySent()
    if claim is SendClaim.BUSY:
        return RetryLater(LEASE_S)
    return NoticeAbandoned(code, why, maybe_posted=claim is not SendClaim.FIRST)


class _LeasedNotice(Struct, frozen=True):
    """A notice whose lease this delivery holds."""

    notice: Notice
    channel: Channel
    deps: DeliverDependencies
    may_be_duplicate: bool
    received: int

    def post(self, began: datetime, circuit: Circuit) -> DeliveryOutcome:
        """Posts the notice and records the outcome in the ledger."""
        now = self.deps.clock()
        if (now - began).total_seconds() > POST_TIMEOUT_S:
            late = ChannelUnavailable("there was no time left to post")
            return self._later(late, _backoff_s(RETRY_AFTER_S, self.received))
        if circuit.failures >= CIRCUIT_OPENS_AFTER:
            probing = self._probe(circuit, now)
            if probing is None:
                return self._later(None, _backoff_s(RETRY_AFTER_S, self.received))
            circuit = probing
        payload = self.notice.payload
        try:
            self.channel.post(
                self.channel.mark_as_repeat(payload) if self.may_be_duplicate else payload
            )
        except ChannelError as error:
            return self._handle_error(error, circuit)
        try:
            self.deps.ledger.mark_sent(self.notice.notice_id, self.deps.clock())
        except AwsError as unmarked:
            return NoticePosted(self.may_be_duplicate, unmarked)
        self._change(circuit, Circuit())
        return NoticePosted(self.may_be_duplicate)

    def _probe(self, circuit: Circuit, now: datetime) -> Circuit | None:
        """The circuit while only this notice tests the channel; None if it may not."""
        now_s = int(now.timestamp())
        if self.may_be_duplicate and now_s - circuit.open_until < REPEAT_PAUSE_S:
            return None
        alone = replace(circuit, open_until=now_s + LEASE_S)
        changed = self.deps.ledger.replace_circuit(self.notice.channel, circuit, alone, now)
        return alone if changed else None

    def _handle_error(self, error: ChannelError, circuit: Circuit) -> DeliveryOutcome:
        """Records a failed post, first in the claim, then in the circuit; returns the outcome."""
        answered = Circuit()
        now_s = int(self.deps.clock().timestamp())
        outcome: DeliveryOutcome
        match error:
            case RateLimited(retry_after_s=asked_s):
                wait_s = max(asked_s, RETRY_AFTER_S)
                answered = Circuit(0, now_s + wait_s)
                outcome = self._later(error, max(wait_s, _backoff_s(wait_s, self.received)))
            case ChannelUnavailable():
                answered = _circuit_after_failure(circuit, now_s)
                outcome = self._later(error, _backoff_s(RETRY_AFTER_S, self.received))
            case PossiblySent():
                answered = _circuit_after_failure(circuit, now_s)
                outcome = self._unknown(error)
            case ChannelBroken(code=code):
                outcome = NoticeAbandoned(
                    code, untrusted.for_log(str(error)), maybe_posted=self.may_be_duplicate
                )
            case _:  # UnexpectedResponse
                reason = untrusted.for_log(str(error))
                outcome = NoticeAbandoned(UNEXPECTED_ANSWER, reason, maybe_posted=True)
        self._change(circuit, answered)
        return outcome

    def _later(self, error: ChannelError | None, wait_s: int) -> RetryLater:
        ledger, reason = self.deps.ledger, str(error or "its channel is tested by another notice")
        mark = ledger.mark_unknown if self.may_be_duplicate else ledger.mark_failed
        mark(self.notice.notice_id, self.deps.clock(), untrusted.for_log(reason))
        return RetryLater(wait_s, error)

    def _unknown(self, error: PossiblySent) -> DeliveryOutcome:
        reason = untrusted.for_log(str(error))
        if self.may_be_duplicate:
            return NoticeAbandoned(
                UNKNOWN_OUTCOME, f"{_SPENT}. The last answer: {reason}", maybe_posted=True
            )
        self.deps.ledger.mark_unknown(self.notice.notice_id, self.deps.clock(), reason)
        return RetryLater(max(REPEAT_AFTER_S, error.retry_after_s), error)

    def _change(self, before: Circuit, after: Circuit) -> None:
        """Stores the circuit. If that fails, no notice is lost or sent twice."""
        if before == after:
            return
        with suppress(AwsError):
            name, ledger = self.notice.channel, self.deps.ledger
            ledger.replace_circuit(name, before, after, self.deps.clock())


def _circuit_after_failure(circuit: Circuit, now_s: int) -> Circuit:
    """The circuit after one more failed post; from CIRCUIT_OPENS_AFTER on, pauses double."""
    failures = circuit.failures + 1
    if failures < CIRCUIT_OPENS_AFTER:
        return Circuit(failures, 0)
    pause_s = doubled_s(MIN_PAUSE_S, failures - CIRCUIT_OPENS_AFTER, MAX_PAUSE_S)
    return Circuit(failures, now_s + pause_s)


def _backoff_s(base_s: int, received: int) -> int:
    """Seconds to wait, doubled at each receive, so that a long outage uses few receives."""
    return doubled_s(base_s, received - 1, max(base_s, MAX_BACKOFF_S))
