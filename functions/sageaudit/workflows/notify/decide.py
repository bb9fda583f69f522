"""Decides whether a new audit is worth a message, and writes that down together with the message.

audit -> its figures -> what was sent before, and decided by people -> worth a message? -> one
transaction

The transaction has the alert and a notice for each channel. It holds only where nothing that was
read has changed, and no newer version of the audit is there; else the audit is decided afresh.
The table's stream has each notice afterwards, from where it goes to its channel's queue:
docs/decisions/0024-transactional-outbox.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice, takewhile

from sageaudit.domain.advice.advice import (
    MOST_RUNS,
    WAITING,
    Advice,
    State,
    advice_id,
    advices_of,
)
from sageaudit.domain.advice.comparison import dearer_than
from sageaudit.domain.advice.month import month_of
from sageaudit.domain.alert.alert import (
    Alert,
    AlertKind,
    ChannelHour,
    group_key,
    hour_of,
)
from sageaudit.domain.alert.audit_figures import (
    advised_in,
    figures_of,
    message_severity,
    why_never,
    without,
)
from sageaudit.domain.alert.rule import (
    NOTHING_FOUND,
    AlertCase,
    AlertDecision,
    alert_of,
    alerts_by,
    decide,
    no_alert,
)
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.earlier import Advised, RunFacts, Worth
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.record import Head, JobKey, RunQuery
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import IDLE_RULE, Destination, Subject
from sageaudit.errors import Malformed, Throttled, Unavailable, reading
from sageaudit.output.text.alert_card import card_of
from sageaudit.output.text.card import MessageCard
from sageaudit.output.text.envelope import Notice, Writer, to_body
from sageaudit.ports import AlertLedger, Decisions, History
from sageaudit.workflows.audit.whole_audit import whole_audit

TRIES = 8
"""The messages of a family are written by one process at a time; each try means another one was."""
LOOK_BACK = timedelta(days=30)
LONG_AGO = "it ended more than 30 days ago"
_RUNS_BACK = timedelta(days=365)
_PAGE = 100


@dataclass(frozen=True, slots=True)
class NotifyDependencies:
    """What `notify` reads, writes and decides by.

    `writers`: of each channel of the policy. `installed_at`: no message is sent about a job
    that ended before this moment; None where it is not known.
    """

    history: History
    ledger: AlertLedger
    decisions: Decisions
    policy: Policy
    writers: Mapping[str, Writer]
    installed_at: Callable[[], datetime | None] = lambda: None


def notify(
    key: JobKey, version: int, document: AuditDocument, deps: NotifyDependencies, *, now: datetime
) -> AlertDecision:
    """Decides about one version of an audit, and writes its alert with a notice for each channel.

    Each notice has an id that a second decision about the same version gives it again. Raises
    Malformed when the document or what is stored of its family cannot be read, or AwsError. Nothing
    is written then.
    """
    with reading("document"):
        if never := why_never(document, deps.policy.mode):
            return no_alert(never)
        if version == 1 and not _may_be_alerted(document, deps.policy):
            unjudged = document["judged"] == Judged.NO
            return no_alert(NOTHING_FOUND + (": it could not be judged" if unjudged else ""))
        for _ in range(TRIES):
            decision = _try(key, version, document, deps, now=now)
            if decision is not None:
                return decision
    raise Throttled("Too many audits of one family are decided at once.")


def of_the_past(ended_at: datetime, installed_at: datetime | None, now: datetime) -> str | None:
    """Why no message is sent about a run that ended then; None of one that may have one."""
    if installed_at and ended_at < installed_at:
        return "it ended before sageaudit was installed"
    return LONG_AGO if ended_at <= now - LOOK_BACK else None


def stored_audit(history: History, key: JobKey, version: int) -> AuditDocument | None:
    """A version's document; None where there is none. Raises Malformed, or AwsError."""
    with reading("document"):
        document = history.audit(key, version)
    if document is not None and not isinstance(document, dict):
        raise Malformed("document", "is not an object")
    return document


def _try(
    key: JobKey, version: int, document: AuditDocument, deps: NotifyDependencies, *, now: datetime
) -> AlertDecision | None:
    """Decides and writes; None where somebody else wrote since this was read."""
    with reading("head of the run"):
        head = deps.history.head(key)
    if head is None:
        raise Unavailable("The history answered without the head of a run that it has.")
    past = deps.ledger.past(key, group_key(head.account, head.region, head.family))
    if reason := _why_not_now(version, head, past.last, deps, now):
        return no_alert(reason)
    case = _case(document, head, past.alerts, deps, now)
    decision = decide(case, past.last)
    if decision.quiet and not decision.waits:
        return decision
    decision = _completed(key, decision, case, deps)
    shown = _shown(document, case.advices, head, loud=decision.kind is AlertKind.WORSE)
    card = card_of(shown, decision)
    subject = _subject(shown, card, decision, key, deps)
    decision = replace(decision, to=_destination(decision, subject, deps.policy))
    channels, kind = decision.to.channels, decision.kind
    alert = Alert(past.run, head.family, kind, version, figures_of(shown), now, channels)
    if decision.waits:
        after = past.with_waiting(alert_of(case, decision, alert))
        return decision if deps.ledger.write(past, after, {}, now) else None
    if not decision.corrects:
        waited = [one for one in case.waiting if one.channels == channels]
        decision = replace(decision, waited=waited)
        card = card_of(shown, decision) if waited else card
    hours = _hours(decision, card, subject.usd, deps, now)
    decision = replace(decision, held=tuple(one.channel for one in hours if one.held))
    after = past.with_alerts(alert, alerts_by(case, decision, alert))
    bodies = {
        one.channel: _body(f"{past.run}|{version}|{one.channel}", one, card, deps)
        for one in hours
        if one.needs_notice
    }
    counted = [one for one in hours if one.count]
    return decision if deps.ledger.write(past, after, bodies, now, counted) else None


def _completed(
    key: JobKey, decision: AlertDecision, case: AlertCase, deps: NotifyDependencies
) -> AlertDecision:
    """With the month and the advice that it is about, and the audit that it corrects."""
    worth, corrects = decision.worth or Worth.COUNTED, decision.corrects
    waiting = decision.kind is AlertKind.WORSE
    fresh = case.fresh(case.of(worth, waiting=waiting))
    return replace(
        decision,
        before=whole_audit(deps.history, key, corrects.version) if corrects else None,
        month=month_of(case.of(worth, waiting=waiting), worth, case.now),
        saves=month_of(fresh[:1], worth, case.now) if fresh else None,
        advice=fresh[0] if fresh else None,
    )


def _destination(decision: AlertDecision, subject: Subject, policy: Policy) -> Destination:
    """Where it goes; a correction to where the message went that it corrects."""
    before = decision.corrects.channels if decision.corrects else ()
    there = tuple(name for name in before if name in policy.channels)
    return Destination(there) if there else policy.routes.of(subject)


def _hours(
    decision: AlertDecision,
    card: MessageCard,
    usd: Decimal | None,
    deps: NotifyDependencies,
    now: datetime,
) -> list[ChannelHour]:
    """The hour of each channel with this message; nothing is counted where none is ever held."""
    # what is in no open advice is never held, since nobody would find it
    most = {} if decision.corrects or decision.dearer else deps.policy.max_per_hour
    began = hour_of(now)
    return [
        deps.ledger.hour(name, began).with_message(card.headline, usd, most[name])
        if name in most
        else ChannelHour(name, began)
        for name in decision.to.channels
    ]


def _body(notice_id: str, hour: ChannelHour, card: MessageCard, deps: NotifyDependencies) -> str:
    """The notice of a channel: the card, or with the first held message that of the hour."""
    held_hour = hour.began_at if hour.held else None
    payload = {} if held_hour else deps.writers[hour.channel](card, deps.policy.mentions)
    return to_body(Notice(notice_id, hour.channel, payload, held_hour))


def _subject(
    document: AuditDocument,
    card: MessageCard,
    decision: AlertDecision,
    key: JobKey,
    deps: NotifyDependencies,
) -> Subject:
    """What the routes ask; the job's tags are read only where one asks for a tag."""
    job, month = document["job"], decision.month
    tags: Mapping[str, str] = {}
    if any(route.tag for route in deps.policy.routes.rows):
        with reading("detail of the run"):
            detail = deps.history.detail(key)
        tags = detail.tags if detail else {}
    usd = decision.dearer.more_usd if decision.dearer else month.usd if month else None
    return Subject(
        account=job["account"],
        family=job["family"],
        tags=tags,
        owner=job["owner"],
        kind=job["kind"],
        rule=IDLE_RULE if decision.idle else card.rule,
        severity=message_severity(document, decision),
        usd=figures_of(document).usd if decision.corrects else usd,
    )


def _case(
    document: AuditDocument,
    head: Head,
    alerts: Sequence[Alert],
    deps: NotifyDependencies,
    now: datetime,
) -> AlertCase:
    """What a decision about this audit rests on: it is read here."""
    advised = advised_in(document)
    facts = head.facts or RunFacts(Purchase.ON_DEMAND)
    own = replace(head, facts=replace(facts, advised=advised))
    query = RunQuery.of_family(head.account, head.region, head.family)
    with reading("runs of the family"):
        newest = islice(deps.history.runs(query, page_size=_PAGE), MOST_RUNS)
        runs = list(takewhile(lambda run: run.ended_at >= now - _RUNS_BACK, newest))
    cut = len(runs) == MOST_RUNS
    others = [run for run in runs if run.key != head.key]
    decisions = deps.decisions.decisions()
    advices = advices_of([own, *others], decisions, now)
    decided = {one.advice for one in decisions}
    by_id = {one.id: one for one in advices}
    return AlertCase(
        figures=figures_of(_shown(document, by_id, head)),
        found=[advice_id(head.account, head.region, head.family, one) for one in advised],
        advices=by_id,
        dearer=dearer_than(own, others, deps.policy),
        alerts=[
            one
            for one in alerts
            if one.holds and one.family == head.family and one.kind is not AlertKind.WAITS
        ],
        policy=deps.policy,
        now=now,
        read_from=runs[-1].ended_at if cut else now - _RUNS_BACK,
        other_steps=[
            one
            for one in alerts
            if one.family != head.family
            and not (one.kind is AlertKind.WAITS and decided & {*one.advices})
        ],
    )


def _shown(
    document: AuditDocument, advices: Mapping[str, Advice], head: Head, *, loud: bool = False
) -> AuditDocument:
    """The audit without what no message includes now; `loud`: what waits is included too."""
    shown = {State.OPEN, State.CLOSED, *(WAITING if loud else ())}

    def silent(advised: Advised) -> Advice | None:
        advice = advices.get(advice_id(head.account, head.region, head.family, advised))
        return None if advice is None or advice.state in shown else advice

    return without(document, silent)


def _may_be_alerted(document: AuditDocument, policy: Policy) -> bool:
    """Whether anything of it may be worth a message, whatever its family is.

    Most audits end here: neither the history nor the ledger is asked.
    """
    cost_usd = document["bill"]["total_usd"] or Decimal(0)
    return bool(advised_in(document)) or cost_usd >= max(policy.dearer_floor_usd, Decimal("0.01"))


def _why_not_now(
    version: int, head: Head, last: Alert | None, deps: NotifyDependencies, now: datetime
) -> str | None:
    """Why another version of the run, or its age, leaves nothing to decide."""
    if head.version > version:
        return "a newer version of the audit has taken its place"
    if last is not None and last.version >= version:
        return f"version {last.version} was notified"
    past = of_the_past(head.ended_at, deps.installed_at(), now)
    return None if last is not None and past == LONG_AGO else past
