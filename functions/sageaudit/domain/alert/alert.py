"""The figures of a message about a run, and the messages that were sent before: no I/O."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.audit.finding_document import Worth
from sageaudit.domain.bill.finding import Severity
from sageaudit.structs import replace

ALERTS_KEPT_DAYS = 400
"""For so long after the last one the alerts of a family are kept: none is sent again because it was
forgotten. Our choice."""
CHANGED_USD = Decimal(1)
CHANGED_SHARE = Decimal("0.1")
"""A figure is corrected when it changed by $1 and by a tenth. Metrics that come late
move figures by a few percent, and nobody decides otherwise for that; a tenth is what a reader may
have acted on. Our choice."""
_MOST_NAMED = 3
"""Of the messages above a channel's most in an hour. Our choice."""
_MOST_ALERTS = 100
"""Of a family or a pipeline, the newest: an item of the table stays small."""
_MOST_STEPS = 50
"""Of a pipeline, the newest: the runs of each are read for a decision. Our choice."""
_PIPELINE_STEP = re.compile(r"(pipeline/[^/]+)/[^/]+")


class AlertFigures(Struct, frozen=True):
    """The figures of a message: USD to the cent, as they are shown; None is unknown.

    `severity` is INFO where no finding counts. `perhaps_usd`: what may be lost beyond `lost_usd`.
    `accepted_usd` are the dollars that a policy or tag accepts: no message shows them.
    """

    severity: Severity
    avoidable_usd: Decimal | None
    lost_usd: Decimal | None
    perhaps_usd: Decimal = Decimal(0)
    accepted_usd: Decimal = Decimal(0)

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
    def has_dollars(self) -> bool:
        """Whether a finding counts; else the message is about a trial, or takes one back."""
        return self.severity is not Severity.INFO

    @property
    def stands(self) -> bool:
        """False where everything was taken back: then it silences nobody."""
        return bool(self.usd is None or self.at_stake_usd)


def matters(figures: AlertFigures, before: AlertFigures) -> bool:
    """Whether a figure of the last alert changed enough to be corrected."""
    if not before.has_dollars and not figures.has_dollars:
        return False
    if (figures.usd is None) != (before.usd is None):
        return True
    rose = figures.severity.rank > before.severity.rank and figures.usd == before.usd
    if figures.has_dollars and before.has_dollars and rose:
        return True
    certain = _changed(figures.usd or Decimal(0), before.usd or Decimal(0))
    return certain or _changed(figures.perhaps_usd, before.perhaps_usd)


def _changed(now: Decimal, before: Decimal) -> bool:
    return abs(now - before) >= max(CHANGED_USD, CHANGED_SHARE * before)


class AlertKind(enum.StrEnum):
    """What a message about an audit is; subscriptions can filter by it."""

    FIRST = "first"
    AGAIN = "again"
    WORSE = "worse"
    COST_SPIKE = "cost-spike"
    """A run that cost far more than comparable runs."""
    CORRECTION = "correction"


class Alert(Struct, frozen=True):
    """A message about a run of a family: which `version` of its audit caused it, with which
    figures, when, and to which channels.

    `run` is its partition key. One message gives an alert for each thing that it is about: `worth`
    says what that is; None of a cost spike. `advices`: the ids of what
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


class PastAlerts(Struct, frozen=True):
    """The alerts that a decision about a run depends on.

    `run` is its partition key. `last_of_run`: the run's last alert. `of_subject`: the newest ones
    about its family or pipeline, oldest first; `group` is the key by which these are kept. `steps`:
    of a pipeline, the families that were advised something. `revision` counts the writes of the
    family or pipeline.
    """

    run: str
    group: str
    last_of_run: Alert | None = None
    of_subject: tuple[Alert, ...] = ()
    steps: tuple[str, ...] = ()
    revision: int = 0

    def with_alerts(self, of_run: Alert, new: Sequence[Alert]) -> PastAlerts:
        """With a new alert about the run; one that brings no `new` ones corrects the last one."""
        known = [
            one.corrected(of_run) if one.run == self.run and not new else one
            for one in self.of_subject
        ]
        kept = (*known, *new)[-_MOST_ALERTS:]
        return replace(self, last_of_run=of_run, of_subject=kept, revision=self.revision + 1)

    def with_step(self, family: str) -> PastAlerts:
        """With one more step of the pipeline; the same for any other family, and a known step."""
        if group_of(family) == family or family in self.steps:
            return self
        steps = (*self.steps, family)[-_MOST_STEPS:]
        return replace(self, steps=steps, revision=self.revision + 1)


def group_key(account: str, region: str, family: str) -> str:
    """By what the alerts of a subject are kept."""
    return f"{account}/{region}/{group_of(family)}"


def group_of(family: str) -> str:
    """The subject of a family's messages: the pipeline of a step; else the family alone."""
    step = _PIPELINE_STEP.fullmatch(family)
    return step[1] if step else family


class ChannelHour(Struct, frozen=True):
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
