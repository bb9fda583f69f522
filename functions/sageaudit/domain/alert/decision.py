"""What a decision about a message rests on, and what was decided; docs/message-rule.md."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from sageaudit.domain.advice.advice import Advice
from sageaudit.domain.advice.comparison import CostSpike
from sageaudit.domain.advice.month import Month, severity_of
from sageaudit.domain.alert.alert import Alert, AlertFigures, AlertKind
from sageaudit.domain.alert.subject import MessageSubject
from sageaudit.domain.audit.advised import Worth
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Destination

AGAIN_AFTER = timedelta(days=30)
"""Until then the same advice has no other message, unless it is worse."""


class News(enum.StrEnum):
    """Why a message is sent again."""

    OTHER_ADVICE = "other advice"
    GREW = "grew"
    SILENCE_ENDED = "silence ended"
    CAME_BACK = "came back"


class AlertCase(Struct, frozen=True):
    """What a decision about a run of `family` rests on.

    `found`: the ids of what this run is advised; `advices`: all of its subject, by id, what counts
    and the most dollars first. `spike`: if it cost more than comparable runs. `alerts`: those of
    the subject, oldest first. `read_from`: no older run was read.
    """

    family: str
    figures: AlertFigures
    found: Sequence[str]
    advices: Mapping[str, Advice]
    spike: CostSpike | None
    alerts: Sequence[Alert]
    policy: Policy
    now: datetime
    read_from: datetime

    def open_advices(self, worth: Worth, *, silenced: bool = False) -> list[Advice]:
        """The open advices of one kind; with those that are `silenced` unless they get worse."""
        kind = (one for one in self.advices.values() if one.worth is worth)
        return [one for one in kind if one.is_open or (silenced and one.is_sent_if_worse)]

    def of_run(self, advices: Sequence[Advice]) -> list[Advice]:
        """Those that this run was advised."""
        return [one for one in advices if one.id in self.found]

    def last_of(self, advice: Advice) -> Alert | None:
        """The last alert that had this advice."""
        return next((one for one in reversed(self.alerts) if advice.id in one.advices), None)

    def last_of_line(self, advice: Advice) -> Alert | None:
        """The last alert that had any value of its parameter, for the same family."""
        line = {one.id for one in self.advices.values() if one.is_same_line(advice)}
        return next((one for one in reversed(self.alerts) if line & {*one.advices}), None)

    def is_recent(self, alert: Alert) -> bool:
        """Whether it is not older than `AGAIN_AFTER`."""
        return self.now - alert.at < AGAIN_AFTER


class AlertDecision(Struct, frozen=True):
    """Send a message of a kind; with `quiet`, none for this reason.

    `why` says what is new since the alert `after`, in words. A correction `corrects` the run's last
    alert, which version `before` of the audit caused (None if it cannot be read). `month`: of the
    subject's open advices of this kind of amount; `advice`: the largest one that the run has, and
    `saves` what it alone comes to; `other_steps` the months of the pipeline's other steps. `to`:
    where it goes; the `held` channels have had their most in this hour. `lines`: the channels that
    get the line about the job, also if it is `quiet`.
    """

    kind: AlertKind = AlertKind.FIRST
    news: News | None = None
    why: str = ""
    after: Alert | None = None
    worth: Worth | None = Worth.COUNTED
    corrects: Alert | None = None
    spike: CostSpike | None = None
    quiet: str = ""
    before: MessageSubject | None = None
    month: Month | None = None
    saves: Month | None = None
    advice: Advice | None = None
    other_steps: tuple[tuple[str, Month], ...] = ()
    to: Destination = Destination(())
    held: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def month_severity(self) -> Severity | None:
        """Of the subject's month, or of what a run cost more; None if neither is known."""
        if self.spike:
            return severity_of(self.spike.more_usd)
        if self.month and self.month.projected and not self.corrects:
            return self.month.severity
        return None


FIRST = AlertDecision()
"""A subject's first message."""


def no_alert(reason: str) -> AlertDecision:
    """No message, for this reason."""
    return AlertDecision(quiet=reason)
