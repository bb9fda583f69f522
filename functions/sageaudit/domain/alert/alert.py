"""The figures of a message about a run, and the messages that were sent before: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal

from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.usage.work_share import Unit


@dataclass(frozen=True, slots=True)
class IdleHours:
    """Device hours that were paid for and not used; `usd`: their list value that no sum has."""

    unit: Unit
    hours: Decimal
    usd: Decimal | None


@dataclass(frozen=True, slots=True)
class AlertFigures:
    """The figures of a message: USD to the cent, as they are shown; None is unknown.

    `severity` is INFO where no finding counts. `perhaps_usd`: what may be lost beyond `lost_usd`.
    `idle` is None where the message does not speak of idle hours. `accepted_usd` are the dollars
    that a policy or tag accepts: no message shows them.
    """

    severity: Severity
    avoidable_usd: Decimal | None
    lost_usd: Decimal | None
    perhaps_usd: Decimal = Decimal(0)
    idle: IdleHours | None = None
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
    def of_money(self) -> bool:
        """Whether a finding counts; else the message is about idle hours, or takes one back."""
        return self.severity is not Severity.INFO

    @property
    def stands(self) -> bool:
        """False where everything was taken back: then it silences nobody."""
        return bool(self.usd is None or self.at_stake_usd or self.idle)


@dataclass(frozen=True, slots=True)
class Alert:
    """A message about a run: by which version of its audit, and when it was decided on."""

    version: int
    figures: AlertFigures
    at: datetime


@dataclass(frozen=True, slots=True)
class PastAlerts:
    """The alerts that a decision about a run depends on.

    `run` is its partition key. `last`: the run's last alert. `today`: those of its family on `day`,
    by run, each as it was last corrected. `revision` counts the writes of the family's day.
    """

    run: str
    family: str
    day: date
    last: Alert | None = None
    today: Mapping[str, Alert] = field(default_factory=dict)
    revision: int = 0

    def with_alert(self, alert: Alert) -> PastAlerts:
        """With a new alert about the run. What corrects another day's alert is not of this day."""
        of_today = self.last is None or self.run in self.today
        today = {**self.today, self.run: alert} if of_today else self.today
        return replace(self, last=alert, today=today, revision=self.revision + 1)
