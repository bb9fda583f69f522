"""The figures of a message about a run, and the messages that were sent before: no I/O."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from sageaudit.domain.audit.advised import Worth
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.usage.work_share import Unit

ALERTS_KEPT_DAYS = 400
"""For so long after the last one the alerts of a family are kept: none is sent again because it was
forgotten. Our choice."""
CHANGED_USD = Decimal(1)
CHANGED_HOURS = Decimal(1)
CHANGED_SHARE = Decimal("0.1")
"""A figure is corrected when it changed by $1 (or an hour) and by a tenth. Metrics that come late
move figures by a few percent, and nobody decides otherwise for that; a tenth is what a reader may
have acted on. Our choice."""
_MOST_NAMED = 3
"""Of the messages above a channel's most in an hour. Our choice."""
_MOST_ALERTS = 100
"""Of a family or a pipeline, the newest: an item of the table stays small."""
_PIPELINE_STEP = re.compile(r"(pipeline/[^/]+)/[^/]+")


@dataclass(frozen=True, slots=True)
class AlertFigures:
    """The figures of a message: USD to the cent, as they are shown; None is unknown.

    `severity` is INFO where no finding counts. `perhaps_usd`: what may be lost beyond `lost_usd`.
    `accepted_usd` are the dollars that a policy or tag accepts: no message shows them.
    `idle_hours`, of devices in `idle_unit`, were paid for and not used: None where the message does
    not name them. `idle_usd` is their list value that no sum has.
    """

    severity: Severity
    avoidable_usd: Decimal | None
    lost_usd: Decimal | None
    perhaps_usd: Decimal = Decimal(0)
    accepted_usd: Decimal = Decimal(0)
    idle_unit: Unit = "gpu_hours"
    idle_hours: Decimal | None = None
    idle_usd: Decimal | None = None

    @property
    def usd(self) -> Decimal | None:
        """What is certain: avoidable and lost; None where neither is known."""
        if self.avoidable_usd is None and self.lost_usd is None:
            return None
        return (self.avoidable_usd or Decimal(0)) + (self.lost_usd or Decimal(0))

    @property
    def at_stake_usd(self) -> Decimal:
        """What is certain, and what may be lost."""
        return (self.usd or Decimal(0)) + self.perhaps_usd

    @property
    def of_money(self) -> bool:
        """Whether a finding counts; else the message is about idle hours, or takes one back."""
        return self.severity is not Severity.INFO

    @property
    def stands(self) -> bool:
        """False where everything was taken back: then it silences nobody."""
        return bool(self.usd is None or self.at_stake_usd or self.idle_hours is not None)


def matters(figures: AlertFigures, before: AlertFigures) -> bool:
    """Whether a figure of the last alert changed enough to be corrected."""
    if not before.of_money and not figures.of_money:
        hours, last_hours = figures.idle_hours, before.idle_hours
        if hours is None or last_hours is None or figures.idle_unit != before.idle_unit:
            return last_hours is not None
        return _changed(hours, last_hours, CHANGED_HOURS)
    if (figures.usd is None) != (before.usd is None):
        return True
    rose = figures.severity.rank > before.severity.rank and figures.usd == before.usd
    if figures.of_money and before.of_money and rose:
        return True
    certain = _changed(figures.usd or Decimal(0), before.usd or Decimal(0), CHANGED_USD)
    return certain or _changed(figures.perhaps_usd, before.perhaps_usd, CHANGED_USD)


def _changed(now: Decimal, before: Decimal, least: Decimal) -> bool:
    return abs(now - before) >= max(least, CHANGED_SHARE * before)


class AlertKind(enum.StrEnum):
    """What a message is; subscriptions can filter by it."""

    FIRST = "first"
    CHANGED = "changed"
    GREW = "grew"
    AWAKE = "awake"
    """A snooze, an exemption or a promise has ended."""
    BACK = "back"
    WORSE = "worse"
    DEARER = "dearer"
    """A run that cost far more than its like."""
    CORRECTION = "correction"
    WAITS = "waits"
    """None: another step of its pipeline has just had one. The next one speaks of it."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A message about a run of a family: which `version` of its audit caused it, with which
    figures, when, and to which channels.

    `run` is its partition key. One message gives an alert for each thing that it is about: `worth`
    says what that is; None of a run that cost far more than its like. `advices`: the ids of what
    was open then, the dearest first. `amount`: the family's month; of a run that cost more, how
    much more. `of_one_occasion`: then the month is a guess that no text showed.
    """

    run: str
    family: str
    kind: AlertKind
    version: int
    figures: AlertFigures
    at: datetime
    channels: tuple[str, ...] = ()
    worth: Worth | None = None
    advices: tuple[str, ...] = ()
    amount: Decimal = Decimal(0)
    of_one_occasion: bool = False

    @property
    def holds(self) -> bool:
        """False of dollars that were all taken back: then it silences nobody."""
        return self.worth is not Worth.COUNTED or self.figures.stands

    def corrected(self, by: Alert) -> Alert:
        """The same, as a later message about the run corrects it."""
        return replace(self, version=by.version, figures=by.figures, at=by.at, channels=by.channels)


@dataclass(frozen=True, slots=True)
class PastAlerts:
    """The alerts that a decision about a run depends on.

    `run` is its partition key. `last`: the run's last alert. `alerts`: the newest ones about its
    `group` of families, oldest first. `revision` counts the writes of the group's alerts.
    """

    run: str
    group: str
    last: Alert | None = None
    alerts: tuple[Alert, ...] = ()
    revision: int = 0

    def with_alerts(self, last: Alert, new: Sequence[Alert]) -> PastAlerts:
        """With a new alert about the run; one that brings no `new` ones corrects the last one.

        What waited and is in the new ones waits no more.
        """
        about = {(one.family, one.worth) for one in new}
        alerts = [
            one.corrected(last) if one.run == self.run and not new else one
            for one in self.alerts
            if one.kind is not AlertKind.WAITS or (one.family, one.worth) not in about
        ]
        return self._with([*alerts, *new], last)

    def with_waiting(self, waiting: Alert) -> PastAlerts:
        """With what the next message of the group includes, in place of what it was before."""
        before = (waiting.family, AlertKind.WAITS, waiting.worth)
        alerts = [one for one in self.alerts if (one.family, one.kind, one.worth) != before]
        return self._with([*alerts, waiting], self.last)

    def _with(self, alerts: Sequence[Alert], last: Alert | None) -> PastAlerts:
        kept = tuple(alerts[-_MOST_ALERTS:])
        return replace(self, last=last, alerts=kept, revision=self.revision + 1)


def group_key(account: str, region: str, family: str) -> str:
    """By what the alerts of a group of families are kept."""
    return f"{account}/{region}/{group_of(family)}"


def group_of(family: str) -> str:
    """The families that share their alerts: the steps of a pipeline; else the family alone."""
    step = _PIPELINE_STEP.fullmatch(family)
    return step[1] if step else family


@dataclass(frozen=True, slots=True)
class ChannelHour:
    """The messages to one channel that were decided on in a clock hour (UTC).

    `sent` have a notice of their own; the `held` ones have one together, which is posted after the
    hour. `dearest`: the first lines of the dearest held ones, with their USD where known.
    """

    channel: str
    began_at: datetime
    sent: int = 0
    held: int = 0
    dearest: tuple[tuple[str, Decimal | None], ...] = ()

    @property
    def count(self) -> int:
        """All messages of the hour."""
        return self.sent + self.held

    @property
    def needs_notice(self) -> bool:
        """Whether its last message has a notice, of its own or as the first held one."""
        return self.held <= 1

    def with_message(self, headline: str, usd: Decimal | None, most: int) -> ChannelHour:
        """With one more; above `most` it is held."""
        if self.sent < most:
            return replace(self, sent=self.sent + 1)
        dearest = sorted((*self.dearest, (headline, usd)), key=_dearest_first)[:_MOST_NAMED]
        return replace(self, held=self.held + 1, dearest=tuple(dearest))


def hour_of(now: datetime) -> datetime:
    """The beginning of the clock hour."""
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _dearest_first(message: tuple[str, Decimal | None]) -> tuple[bool, Decimal]:
    _, usd = message
    return usd is None, -(usd or Decimal(0))
