"""Decides whether a new audit needs a message, and stores the decision together with the message.

`notify` ends immediately in the mode "observe", and for most audits, which have nothing to report.
Otherwise it tries these steps:

1. `_try` reads the newest version of the run and the alerts that were sent. There is no alert if
   there is a newer version, if this one had its alert, or if the run ended too long ago or before
   the installation.
2. `_alert` reads the subject's runs and what people decided about its recommendations. The rule
   (domain/alert/rule.py) decides. The routes select the channels of the card; the job's own tags
   are read if a route asks for one.
3. `_with_line` adds the line about the job, only for its first version, for the channels that want
   one and have no alert about it.
4. `Notification.write` writes one transaction: the alert, a notice for each channel, and the count
   of each channel's hour. Messages above the channel's hourly limit are held together.

The transaction fails if anything that was read has changed or, for an alert, if there is a newer
version of the audit; then the steps are tried again. The table's stream then has each notice,
which goes to its channel's queue: docs/decisions/0024-transactional-outbox.md.
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
"""One process at a time writes the messages of a family. A retry means another one was faster."""
_RUNS_BACK = timedelta(days=365)
_PAGE = 100


class NotifyDependencies(Struct, frozen=True):
    """What `notify` reads, writes and decides by.

    `writers`: by channel of the policy. `installed_at`: no message is sent about a job that
    ended before this time; None if it is not known. `history_location`: the history that the
    commands in messages read.
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

    A repeated decision about the same version gives each notice the same id. Raises MalformedData
    if the document or what is stored of its family cannot be read, or AwsError. Then nothing is
    written.
    """
    with malformed_errors("document"):
        if deps.policy.mode == "observe":
            return Notification(no_alert("observe mode"))
        audit = MessageAudit.parse(document)
        why_none = audit_suppression_reason(version, audit, deps.policy)
        if why_none and not _is_line_due(version, audit, deps.policy):
            return Notification(no_alert(why_none))
        for _ in range(TRIES):
            notification = _try(key, version, audit, deps, why_none, now=now)
            if notification is not None:
                return notification
    raise Throttled("Too many audits of one family are decided at once.")


def _try(
    key: JobKey,
    version: int,
    audit: MessageAudit,
    deps: NotifyDependencies,
    why_none: str | None,
    *,
    now: datetime,
) -> Notification | None:
    """Decides and writes; None if another process wrote meanwhile. `why_none`: why there is no
    alert, whatever its family is. The line about the job does not depend on it.
    """
    with malformed_errors("head of the run"):
        head = deps.history.summary(key)
    if head is None:
        raise Unavailable("The history answered without the head of a run that it has.")
    past = deps.ledger.past_alerts(key, alert_subject_key(head.account, head.region, head.family))
    why_none = why_none or run_suppression_reason(
        version, head, past.last_run_alert, deps.installed_at, now
    )
    if why_none:
        notification = Notification(no_alert(why_none))
    else:
        notification = _alert(version, audit, head, past, deps, now)
    if _is_line_due(version, audit, deps.policy):
        notification = _with_line(notification, audit, head, past, deps, now)
    return notification.write(past, version, deps, now)


def _alert(
    version: int,
    audit: MessageAudit,
    head: AuditSummary,
    past: PastAlerts,
    deps: NotifyDependencies,
    now: datetime,
) -> Notification:
    """The alert, if there is one. A step with a recommendation is stored in its pipeline's subject,
    even if there is no alert.
    """
    past = past.with_step(head.family) if audit.recommendations else past
    case = _read_case(audit, head, past, deps, now)
    decision = decide(case, past.last_run_alert)
    if decision.suppressed_because:
        return Notification(decision, past)
    corrected = _corrected_audit(head.key, decision, deps.history)
    decision = with_details(decision, case, corrected)
    is_worse = decision.kind is AlertKind.WORSE
    shown = audit.without_silenced(case.recommendations, head, is_worse=is_worse)
    card = alert_card(shown, decision, deps.history_location)
    facts = _route_facts(shown, card, decision, head.key, deps)
    to = _destination(decision, facts, deps.policy)
    kind, figures = decision.kind, shown.figures
    alert = Alert(past.run, head.family, kind, version, figures, now, to.channels)
    new_past = past.with_alerts(alert, alerts_for_decision(case, decision, alert))
    # a message without an open recommendation is never held: nobody would find it elsewhere
    post = Post(to, card, facts.usd, can_be_held=not decision.is_run_only)
    return Notification(decision, new_past, alert=post)


def _read_case(
    audit: MessageAudit,
    head: AuditSummary,
    past: PastAlerts,
    deps: NotifyDependencies,
    now: datetime,
) -> AlertCase:
    """Reads the runs, recommendations, decisions and alerts that the alert depends on."""
    own = replace(
        head, purchase=head.purchase or Purchase.ON_DEMAND, recommendations=audit.recommendations
    )
    runs, read_from = _subject_runs(head, past.steps, deps.history, now)
    recommendations = derive_recommendations([own, *runs], deps.decisions.decisions(), now)
    by_id = {item.id: item for item in recommendations}
    same_family = [run for run in runs if run.family == head.family]
    return AlertCase(
        family=head.family,
        figures=audit.without_silenced(by_id, head).figures,
        recommendation_ids=[
            recommendation_id(head.account, head.region, head.family, item)
            for item in audit.recommendations
        ],
        recommendations=by_id,
        spike=find_cost_spike(own, same_family, deps.policy),
        alerts=[item for item in past.subject_alerts if item.is_standing],
        policy=deps.policy,
        now=now,
        history_since=read_from,
    )


def _subject_runs(
    head: AuditSummary, steps: Sequence[str], history: History, now: datetime
) -> tuple[list[AuditSummary], datetime]:
    """A year of the other runs of the family, or of all steps of its pipeline, and the time since
    which all of them were read.
    """
    since = now - _RUNS_BACK
    families = {head.family, *steps}
    limit, others, read_from = MAX_FAMILY_RUNS // len(families), list[AuditSummary](), since
    for family in sorted(families):
        with malformed_errors("runs of the family"):
            newest = iterate_family_runs(
                history, head.account, head.region, family, page_size=_PAGE
            )
            runs = [*takewhile(lambda run: run.ended_at >= since, islice(newest, limit))]
        if len(runs) == limit:
            read_from = max(read_from, runs[-1].ended_at)
        others += (run for run in runs if run.key != head.key)
    return others, read_from


def _corrected_audit(key: JobKey, decision: AlertDecision, history: History) -> MessageAudit | None:
    """The version whose alert is corrected; None if there is none or it cannot be read."""
    if not decision.is_correction or decision.previous_alert is None:
        return None
    document = read_audit(history, key, decision.previous_alert.version)
    return MessageAudit.parse(document) if document else None


def _route_facts(
    shown: MessageAudit,
    card: MessageCard,
    decision: AlertDecision,
    key: JobKey,
    deps: NotifyDependencies,
) -> RouteFacts:
    job, month = shown.job, decision.month
    usd = decision.spike.excess_usd if decision.spike else month.usd if month else None
    return RouteFacts(
        account=job["account"],
        family=job["family"],
        tags=_tags(key, deps),
        owner=job["owner"],
        kind=job["kind"],
        rule=card.rule,
        severity=decision.month_severity or shown.figures.severity,
        usd=shown.figures.usd if decision.is_correction else usd,
    )


def _tags(key: JobKey, deps: NotifyDependencies) -> Mapping[str, str]:
    """The job's tags, read only if a route needs one; none if its details have expired."""
    if not deps.policy.routes.needs_job_tags:
        return {}
    with malformed_errors("detail of the run"):
        detail = deps.history.detail(key)
    return detail.tags if detail else {}


def _destination(decision: AlertDecision, facts: RouteFacts, policy: Policy) -> Destination:
    """The channels of an alert; a correction goes to those of the corrected message."""
    last = decision.previous_alert if decision.is_correction else None
    same = tuple(name for name in last.channels if name in policy.channels) if last else ()
    return Destination(same) if same else policy.routes.destination_for(facts)


def _is_line_due(version: int, audit: MessageAudit, policy: Policy) -> bool:
    """Whether a channel may get a line about this version. A roll-up's jobs get no own line."""
    return version == FIRST_VERSION and policy.has_job_lines and not audit.is_in_roll_up


def _with_line(
    notification: Notification,
    audit: MessageAudit,
    head: AuditSummary,
    past: PastAlerts,
    deps: NotifyDependencies,
    now: datetime,
) -> Notification:
    """Adds the line about the job, for the channels that want one and have no alert about it.

    It is written whatever the figures are. Changes in later versions are for alerts.
    """
    if age_suppression_reason(head.ended_at, deps.installed_at(), now):
        return notification
    job, last = audit.job, (notification.new_past or past).last_run_alert
    facts = JobRouteFacts(
        job["account"], job["family"], _tags(head.key, deps), job["owner"], job["kind"]
    )
    asking = deps.policy.job_line_channels(facts)
    channels = tuple(name for name in asking if not last or name not in last.channels)
    if not channels or deps.ledger.has_job_line(head.key):
        return notification
    with malformed_errors("runs of the roll-up"):
        children = count_children(head, deps.history) if audit.is_rollup else None
    card, usd = job_line_card(audit, children), audit.figures.usd
    return replace(notification, job_line=Post(Destination(channels), card, usd))


class Notification(Struct, frozen=True):
    """What is written for one version of an audit.

    `alert`: the message, or None. `job_line`: the line about the job, or None. `new_past`: the
    alerts of the run and its subject with this one; None if they have not changed.
    `held_channels`, set by `write`: those that have reached their hourly limit.
    """

    decision: AlertDecision
    new_past: PastAlerts | None = None
    alert: Post | None = None
    job_line: Post | None = None
    held_channels: tuple[str, ...] = ()

    def write(
        self, past: PastAlerts, version: int, deps: NotifyDependencies, now: datetime
    ) -> Notification | None:
        """Writes it, if there is anything; None if `past` has changed since it was read.

        An alert, the notice of each channel, the mark that the run had its line, and the counts of
        the channels' hours are one transaction.
        """
        new_past = self.new_past or past
        posts: list[Post] = [post for post in (self.alert, self.job_line) if post]
        if new_past is past and not posts:
            return self
        hours = [
            (post, post.hour(channel, deps, now))
            for post in posts
            for channel in post.destination.channels
        ]
        bodies = {
            hour.channel: post.body(f"{past.run}|{version}|{hour.channel}", hour, deps)
            for post, hour in hours
            if hour.needs_notice
        }
        counts = [hour for _, hour in hours if hour.count]
        has_line = self.job_line is not None
        if not deps.ledger.write_alert(
            past, new_past, bodies, now, counts, includes_job_line=has_line
        ):
            return None
        return replace(self, held_channels=tuple(hour.channel for _, hour in hours if hour.held))


class Post(Struct, frozen=True):
    """A card and its channels; `can_be_held`: it is held above a channel's hourly limit."""

    destination: Destination
    card: MessageCard
    usd: Decimal | None
    can_be_held: bool = True

    def hour(self, channel: str, deps: NotifyDependencies, now: datetime) -> ChannelHour:
        """The channel's hour with this message; not counted if the message can never be held."""
        limit, hour_start = deps.policy.max_per_hour.get(channel), start_of_hour(now)
        if limit is None or not self.can_be_held:
            return ChannelHour(channel, hour_start)
        return deps.ledger.channel_hour(channel, hour_start).with_message(
            self.card.headline, self.usd, limit
        )

    def body(self, notice_id: str, hour: ChannelHour, deps: NotifyDependencies) -> str:
        """The body of the notice: the card, or for the first held message that of the hour."""
        held_hour = hour.began_at if hour.held else None
        payload = {} if held_hour else deps.writers[hour.channel](self.card, deps.policy.mentions)
        return to_json(Notice(notice_id, hour.channel, payload, held_hour))
