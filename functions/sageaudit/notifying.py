"""Decides whether a new audit is worth a message, and queues one notice for each channel.

audit -> its figures -> told before? -> worth a message? -> claim -> queue -> told

The claim keeps two audits of a family from telling the same day; it runs out when no notices were
queued, so that it silences nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument, lost_up_to
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.record import NOT_NAMED, Head, JobKey
from sageaudit.domain.audit.sums import Scope, sums_of, total
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.telling.family_day import Claim, FamilyDay
from sageaudit.domain.telling.news import News, Said
from sageaudit.domain.telling.rule import Floors, Silent, Tell, decide
from sageaudit.errors import AwsError, BadHistory, Malformed, Throttled
from sageaudit.ports import History, Queue, TellLedger
from sageaudit.text.changes import what_changed
from sageaudit.text.envelope import Notice, Payload, Writer, to_body
from sageaudit.text.notice import accepted_usd, news_of, why_never
from sageaudit.text.occasion import Occasion

LOOK_BACK = timedelta(days=30)
LEASE_S = 120
"""How long a claim holds: longer than the function's timeout, so that its holder has ended."""
_TRIES = 8
"""A family's day is written by one process at a time; each try means that another one was."""
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading an invalid document raises."""


@dataclass(frozen=True, slots=True)
class NewAudit:
    """An audit just written to the history: `pk` is its partition key, `at` the write time."""

    pk: str
    key: JobKey
    version: int
    at: datetime
    document: AuditDocument

    @property
    def name(self) -> str:
        """Identifies this version of this run's audit, in notices and in logs."""
        return f"{self.pk}|{self.version}"


@dataclass(frozen=True, slots=True)
class NotifyDependencies:
    """What `notify` reads, writes and decides by.

    `writers` and `queues`: by channel name, enabled ones only. `installed_at`: nothing is told of a
    job that ended before this moment; None where it is not known.
    """

    history: History
    ledger: TellLedger
    queues: Mapping[str, Queue]
    policy: Policy
    writers: Mapping[str, Writer]
    installed_at: Callable[[], datetime | None] = lambda: None


@dataclass(frozen=True, slots=True)
class Queued:
    """One notice for each of these channels was queued."""

    channels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Quiet:
    """No notice was queued, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Later:
    """It depends on a message that another process is queueing now: decide after `wait_s`."""

    reason: str
    wait_s: int


@dataclass(frozen=True, slots=True)
class _Audited:
    """What of an audit the decision needs. `own_usd`: what it adds to its family's 30 days."""

    news: News
    accepted_usd: Decimal
    own_usd: Decimal
    family: tuple[str, str, str]
    ended_at: datetime | None


def notify(audit: NewAudit, deps: NotifyDependencies, *, now: datetime) -> Queued | Quiet | Later:
    """Queues the notices of one audit, each with an id that a second delivery gives it again.

    Raises Malformed when the document or what is stored of its family cannot be read, or AwsError.
    An error in a writer is a defect of this program: it passes through, before anything is claimed.
    """
    with _reading("document"):
        if reason := why_never(audit.document, deps.policy.mode):
            return Quiet(reason)
        audited = _audited(audit.document, now)
    if audit.version == 1 and not (audited.news.of_money or audited.news.idle):
        return Quiet(_nothing_found(audit.document))
    installed_at = deps.installed_at()
    if installed_at and audited.ended_at and audited.ended_at < installed_at:
        return Quiet("it ended before sageaudit was installed")
    with _reading("head of the run"):
        newest = deps.history.head(audit.key)
    if newest is not None and newest.version > audit.version:
        return Quiet(f"version {newest.version} of the audit has taken its place")
    return _tell(audit, audited, newest, deps, now=now)


def stored_audit(history: History, key: JobKey, version: int) -> AuditDocument | None:
    """A version's document; None where there is none. Raises Malformed, or AwsError."""
    with _reading("document"):
        document = history.audit(key, version)
    if document is not None and not isinstance(document, dict):
        raise Malformed("document", "is not an object")
    return document


def _tell(
    audit: NewAudit,
    audited: _Audited,
    newest: Head | None,
    deps: NotifyDependencies,
    *,
    now: datetime,
) -> Queued | Quiet | Later:
    """Claims the family's day for the message, queues its notices, and keeps what was told."""
    family, day = "/".join(audited.family), _day(audit.at)
    for _ in range(_TRIES):
        seen, last = deps.ledger.family_day(family, day), deps.ledger.last_notice(audit.pk)
        if last is not None and last.version >= audit.version:
            return Quiet(f"version {last.version} was told")
        verdict = _decided(audited, newest, seen, last, deps, now=now)
        if isinstance(verdict, Silent):
            return Quiet(verdict.reason)
        if busy := seen.busy(audit.pk, audit.version, now):
            rest_s = int((busy.until - now).total_seconds()) + 1
            return Later("another message about the family is being queued", rest_s)
        payloads = _payloads(audit, verdict, deps, now=now)
        until = now + timedelta(seconds=LEASE_S)
        claim = Claim(audit.version, audited.news, until, corrects=verdict.corrects is not None)
        if deps.ledger.write(family, day, seen.claimed(audit.pk, claim, now)):
            break
    else:
        raise Throttled("Too many audits of one family are decided at once.")
    _queue(audit, payloads, deps.queues)
    _keep(audit, audited, family, deps.ledger, now=now)
    return Queued(tuple(payloads))


def _decided(
    audited: _Audited,
    newest: Head | None,
    seen: FamilyDay,
    last: Said | None,
    deps: NotifyDependencies,
    *,
    now: datetime,
) -> Tell | Silent:
    policy = deps.policy
    since, until = _days(now)
    if last is None and audited.ended_at and _day(audited.ended_at) < since:
        return Silent("it ended more than 30 days ago")

    def family_usd() -> Decimal:
        if audited.own_usd >= policy.floor_usd:
            return audited.own_usd
        with _reading("sums of the family"):
            return audited.own_usd + _others_usd(deps.history, newest, audited.family, since, until)

    return decide(
        audited.news,
        last=last,
        today=seen.said(),
        accepted_usd=audited.accepted_usd,
        floors=Floors(
            policy.floor_usd,
            policy.idle_floor_usd,
            {
                "gpu_hours": policy.idle_floor_gpu_hours,
                "vcpu_hours": policy.idle_floor_vcpu_hours,
            },
        ),
        family_usd=family_usd,
    )


def _payloads(
    audit: NewAudit, tell: Tell, deps: NotifyDependencies, *, now: datetime
) -> dict[str, Payload]:
    day = _day(audit.at)
    changes = _changes(audit, tell.corrects, deps.history) if tell.corrects else ()
    occasion = Occasion(tell, day=None if day == _day(now) else day, changes=changes)
    return {
        name: write(audit.document, deps.policy, occasion) for name, write in deps.writers.items()
    }


def _changes(audit: NewAudit, told: Said, history: History) -> tuple[str, ...]:
    """Nothing where the version that was told cannot be read: it is corrected all the same."""
    try:
        before = history.audit(audit.key, told.version)
        return what_changed(before, audit.document) if before else ()
    except (Malformed, *_UNREADABLE):
        return ()


def _queue(audit: NewAudit, payloads: Mapping[str, Payload], queues: Mapping[str, Queue]) -> None:
    """Tries every channel: one that fails keeps no other from its notice.

    Raises the first AwsError. The claim then stays until it runs out or this audit comes again,
    which sends the same notices: deliver knows by their ids which it has had.
    """
    failed: list[AwsError] = []
    for channel, payload in payloads.items():
        try:
            queues[channel].send(to_body(Notice(f"{audit.name}|{channel}", channel, payload)))
        except AwsError as error:
            failed.append(error)
    if failed:
        raise failed[0]


def _keep(
    audit: NewAudit, audited: _Audited, family: str, ledger: TellLedger, *, now: datetime
) -> None:
    """The claim becomes what was told."""
    day, said = _day(audit.at), Said(audit.version, audited.news, now)
    for _ in range(_TRIES):
        last = ledger.last_notice(audit.pk)
        notice = None if last and last.version > said.version else (audit.pk, said)
        if ledger.write(
            family, day, ledger.family_day(family, day).told(audit.pk, said, now), notice
        ):
            return
    raise Throttled("Too many audits of one family are decided at once.")


def _nothing_found(document: AuditDocument) -> str:
    unjudged = document["judged"] == Judged.NO
    return "no finding worth a message" + (": it could not be judged" if unjudged else "")


def _audited(document: AuditDocument, now: datetime) -> _Audited:
    since, _ = _days(now)
    ended_at = document["job"]["ended_at"]
    return _Audited(
        news=news_of(document),
        accepted_usd=accepted_usd(document),
        own_usd=_own_usd(document, since),
        family=_family(document),
        ended_at=_moment(ended_at) if ended_at else None,
    )


def _days(now: datetime) -> tuple[date, date]:
    """The first and last day (UTC) of a family's dollars: 30 days ago and today, both whole."""
    return _day(now - LOOK_BACK), _day(now)


def _own_usd(document: AuditDocument, since: date) -> Decimal:
    """What this audit adds to its family's USD; of a roll-up, whose children are counted, what its
    own findings do.

    What may be lost counts at its upper end: its owner can still resume the run.
    """
    ended_at = document["job"]["ended_at"]
    if ended_at and _day(_moment(ended_at)) < since:
        return Decimal(0)
    if document["rollup"]:
        own = sums_of(document)
        return own.avoidable_usd + own.lost_up_to_usd
    return (document["avoidable_usd"] or Decimal(0)) + (lost_up_to(document) or Decimal(0))


def _others_usd(
    history: History, newest: Head | None, family: tuple[str, str, str], since: date, until: date
) -> Decimal:
    """Avoidable and certainly lost USD of the family's other audits.

    The sums have this run in its newest version, which may be later than the one in hand: exactly
    that is taken out.
    """
    if newest is not None:
        family = newest.account, newest.region, newest.family
    account, region, name = family
    rows = history.sums(Scope.FAMILY, since, until, account=account, region=region, name=name)
    sums = total(rows)
    others_usd = sums.waste_usd
    if newest is None or newest.sums is None or not since <= _day(newest.ended_at) <= until:
        return others_usd
    return others_usd - newest.sums.avoidable_usd - newest.sums.lost_usd


def _family(document: AuditDocument) -> tuple[str, str, str]:
    """Account, region and family name."""
    job = document["job"]
    return job["account"] or NOT_NAMED, job["region"] or NOT_NAMED, job["family"]


def _day(moment: datetime) -> date:
    return moment.astimezone(UTC).date()


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Raises Malformed for what is stored and cannot be read: no later try would."""
    try:
        yield
    except (BadHistory, *_UNREADABLE) as error:
        raise Malformed(what, f"cannot be read: {type(error).__name__} {error}") from error
