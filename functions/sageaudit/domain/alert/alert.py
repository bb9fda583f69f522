"""The alerts of a family, what a decision about the next one rests on, and what was decided.

docs/message-rule.md has the rule. No I/O.
"""

from __future__ import annotations

import enum
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.advice.advice import FamilyRecommendation
from sageaudit.domain.advice.comparison import CostSpike
from sageaudit.domain.advice.totals import Month, estimate_month, monthly_severity
from sageaudit.domain.alert.audit_figures import AlertFigures, MessageAudit
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy
from sageaudit.structs import replace

ALERT_RETENTION_DAYS = 400
"""For so long after the last one the alerts of a family are kept: none is sent again because it was
forgotten. Our choice."""
_MAX_NAMED_MESSAGES = 3
"""Of the messages above a channel's most in an hour. Our choice."""
_MAX_ALERTS = 100
"""Of a family or a pipeline, the newest: an item of the table stays small."""
_MAX_STEPS = 50
"""Of a pipeline, the newest: the runs of each are read for a decision. Our choice."""
_PIPELINE_STEP = re.compile(r"(pipeline/[^/]+)/[^/]+")

REPEAT_AFTER = timedelta(days=30)
"""Until then the same advice has no other message, unless it is worse."""


class AlertKind(enum.StrEnum):
    """What a message about an audit is; subscriptions can filter by it."""

    FIRST = "first"
    FOLLOW_UP = "again"
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
    much more. `is_single_occurrence`: then the month is a guess that no text showed.
    """

    run: str
    family: str
    kind: AlertKind
    version: int
    figures: AlertFigures
    at: datetime
    channels: tuple[str, ...] = ()
    worth: AmountKind | None = None
    advices: tuple[str, ...] = ()
    amount: Decimal = Decimal(0)
    is_single_occurrence: bool = False

    @property
    def is_standing(self) -> bool:
        """False of dollars that were all taken back: then it silences nobody."""
        return self.worth is not AmountKind.COUNTED or self.figures.is_standing

    def apply_correction(self, correction: Alert) -> Alert:
        """The same, as a later message about the run corrects it."""
        return replace(
            self,
            version=correction.version,
            figures=correction.figures,
            at=correction.at,
            channels=correction.channels,
        )


class PastAlerts(Struct, frozen=True):
    """The alerts that a decision about a run depends on.

    `run` is its partition key. `last_of_run`: the run's last alert. `of_subject`: the newest ones
    about its family or pipeline, oldest first; `group` is the key by which these are kept. `steps`:
    of a pipeline, the families that were advised something. `revision` counts the writes of the
    family or pipeline.
    """

    run: str
    group: str
    last_run_alert: Alert | None = None
    subject_alerts: tuple[Alert, ...] = ()
    steps: tuple[str, ...] = ()
    revision: int = 0

    def with_alerts(self, run_alert: Alert, new_alerts: Sequence[Alert]) -> PastAlerts:
        """With a new alert about the run; one that brings no `new` ones corrects the last one."""
        known = [
            one.apply_correction(run_alert) if one.run == self.run and not new_alerts else one
            for one in self.subject_alerts
        ]
        kept = (*known, *new_alerts)[-_MAX_ALERTS:]
        return replace(
            self, last_run_alert=run_alert, subject_alerts=kept, revision=self.revision + 1
        )

    def with_step(self, family: str) -> PastAlerts:
        """With one more step of the pipeline; the same for any other family, and a known step."""
        if alert_subject(family) == family or family in self.steps:
            return self
        steps = (*self.steps, family)[-_MAX_STEPS:]
        return replace(self, steps=steps, revision=self.revision + 1)


def alert_subject_key(account: str, region: str, family: str) -> str:
    """By what the alerts of a subject are kept."""
    return f"{account}/{region}/{alert_subject(family)}"


def alert_subject(family: str) -> str:
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

    def with_message(self, headline: str, usd: Decimal | None, max_per_hour: int) -> ChannelHour:
        """With one more; above `most` it is held, as are all after a held one: `most` may be raised
        within the hour.
        """
        if self.sent < max_per_hour and not self.held:
            return replace(self, sent=self.sent + 1)
        dearest = sorted((*self.dearest, (headline, usd)), key=_by_amount)[:_MAX_NAMED_MESSAGES]
        return replace(self, held=self.held + 1, dearest=tuple(dearest))


def start_of_hour(now: datetime) -> datetime:
    """The beginning of the clock hour."""
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _by_amount(message: tuple[str, Decimal | None]) -> tuple[bool, Decimal]:
    _, usd = message
    return usd is None, -(usd or Decimal(0))


class FollowUpReason(enum.StrEnum):
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
    recommendation_ids: Sequence[str]
    recommendations: Mapping[str, FamilyRecommendation]
    spike: CostSpike | None
    alerts: Sequence[Alert]
    policy: Policy
    now: datetime
    history_since: datetime

    def open_recommendations(
        self, amount_kind: AmountKind, *, silenced: bool = False
    ) -> list[FamilyRecommendation]:
        """The open advices of one kind; with those that are `silenced` unless they get worse."""
        kind = (one for one in self.recommendations.values() if one.worth is amount_kind)
        return [one for one in kind if one.is_open or (silenced and one.is_sent_if_worse)]

    def run_recommendations(
        self, advices: Sequence[FamilyRecommendation]
    ) -> list[FamilyRecommendation]:
        """Those that this run was advised."""
        return [one for one in advices if one.id in self.recommendation_ids]

    def last_alert(self, advice: FamilyRecommendation) -> Alert | None:
        """The last alert that had this advice."""
        return next((one for one in reversed(self.alerts) if advice.id in one.advices), None)

    def last_parameter_alert(self, advice: FamilyRecommendation) -> Alert | None:
        """The last alert that had any value of its parameter, for the same family."""
        line = {one.id for one in self.recommendations.values() if one.has_same_parameter(advice)}
        return next((one for one in reversed(self.alerts) if line & {*one.advices}), None)

    def is_recent(self, alert: Alert) -> bool:
        """Whether it is not older than `AGAIN_AFTER`."""
        return self.now - alert.at < REPEAT_AFTER


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
    follow_up_reason: FollowUpReason | None = None
    why: str = ""
    previous_alert: Alert | None = None
    worth: AmountKind = AmountKind.COUNTED
    spike: CostSpike | None = None
    suppressed_because: str = ""
    corrected_audit: MessageAudit | None = None
    month: Month | None = None
    saves: Month | None = None
    advice: FamilyRecommendation | None = None
    other_steps: tuple[tuple[str, Month], ...] = ()

    @property
    def is_correction(self) -> bool:
        """Whether it replaces what the run's last alert said."""
        return self.kind is AlertKind.CORRECTION

    @property
    def is_run_only(self) -> bool:
        """Whether it is about this run's dollars, and not about the subject's month."""
        return self.is_correction or self.spike is not None

    @property
    def month_severity(self) -> Severity | None:
        """Of the subject's month, or of what a run cost more; None if neither is known."""
        if self.spike:
            return monthly_severity(self.spike.excess_usd)
        if self.month and self.month.projected and not self.is_correction:
            return self.month.severity
        return None


FIRST_ALERT = AlertDecision()
"""A subject's first message."""


def no_alert(reason: str) -> AlertDecision:
    """No message, for this reason."""
    return AlertDecision(suppressed_because=reason)


def with_details(
    decision: AlertDecision, case: AlertCase, corrected_audit: MessageAudit | None
) -> AlertDecision:
    """The decision to send a message, with what its card shows."""
    worth = decision.worth
    advices = case.open_recommendations(worth, silenced=decision.kind is AlertKind.WORSE)
    of_run = case.run_recommendations(advices)
    return replace(
        decision,
        corrected_audit=corrected_audit,
        month=estimate_month(advices, worth, case.now),
        saves=estimate_month(of_run[:1], worth, case.now) if of_run else None,
        advice=of_run[0] if of_run else None,
        other_steps=() if decision.is_run_only else _other_steps(advices, worth, case),
    )


def _other_steps(
    advices: Sequence[FamilyRecommendation], worth: AmountKind, case: AlertCase
) -> tuple[tuple[str, Month], ...]:
    """The months of the pipeline's other steps, the most dollars first."""
    families: dict[str, list[FamilyRecommendation]] = defaultdict(list)
    for advice in advices:
        if advice.family != case.family:
            families[advice.family].append(advice)
    months = {name: estimate_month(found, worth, case.now) for name, found in families.items()}
    known = [(name, month) for name, month in months.items() if month.runs]
    return tuple(sorted(known, key=lambda step: -step[1].projected))
