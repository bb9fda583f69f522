"""Decides whether a new audit is worth a message, and writes that down together with the message.

audit -> its figures -> what was sent before, and decided by people -> worth a message? -> one
transaction

The transaction has the alert and a notice for each channel. It holds only where nothing that was
read has changed, and no newer version of the audit is there; else the audit is decided afresh.
The table's stream has each notice afterwards, from where it goes to its channel's queue:
docs/decisions/0024-transactional-outbox.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    ChannelHour,
    HeldMessage,
    Kind,
    Told,
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
    Notify,
    Quiet,
    decide,
    told_by,
    waits_by,
)
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.earlier import Advised, RunFacts, Worth
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.record import Head, JobKey, RunQuery
from sageaudit.domain.audit.well_formed import reading
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import IDLE_RULE, Destination, Subject
from sageaudit.errors import UNREADABLE, BadHistory, Malformed, Throttled, Unavailable
from sageaudit.output.text.card import MessageCard, card_of
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
class NewAudit:
    """An audit just written to the history: `pk` is its partition key."""

    pk: str
    key: JobKey
    version: int
    document: AuditDocument


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


def notify(audit: NewAudit, deps: NotifyDependencies, *, now: datetime) -> Notify | Quiet:
    """Decides about one audit, and writes its alert with a notice for each channel.

    Each notice has an id that a second decision about the same version gives it again. Raises
    Malformed when the document or what is stored of its family cannot be read, or AwsError. Any
    other error, as in a writer, is a defect of this program. Nothing is written then.
    """
    with reading(audit.document):
        if never := why_never(audit.document, deps.policy.mode):
            return Quiet(never)
        if audit.version == 1 and not _may_be_told(audit.document, deps.policy):
            unjudged = audit.document["judged"] == Judged.NO
            return Quiet(NOTHING_FOUND + (": it could not be judged" if unjudged else ""))
        for _ in range(TRIES):
            outcome = _try(audit, deps, now=now)
            if outcome is not None:
                return outcome
    raise Throttled("Too many audits of one family are decided at once.")


def of_the_past(ended_at: datetime, installed_at: datetime | None, now: datetime) -> str | None:
    """Why nobody is told of a run that ended then; None of one that may be told."""
    if installed_at and ended_at < installed_at:
        return "it ended before sageaudit was installed"
    return LONG_AGO if ended_at <= now - LOOK_BACK else None


def stored_audit(history: History, key: JobKey, version: int) -> AuditDocument | None:
    """A version's document; None where there is none. Raises Malformed, or AwsError."""
    with _reading_stored("document"):
        document = history.audit(key, version)
    if document is not None and not isinstance(document, dict):
        raise Malformed("document", "is not an object")
    return document


def _try(audit: NewAudit, deps: NotifyDependencies, *, now: datetime) -> Notify | Quiet | None:
    """Decides and writes; None where somebody else wrote since this was read."""
    with _reading_stored("head of the run"):
        head = deps.history.head(audit.key)
    if head is None:
        raise Unavailable("The history answered without the head of a run that it has.")
    past = deps.ledger.past(audit.pk, group_key(head.account, head.region, head.family))
    if reason := _why_not_now(audit, head, past.last, deps, now):
        return Quiet(reason)
    case = _case(audit.document, head, past.told, deps, now)
    decided = decide(case, past.last)
    due = decided.waits if isinstance(decided, Quiet) else decided
    if due is None:
        return decided
    outcome = _completed(audit, due, case, deps)
    document = _shown(audit.document, case.advices, head, loud=outcome.kind is Kind.WORSE)
    card = card_of(document, outcome)
    subject = _subject(document, card, outcome, audit, deps)
    to = _destination(outcome, subject, deps.policy)
    alert = Alert(audit.version, figures_of(document), now, to.channels)
    if isinstance(decided, Quiet):
        waits = waits_by(case, outcome, audit.pk, head.family, alert)
        return decided if deps.ledger.write(past, past.with_waiting(waits), {}, now) else None
    if not outcome.corrects:
        there = [one for one in case.waiting if one.alert.channels == to.channels]
        outcome = replace(outcome, besides=there)
        card = card_of(document, outcome) if there else card
    outcome, hours, bodies = _addressed(
        audit, card, replace(outcome, to=to), subject.usd, deps, now
    )
    said = told_by(case, outcome, audit.pk, head.family, alert)
    after = past.with_messages(alert, said)
    return outcome if deps.ledger.write(past, after, bodies, now, hours) else None


def _completed(
    audit: NewAudit, outcome: Notify, case: AlertCase, deps: NotifyDependencies
) -> Notify:
    """With the month and the advice that it is about, and the audit that it corrects."""
    worth, corrects = outcome.worth or Worth.COUNTED, outcome.corrects
    waiting = outcome.kind is Kind.WORSE
    fresh = case.fresh(case.of(worth, waiting=waiting))
    return replace(
        outcome,
        before=whole_audit(deps.history, audit.key, corrects.version) if corrects else None,
        month=month_of(case.of(worth, waiting=waiting), worth, case.now),
        saves=month_of(fresh[:1], worth, case.now) if fresh else None,
        advice=fresh[0] if fresh else None,
    )


def _destination(notify: Notify, subject: Subject, policy: Policy) -> Destination:
    """Where it goes; a correction to where the message went that it corrects."""
    before = notify.corrects.channels if notify.corrects else ()
    there = tuple(name for name in before if name in policy.channels)
    return Destination(there) if there else policy.routes.of(subject)


def _addressed(
    audit: NewAudit,
    card: MessageCard,
    outcome: Notify,
    usd: Decimal | None,
    deps: NotifyDependencies,
    now: datetime,
) -> tuple[Notify, list[ChannelHour], dict[str, str]]:
    """With what is held; the hours that count it, and by channel the bodies of the notices."""
    to, held, began = outcome.to, HeldMessage(card.news, usd), hour_of(now)
    # what is in no open advice is never held, since nobody would find it
    most = {} if outcome.corrects or outcome.dearer else deps.policy.max_per_hour
    hours = [
        deps.ledger.hour(name, began).with_message(held, most[name])
        for name in to.channels
        if name in most
    ]
    unheld = [ChannelHour(name, began) for name in to.channels if name not in most]
    speaking = [*unheld, *(one for one in hours if one.needs_notice)]
    bodies = {one.channel: _body(audit, one, card, deps) for one in speaking}
    above = tuple(one.channel for one in hours if one.held)
    return replace(outcome, held=above), hours, bodies


def _body(audit: NewAudit, hour: ChannelHour, card: MessageCard, deps: NotifyDependencies) -> str:
    """The notice of a channel: the card, or with the first held message that of the hour."""
    name, held_hour = hour.channel, hour.began_at if hour.held else None
    payload = {} if held_hour else deps.writers[name](card, deps.policy.mentions)
    return to_body(Notice(f"{audit.pk}|{audit.version}|{name}", name, payload, held_hour))


def _subject(
    document: AuditDocument,
    card: MessageCard,
    notify: Notify,
    audit: NewAudit,
    deps: NotifyDependencies,
) -> Subject:
    """What the routes ask; the job's tags are read only where one asks for a tag."""
    job, month = document["job"], notify.month
    tags: Mapping[str, str] = {}
    if any(route.tag for route in deps.policy.routes.rows):
        with _reading_stored("detail of the run"):
            detail = deps.history.detail(audit.key)
        tags = detail.tags if detail else {}
    usd = notify.dearer.more_usd if notify.dearer else month.usd if month else None
    return Subject(
        account=job["account"],
        family=job["family"],
        tags=tags,
        owner=job["owner"],
        kind=job["kind"],
        rule=IDLE_RULE if notify.idle else card.rule,
        severity=message_severity(document, notify),
        usd=figures_of(document).usd if notify.corrects else usd,
    )


def _case(
    document: AuditDocument,
    head: Head,
    told: Sequence[Told],
    deps: NotifyDependencies,
    now: datetime,
) -> AlertCase:
    """What a decision about this audit rests on: it is read here."""
    advised = advised_in(document)
    facts = head.facts or RunFacts(Purchase.ON_DEMAND)
    own = replace(head, facts=replace(facts, advised=advised))
    query = RunQuery.of_family(head.account, head.region, head.family)
    with _reading_stored("runs of the family"):
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
        told=[
            one
            for one in told
            if one.holds and one.family == head.family and one.kind is not Kind.WAITS
        ],
        policy=deps.policy,
        now=now,
        read_from=runs[-1].ended_at if cut else now - _RUNS_BACK,
        of_group=[
            one
            for one in told
            if one.family != head.family
            and not (one.kind is Kind.WAITS and decided & {*one.advices})
        ],
    )


def _shown(
    document: AuditDocument, advices: Mapping[str, Advice], head: Head, *, loud: bool = False
) -> AuditDocument:
    """The audit without what no message speaks of now; `loud`: what waits is heard too."""
    heard = {State.OPEN, State.CLOSED, *(WAITING if loud else ())}

    def silent(advised: Advised) -> Advice | None:
        advice = advices.get(advice_id(head.account, head.region, head.family, advised))
        return None if advice is None or advice.state in heard else advice

    return without(document, silent)


def _may_be_told(document: AuditDocument, policy: Policy) -> bool:
    """Whether anything of it may be worth a message, whatever its family is.

    Most audits end here: neither the history nor the ledger is asked.
    """
    cost_usd = document["bill"]["total_usd"] or Decimal(0)
    return bool(advised_in(document)) or cost_usd >= max(policy.dearer_floor_usd, Decimal("0.01"))


def _why_not_now(
    audit: NewAudit, head: Head, last: Alert | None, deps: NotifyDependencies, now: datetime
) -> str | None:
    """Why another version of the run, or its age, leaves nothing to decide."""
    if head.version > audit.version:
        return "a newer version of the audit has taken its place"
    if last is not None and last.version >= audit.version:
        return f"version {last.version} was notified"
    past = of_the_past(head.ended_at, deps.installed_at(), now)
    return None if last is not None and past == LONG_AGO else past


@contextmanager
def _reading_stored(what: str) -> Iterator[None]:
    """Raises Malformed for what is stored and cannot be read: no later try would."""
    try:
        yield
    except (BadHistory, *UNREADABLE) as error:
        raise Malformed(what, f"cannot be read: {type(error).__name__} {error}") from error
