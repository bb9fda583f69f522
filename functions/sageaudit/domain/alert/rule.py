"""The rule that decides whether a new audit has a message, and of which kind; no I/O.

A family, or all steps of a pipeline together, is one subject. It has a message once its 30 days
reach the floor, and another one only for something new. A run that had a message has another one
only to correct it. docs/message-rule.md has the rule as a table, docs/decisions/0023 the reasons.
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
from sageaudit.domain.policy.policy import Policy
from sageaudit.structs import replace

IMMEDIATE_FACTOR = 10
"""At ten times the last message's amount, a message is sent at once. Our choice."""
GROWTH_FACTOR = Decimal(4) / 3
"""A month that grew by a third has another message. Our choice."""
_MIN_MESSAGE_INTERVAL = timedelta(hours=24)
"""The time between a subject's messages of an amount kind, unless it is ten times as much."""
_MIN_UNPRICED_SEVERITY = Severity.MEDIUM
"""From this severity on, a finding whose dollars are not known has a message. Our choice."""
FIRST_VERSION = 1
MAX_RUN_AGE = timedelta(days=30)
"""A run that ended longer ago has no first message. Our choice."""
TOO_OLD_REASON = "it ended more than 30 days ago"
NO_FINDING_REASON = "no finding worth a message"
_DECISION_TEXTS = {
    DecisionAction.SNOOZE: "snooze",
    DecisionAction.ACCEPT: 'answer "accepted"',
    DecisionAction.EXEMPT: "exemption",
    DecisionAction.REOPEN: "other answer",
}
_ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}


def audit_suppression_reason(version: int, audit: MessageAudit, policy: Policy) -> str | None:
    """Returns why a version has no alert, whatever its family is; None if its family decides.

    Most audits end here, before the history or the ledger is read.
    """
    if never := permanent_suppression_reason(audit):
        return never
    cost_usd = audit.bill["total_usd"] or Decimal(0)
    can_be_spike = cost_usd >= max(policy.cost_spike_min_usd, Decimal("0.01"))
    if version > FIRST_VERSION or audit.recommendations or can_be_spike:
        return None
    unjudged = audit.document["judged"] == Judged.NO
    return NO_FINDING_REASON + (": it could not be judged" if unjudged else "")


def run_suppression_reason(
    version: int,
    summary: AuditSummary,
    last_alert: Alert | None,
    installed_at: Callable[[], datetime | None],
    now: datetime,
) -> str | None:
    """Returns why another version of the run, or its age, rules out a message; else None.

    `summary` is of the run's newest version.
    """
    if summary.version > version:
        return "a newer version of the audit has taken its place"
    if last_alert is not None and last_alert.version >= version:
        return f"version {last_alert.version} was notified"
    too_old = age_suppression_reason(summary.ended_at, installed_at(), now)
    return None if last_alert is not None and too_old == TOO_OLD_REASON else too_old


def age_suppression_reason(
    ended_at: datetime, installed_at: datetime | None, now: datetime
) -> str | None:
    """Returns why a run that ended at `ended_at` has no message; None if it may have one."""
    if installed_at and ended_at < installed_at:
        return "it ended before sageaudit was installed"
    return TOO_OLD_REASON if ended_at <= now - MAX_RUN_AGE else None


def decide(case: AlertCase, last_alert: Alert | None) -> AlertDecision:
    """Decides whether to send a message. `last_alert`: that of the same run."""
    if last_alert is not None:
        return _correction(case.figures, last_alert, case.policy)
    decisions = (check(case) for check in ALERT_CHECKS)
    return next(filter(None, decisions), None) or no_alert(_suppression_reason(case))


def alerts_for_decision(case: AlertCase, decision: AlertDecision, template: Alert) -> list[Alert]:
    """Returns the alerts of a message: none for a correction, else one for each reason for it."""
    alerts: list[Alert] = []
    if decision.is_correction:
        return alerts
    if decision.spike is not None:
        spike_usd = decision.spike.excess_usd
        alerts.append(replace(template, kind=AlertKind.COST_SPIKE, amount=spike_usd))
    due = filter(None, (_check_recommendations(kind, case) for kind in AmountKind))
    return alerts + [_alert_for_decision(case, part, template) for part in due]


def _alert_for_decision(case: AlertCase, decision: AlertDecision, sent: Alert) -> Alert:
    kind = decision.amount_kind
    recommendations = case.open_recommendations(kind, silenced=decision.kind is AlertKind.WORSE)
    month = estimate_month(recommendations, kind, case.now)
    return replace(
        sent,
        kind=decision.kind,
        amount_kind=kind,
        recommendation_ids=tuple(
            recommendation.id for recommendation in recommendations if recommendation.occurrences
        ),
        amount=month.projected,
        is_single_occurrence=month.is_single_occurrence,
    )


def _check_cost_spike(case: AlertCase) -> AlertDecision | None:
    """Reports a cost spike: once in 30 days, unless it is ten times the last one."""
    spike, policy = case.spike, case.policy
    if spike is None:
        return None
    min_excess_usd = spike.expected_usd * policy.cost_spike_percent / 100
    if spike.excess_usd < max(min_excess_usd, policy.cost_spike_min_usd):
        return None
    spikes = (alert for alert in reversed(case.alerts) if alert.kind is AlertKind.COST_SPIKE)
    before = next((alert for alert in spikes if alert.family == case.family), None)
    if before and case.is_recent(before) and spike.excess_usd < IMMEDIATE_FACTOR * before.amount:
        return None
    return AlertDecision(AlertKind.COST_SPIKE, spike=spike)


def _check_recommendations(amount_kind: AmountKind, case: AlertCase) -> AlertDecision | None:
    """Decides by what is new since the subject's last message of this amount kind."""
    before = next(
        (alert for alert in reversed(case.alerts) if alert.amount_kind is amount_kind), None
    )
    sendable = case.open_recommendations(amount_kind, silenced=True)
    run_advices = case.run_recommendations(sendable)
    if (
        before
        and run_advices
        and not all(_has_come_back(case, recommendation) for recommendation in run_advices)
    ):
        # only recommendations of that message or of this run can get worse
        ids = {*before.recommendation_ids, *case.recommendation_ids}
        recommendations = [
            recommendation for recommendation in sendable if recommendation.id in ids
        ]
        month = estimate_month(recommendations, amount_kind, case.now)
        if text := _worsening_text(
            month, before, is_apart=case.now - before.at >= _MIN_MESSAGE_INTERVAL
        ):
            return AlertDecision(
                AlertKind.WORSE, why=text, previous_alert=before, amount_kind=amount_kind
            )
    run_advices = case.run_recommendations(case.open_recommendations(amount_kind))
    month = estimate_month(case.open_recommendations(amount_kind), amount_kind, case.now)
    is_enough = month.total >= message_floor(amount_kind, case.policy)
    if not run_advices or not (is_enough or any(map(_is_severe_unpriced, run_advices))):
        return None
    if before is None or all(
        _is_found_anew(case, recommendation) for recommendation in run_advices
    ):
        return AlertDecision(amount_kind=amount_kind)
    if case.now - before.at < _MIN_MESSAGE_INTERVAL:
        return None
    follow_ups = (_follow_up(case, recommendation, before, month) for recommendation in run_advices)
    return next(filter(None, follow_ups), None)


def _follow_up(
    case: AlertCase, recommendation: FamilyRecommendation, before: Alert, month: Month
) -> AlertDecision | None:
    """Decides by what is new about one recommendation of the run."""
    same, same_parameter = (
        case.last_alert(recommendation),
        case.last_parameter_alert(recommendation),
    )
    decision = partial(AlertDecision, AlertKind.FOLLOW_UP, amount_kind=recommendation.amount_kind)
    if same is None:
        floor = message_floor(recommendation.amount_kind, case.policy)
        if same_parameter is None and recommendation.recent_total(case.now, MONTH_DAYS) < floor:
            return None
        text = _replacement_text(case, recommendation, same_parameter)
        return decision(FollowUpReason.OTHER_ADVICE, text, same_parameter or before)
    if case.is_recent(same):
        return None
    if _has_come_back(case, recommendation):
        return decision(FollowUpReason.CAME_BACK, _reopened_text(recommendation), same)
    answer = recommendation.decision
    if answer and answer.ends_at and same.at < answer.ends_at <= case.now:
        ended = f"{answer.by}'s {_DECISION_TEXTS[answer.action]} has ended"
        return decision(FollowUpReason.SILENCE_ENDED, ended, same)
    if same_parameter is not None and same_parameter is not same:
        text = _replacement_text(case, recommendation, same_parameter)
        return decision(FollowUpReason.OTHER_ADVICE, text, same_parameter)
    if month.projected >= GROWTH_FACTOR * before.amount:
        return decision(FollowUpReason.GREW, "the family's month grew by a third or more", before)
    return None


def _has_come_back(case: AlertCase, recommendation: FamilyRecommendation) -> bool:
    """Whether it came back after it was followed, and its last alert is not recent."""
    last = case.last_alert(recommendation)
    if last is None or case.is_recent(last):
        return False
    return recommendation.appearances > 1 and recommendation.since > last.at


def _is_found_anew(case: AlertCase, recommendation: FamilyRecommendation) -> bool:
    """Whether it had an alert, and appeared again after it was not seen for long."""
    last, unseen = (
        case.last_alert(recommendation),
        recommendation.since - case.history_since >= CLOSED_AFTER,
    )
    anew = recommendation.appearances == 1 and (
        recommendation.since > recommendation.first_at or unseen
    )
    return last is not None and anew and recommendation.since > last.at


def _reopened_text(recommendation: FamilyRecommendation) -> str:
    nth = _ORDINALS.get(recommendation.appearances, f"{recommendation.appearances}th")
    wasted = known_sum(recommendation.all_amounts)
    so_far = f", ${wasted:,.2f} wasted so far" if wasted else ""
    return f"what was fixed came back: {nth} time{so_far}"


def _replacement_text(
    case: AlertCase, recommendation: FamilyRecommendation, parameter_alert: Alert | None
) -> str:
    """Returns in words what was recommended before for the same parameter."""
    alerted = map(
        case.recommendations.get, parameter_alert.recommendation_ids if parameter_alert else ()
    )
    before = next(
        (old.new for old in alerted if old and old.has_same_parameter(recommendation)), None
    )
    return f"before, {before} was advised" if before else "this advice is new"


def _is_severe_unpriced(recommendation: FamilyRecommendation) -> bool:
    """Whether it is severe and its amount unknown: it then has a message without dollars."""
    return (
        recommendation.amount is None
        and recommendation.severity.rank >= _MIN_UNPRICED_SEVERITY.rank
    )


def _worsening_text(month: Month, before: Alert, *, is_apart: bool) -> str:
    """Returns what is worse than in the last alert; "" for nothing.

    A step of severity may be a few cents, or the rest of one occasion, so it is not enough alone.
    """
    was = before.amount
    if was and month.projected >= IMMEDIATE_FACTOR * was:
        return f"it is {IMMEDIATE_FACTOR} times as much or more"
    is_step = month.severity.rank > monthly_severity(was).rank
    is_known = is_apart and not before.is_single_occurrence
    is_more = is_step and is_known and month.projected >= GROWTH_FACTOR * was
    return (
        f"it comes to ${severity_min_usd(month.severity):,.0f} a month or more now"
        if is_more
        else ""
    )


def _suppression_reason(case: AlertCase) -> str:
    """Returns the first reason that applies to the run's recommendations."""
    recommendations = [
        case.recommendations[name]
        for name in case.recommendation_ids
        if name in case.recommendations
    ]
    open_advices = [recommendation for recommendation in recommendations if recommendation.is_open]
    if not recommendations:
        return NO_FINDING_REASON
    if not open_advices:
        return f"the advice {recommendations[0].id} is {recommendations[0].state_label}"
    kind = open_advices[0].amount_kind
    month = estimate_month(case.open_recommendations(kind), kind, case.now)
    floor = message_floor(kind, case.policy)
    if month.total < floor:
        return f"the family's {month.total:,.2f} of 30 days are under the floor of {floor:,.2f}"
    return "the family was told of this, and nothing is new"


def _correction(figures: AlertFigures, last: Alert, policy: Policy) -> AlertDecision:
    before = last.figures
    has_first_dollars = figures.has_dollars and not before.has_dollars
    is_unknown = figures.usd is None and not figures.possible_loss_usd
    is_severe_unknown = is_unknown and figures.severity.rank >= _MIN_UNPRICED_SEVERITY.rank
    is_enough = figures.at_stake_usd >= policy.floor_usd or is_severe_unknown
    if (has_first_dollars and not is_enough) or not should_correct(figures, before):
        reason = f"version {last.version} was notified, and what changed since does not matter"
        return no_alert(reason)
    fell_usd = (before.usd or Decimal(0)) - (figures.usd or Decimal(0))
    accepted_since_usd = figures.accepted_usd - before.accepted_usd
    is_known = before.usd is not None and figures.usd is not None
    if is_known and Decimal(0) < fell_usd <= accepted_since_usd + MIN_CHANGE_USD:
        return no_alert("the last figure stands; a policy or tag accepts it now")
    return AlertDecision(AlertKind.CORRECTION, previous_alert=last)


ALERT_CHECKS: tuple[Callable[[AlertCase], AlertDecision | None], ...] = (
    _check_cost_spike,
    *(partial(_check_recommendations, kind) for kind in AmountKind),
)
"""The checks for a message about a run that had none; the first one that holds decides."""
