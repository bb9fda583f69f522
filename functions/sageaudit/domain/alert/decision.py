"""What a decision about a message rests on, and what was decided; docs/message-rule.md."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from sageaudit.domain.advice.advice import Advice
from sageaudit.domain.advice.comparison import CostSpike
from sageaudit.domain.advice.totals import Month, month_of, severity_of
from sageaudit.domain.alert.alert import Alert, AlertKind
from sageaudit.domain.alert.audit_figures import AlertFigures, MessageAudit
from sageaudit.domain.audit.finding_document import Worth
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy
from sageaudit.structs import replace

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
    the subject, oldest first. `read_from`: no older run was read. A subject is a family, or all
    steps of a pipeline.
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
    """Send a message of a kind; with `suppressed_because`, none for this reason.

    The rule fills the first seven fields. `why` says in words what is new, and `news` in one of a
    message that is sent again. `since_alert` is the alert that a second message follows, or that a
    correction replaces: then the last one of the run. `worth` is the kind of amount: COUNTED of a
    correction and of a `spike`, which is how much more the run cost than comparable ones.

    `with_details` fills the others, which the card shows, if there is a message. `corrected_audit`
    is the version that caused the alert which a correction replaces; None if it cannot be read.
    `month`: of the subject's open advices of this kind of amount; `advice`: the largest one that
    the run has, and `saves` what it alone comes to; `other_steps`: the months of the pipeline's
    other steps.
    """

    kind: AlertKind = AlertKind.FIRST
    news: News | None = None
    why: str = ""
    since_alert: Alert | None = None
    worth: Worth = Worth.COUNTED
    spike: CostSpike | None = None
    suppressed_because: str = ""
    corrected_audit: MessageAudit | None = None
    month: Month | None = None
    saves: Month | None = None
    advice: Advice | None = None
    other_steps: tuple[tuple[str, Month], ...] = ()

    @property
    def is_correction(self) -> bool:
        """Whether it replaces what the run's last alert said."""
        return self.kind is AlertKind.CORRECTION

    @property
    def is_of_run_alone(self) -> bool:
        """Whether it is about this run's dollars, and not about the subject's month."""
        return self.is_correction or self.spike is not None

    @property
    def month_severity(self) -> Severity | None:
        """Of the subject's month, or of what a run cost more; None if neither is known."""
        if self.spike:
            return severity_of(self.spike.more_usd)
        if self.month and self.month.projected and not self.is_correction:
            return self.month.severity
        return None


FIRST = AlertDecision()
"""A subject's first message."""


def no_alert(reason: str) -> AlertDecision:
    """No message, for this reason."""
    return AlertDecision(suppressed_because=reason)


def with_details(
    decision: AlertDecision, case: AlertCase, corrected_audit: MessageAudit | None
) -> AlertDecision:
    """The decision to send a message, with what its card shows."""
    worth = decision.worth
    advices = case.open_advices(worth, silenced=decision.kind is AlertKind.WORSE)
    of_run = case.of_run(advices)
    return replace(
        decision,
        corrected_audit=corrected_audit,
        month=month_of(advices, worth, case.now),
        saves=month_of(of_run[:1], worth, case.now) if of_run else None,
        advice=of_run[0] if of_run else None,
        other_steps=() if decision.is_of_run_alone else _other_steps(advices, worth, case),
    )


def _other_steps(
    advices: Sequence[Advice], worth: Worth, case: AlertCase
) -> tuple[tuple[str, Month], ...]:
    """The months of the pipeline's other steps, the most dollars first."""
    families: dict[str, list[Advice]] = defaultdict(list)
    for advice in advices:
        if advice.family != case.family:
            families[advice.family].append(advice)
    months = {name: month_of(found, worth, case.now) for name, found in families.items()}
    known = [(name, month) for name, month in months.items() if month.runs]
    return tuple(sorted(known, key=lambda step: -step[1].projected))
