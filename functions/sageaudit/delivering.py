"""Posts a notice on its channel once; at most one repeat follows, marked as a possible repeat.

notice -> channel open? -> claim -> post -> mark

A lease in the ledger prevents a second post. When a process dies between post and mark, its lease
expires and one repeat follows. Nothing sleeps here: a notice that must wait is delivered again
later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sageaudit.domain.audit.record import Claim
from sageaudit.errors import (
    ChannelBroken,
    ChannelError,
    ChannelUnavailable,
    MaybeSent,
    RateLimited,
    RejectedEvent,
)
from sageaudit.ports import Channel, SendLedger
from sageaudit.text import untrusted
from sageaudit.text.envelope import Notice

LEASE_S = 90
"""Longer than the function's timeout: the holder of an expired lease is no longer running."""
TRY_AGAIN_S = 30
LONGEST_BACKOFF_S = 1_800
_MOST_DOUBLINGS = 10


@dataclass(frozen=True, slots=True)
class DeliverDependencies:
    """What `deliver` works with. `channels` are by name; `clock` is read again after a post."""

    ledger: SendLedger
    channels: Mapping[str, Channel]
    clock: Callable[[], datetime]
    closed_until: dict[str, datetime] = field(default_factory=dict)
    """By channel: the time before which it asked for no posts, as far as this process knows."""


@dataclass(frozen=True, slots=True)
class Posted:
    """The notice was posted; `repeat` is True when an earlier try may have posted it too."""

    repeat: bool


@dataclass(frozen=True, slots=True)
class AlreadyDone:
    """An earlier delivery posted the notice, or gave it up."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The channel refused the notice permanently; a retry would fail the same way."""

    reason: str


@dataclass(frozen=True, slots=True)
class TryLater:
    """Deliver the notice again after `wait_s` seconds; `refusal` is the channel's error, if any."""

    wait_s: int
    refusal: ChannelError | None = None


def deliver(
    notice: Notice, deps: DeliverDependencies, *, received: int
) -> Posted | AlreadyDone | GivenUp | TryLater:
    """Posts one notice; `received` is the number of this delivery, from 1.

    Raises RejectedEvent when its channel is not set up, or AwsError from the ledger. Any other
    error of a channel leaves the lease in place: the notice may have been posted.
    """
    channel = deps.channels.get(notice.channel)
    if channel is None:
        raise RejectedEvent("no_channel", f"{notice.channel} is not set up")
    now = deps.clock()
    open_at = deps.closed_until.get(notice.channel, now)
    if open_at > now:
        rest_s = int((open_at - now).total_seconds()) + 1
        return TryLater(max(rest_s, _backoff_s(TRY_AGAIN_S, received)))
    claim = deps.ledger.claim_send(notice.notice_id, now, LEASE_S)
    if claim is Claim.DONE:
        return AlreadyDone()
    if claim is Claim.BUSY:
        return TryLater(LEASE_S)
    return _post(notice, channel, deps, repeat=claim is Claim.REPEAT, received=received)


def _post(
    notice: Notice, channel: Channel, deps: DeliverDependencies, *, repeat: bool, received: int
) -> Posted | GivenUp | TryLater:
    """Posts a claimed notice and records the result in the ledger."""
    try:
        channel.post(channel.as_repeat(notice.payload) if repeat else notice.payload)
    except RateLimited as limited:
        wait_s = limited.retry_after_s
        deps.closed_until[notice.channel] = deps.clock() + timedelta(seconds=wait_s)
        deps.ledger.release(notice.notice_id)
        return TryLater(max(wait_s, _backoff_s(wait_s, received)), limited)
    except MaybeSent as unknown:
        return TryLater(LEASE_S, unknown)
    except ChannelUnavailable as unavailable:
        deps.ledger.release(notice.notice_id)
        return TryLater(_backoff_s(TRY_AGAIN_S, received), unavailable)
    except ChannelBroken as broken:
        reason = untrusted.log(str(broken))
        deps.ledger.mark_failed(notice.notice_id, deps.clock(), reason)
        return GivenUp(reason)
    deps.ledger.mark_sent(notice.notice_id, deps.clock())
    return Posted(repeat)


def _backoff_s(base_s: int, received: int) -> int:
    """Seconds to wait, doubled at each receive: a long outage must not use up the receives."""
    doublings = min(max(received - 1, 0), _MOST_DOUBLINGS)
    return min(int(base_s * 2**doublings), LONGEST_BACKOFF_S)
