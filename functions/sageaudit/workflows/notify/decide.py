"""Decides whether a new audit is worth a message, and writes that down together with the message.

audit -> its figures -> what was sent before -> worth a message? -> one transaction

The transaction has the alert and a notice for each channel. It holds only where nothing that was
read has changed, and no newer version of the audit is there; else the audit is decided afresh.
The table's stream has each notice afterwards, from where it goes to its channel's queue:
docs/decisions/0024-transactional-outbox.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache

from sageaudit.domain.alert.alert import Alert, AlertFigures
from sageaudit.domain.alert.rule import Notify, Quiet, decide
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.record import Head, JobKey
from sageaudit.domain.audit.sums import Scope, Sums, total
from sageaudit.domain.audit.well_formed import reading
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import UNREADABLE, BadHistory, Malformed, Throttled, Unavailable
from sageaudit.output.text.envelope import Notice, Writer, to_body
from sageaudit.output.text.notice import figures_of, why_never
from sageaudit.ports import AlertLedger, History
from sageaudit.workflows.audit.whole_audit import whole_audit

TRIES = 8
"""A family's day is written by one process at a time; each try means that another one was."""
LOOK_BACK = timedelta(days=30)
_ANY_USD = Decimal("Infinity")


@dataclass(frozen=True, slots=True)
class NewAudit:
    """An audit just written to the history: `pk` is its partition key, `at` the write time."""

    pk: str
    key: JobKey
    version: int
    at: datetime
    document: AuditDocument


@dataclass(frozen=True, slots=True)
class NotifyDependencies:
    """What `notify` reads, writes and decides by.

    `writers`: by channel name, enabled ones only. `installed_at`: no message is sent about a job
    that ended before this moment; None where it is not known.
    """

    history: History
    ledger: AlertLedger
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
        figures = figures_of(audit.document)
        if audit.version == 1 and (reason := _why_never_enough(figures, deps.policy)):
            unjudged = audit.document["judged"] == Judged.NO
            return Quiet(reason + (": it could not be judged" if unjudged else ""))
        for _ in range(TRIES):
            outcome = _try(audit, figures, deps, now=now)
            if outcome is not None:
                return outcome
    raise Throttled("Too many audits of one family are decided at once.")


def stored_audit(history: History, key: JobKey, version: int) -> AuditDocument | None:
    """A version's document; None where there is none. Raises Malformed, or AwsError."""
    with _reading_stored("document"):
        document = history.audit(key, version)
    if document is not None and not isinstance(document, dict):
        raise Malformed("document", "is not an object")
    return document


def _try(
    audit: NewAudit, figures: AlertFigures, deps: NotifyDependencies, *, now: datetime
) -> Notify | Quiet | None:
    """Decides and writes; None where somebody else wrote since this was read."""
    with _reading_stored("head of the run"):
        head = deps.history.head(audit.key)
    if head is None:
        raise Unavailable("The history answered without the head of a run that it has.")
    family = f"{head.account}/{head.region}/{head.family}"
    past = deps.ledger.past(audit.pk, family, _day_of(audit.at))
    if reason := _why_not_now(audit, head, past.last, deps, now):
        return Quiet(reason)
    outcome = decide(
        figures,
        past.last,
        list(past.today.values()),
        deps.policy,
        family_usd=cache(lambda: _family_usd(head, deps, now)),
    )
    if isinstance(outcome, Quiet):
        return outcome
    corrects = outcome.corrects
    outcome = replace(
        outcome,
        before=whole_audit(deps.history, audit.key, corrects.version) if corrects else None,
        day=None if past.day == _day_of(now) else past.day,
    )
    bodies = {}
    for channel, write in deps.writers.items():
        notice_id = f"{audit.pk}|{audit.version}|{channel}"
        payload = write(audit.document, deps.policy, outcome)
        bodies[channel] = to_body(Notice(notice_id, channel, payload))
    after = past.with_alert(Alert(audit.version, figures, now))
    return outcome if deps.ledger.write(past, after, bodies, now) else None


def _why_never_enough(figures: AlertFigures, policy: Policy) -> str | None:
    """Why there is no message even if the family had none today and lost any amount of dollars.

    Most audits end here: neither the history nor the ledger is asked.
    """
    best = decide(figures, None, (), policy, family_usd=lambda: _ANY_USD)
    return best.reason if isinstance(best, Quiet) else None


def _why_not_now(
    audit: NewAudit, head: Head, last: Alert | None, deps: NotifyDependencies, now: datetime
) -> str | None:
    """Why another version of the run, or its age, leaves nothing to decide."""
    if head.version > audit.version:
        return "a newer version of the audit has taken its place"
    if last is not None and last.version >= audit.version:
        return f"version {last.version} was notified"
    installed_at = deps.installed_at()
    if installed_at and head.ended_at < installed_at:
        return "it ended before sageaudit was installed"
    if last is None and _day_of(head.ended_at) < _since(now):
        return "it ended more than 30 days ago"
    return None


def _family_usd(head: Head, deps: NotifyDependencies, now: datetime) -> Decimal:
    """Avoidable and lost USD of the family's last 30 days, this run's included.

    What this run may have lost counts at its upper end: its owner can still resume it. Of a
    roll-up, whose children are counted, its own findings count.
    """
    since, until = _since(now), _day_of(now)
    with _reading_stored("sums of the family"):
        own = head.sums if head.sums and since <= _day_of(head.ended_at) <= until else Sums()
        own_usd = own.avoidable_usd + own.lost_up_to_usd
        if own_usd >= deps.policy.floor_usd:
            return own_usd
        rows = deps.history.sums(
            Scope.FAMILY, since, until, account=head.account, region=head.region, name=head.family
        )
        return total(rows).waste_usd + own.lost_up_to_usd - own.lost_usd


def _since(now: datetime) -> date:
    """The first of a family's days: 30 days ago, as a whole."""
    return _day_of(now - LOOK_BACK)


def _day_of(moment: datetime) -> date:
    """Its day in UTC."""
    return moment.astimezone(UTC).date()


@contextmanager
def _reading_stored(what: str) -> Iterator[None]:
    """Raises Malformed for what is stored and cannot be read: no later try would."""
    try:
        yield
    except (BadHistory, *UNREADABLE) as error:
        raise Malformed(what, f"cannot be read: {type(error).__name__} {error}") from error
