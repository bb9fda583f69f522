"""The rule: whether a new audit is sent as a message, and as what; pure.

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
"""Ten times the amount of the last message is sent at once. Our choice."""
GROWTH_FACTOR = Decimal(4) / 3
"""A month that grew by a third has another message. Our choice."""
_MIN_MESSAGE_INTERVAL = timedelta(hours=24)
"""A subject has at most one message of a kind of amount in it, unless it is ten times as much."""
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
    """Why a version has no alert, whatever its family is; None if its family decides.

    Most audits end here: neither the history nor the ledger is asked.
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
    """Why another version of the run, or its age, leaves nothing to decide.

    `head` is of the run's newest version, and `last` the run's last alert.
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
    """Why no message is sent about a run that ended then; None of one that may have one."""
    if installed_at and ended_at < installed_at:
        return "it ended before sageaudit was installed"
    return TOO_OLD_REASON if ended_at <= now - MAX_RUN_AGE else None


def decide(case: AlertCase, last_alert: Alert | None) -> AlertDecision:
    """What to do about an audit. `last`: the last alert of its run."""
    if last_alert is not None:
        return _correction(case.figures, last_alert, case.policy)
    found = (reason(case) for reason in ALERT_CHECKS)
    return next(filter(None, found), None) or no_alert(_suppression_reason(case))


def alerts_for_decision(case: AlertCase, decision: AlertDecision, template: Alert) -> list[Alert]:
    """What a message counts as: none for a correction, one for each thing that was due with it."""
    found: list[Alert] = []
    if decision.is_correction:
        return found
    if decision.spike is not None:
        found.append(replace(template, kind=AlertKind.COST_SPIKE, amount=decision.spike.excess_usd))
    due = filter(None, (_check_recommendations(worth, case) for worth in AmountKind))
    return found + [_alert_for_decision(case, one, template) for one in due]


def _alert_for_decision(case: AlertCase, decision: AlertDecision, sent: Alert) -> Alert:
    worth = decision.worth
    advices = case.open_recommendations(worth, silenced=decision.kind is AlertKind.WORSE)
    month = estimate_month(advices, worth, case.now)
    return replace(
        sent,
        kind=decision.kind,
        worth=worth,
        advices=tuple(one.id for one in advices if one.occurrences),
        amount=month.projected,
        is_single_occurrence=month.is_single_occurrence,
    )


def _check_cost_spike(case: AlertCase) -> AlertDecision | None:
    """A run that cost far more than comparable ones: again after 30 days, at once at ten times."""
    found, policy = case.spike, case.policy
    if found is None:
        return None
    least_more_usd = found.expected_usd * policy.cost_spike_percent / 100
    if found.excess_usd < max(least_more_usd, policy.cost_spike_min_usd):
        return None
    spikes = (one for one in reversed(case.alerts) if one.kind is AlertKind.COST_SPIKE)
    before = next((one for one in spikes if one.family == case.family), None)
    if before and case.is_recent(before) and found.excess_usd < IMMEDIATE_FACTOR * before.amount:
        return None
    return AlertDecision(AlertKind.COST_SPIKE, spike=found)


def _check_recommendations(amount_kind: AmountKind, case: AlertCase) -> AlertDecision | None:
    """What is new since the subject's last message of this kind of amount."""
    before = next((one for one in reversed(case.alerts) if one.worth is amount_kind), None)
    of_run = case.run_recommendations(case.open_recommendations(amount_kind, silenced=True))
    if before and of_run and not all(_has_come_back(case, one) for one in of_run):
        # what the message did not name, and this run does not have, is other advice
        known = {*before.advices, *case.recommendation_ids}
        advices = [
            one for one in case.open_recommendations(amount_kind, silenced=True) if one.id in known
        ]
        month = estimate_month(advices, amount_kind, case.now)
        if why := _worsening_text(
            month, before, is_apart=case.now - before.at >= _MIN_MESSAGE_INTERVAL
        ):
            return AlertDecision(AlertKind.WORSE, why=why, previous_alert=before, worth=amount_kind)
    of_run = case.run_recommendations(case.open_recommendations(amount_kind))
    month = estimate_month(case.open_recommendations(amount_kind), amount_kind, case.now)
    is_enough = month.total >= message_floor(amount_kind, case.policy)
    if not of_run or not (is_enough or any(map(_is_severe_unpriced, of_run))):
        return None
    if before is None or all(_is_found_anew(case, one) for one in of_run):
        return AlertDecision(worth=amount_kind)
    if case.now - before.at < _MIN_MESSAGE_INTERVAL:
        return None
    return next(filter(None, (_follow_up(case, one, before, month) for one in of_run)), None)


def _follow_up(
    case: AlertCase, advice: FamilyRecommendation, before: Alert, month: Month
) -> AlertDecision | None:
    """What is new about one advice of the run."""
    same, of_line = case.last_alert(advice), case.last_parameter_alert(advice)
    decision = partial(AlertDecision, AlertKind.FOLLOW_UP, worth=advice.worth)
    if same is None:
        floor = message_floor(advice.worth, case.policy)
        if of_line is None and advice.recent_total(case.now, MONTH_DAYS) < floor:
            return None
        return decision(
            FollowUpReason.OTHER_ADVICE, _replacement_text(case, advice, of_line), of_line or before
        )
    if case.is_recent(same):
        return None
    if _has_come_back(case, advice):
        return decision(FollowUpReason.CAME_BACK, _reopened_text(advice), same)
    answer = advice.decision
    if answer and answer.ends_at and same.at < answer.ends_at <= case.now:
        ended = f"{answer.by}'s {_DECISION_TEXTS[answer.action]} has ended"
        return decision(FollowUpReason.SILENCE_ENDED, ended, same)
    if of_line is not None and of_line is not same:
        return decision(
            FollowUpReason.OTHER_ADVICE, _replacement_text(case, advice, of_line), of_line
        )
    if month.projected >= GROWTH_FACTOR * before.amount:
        return decision(FollowUpReason.GREW, "the family's month grew by a third or more", before)
    return None


def _has_come_back(case: AlertCase, advice: FamilyRecommendation) -> bool:
    """Whether it was followed and found again since its last alert, which is not recent."""
    last = case.last_alert(advice)
    if last is None or case.is_recent(last):
        return False
    return advice.times > 1 and advice.since > last.at


def _is_found_anew(case: AlertCase, advice: FamilyRecommendation) -> bool:
    """Whether it had an alert, and was found anew after it was not seen for long."""
    last, unseen = case.last_alert(advice), advice.since - case.history_since >= CLOSED_AFTER
    anew = advice.times == 1 and (advice.since > advice.first_at or unseen)
    return last is not None and anew and advice.since > last.at


def _reopened_text(advice: FamilyRecommendation) -> str:
    nth = _ORDINALS.get(advice.times, f"{advice.times}th")
    wasted = known_sum(advice.all_amounts)
    so_far = f", ${wasted:,.2f} wasted so far" if wasted else ""
    return f"what was fixed came back: {nth} time{so_far}"


def _replacement_text(
    case: AlertCase, advice: FamilyRecommendation, parameter_alert: Alert | None
) -> str:
    """What was advised before for the same parameter, in words."""
    known = map(case.recommendations.get, parameter_alert.advices if parameter_alert else ())
    before = next((one.new for one in known if one and one.has_same_parameter(advice)), None)
    return f"before, {before} was advised" if before else "this advice is new"


def _is_severe_unpriced(advice: FamilyRecommendation) -> bool:
    """Dollars that are not known are not none: a severe finding has a message without."""
    return advice.amount is None and advice.severity.rank >= _MIN_UNPRICED_SEVERITY.rank


def _worsening_text(month: Month, before: Alert, *, is_apart: bool) -> str:
    """What is worse than in the last alert; "" for nothing. A step of severity alone may be a few
    cents, and within a day it may be the rest of one occasion. After an alert about one occasion it
    is only that the month fills up.
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
    """The first reason that holds for what the run was advised."""
    found = [
        case.recommendations[name]
        for name in case.recommendation_ids
        if name in case.recommendations
    ]
    opened = [one for one in found if one.is_open]
    if not found:
        return NO_FINDING_REASON
    if not opened:
        return f"the advice {found[0].id} is {found[0].state_label}"
    worth = opened[0].worth
    month, floor = (
        estimate_month(case.open_recommendations(worth), worth, case.now),
        message_floor(worth, case.policy),
    )
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
    *(partial(_check_recommendations, worth) for worth in AmountKind),
)
"""Every reason for a message about a run that had none; the first one that holds is its kind."""
