"""The alerts of a family, the decision about the next alert, and the data for that decision.

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
"""How long a family's alerts are kept, so that none is sent twice. Our choice."""
_MAX_NAMED_MESSAGES = 3
"""The maximum number of held messages of an hour that are listed by name. Our choice."""
_MAX_ALERTS = 100
"""The maximum number of alerts kept for a family or pipeline, so that an item of the table stays
small."""
_MAX_STEPS = 50
"""The maximum number of a pipeline's steps whose runs are read for a decision. Our choice."""
_PIPELINE_STEP = re.compile(r"(pipeline/[^/]+)/[^/]+")
"""Matches the family name of a pipeline step; the regex group is the pipeline."""

REPEAT_AFTER = timedelta(days=30)
"""A recommendation gets no other message within this time, unless it gets worse."""


class AlertKind(enum.StrEnum):
    """The kind of a message about an audit; subscriptions can filter by it."""

    FIRST = "first"
    FOLLOW_UP = "follow-up"
    WORSE = "worse"
    COST_SPIKE = "cost-spike"
    """A run that cost far more than comparable runs."""
    CORRECTION = "correction"


class Alert(Struct, frozen=True):
    """A message about a run, with the `version` of its audit and the figures that were sent.

    A message makes one alert for each amount kind. `run`: the run's partition key. `amount_kind`:
    None for a cost spike. `recommendation_ids`: the open recommendations, the largest first.
    `amount`: the projected USD of 30 days; for a cost spike, how much more the run cost.
    `is_single_occurrence`: no message showed the amount, as it is projected from one occasion.
    """

    run: str
    family: str
    kind: AlertKind
    version: int
    figures: AlertFigures
    at: datetime
    channels: tuple[str, ...] = ()
    amount_kind: AmountKind | None = None
    recommendation_ids: tuple[str, ...] = ()
    amount: Decimal = Decimal(0)
    is_single_occurrence: bool = False

    @property
    def is_standing(self) -> bool:
        """Whether the alert counts: False if all its dollars were corrected to 0.

        An alert that does not count suppresses no other message.
        """
        return self.amount_kind is not AmountKind.COUNTED or self.figures.is_standing

    def apply_correction(self, correction: Alert) -> Alert:
        """Returns this alert with the version, figures, time and channels of its correction."""
        return replace(
            self,
            version=correction.version,
            figures=correction.figures,
            at=correction.at,
            channels=correction.channels,
        )


class PastAlerts(Struct, frozen=True):
    """The earlier alerts that a decision about a run depends on.

    `run`: the run's partition key. `subject_alerts`: the newest alerts about the run's family or
    pipeline, oldest first. `group`: the key under which these alerts are stored. `steps`: the
    families of a pipeline that have recommendations. `revision`: how often the stored alerts were
    written.
    """

    run: str
    group: str
    last_run_alert: Alert | None = None
    subject_alerts: tuple[Alert, ...] = ()
    steps: tuple[str, ...] = ()
    revision: int = 0

    def with_alerts(self, run_alert: Alert, new_alerts: Sequence[Alert]) -> PastAlerts:
        """Returns the past alerts with one more about the run.

        Without `new_alerts`, `run_alert` corrects the run's earlier alerts.
        """
        earlier = [
            old.apply_correction(run_alert) if old.run == self.run and not new_alerts else old
            for old in self.subject_alerts
        ]
        alerts = (*earlier, *new_alerts)[-_MAX_ALERTS:]
        return replace(
            self, last_run_alert=run_alert, subject_alerts=alerts, revision=self.revision + 1
        )

    def with_step(self, family: str) -> PastAlerts:
        """Returns the past alerts with `family` as one more step of its pipeline.

        Unchanged if the family is known already, or is not a step of a pipeline.
        """
        if alert_subject(family) == family or family in self.steps:
            return self
        steps = (*self.steps, family)[-_MAX_STEPS:]
        return replace(self, steps=steps, revision=self.revision + 1)


def alert_subject_key(account: str, region: str, family: str) -> str:
    """Returns the key under which the alerts of a family or pipeline are stored."""
    return f"{account}/{region}/{alert_subject(family)}"


def alert_subject(family: str) -> str:
    """Returns what a family's messages are grouped by: its pipeline, or the family itself."""
    step = _PIPELINE_STEP.fullmatch(family)
    return step[1] if step else family


class ChannelHour(Struct, frozen=True):
    """The messages to one channel in a clock hour (UTC).

    Each `sent` message has a notice of its own. All `held` messages share one notice, which is
    posted after the hour. `largest_messages`: the first line and USD (None if unknown) of the
    largest held messages.
    """

    channel: str
    began_at: datetime
    sent: int = 0
    held: int = 0
    largest_messages: tuple[tuple[str, Decimal | None], ...] = ()

    @property
    def count(self) -> int:
        """The number of messages in the hour, sent and held."""
        return self.sent + self.held

    @property
    def needs_notice(self) -> bool:
        """Whether the last message needs a notice.

        It needs one if it was sent, or if it is the first held message of the hour.
        """
        return self.held <= 1

    def with_message(self, headline: str, usd: Decimal | None, max_per_hour: int) -> ChannelHour:
        """Returns the hour with one more message, which is held above `max_per_hour`.

        After a held message all others are held, even if the limit is raised.
        """
        if self.sent < max_per_hour and not self.held:
            return replace(self, sent=self.sent + 1)
        messages = sorted((*self.largest_messages, (headline, usd)), key=_by_amount)
        largest = tuple(messages[:_MAX_NAMED_MESSAGES])
        return replace(self, held=self.held + 1, largest_messages=largest)


def start_of_hour(now: datetime) -> datetime:
    """Returns the beginning of the clock hour (UTC) of `now`."""
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _by_amount(message: tuple[str, Decimal | None]) -> tuple[bool, Decimal]:
    _, usd = message
    return usd is None, -(usd or Decimal(0))


class FollowUpReason(enum.StrEnum):
    """Why a family gets another message of the same amount kind."""

    OTHER_ADVICE = "other advice"
    GREW = "grew"
    SILENCE_ENDED = "silence ended"
    CAME_BACK = "came back"


class AlertCase(Struct, frozen=True):
    """The data for a decision about a message on a run of `family`.

    `recommendation_ids`: those of this run. `recommendations`: those of the run's family or
    pipeline by id, the most dollars first. `spike`: set if the cost can be compared with earlier
    runs. `alerts`: those of the family or pipeline, oldest first. `history_since`: the time from
    which runs were read.
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
        """Returns the open recommendations of a kind.

        `silenced`: also returns silenced recommendations that are sent again if they get worse.
        """
        recommendations = (
            recommendation
            for recommendation in self.recommendations.values()
            if recommendation.amount_kind is amount_kind
        )
        return [
            row for row in recommendations if row.is_open or (silenced and row.is_sent_if_worse)
        ]

    def run_recommendations(
        self, recommendations: Sequence[FamilyRecommendation]
    ) -> list[FamilyRecommendation]:
        """Returns those of `recommendations` that this run has."""
        return [
            recommendation
            for recommendation in recommendations
            if recommendation.id in self.recommendation_ids
        ]

    def last_alert(self, recommendation: FamilyRecommendation) -> Alert | None:
        """Returns the last alert that had this recommendation; None without one."""
        return next(
            (
                alert
                for alert in reversed(self.alerts)
                if recommendation.id in alert.recommendation_ids
            ),
            None,
        )

    def last_parameter_alert(self, recommendation: FamilyRecommendation) -> Alert | None:
        """Returns the last alert about any value of the recommendation's parameter; None without
        one.
        """
        same_parameter = (
            row for row in self.recommendations.values() if row.has_same_parameter(recommendation)
        )
        ids = {row.id for row in same_parameter}
        return next(
            (alert for alert in reversed(self.alerts) if ids & {*alert.recommendation_ids}), None
        )

    def is_recent(self, alert: Alert) -> bool:
        """Returns whether the alert is less than `REPEAT_AFTER` old."""
        return self.now - alert.at < REPEAT_AFTER


class AlertDecision(Struct, frozen=True):
    """Whether a message is sent, and of which kind.

    `suppressed_because`: why no message is sent; "" if one is sent. `follow_up_reason`: why a
    message is sent again. `news_text`: a text about what is new. `previous_alert`: the alert that
    this message follows or corrects. `amount_kind`: COUNTED for a correction or a `spike`.

    `with_details` fills the other fields for the card. `corrected_audit`: the audit behind the
    corrected alert; None if it cannot be read. `month`: the month of all open recommendations of
    this kind. `recommendation`: the run's largest one. `saves`: the month of this recommendation
    alone. `other_steps`: the months of the pipeline's other steps.
    """

    kind: AlertKind = AlertKind.FIRST
    follow_up_reason: FollowUpReason | None = None
    news_text: str = ""
    previous_alert: Alert | None = None
    amount_kind: AmountKind = AmountKind.COUNTED
    spike: CostSpike | None = None
    suppressed_because: str = ""
    corrected_audit: MessageAudit | None = None
    month: Month | None = None
    saves: Month | None = None
    recommendation: FamilyRecommendation | None = None
    other_steps: tuple[tuple[str, Month], ...] = ()

    @property
    def is_correction(self) -> bool:
        """Whether the message replaces the run's last alert."""
        return self.kind is AlertKind.CORRECTION

    @property
    def is_run_only(self) -> bool:
        """Whether the message is about this run's dollars, not about a month of its family."""
        return self.is_correction or self.spike is not None

    @property
    def month_severity(self) -> Severity | None:
        """The severity of the month, or of a cost spike; None if neither is known."""
        if self.spike:
            return monthly_severity(self.spike.excess_usd)
        if self.month and self.month.projected and not self.is_correction:
            return self.month.severity
        return None


FIRST_ALERT = AlertDecision()
"""The decision to send a family's or pipeline's first message."""


def no_alert(reason: str) -> AlertDecision:
    """Returns the decision to send no message, with the reason."""
    return AlertDecision(suppressed_because=reason)


def with_details(
    alert_decision: AlertDecision, case: AlertCase, corrected_audit: MessageAudit | None
) -> AlertDecision:
    """Returns the decision with the fields that the message's card shows."""
    amount_kind = alert_decision.amount_kind
    recommendations = case.open_recommendations(
        amount_kind, silenced=alert_decision.kind is AlertKind.WORSE
    )
    run_recommendations = case.run_recommendations(recommendations)
    return replace(
        alert_decision,
        corrected_audit=corrected_audit,
        month=estimate_month(recommendations, amount_kind, case.now),
        saves=estimate_month(run_recommendations[:1], amount_kind, case.now)
        if run_recommendations
        else None,
        recommendation=run_recommendations[0] if run_recommendations else None,
        other_steps=()
        if alert_decision.is_run_only
        else _other_steps(recommendations, amount_kind, case),
    )


def _other_steps(
    recommendations: Sequence[FamilyRecommendation], amount_kind: AmountKind, case: AlertCase
) -> tuple[tuple[str, Month], ...]:
    families: dict[str, list[FamilyRecommendation]] = defaultdict(list)
    for recommendation in recommendations:
        if recommendation.family != case.family:
            families[recommendation.family].append(recommendation)
    months = {name: estimate_month(rows, amount_kind, case.now) for name, rows in families.items()}
    steps = [(name, month) for name, month in months.items() if month.runs]
    return tuple(sorted(steps, key=lambda step: -step[1].projected))
