"""Decides whether a new audit needs a message, and stores the decision together with the message.

`notify` ends immediately in the mode "observe", and for most audits, which have nothing to report.
Otherwise it takes these steps:

1. `_try_once` reads the run's newest summary and the alerts that were sent. There is no alert if
   the audit has a newer version, if this version had its alert, or if the run ended too long ago or
   before the installation.
2. `_make_alert` reads the subject's runs and people's decisions about its recommendations. The rule
   (domain/alert/rule.py) decides, and the routes select the channels.
3. `_with_line` adds the line about the job, only for its first version and for channels that want
   such lines and get no alert about the job.
4. `Notification.write` writes one transaction: the alert, a notice for each channel, and the count
   of each channel's hour. Messages above the channel's hourly limit are held.

The transaction fails if anything that was read has changed or, for an alert, if the audit has a
newer version. Then the steps are repeated. The function reads each notice from the table's stream
and puts it on its channel's queue: docs/decisions/0024-transactional-outbox.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice, takewhile

from msgspec import Struct

from sageaudit.domain.advice.advice import (
    MAX_FAMILY_RUNS,
    derive_recommendations,
    recommendation_id,
)
from sageaudit.domain.advice.comparison import find_cost_spike
from sageaudit.domain.alert.alert import (
    Alert,
    AlertCase,
    AlertDecision,
    AlertKind,
    ChannelHour,
    PastAlerts,
    alert_subject_key,
    no_alert,
    start_of_hour,
    with_details,
)
from sageaudit.domain.alert.audit_figures import MessageAudit
from sageaudit.domain.alert.rule import (
    FIRST_VERSION,
    age_suppression_reason,
    alerts_for_decision,
    audit_suppression_reason,
    decide,
    run_suppression_reason,
)
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Destination, JobRouteFacts, RouteFacts
from sageaudit.errors import Throttled, Unavailable, malformed_errors
from sageaudit.output.text.alert_card import alert_card, job_line_card
from sageaudit.output.text.card import MessageCard, Notice, Writer, to_json
from sageaudit.output.text.links import DEFAULT_HISTORY, HistoryLocation
from sageaudit.ports import AlertLedger, Decisions, History
from sageaudit.structs import replace
from sageaudit.workflows.audit.stored import count_children, iterate_family_runs, read_audit

TRIES = 8
"""How often a message is tried. One process at a time writes a family's messages, so a retry means
that another process was faster.
"""
_LOOK_BACK = timedelta(days=365)
_PAGE_SIZE = 100


class NotifyDependencies(Struct, frozen=True):
    """What `notify` uses. `writers` has the channel's name as key.

    `installed_at` returns the time of the installation; None if unknown. Jobs that ended before it
    get no message. `history_location` is the history that commands in messages read.
    """

    history: History
    ledger: AlertLedger
    decisions: Decisions
    policy: Policy
    writers: Mapping[str, Writer]
    installed_at: Callable[[], datetime | None] = lambda: None
    history_location: HistoryLocation = DEFAULT_HISTORY


def notify(
    key: JobKey, version: int, document: AuditDocument, deps: NotifyDependencies, *, now: datetime
) -> Notification:
    """Decides about one version of an audit, and writes its alert with a notice for each channel.

    A repeated decision gives each notice the same id. Raises AwsError, or MalformedData if stored
    data cannot be read. Then nothing is written.
    """
    with malformed_errors("document"):
        if deps.policy.mode == "observe":
            return Notification(no_alert("observe mode"))
        audit = MessageAudit.parse(document)
        suppression_reason = audit_suppression_reason(version, audit, deps.policy)
        if suppression_reason and not _is_line_due(version, audit, deps.policy):
            return Notification(no_alert(suppression_reason))
        for _ in range(TRIES):
            notification = _try_once(key, version, audit, deps, suppression_reason, now=now)
            if notification is not None:
                return notification
    raise Throttled("Too many audits of one family are decided at the same time.")


def _try_once(
    key: JobKey,
    version: int,
    audit: MessageAudit,
    deps: NotifyDependencies,
    suppression_reason: str | None,
    *,
    now: datetime,
) -> Notification | None:
    """Decides about the version, and writes the result. Returns None if another process wrote
    meanwhile.

    `suppression_reason` says why the audit itself needs no alert. It does not affect the line about
    the job.
    """
    with malformed_errors("summary of the run"):
        summary = deps.history.summary(key)
    if summary is None:
        raise Unavailable("The history answered without the summary of a run that it has.")
    past_alerts = deps.ledger.past_alerts(
        key, alert_subject_key(summary.account, summary.region, summary.family)
    )
    suppression_reason = suppression_reason or run_suppression_reason(
        version, summary, past_alerts.last_run_alert, deps.installed_at, now
    )
    if suppression_reason:
        notification = Notification(no_alert(suppression_reason))
    else:
        notification = _make_alert(version, audit, summary, past_alerts, deps, now)
    if _is_line_due(version, audit, deps.policy):
        notification = _with_line(notification, audit, summary, past_alerts, deps, now)
    return notification.write(past_alerts, version, deps, now)


def _make_alert(
    version: int,
    audit: MessageAudit,
    summary: AuditSummary,
    past_alerts: PastAlerts,
    deps: NotifyDependencies,
    now: datetime,
) -> Notification:
    # A pipeline step with a recommendation is stored in its pipeline's subject, even without an
    # alert.
    past_alerts = past_alerts.with_step(summary.family) if audit.recommendations else past_alerts
    case = _read_case(audit, summary, past_alerts, deps, now)
    decision = decide(case, past_alerts.last_run_alert)
    if decision.suppressed_because:
        return Notification(decision, past_alerts)
    corrected_audit = _corrected_audit(summary.key, decision, deps.history)
    decision = with_details(decision, case, corrected_audit)
    is_worse = decision.kind is AlertKind.WORSE
    shown_audit = audit.without_silenced(case.recommendations, summary, is_worse=is_worse)
    card = alert_card(shown_audit, decision, deps.history_location)
    facts = _route_facts(shown_audit, card, decision, summary.key, deps)
    destination = _destination(decision, facts, deps.policy)
    kind, figures = decision.kind, shown_audit.figures
    alert = Alert(
        past_alerts.run, summary.family, kind, version, figures, now, destination.channels
    )
    new_alerts = past_alerts.with_alerts(alert, alerts_for_decision(case, decision, alert))
    # A message without an open recommendation is never held, since no list shows what it reports.
    post = Post(destination, card, facts.usd, can_be_held=not decision.is_run_only)
    return Notification(decision, new_alerts, alert=post)


def _read_case(
    audit: MessageAudit,
    summary: AuditSummary,
    past_alerts: PastAlerts,
    deps: NotifyDependencies,
    now: datetime,
) -> AlertCase:
    own_run = replace(
        summary,
        purchase=summary.purchase or Purchase.ON_DEMAND,
        recommendations=audit.recommendations,
    )
    runs, history_since = _subject_runs(summary, past_alerts.steps, deps.history, now)
    recommendations = derive_recommendations([own_run, *runs], deps.decisions.decisions(), now)
    recommendation_by_id = {recommendation.id: recommendation for recommendation in recommendations}
    same_family = [run for run in runs if run.family == summary.family]
    return AlertCase(
        family=summary.family,
        figures=audit.without_silenced(recommendation_by_id, summary).figures,
        recommendation_ids=[
            recommendation_id(summary.account, summary.region, summary.family, recommendation)
            for recommendation in audit.recommendations
        ],
        recommendations=recommendation_by_id,
        spike=find_cost_spike(own_run, same_family, deps.policy),
        alerts=[alert for alert in past_alerts.subject_alerts if alert.is_standing],
        policy=deps.policy,
        now=now,
        history_since=history_since,
    )


def _subject_runs(
    summary: AuditSummary, steps: Sequence[str], history: History, now: datetime
) -> tuple[list[AuditSummary], datetime]:
    """Returns a year of the other runs of the family, or of all steps of its pipeline.

    Also returns the time since which all of these runs were read.
    """
    since = now - _LOOK_BACK
    families = {summary.family, *steps}
    limit, other_runs, history_since = MAX_FAMILY_RUNS // len(families), list[AuditSummary](), since
    for family in sorted(families):
        with malformed_errors("runs of the family"):
            newest_runs = iterate_family_runs(
                history, summary.account, summary.region, family, page_size=_PAGE_SIZE
            )
            runs = [*takewhile(lambda run: run.ended_at >= since, islice(newest_runs, limit))]
        if len(runs) == limit:
            history_since = max(history_since, runs[-1].ended_at)
        other_runs += (run for run in runs if run.key != summary.key)
    return other_runs, history_since


def _corrected_audit(
    key: JobKey, alert_decision: AlertDecision, history: History
) -> MessageAudit | None:
    """Returns the audit of the corrected alert; None if there is none or it is not readable."""
    if not alert_decision.is_correction or alert_decision.previous_alert is None:
        return None
    document = read_audit(history, key, alert_decision.previous_alert.version)
    return MessageAudit.parse(document) if document else None


def _route_facts(
    audit: MessageAudit,
    card: MessageCard,
    alert_decision: AlertDecision,
    key: JobKey,
    deps: NotifyDependencies,
) -> RouteFacts:
    job, month = audit.job, alert_decision.month
    usd = alert_decision.spike.excess_usd if alert_decision.spike else month.usd if month else None
    return RouteFacts(
        account=job["account"],
        family=job["family"],
        tags=_tags(key, deps),
        owner=job["owner"],
        kind=job["kind"],
        rule=card.rule,
        severity=alert_decision.month_severity or audit.figures.severity,
        usd=audit.figures.usd if alert_decision.is_correction else usd,
    )


def _tags(key: JobKey, deps: NotifyDependencies) -> Mapping[str, str]:
    """Returns the job's tags; none if no route needs them, or if they have expired."""
    if not deps.policy.routes.needs_job_tags:
        return {}
    with malformed_errors("detail of the run"):
        detail = deps.history.detail(key)
    return detail.tags if detail else {}


def _destination(alert_decision: AlertDecision, facts: RouteFacts, policy: Policy) -> Destination:
    # A correction goes to the channels of the corrected message.
    corrected_alert = alert_decision.previous_alert if alert_decision.is_correction else None
    same_channels = (
        tuple(name for name in corrected_alert.channels if name in policy.channels)
        if corrected_alert
        else ()
    )
    return Destination(same_channels) if same_channels else policy.routes.destination_for(facts)


def _is_line_due(version: int, audit: MessageAudit, policy: Policy) -> bool:
    # The jobs of a roll-up get no line of their own.
    return version == FIRST_VERSION and policy.has_job_lines and not audit.is_in_roll_up


def _with_line(
    notification: Notification,
    audit: MessageAudit,
    summary: AuditSummary,
    past_alerts: PastAlerts,
    deps: NotifyDependencies,
    now: datetime,
) -> Notification:
    # The line does not depend on the job's figures. Changes in later versions are left to alerts.
    if age_suppression_reason(summary.ended_at, deps.installed_at(), now):
        return notification
    job, last_alert = audit.job, (notification.new_alerts or past_alerts).last_run_alert
    facts = JobRouteFacts(
        job["account"], job["family"], _tags(summary.key, deps), job["owner"], job["kind"]
    )
    line_channels = deps.policy.job_line_channels(facts)
    channels = tuple(
        name for name in line_channels if not last_alert or name not in last_alert.channels
    )
    if not channels or deps.ledger.has_job_line(summary.key):
        return notification
    with malformed_errors("runs of the roll-up"):
        children = count_children(summary, deps.history) if audit.is_rollup else None
    card, usd = job_line_card(audit, children), audit.figures.usd
    return replace(notification, job_line=Post(Destination(channels), card, usd))


class Notification(Struct, frozen=True):
    """What is written for one version of an audit.

    `new_alerts` are the past alerts with this one; None if unchanged. `alert` is the message, and
    `job_line` the line about the job. `write` sets `held_channels`: those at their hourly limit.
    """

    alert_decision: AlertDecision
    new_alerts: PastAlerts | None = None
    alert: Post | None = None
    job_line: Post | None = None
    held_channels: tuple[str, ...] = ()

    def write(
        self, past_alerts: PastAlerts, version: int, deps: NotifyDependencies, now: datetime
    ) -> Notification | None:
        """Writes the alerts and notices in one transaction. Returns the written notification.

        Returns this notification unchanged if there is nothing to write. Returns None if
        `past_alerts` has changed since it was read; then nothing was written.
        """
        new_alerts = self.new_alerts or past_alerts
        posts: list[Post] = [post for post in (self.alert, self.job_line) if post]
        if new_alerts is past_alerts and not posts:
            return self
        hours = [
            (post, post.hour(channel, deps, now))
            for post in posts
            for channel in post.destination.channels
        ]
        bodies = {
            hour.channel: post.body(f"{past_alerts.run}|{version}|{hour.channel}", hour, deps)
            for post, hour in hours
            if hour.needs_notice
        }
        counts = [hour for _, hour in hours if hour.count]
        has_line = self.job_line is not None
        if not deps.ledger.write_alert(
            past_alerts, new_alerts, bodies, now, counts, includes_job_line=has_line
        ):
            return None
        return replace(self, held_channels=tuple(hour.channel for _, hour in hours if hour.held))


class Post(Struct, frozen=True):
    """A card and its channels. `can_be_held` means that a channel's hourly limit applies."""

    destination: Destination
    card: MessageCard
    usd: Decimal | None
    can_be_held: bool = True

    def hour(self, channel: str, deps: NotifyDependencies, now: datetime) -> ChannelHour:
        """Returns the channel's hour with this message. A message that is never held is not
        counted.
        """
        limit, hour_start = deps.policy.max_per_hour.get(channel), start_of_hour(now)
        if limit is None or not self.can_be_held:
            return ChannelHour(channel, hour_start)
        return deps.ledger.channel_hour(channel, hour_start).with_message(
            self.card.headline, self.usd, limit
        )

    def body(self, notice_id: str, hour: ChannelHour, deps: NotifyDependencies) -> str:
        """Returns the notice's body: the card, or the hour that stands for held messages.

        Only the first held message of an hour has a notice.
        """
        held_hour = hour.began_at if hour.held else None
        payload = {} if held_hour else deps.writers[hour.channel](self.card, deps.policy.mentions)
        return to_json(Notice(notice_id, hour.channel, payload, held_hour))
