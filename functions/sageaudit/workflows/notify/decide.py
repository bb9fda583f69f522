"""Decides whether a new audit is worth a message, and writes that down together with the message.

audit -> its figures -> what was sent before, and decided by people -> worth a message? -> one
transaction

The transaction has the alert and a notice for each channel. It holds only where nothing that was
read has changed, and no newer version of the audit is there; else the audit is decided afresh.
The table's stream has each notice afterwards, from where it goes to its channel's queue:
docs/decisions/0024-transactional-outbox.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.advice.advice import Advice
from sageaudit.domain.advice.month import Month, month_of
from sageaudit.domain.alert.alert import (
    Alert,
    AlertKind,
    PastAlerts,
    group_key,
)
from sageaudit.domain.alert.audit_figures import why_never
from sageaudit.domain.alert.decision import AlertCase, AlertDecision, no_alert
from sageaudit.domain.alert.rule import NOTHING_FOUND, alerts_by, decide
from sageaudit.domain.alert.subject import MessageSubject
from sageaudit.domain.audit.advised import Worth
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Destination, Subject
from sageaudit.errors import Malformed, Throttled, Unavailable, reading
from sageaudit.output.text.alert_card import card_of
from sageaudit.output.text.card import MessageCard
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows.audit.whole_audit import whole_audit
from sageaudit.workflows.notify.case import read_case, shown_subject
from sageaudit.workflows.notify.job_lines import (
    FIRST_VERSION,
    is_line_due,
    line_card,
    line_channels,
)
from sageaudit.workflows.notify.posts import NotifyDependencies, Plan, Post

TRIES = 8
"""The messages of a family are written by one process at a time; each try means another one was."""
LOOK_BACK = timedelta(days=30)
LONG_AGO = "it ended more than 30 days ago"


def notify(
    key: JobKey, version: int, document: AuditDocument, deps: NotifyDependencies, *, now: datetime
) -> AlertDecision:
    """Decides about one version of an audit, and writes its alert with a notice for each channel.

    Each notice has an id that a second decision about the same version gives it again. Raises
    Malformed when the document or what is stored of its family cannot be read, or AwsError. Nothing
    is written then.
    """
    with reading("document"):
        if deps.policy.mode == "observe":
            return no_alert("observe mode")
        subject = MessageSubject.parse(document)
        never = _why_never(version, subject, deps.policy)
        if never and not is_line_due(version, document, deps.policy):
            return no_alert(never)
        for _ in range(TRIES):
            decision = _try(key, version, subject, deps, never, now=now)
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


class _Run(Struct, frozen=True):
    """One version of a run's audit, with what was read of the run before it is decided about."""

    key: JobKey
    version: int
    subject: MessageSubject
    head: AuditSummary
    past: PastAlerts
    now: datetime


def _try(
    key: JobKey,
    version: int,
    subject: MessageSubject,
    deps: NotifyDependencies,
    never: str | None,
    *,
    now: datetime,
) -> AlertDecision | None:
    """Decides and writes; None where somebody else wrote since this was read. `never`: why there
    is no alert, whatever its family is.
    """
    with reading("head of the run"):
        head = deps.history.head(key)
    if head is None:
        raise Unavailable("The history answered without the head of a run that it has.")
    past = deps.ledger.past(key, group_key(head.account, head.region, head.family))
    run = _Run(key, version, subject, head, past, now)
    if never := never or _why_not_now(version, head, past.last, deps, now):
        plan = Plan(no_alert(never), past)
    else:
        plan = _alert_plan(run, deps)
    if is_line_due(version, subject.document, deps.policy):
        plan = _with_line(plan, run, deps)
    return plan.write(past, version, deps, now)


def _alert_plan(run: _Run, deps: NotifyDependencies) -> Plan:
    """The alert, if there is one; a pipeline learns of a step that is advised something."""
    head, now = run.head, run.now
    past = run.past.with_step(head.family) if run.subject.advised else run.past
    case = read_case(run.subject, head, past, deps, now)
    decision = decide(case, past.last)
    if decision.quiet:
        return Plan(decision, past)
    decision = _completed(run.key, decision, case, deps)
    shown = shown_subject(
        run.subject, case.advices, head, is_worse=decision.kind is AlertKind.WORSE
    )
    card = card_of(shown, decision, deps.place)
    routed = _routed(shown, card, decision, run.key, deps)
    decision = replace(decision, to=_destination(decision, routed, deps.policy))
    channels, kind = decision.to.channels, decision.kind
    alert = Alert(past.run, head.family, kind, run.version, shown.figures, now, channels)
    # what is in no open advice is never held, since nobody would find it
    may_wait = not (decision.corrects or decision.spike)
    posts = (Post(name, card, routed.usd, may_wait) for name in channels)
    after = past.with_alerts(alert, alerts_by(case, decision, alert))
    return Plan(decision, after, tuple(posts))


def _with_line(plan: Plan, run: _Run, deps: NotifyDependencies) -> Plan:
    """With the line about the job, for the channels that ask for one and have no alert about it."""
    if of_the_past(run.head.ended_at, deps.installed_at(), run.now):
        return plan
    tags = _tags(run.key, deps) if deps.policy.routes.ask_tags else {}
    alerted = plan.after.last.channels if plan.after.last else ()
    asking = line_channels(run.subject.document, tags, deps.policy)
    channels = tuple(name for name in asking if name not in alerted)
    if not channels or deps.ledger.has_line(run.key):
        return plan
    card, usd = line_card(run.head, run.subject, deps.history), run.subject.figures.usd
    posts = (Post(name, card, usd) for name in channels)
    decision = replace(plan.decision, lines=channels)
    return replace(plan, decision=decision, posts=(*plan.posts, *posts))


def _completed(
    key: JobKey, decision: AlertDecision, case: AlertCase, deps: NotifyDependencies
) -> AlertDecision:
    """With the months and the advice that it is about, and the audit that it corrects."""
    worth, corrects = decision.worth or Worth.COUNTED, decision.corrects
    advices = case.open_advices(worth, silenced=decision.kind is AlertKind.WORSE)
    of_run = case.of_run(advices)
    before = whole_audit(deps.history, key, corrects.version) if corrects else None
    return replace(
        decision,
        before=MessageSubject.parse(before) if before else None,
        month=month_of(advices, worth, case.now),
        saves=month_of(of_run[:1], worth, case.now) if of_run else None,
        advice=of_run[0] if of_run else None,
        other_steps=() if corrects or decision.spike else _other_steps(advices, worth, case),
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


def _destination(decision: AlertDecision, subject: Subject, policy: Policy) -> Destination:
    """Where it goes; a correction to where the message went that it corrects."""
    before = decision.corrects.channels if decision.corrects else ()
    there = tuple(name for name in before if name in policy.channels)
    return Destination(there) if there else policy.routes.of(subject)


def _routed(
    shown: MessageSubject,
    card: MessageCard,
    decision: AlertDecision,
    key: JobKey,
    deps: NotifyDependencies,
) -> Subject:
    """What the routes ask; the job's tags are read only where one asks for a tag."""
    job, month = shown.document["job"], decision.month
    tags = _tags(key, deps) if deps.policy.routes.ask_tags else {}
    usd = decision.spike.more_usd if decision.spike else month.usd if month else None
    return Subject(
        account=job["account"],
        family=job["family"],
        tags=tags,
        owner=job["owner"],
        kind=job["kind"],
        rule=card.rule,
        severity=decision.month_severity or shown.figures.severity,
        usd=shown.figures.usd if decision.corrects else usd,
    )


def _tags(key: JobKey, deps: NotifyDependencies) -> Mapping[str, str]:
    """The job's own; none where its answer is not kept."""
    with reading("detail of the run"):
        detail = deps.history.detail(key)
    return detail.tags if detail else {}


def _why_never(version: int, subject: MessageSubject, policy: Policy) -> str | None:
    """Why it has no alert, whatever its family is; None where its family decides."""
    if never := why_never(subject.document):
        return never
    if version > FIRST_VERSION or _may_be_alerted(subject, policy):
        return None
    unjudged = subject.document["judged"] == Judged.NO
    return NOTHING_FOUND + (": it could not be judged" if unjudged else "")


def _may_be_alerted(subject: MessageSubject, policy: Policy) -> bool:
    """Whether anything of it may be worth a message, whatever its family is.

    Most audits end here: neither the history nor the ledger is asked.
    """
    cost_usd = subject.document["bill"]["total_usd"] or Decimal(0)
    return bool(subject.advised) or cost_usd >= max(policy.dearer_floor_usd, Decimal("0.01"))


def _why_not_now(
    version: int, head: AuditSummary, last: Alert | None, deps: NotifyDependencies, now: datetime
) -> str | None:
    """Why another version of the run, or its age, leaves nothing to decide."""
    if head.version > version:
        return "a newer version of the audit has taken its place"
    if last is not None and last.version >= version:
        return f"version {last.version} was notified"
    past = of_the_past(head.ended_at, deps.installed_at(), now)
    return None if last is not None and past == LONG_AGO else past
