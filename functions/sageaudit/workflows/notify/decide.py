"""Decides whether a new audit is worth a message, and writes that down together with the message.

audit -> its figures -> what was sent before -> worth a message? -> one transaction

The transaction has the alert and a notice for each channel. It holds only where nothing that was
read has changed, and no newer version of the audit is there; else the audit is decided afresh.
`outbox` puts the notices on their queues. docs/decisions/0024-transactional-outbox.md says why.
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
from sageaudit.domain.audit.document import AuditDocument, lost_up_to
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.record import NOT_NAMED, Head, JobKey
from sageaudit.domain.audit.sums import Scope, sums_of, total
from sageaudit.domain.audit.well_formed import fault_in, reading
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import UNREADABLE, BadHistory, Malformed, Throttled
from sageaudit.output.text.envelope import Notice, Payload, Writer, to_body
from sageaudit.output.text.notice import accepted_usd, figures_of, why_never
from sageaudit.ports import AlertLedger, History

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
    document = audit.document
    with reading(document):
        if never := why_never(document, deps.policy.mode):
            return Quiet(never)
        figures, ended_at = figures_of(document), _moment_of(document["job"]["ended_at"])
        if audit.version == 1 and (reason := _why_never_enough(figures, deps.policy)):
            unjudged = document["judged"] == Judged.NO
            return Quiet(reason + (": it could not be judged" if unjudged else ""))
        installed_at = deps.installed_at()
        if installed_at and ended_at and ended_at < installed_at:
            return Quiet("it ended before sageaudit was installed")
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
    document, policy = audit.document, deps.policy
    with _reading_stored("head of the run"):
        newest = deps.history.head(audit.key)
    past = deps.ledger.past(audit.pk, "/".join(_family_of(document)), _day_of(audit.at))
    if reason := _why_not_now(audit, newest, past.last, now):
        return Quiet(reason)
    before = _before(audit, past.last, deps.history)
    outcome = decide(
        figures,
        past.last,
        list(past.today.values()),
        accepted_usd=accepted_usd(document) - accepted_usd(before) if before else Decimal(0),
        policy=policy,
        family_usd=cache(lambda: _family_usd(document, newest, deps, now)),
    )
    if isinstance(outcome, Quiet):
        return outcome
    day = None if past.day == _day_of(now) else past.day
    outcome = replace(outcome, before=before, day=day)
    bodies = {
        channel: to_body(_notice(audit, channel, write(document, policy, outcome)))
        for channel, write in deps.writers.items()
    }
    after = past.with_alert(Alert(audit.version, figures, now))
    return outcome if deps.ledger.write(past, after, bodies, now) else None


def _notice(audit: NewAudit, channel: str, payload: Payload) -> Notice:
    return Notice(f"{audit.pk}|{audit.version}|{channel}", channel, payload)


def _why_never_enough(figures: AlertFigures, policy: Policy) -> str | None:
    """Why there is no message even if the family had none today and lost any amount of dollars.

    Most audits end here: neither the history nor the ledger is asked.
    """
    best = decide(
        figures, None, (), accepted_usd=Decimal(0), policy=policy, family_usd=lambda: _ANY_USD
    )
    return best.reason if isinstance(best, Quiet) else None


def _why_not_now(
    audit: NewAudit, newest: Head | None, last: Alert | None, now: datetime
) -> str | None:
    """Why another version of the run, or its age, leaves nothing to decide."""
    if newest is not None and newest.version > audit.version:
        return "a newer version of the audit has taken its place"
    if last is not None:
        return f"version {last.version} was notified" if last.version >= audit.version else None
    ended_at = _moment_of(audit.document["job"]["ended_at"])
    past = ended_at and _day_of(ended_at) < _since(now)
    return "it ended more than 30 days ago" if past else None


def _before(audit: NewAudit, last: Alert | None, history: History) -> AuditDocument | None:
    """The version that the run's last alert was about; None where it cannot be read."""
    if last is None:
        return None
    try:
        document = history.audit(audit.key, last.version)
    except (BadHistory, Malformed, *UNREADABLE):
        return None
    return None if fault_in(document) else document


def _family_usd(
    document: AuditDocument, newest: Head | None, deps: NotifyDependencies, now: datetime
) -> Decimal:
    """Avoidable and lost USD of the family's last 30 days, with this version of this run.

    The sums have the run in its newest version, which may be later: exactly that is taken out.
    """
    since, until = _since(now), _day_of(now)
    own_usd = _own_usd(document, since)
    if own_usd >= deps.policy.floor_usd:
        return own_usd
    account, region, family = _family_of(document)
    if newest is not None:
        account, region, family = newest.account, newest.region, newest.family
    with _reading_stored("sums of the family"):
        rows = deps.history.sums(
            Scope.FAMILY, since, until, account=account, region=region, name=family
        )
        all_usd = total(rows).waste_usd
    if newest is None or newest.sums is None or not since <= _day_of(newest.ended_at) <= until:
        return own_usd + all_usd
    return own_usd + all_usd - newest.sums.avoidable_usd - newest.sums.lost_usd


def _own_usd(document: AuditDocument, since: date) -> Decimal:
    """What this audit adds to its family's USD; of a roll-up, whose children are counted, what its
    own findings do.

    What may be lost counts at its upper end: its owner can still resume the run.
    """
    ended_at = _moment_of(document["job"]["ended_at"])
    if ended_at and _day_of(ended_at) < since:
        return Decimal(0)
    if document["rollup"]:
        own = sums_of(document)
        return own.avoidable_usd + own.lost_up_to_usd
    return (document["avoidable_usd"] or Decimal(0)) + (lost_up_to(document) or Decimal(0))


def _family_of(document: AuditDocument) -> tuple[str, str, str]:
    """Account, region and family name."""
    job = document["job"]
    return job["account"] or NOT_NAMED, job["region"] or NOT_NAMED, job["family"]


def _since(now: datetime) -> date:
    """The first of a family's days: 30 days ago, as a whole."""
    return _day_of(now - LOOK_BACK)


def _day_of(moment: datetime) -> date:
    """Its day in UTC."""
    return moment.astimezone(UTC).date()


def _moment_of(text: str | None) -> datetime | None:
    """A time of a document; one without a zone is taken as UTC. Raises ValueError."""
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


@contextmanager
def _reading_stored(what: str) -> Iterator[None]:
    """Raises Malformed for what is stored and cannot be read: no later try would."""
    try:
        yield
    except (BadHistory, *UNREADABLE) as error:
        raise Malformed(what, f"cannot be read: {type(error).__name__} {error}") from error
