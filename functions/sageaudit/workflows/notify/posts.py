"""Writes what was decided about an audit in one transaction: alert, notices, counts of the hour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.alert.alert import ChannelHour, PastAlerts, hour_of
from sageaudit.domain.alert.decision import AlertDecision
from sageaudit.domain.policy.policy import Policy
from sageaudit.output.text.card import MessageCard
from sageaudit.output.text.commands import OWN_HISTORY, HistoryPlace
from sageaudit.output.text.envelope import Notice, Writer, to_body
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
    """What a channel is posted. `may_wait`: above the channel's most in an hour it is held."""

    channel: str
    card: MessageCard
    usd: Decimal | None
    may_wait: bool = True

    def hour(self, deps: NotifyDependencies, now: datetime) -> ChannelHour:
        """The channel's hour with this message; nothing is counted where none is ever held."""
        most, began = deps.policy.max_per_hour.get(self.channel), hour_of(now)
        if most is None or not self.may_wait:
            return ChannelHour(self.channel, began)
        return deps.ledger.hour(self.channel, began).with_message(
            self.card.headline, self.usd, most
        )

    def body(self, notice_id: str, hour: ChannelHour, deps: NotifyDependencies) -> str:
        """The notice: the card, or with the first held message that of the hour."""
        held_hour = hour.began_at if hour.held else None
        payload = {} if held_hour else deps.writers[self.channel](self.card, deps.policy.mentions)
        return to_body(Notice(notice_id, self.channel, payload, held_hour))


class Plan(Struct, frozen=True):
    """What is to be written about a version: the alerts `after` it, and what is posted."""

    decision: AlertDecision
    after: PastAlerts
    posts: tuple[Post, ...] = ()

    def write(
        self, before: PastAlerts, version: int, deps: NotifyDependencies, now: datetime
    ) -> AlertDecision | None:
        """Writes it, if there is anything; None where what was read does not hold any more."""
        if self.after is before and not self.posts:
            return self.decision
        hours = [(post, post.hour(deps, now)) for post in self.posts]
        bodies = {
            post.channel: post.body(f"{before.run}|{version}|{post.channel}", hour, deps)
            for post, hour in hours
            if hour.needs_notice
        }
        counts = [hour for _, hour in hours if hour.count]
        line = bool(self.decision.lines)
        if not deps.ledger.write(before, self.after, bodies, now, counts, line=line):
            return None
        return replace(self.decision, held=tuple(hour.channel for _, hour in hours if hour.held))
