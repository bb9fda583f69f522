"""What `notify` does about an audit: its decision, and what is written in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.alert.alert import ChannelHour, PastAlerts, hour_of
from sageaudit.domain.alert.decision import AlertDecision
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Destination
from sageaudit.output.text.card import MessageCard, Notice, Writer, to_body
from sageaudit.output.text.links import OWN_HISTORY, HistoryPlace
from sageaudit.ports import AlertLedger, Decisions, History
from sageaudit.structs import replace


class NotifyDependencies(Struct, frozen=True):
    """What `notify` reads, writes and decides by.

    `writers`: of each channel of the policy. `installed_at`: no message is sent about a job
    that ended before this moment; None where it is not known. `place`: the history that the
    commands of messages ask.
    """

    history: History
    ledger: AlertLedger
    decisions: Decisions
    policy: Policy
    writers: Mapping[str, Writer]
    installed_at: Callable[[], datetime | None] = lambda: None
    place: HistoryPlace = OWN_HISTORY


class Post(Struct, frozen=True):
    """A card, and where it goes. `may_wait`: above a channel's most in an hour it is held."""

    to: Destination
    card: MessageCard
    usd: Decimal | None
    may_wait: bool = True

    def hour(self, channel: str, deps: NotifyDependencies, now: datetime) -> ChannelHour:
        """The channel's hour with this message; nothing is counted where none is ever held."""
        most, began = deps.policy.max_per_hour.get(channel), hour_of(now)
        if most is None or not self.may_wait:
            return ChannelHour(channel, began)
        return deps.ledger.hour(channel, began).with_message(self.card.headline, self.usd, most)

    def body(self, notice_id: str, hour: ChannelHour, deps: NotifyDependencies) -> str:
        """The notice: the card, or with the first held message that of the hour."""
        held_hour = hour.began_at if hour.held else None
        payload = {} if held_hour else deps.writers[hour.channel](self.card, deps.policy.mentions)
        return to_body(Notice(notice_id, hour.channel, payload, held_hour))


class Notification(Struct, frozen=True):
    """What is done about one version of an audit.

    `alert` is the message, None if the decision is that there is none; `line` the line about the
    job. `new_past`: the alerts of the run and its subject with this one; None if they stay as they
    were read. `write` says which channels are `held`: they have had their most in this hour.
    """

    decision: AlertDecision
    new_past: PastAlerts | None = None
    alert: Post | None = None
    line: Post | None = None
    held: tuple[str, ...] = ()

    def write(
        self, past: PastAlerts, version: int, deps: NotifyDependencies, now: datetime
    ) -> Notification | None:
        """Writes it, if there is anything; None if `past`, as it was read, does not hold any more.

        An alert, the notice of each channel, the mark that the run had its line, and the counts of
        the channels' hours are one transaction.
        """
        new_past = self.new_past or past
        posts: list[Post] = [post for post in (self.alert, self.line) if post]
        if new_past is past and not posts:
            return self
        hours = [
            (post, post.hour(channel, deps, now)) for post in posts for channel in post.to.channels
        ]
        bodies = {
            hour.channel: post.body(f"{past.run}|{version}|{hour.channel}", hour, deps)
            for post, hour in hours
            if hour.needs_notice
        }
        counts = [hour for _, hour in hours if hour.count]
        has_line = self.line is not None
        if not deps.ledger.write(past, new_past, bodies, now, counts, line=has_line):
            return None
        return replace(self, held=tuple(hour.channel for _, hour in hours if hour.held))
