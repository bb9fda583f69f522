"""Posts a notice on its channel. Only a notice that was sent is never sent again.

notice -> its hour over? -> circuit closed? -> secret -> claim -> post -> mark

A lease in the ledger prevents a second post. Where nobody knows whether a try posted, one repeat
follows, marked as a possible repeat; where nobody knows that of the repeat either, the notice is
given up: the caller moves it to the dead letters, from where a person can have it sent again.
Nothing sleeps here: a notice that must wait is delivered again later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from msgspec import Struct, field

from sageaudit.domain.audit.record import Claim
from sageaudit.errors import (
    AwsError,
    ChannelBroken,
    ChannelError,
    ChannelUnavailable,
    MaybeSent,
    RateLimited,
    Unavailable,
    doubled_s,
)
from sageaudit.output.text import untrusted
from sageaudit.output.text.card import NOBODY, Notice, Writer, held_card
from sageaudit.output.text.links import OWN_HISTORY, HistoryPlace
from sageaudit.ports import Channel, Circuit, SendLedger
from sageaudit.structs import replace

LEASE_S = 180
"""Longer than the function's timeout: the holder of an expired lease is no longer running."""
POST_WITHIN_S = 40
"""A post starts this long after its delivery began, at most: it and its mark need the rest."""
TRY_AGAIN_S = 30
"""Also the least after "too many requests": a service of one a second then takes many at once."""
REPEAT_AFTER_S = 300
"""A repeat waits until a short outage is over, else the same outage takes both tries."""
LONGEST_BACKOFF_S = 3_600
"""Waits that double up to this use less than 100 of the receives in 3.5 days: our choice."""

HELD_AFTER_S = 3_600 + 300
"""After the beginning of an hour: what is decided in it is written before the function of notify
times out."""

OPENS_AFTER = 3
"""Posts in a row without an answer, after which a channel is left alone for a time: our choice."""
FIRST_PAUSE_S = 60
LONGEST_PAUSE_S = 3_600
"""Also the longest that a channel's Retry-After counts for."""
REPEATS_PAUSE_S = 1_800
"""A repeat, which is its notice's last try, tests a silent channel only where no other notice has
come for this long."""


class DeliverDependencies(Struct, frozen=True):
    """What `deliver` works with, by channel name; `clock` is read again after a post.

    `place`: the history that the commands of messages ask.
    """

    ledger: SendLedger
    channels: Mapping[str, Channel]
    clock: Callable[[], datetime]
    writers: Mapping[str, Writer] = field(default_factory=dict)
    place: HistoryPlace = OWN_HISTORY


class Posted(Struct, frozen=True):
    """The notice was posted; `repeat` is True when an earlier try may have posted it too.

    `unmarked` is the ledger's error where it does not know: the message is done all the same, and
    only a second delivery of it would post again, as a repeat.
    """

    repeat: bool
    unmarked: AwsError | None = None


class AlreadySent(Struct, frozen=True):
    """An earlier delivery posted the notice."""


class GivenUp(Struct, frozen=True):
    """The notice needs a person; a retry would end the same way.

    `code` is a stable word, `why` a sentence. The caller moves the notice to the dead letters, then
    calls `record_given_up`.
    """

    code: str
    why: str
    maybe_posted: bool

    @property
    def unknown(self) -> bool:
        """Whether it is given up since nobody knows if it was posted: a person has to look."""
        return self.code in (UNKNOWN_OUTCOME, UNEXPECTED_ANSWER)


class TryLater(Struct, frozen=True):
    """Deliver the notice again after `wait_s` seconds; `refusal` is the channel's error, if any."""

    wait_s: int
    refusal: ChannelError | None = None


Outcome = Posted | AlreadySent | GivenUp | TryLater

UNKNOWN_OUTCOME = "unknown_outcome"
UNEXPECTED_ANSWER = "unexpected_answer"
_SPENT = (
    "two tries ended without an answer: look whether the notice was posted; if it was not, send it"
    " again with `sageaudit redrive notices`"
)


def deliver(notice: Notice, deps: DeliverDependencies, *, received: int) -> Outcome:
    """Posts one notice; `received` is the number of this delivery, from 1.

    Raises AwsError from the ledger, or Malformed for an hour that cannot be read. An error that is
    no ChannelError leaves the lease in place: the notice may have been posted.
    """
    began = deps.clock()
    channel = deps.channels.get(notice.channel)
    if channel is None:
        gone = f"the policy that is deployed has no channel {notice.channel}"
        return _unposted(notice, deps, "no_channel", gone)
    if notice.held_hour is not None:
        wait_s = int((notice.held_hour - began).total_seconds()) + HELD_AFTER_S
        if wait_s > 0:
            return TryLater(wait_s)
        notice = _with_held(notice, notice.held_hour, deps)
    circuit = _circuit(notice.channel, deps, began)
    rest_s = circuit.open_until - int(began.timestamp())
    if rest_s > 0:
        return TryLater(max(rest_s, _backoff_s(TRY_AGAIN_S, received)))
    try:
        channel.prepare()
    except ChannelUnavailable as unavailable:
        return TryLater(_backoff_s(TRY_AGAIN_S, received), unavailable)
    except ChannelBroken as broken:
        return _unposted(notice, deps, broken.code, untrusted.log(str(broken)))
    claim = deps.ledger.claim_send(notice.notice_id, began, LEASE_S)
    match claim:
        case Claim.DONE:
            return AlreadySent()
        case Claim.BUSY:
            return TryLater(LEASE_S)
        case Claim.SPENT:
            return GivenUp(UNKNOWN_OUTCOME, _SPENT, maybe_posted=True)
    held = _Held(notice, channel, deps, claim is Claim.REPEAT, received)
    return held.post(began, circuit)


def _with_held(notice: Notice, began_at: datetime, deps: DeliverDependencies) -> Notice:
    """The notice with what was held of its channel in an hour that is over."""
    hour = deps.ledger.hour(notice.channel, began_at)
    if not hour.held:
        raise Unavailable("The table answered without the hour of a notice.")
    return replace(
        notice, payload=deps.writers[notice.channel](held_card(hour, deps.place), NOBODY)
    )


def _circuit(channel: str, deps: DeliverDependencies, now: datetime) -> Circuit:
    """How the channel answered; a pause that is longer than any can be is replaced by none."""
    known = deps.ledger.circuit(channel)
    if known.open_until <= int(now.timestamp()) + LONGEST_PAUSE_S + LEASE_S:
        return known
    with suppress(AwsError):
        deps.ledger.change_circuit(channel, known, Circuit(), now)
    return Circuit()


def record_given_up(notice: Notice, given_up: GivenUp, deps: DeliverDependencies) -> None:
    """Ends the claim of a notice that is in the dead letters. Raises AwsError."""
    if given_up.maybe_posted:
        deps.ledger.mark_unknown(notice.notice_id, deps.clock(), given_up.why)
    else:
        deps.ledger.mark_failed(notice.notice_id, deps.clock(), given_up.why)


def _unposted(notice: Notice, deps: DeliverDependencies, code: str, why: str) -> Outcome:
    """Gives up a notice that cannot be posted, unless it was sent before."""
    claim = deps.ledger.claim_send(notice.notice_id, deps.clock(), LEASE_S)
    if claim is Claim.DONE:
        return AlreadySent()
    if claim is Claim.BUSY:
        return TryLater(LEASE_S)
    return GivenUp(code, why, maybe_posted=claim is not Claim.FIRST)


class _Held(Struct, frozen=True):
    """A notice whose lease this delivery holds."""

    notice: Notice
    channel: Channel
    deps: DeliverDependencies
    repeat: bool
    received: int

    def post(self, began: datetime, circuit: Circuit) -> Outcome:
        """Posts, and records the outcome in the ledger."""
        now = self.deps.clock()
        if (now - began).total_seconds() > POST_WITHIN_S:
            late = ChannelUnavailable("there was no time left to post")
            return self._later(late, _backoff_s(TRY_AGAIN_S, self.received))
        if circuit.failures >= OPENS_AFTER:
            probing = self._probe(circuit, now)
            if probing is None:
                return self._later(None, _backoff_s(TRY_AGAIN_S, self.received))
            circuit = probing
        payload = self.notice.payload
        try:
            self.channel.post(self.channel.as_repeat(payload) if self.repeat else payload)
        except ChannelError as error:
            return self._refused(error, circuit)
        try:
            self.deps.ledger.mark_sent(self.notice.notice_id, self.deps.clock())
        except AwsError as unmarked:
            return Posted(self.repeat, unmarked)
        self._change(circuit, Circuit())
        return Posted(self.repeat)

    def _probe(self, circuit: Circuit, now: datetime) -> Circuit | None:
        """The circuit while this notice alone tests the channel; None when it may not."""
        now_s = int(now.timestamp())
        if self.repeat and now_s - circuit.open_until < REPEATS_PAUSE_S:
            return None
        alone = replace(circuit, open_until=now_s + LEASE_S)
        changed = self.deps.ledger.change_circuit(self.notice.channel, circuit, alone, now)
        return alone if changed else None

    def _refused(self, error: ChannelError, circuit: Circuit) -> Outcome:
        """The outcome after a post that raised this error. First the claim, then the circuit."""
        answered = Circuit()
        now_s = int(self.deps.clock().timestamp())
        outcome: Outcome
        match error:
            case RateLimited(retry_after_s=asked_s):
                wait_s = max(asked_s, TRY_AGAIN_S)
                answered = Circuit(0, now_s + wait_s)
                outcome = self._later(error, max(wait_s, _backoff_s(wait_s, self.received)))
            case ChannelUnavailable():
                answered = _after_failure(circuit, now_s)
                outcome = self._later(error, _backoff_s(TRY_AGAIN_S, self.received))
            case MaybeSent():
                answered = _after_failure(circuit, now_s)
                outcome = self._unknown(error)
            case ChannelBroken(code=code):
                outcome = GivenUp(code, untrusted.log(str(error)), maybe_posted=self.repeat)
            case _:  # UnexpectedAnswer
                why = untrusted.log(str(error))
                outcome = GivenUp(UNEXPECTED_ANSWER, why, maybe_posted=True)
        self._change(circuit, answered)
        return outcome

    def _later(self, error: ChannelError | None, wait_s: int) -> TryLater:
        """Gives the claim back: this try posted nothing."""
        ledger, why = self.deps.ledger, str(error or "its channel is tested by another notice")
        mark = ledger.mark_unknown if self.repeat else ledger.mark_failed
        mark(self.notice.notice_id, self.deps.clock(), untrusted.log(why))
        return TryLater(wait_s, error)

    def _unknown(self, error: MaybeSent) -> Outcome:
        why = untrusted.log(str(error))
        if self.repeat:
            return GivenUp(UNKNOWN_OUTCOME, f"{_SPENT}. The last answer: {why}", maybe_posted=True)
        self.deps.ledger.mark_unknown(self.notice.notice_id, self.deps.clock(), why)
        return TryLater(max(REPEAT_AFTER_S, error.retry_after_s), error)

    def _change(self, before: Circuit, after: Circuit) -> None:
        """Stores how the channel answered, without which no notice is lost or sent twice."""
        if before == after:
            return
        with suppress(AwsError):
            name, ledger = self.notice.channel, self.deps.ledger
            ledger.change_circuit(name, before, after, self.deps.clock())


def _after_failure(circuit: Circuit, now_s: int) -> Circuit:
    """One more post without an answer: from OPENS_AFTER on, pauses that double."""
    failures = circuit.failures + 1
    if failures < OPENS_AFTER:
        return Circuit(failures, 0)
    pause_s = doubled_s(FIRST_PAUSE_S, failures - OPENS_AFTER, LONGEST_PAUSE_S)
    return Circuit(failures, now_s + pause_s)


def _backoff_s(base_s: int, received: int) -> int:
    """Seconds to wait, doubled at each receive: a long outage must not use up the receives."""
    return doubled_s(base_s, received - 1, max(base_s, LONGEST_BACKOFF_S))
