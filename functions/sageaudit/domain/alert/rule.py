"""Decides whether a new audit gets a message, and which kind; no I/O.

A family, or all steps of a pipeline together, gets a message once its last 30 days reach the floor.
It gets another one only for something new. docs/message-rule.md has the rule as a table,
docs/decisions/0023 the reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

from sageaudit.domain.advice.advice import DecisionAction, FamilyRecommendation, known_sum
from sageaudit.domain.advice.comparison import CLOSED_AFTER
from sageaudit.domain.advice.totals import (
    MONTH_DAYS,
    Month,
    estimate_month,
    message_floor,
    monthly_severity,
    severity_min_usd,
)
from sageaudit.domain.alert.alert import (
    Alert,
    AlertCase,
    AlertDecision,
    AlertKind,
    FollowUpReason,
    no_alert,
)
from sageaudit.domain.alert.audit_figures import (
    MIN_CHANGE_USD,
    AlertFigures,
    MessageAudit,
    permanent_suppression_reason,
    should_correct,
)
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.money import format_usd
from sageaudit.domain.policy.policy import Policy
from sageaudit.structs import replace

IMMEDIATE_FACTOR = 10
"""If an amount reaches this multiple of the last message's, a message is sent at once. Our choice.
"""
GROWTH_FACTOR = Decimal(4) / 3
"""From this multiple of the last message's amount on, growth is a reason for another message. Our
choice."""
_MIN_MESSAGE_INTERVAL = timedelta(hours=24)
"""The least time between messages of one amount kind, unless the amount is ten times higher."""
_MIN_UNPRICED_SEVERITY = Severity.MEDIUM
"""The least severity of a finding with unknown dollars that gets a message. Our choice."""
FIRST_VERSION = 1
"""The version of a job's first audit."""
MAX_RUN_AGE = timedelta(days=30)
"""A run that ended this long ago gets no first message. Our choice."""
TOO_OLD_REASON = "it ended more than 30 days ago"
NO_FINDING_REASON = "no finding worth a message"
_DECISION_TEXTS = {
    DecisionAction.SNOOZE: "snooze",
    DecisionAction.ACCEPT: "acceptance",
    DecisionAction.EXEMPT: "exemption",
    DecisionAction.REOPEN: "other decision",
}
_ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}


def audit_suppression_reason(version: int, audit: MessageAudit, policy: Policy) -> str | None:
    """Returns why an audit gets no message, whatever its family is; None if the family decides.

    Most audits end here, before the history is read.
    """
    if permanent_reason := permanent_suppression_reason(audit):
        return permanent_reason
    cost_usd = audit.bill["total_usd"] or Decimal(0)
    can_be_spike = cost_usd >= max(policy.cost_spike_min_usd, Decimal("0.01"))
    if version > FIRST_VERSION or audit.recommendations or can_be_spike:
        return None
    is_unjudged = audit.document["judged"] == Judged.NO
    return NO_FINDING_REASON + (": it could not be judged" if is_unjudged else "")


def run_suppression_reason(
    version: int,
    summary: AuditSummary,
    last_alert: Alert | None,
    installed_at: Callable[[], datetime | None],
    now: datetime,
) -> str | None:
    """Returns why the run's versions or age rule out a message; None if they do not.

    `installed_at`: reads when sageaudit was installed.
    """
    if summary.version > version:
        return "a newer version of the audit has taken its place"
    if last_alert is not None and last_alert.version >= version:
        return f"version {last_alert.version} was sent"
    age_reason = age_suppression_reason(summary.ended_at, installed_at(), now)
    return None if last_alert is not None and age_reason == TOO_OLD_REASON else age_reason


def age_suppression_reason(
    ended_at: datetime, installed_at: datetime | None, now: datetime
) -> str | None:
    """Returns why a run that ended at this time gets no message; None if its age allows one."""
    if installed_at and ended_at < installed_at:
        return "it ended before sageaudit was installed"
    return TOO_OLD_REASON if ended_at <= now - MAX_RUN_AGE else None


def decide(case: AlertCase, last_alert: Alert | None) -> AlertDecision:
    """Returns the decision whether to send a message about a run.

    `last_alert`: the run's last alert; None without one.
    """
    if last_alert is not None:
        return _correction(case.figures, last_alert, case.policy)
    decisions = (check(case) for check in ALERT_CHECKS)
    return next(filter(None, decisions), None) or no_alert(_suppression_reason(case))


def alerts_for_decision(
    case: AlertCase, alert_decision: AlertDecision, template: Alert
) -> list[Alert]:
    """Returns the alerts of a message: one for each of its reasons, none for a correction.

    `template`: an alert with the run, figures, time and channels of the message.
    """
    alerts: list[Alert] = []
    if alert_decision.is_correction:
        return alerts
    if alert_decision.spike is not None:
        spike_usd = alert_decision.spike.excess_usd
        alerts.append(replace(template, kind=AlertKind.COST_SPIKE, amount=spike_usd))
    due = filter(None, (_check_recommendations(kind, case) for kind in AmountKind))
    return alerts + [_alert_for_decision(case, part, template) for part in due]


def _alert_for_decision(case: AlertCase, alert_decision: AlertDecision, template: Alert) -> Alert:
    kind = alert_decision.amount_kind
    recommendations = case.open_recommendations(
        kind, silenced=alert_decision.kind is AlertKind.WORSE
    )
    month = estimate_month(recommendations, kind, case.now)
    return replace(
        template,
        kind=alert_decision.kind,
        amount_kind=kind,
        recommendation_ids=tuple(
            recommendation.id for recommendation in recommendations if recommendation.occurrences
        ),
        amount=month.projected,
        is_single_occurrence=month.is_single_occurrence,
    )


def _check_cost_spike(case: AlertCase) -> AlertDecision | None:
    spike, policy = case.spike, case.policy
    if spike is None:
        return None
    min_excess_usd = spike.expected_usd * policy.cost_spike_percent / 100
    if spike.excess_usd < max(min_excess_usd, policy.cost_spike_min_usd):
        return None
    spikes = (alert for alert in reversed(case.alerts) if alert.kind is AlertKind.COST_SPIKE)
    last_spike = next((alert for alert in spikes if alert.family == case.family), None)
    if (
        last_spike
        and case.is_recent(last_spike)
        and spike.excess_usd < IMMEDIATE_FACTOR * last_spike.amount
    ):
        return None
    return AlertDecision(AlertKind.COST_SPIKE, spike=spike)


def _check_recommendations(amount_kind: AmountKind, case: AlertCase) -> AlertDecision | None:
    last_alert = next(
        (alert for alert in reversed(case.alerts) if alert.amount_kind is amount_kind), None
    )
    sendable = case.open_recommendations(amount_kind, silenced=True)
    run_recommendations = case.run_recommendations(sendable)
    if (
        last_alert
        and run_recommendations
        and not all(_has_come_back(case, recommendation) for recommendation in run_recommendations)
    ):
        # only recommendations of that message or of this run can get worse
        ids = {*last_alert.recommendation_ids, *case.recommendation_ids}
        recommendations = [
            recommendation for recommendation in sendable if recommendation.id in ids
        ]
        month = estimate_month(recommendations, amount_kind, case.now)
        if text := _worsening_text(
            month, last_alert, is_apart=case.now - last_alert.at >= _MIN_MESSAGE_INTERVAL
        ):
            return AlertDecision(
                AlertKind.WORSE, news_text=text, previous_alert=last_alert, amount_kind=amount_kind
            )
    run_recommendations = case.run_recommendations(case.open_recommendations(amount_kind))
    month = estimate_month(case.open_recommendations(amount_kind), amount_kind, case.now)
    is_enough = month.total >= message_floor(amount_kind, case.policy)
    if not run_recommendations or not (
        is_enough or any(map(_is_severe_unpriced, run_recommendations))
    ):
        return None
    if last_alert is None or all(
        _is_found_anew(case, recommendation) for recommendation in run_recommendations
    ):
        return AlertDecision(amount_kind=amount_kind)
    if case.now - last_alert.at < _MIN_MESSAGE_INTERVAL:
        return None
    follow_ups = (
        _follow_up(case, recommendation, last_alert, month)
        for recommendation in run_recommendations
    )
    return next(filter(None, follow_ups), None)


def _follow_up(
    case: AlertCase, recommendation: FamilyRecommendation, last_kind_alert: Alert, month: Month
) -> AlertDecision | None:
    last_alert, parameter_alert = (
        case.last_alert(recommendation),
        case.last_parameter_alert(recommendation),
    )
    decision = partial(AlertDecision, AlertKind.FOLLOW_UP, amount_kind=recommendation.amount_kind)
    if last_alert is None:
        floor = message_floor(recommendation.amount_kind, case.policy)
        if parameter_alert is None and recommendation.recent_total(case.now, MONTH_DAYS) < floor:
            return None
        text = _replacement_text(case, recommendation, parameter_alert)
        return decision(FollowUpReason.OTHER_ADVICE, text, parameter_alert or last_kind_alert)
    if case.is_recent(last_alert):
        return None
    if _has_come_back(case, recommendation):
        return decision(FollowUpReason.CAME_BACK, _reopened_text(recommendation), last_alert)
    past_decision = recommendation.decision
    ends_at = past_decision.ends_at if past_decision else None
    if past_decision and ends_at and last_alert.at < ends_at <= case.now:
        ended = f"{past_decision.by}'s {_DECISION_TEXTS[past_decision.action]} has ended"
        return decision(FollowUpReason.SILENCE_ENDED, ended, last_alert)
    if parameter_alert is not None and parameter_alert is not last_alert:
        text = _replacement_text(case, recommendation, parameter_alert)
        return decision(FollowUpReason.OTHER_ADVICE, text, parameter_alert)
    if month.projected >= GROWTH_FACTOR * last_kind_alert.amount:
        return decision(
            FollowUpReason.GREW,
            "the family's monthly amount grew by a third or more",
            last_kind_alert,
        )
    return None


def _has_come_back(case: AlertCase, recommendation: FamilyRecommendation) -> bool:
    last_alert = case.last_alert(recommendation)
    if last_alert is None or case.is_recent(last_alert):
        return False
    return recommendation.appearances > 1 and recommendation.since > last_alert.at


def _is_found_anew(case: AlertCase, recommendation: FamilyRecommendation) -> bool:
    last_alert, was_not_seen = (
        case.last_alert(recommendation),
        recommendation.since - case.history_since >= CLOSED_AFTER,
    )
    has_appeared_again = recommendation.appearances == 1 and (
        recommendation.since > recommendation.first_at or was_not_seen
    )
    return last_alert is not None and has_appeared_again and recommendation.since > last_alert.at


def _reopened_text(recommendation: FamilyRecommendation) -> str:
    nth = _ORDINALS.get(recommendation.appearances, f"{recommendation.appearances}th")
    wasted = known_sum(recommendation.all_amounts)
    verb = "has cost" if recommendation.amount_kind is AmountKind.COUNTED else "may have cost"
    so_far = f"; it {verb} {format_usd(wasted)} so far" if wasted else ""
    return f"it is back after a fix, found for the {nth} time{so_far}"


def _replacement_text(
    case: AlertCase, recommendation: FamilyRecommendation, parameter_alert: Alert | None
) -> str:
    alerted_recommendations = map(
        case.recommendations.get, parameter_alert.recommendation_ids if parameter_alert else ()
    )
    previous_value = next(
        (
            older.new
            for older in alerted_recommendations
            if older and older.has_same_parameter(recommendation)
        ),
        None,
    )
    return (
        f"previously, {previous_value} was recommended"
        if previous_value
        else "this recommendation is new"
    )


def _is_severe_unpriced(recommendation: FamilyRecommendation) -> bool:
    return (
        recommendation.amount is None
        and recommendation.severity.rank >= _MIN_UNPRICED_SEVERITY.rank
    )


def _worsening_text(month: Month, earlier_alert: Alert, *, is_apart: bool) -> str:
    """Returns what is worse than in the last alert; "" if nothing is.

    `is_apart`: enough time has passed since that alert. A higher severity alone is not enough,
    because a few cents may cause it.
    """
    previous_usd = earlier_alert.amount
    if previous_usd and month.projected >= IMMEDIATE_FACTOR * previous_usd:
        return f"it is at least {IMMEDIATE_FACTOR} times as much"
    is_step = month.severity.rank > monthly_severity(previous_usd).rank
    is_known = is_apart and not earlier_alert.is_single_occurrence
    is_more = is_step and is_known and month.projected >= GROWTH_FACTOR * previous_usd
    return (
        f"it now comes to at least ${severity_min_usd(month.severity):,.0f} a month"
        if is_more
        else ""
    )


def _suppression_reason(case: AlertCase) -> str:
    recommendations = [
        case.recommendations[name]
        for name in case.recommendation_ids
        if name in case.recommendations
    ]
    open_recommendations = [
        recommendation for recommendation in recommendations if recommendation.is_open
    ]
    if not recommendations:
        return NO_FINDING_REASON
    if not open_recommendations:
        return f"the recommendation {recommendations[0].id} is {recommendations[0].state_label}"
    amount_kind = open_recommendations[0].amount_kind
    month = estimate_month(case.open_recommendations(amount_kind), amount_kind, case.now)
    floor = message_floor(amount_kind, case.policy)
    if month.total < floor:
        return (
            f"the family's {format_usd(month.total)} in the last 30 days is below the"
            f" {format_usd(floor)} floor"
        )
    return "the family already had a message about this, and nothing is new"


def _correction(figures: AlertFigures, last_alert: Alert, policy: Policy) -> AlertDecision:
    last_figures = last_alert.figures
    has_first_dollars = figures.has_dollars and not last_figures.has_dollars
    is_unknown = figures.usd is None and not figures.possible_loss_usd
    is_severe_unknown = is_unknown and figures.severity.rank >= _MIN_UNPRICED_SEVERITY.rank
    is_enough = figures.at_stake_usd >= policy.floor_usd or is_severe_unknown
    if (has_first_dollars and not is_enough) or not should_correct(figures, last_figures):
        reason = f"version {last_alert.version} was sent, and what changed since does not matter"
        return no_alert(reason)
    fell_usd = (last_figures.usd or Decimal(0)) - (figures.usd or Decimal(0))
    accepted_since_usd = figures.accepted_usd - last_figures.accepted_usd
    is_known = last_figures.usd is not None and figures.usd is not None
    if is_known and Decimal(0) < fell_usd <= accepted_since_usd + MIN_CHANGE_USD:
        return no_alert("the last figure stands; a policy or tag accepts it now")
    return AlertDecision(AlertKind.CORRECTION, previous_alert=last_alert)


ALERT_CHECKS: tuple[Callable[[AlertCase], AlertDecision | None], ...] = (
    _check_cost_spike,
    *(partial(_check_recommendations, kind) for kind in AmountKind),
)
"""The checks for a run without a message. The first check that returns a decision decides."""
