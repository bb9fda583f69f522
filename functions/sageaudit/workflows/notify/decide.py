"""Decides whether a new audit is worth a message, and queues one notice for each channel.

audit -> its figures -> told before? -> worth a message? -> claim -> queue -> told

The claim keeps two audits of a family from telling the same day. Once a queue may have a notice of
it, it is not decided again: later tries queue the same message on the other channels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sageaudit.domain.alert.backoff import GIVE_UP_AFTER
from sageaudit.domain.alert.family_day import FamilyDay
from sageaudit.domain.alert.news import Said
from sageaudit.domain.alert.rule import Silent, Tell
from sageaudit.domain.alert.run_told import RunClaim, RunTold
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.record import Head, JobKey
from sageaudit.domain.audit.well_formed import reading
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import (
    UNREADABLE,
    AccessDenied,
    AwsError,
    BadHistory,
    Malformed,
    NoCredentials,
    ResourceNotFound,
    Throttled,
)
from sageaudit.output.text.changes import what_changed
from sageaudit.output.text.envelope import Notice, Payload, Writer, to_body
from sageaudit.output.text.notice import why_never
from sageaudit.output.text.occasion import Occasion
from sageaudit.ports import History, Queue, TellLedger
from sageaudit.workflows.notify.claiming import TRIES, Claims
from sageaudit.workflows.notify.family_dollars import day_of
from sageaudit.workflows.notify.weighing import Figures, figures, reading_stored, weigh

LEASE_S = 240
"""How long a claim holds: longer than the function's timeout, so that its holder has ended."""
_COMES_BACK_S = 60
_NOT_TAKEN = (AccessDenied, NoCredentials, ResourceNotFound, Throttled)
"""Answers of a queue that certainly has not taken the notice. After any other it may have it."""


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
    """It depends on a message that is being queued: decide again, not before `wait_s`."""

    reason: str
    wait_s: int


_OVERTAKEN = Quiet("a newer version of the audit has taken its place")


class _NoneQueued(Exception):
    """Certainly no channel's queue took its notice."""

    def __init__(self, error: AwsError) -> None:
        super().__init__(str(error))
        self.error = error


def notify(audit: NewAudit, deps: NotifyDependencies, *, now: datetime) -> Queued | Quiet | Later:
    """Queues the notices of one audit, each with an id that a second delivery gives it again.

    Raises Malformed when the document or what is stored of its family cannot be read, or AwsError.
    An error in a writer passes through as a defect of this program where the document has the form
    of an audit; both come before anything is claimed.
    """
    with reading_stored("document"):
        if reason := why_never(audit.document, deps.policy.mode):
            return Quiet(reason)
        audited = figures(audit.key, audit.document, now)
    if audit.version == 1 and not (audited.news.of_money or audited.news.idle):
        return Quiet(_nothing_found(audit.document))
    installed_at = deps.installed_at()
    if installed_at and audited.ended_at and audited.ended_at < installed_at:
        return Quiet("it ended before sageaudit was installed")
    newest = _head(audit, deps)
    with reading(audit.document):
        return _tell(audit, audited, newest, deps, now=now)


def stored_audit(history: History, key: JobKey, version: int) -> AuditDocument | None:
    """A version's document; None where there is none. Raises Malformed, or AwsError."""
    with reading_stored("document"):
        document = history.audit(key, version)
    if document is not None and not isinstance(document, dict):
        raise Malformed("document", "is not an object")
    return document


def _tell(
    audit: NewAudit,
    audited: Figures,
    newest: Head | None,
    deps: NotifyDependencies,
    *,
    now: datetime,
) -> Queued | Quiet | Later:
    """Claims the message, queues its notices, and keeps what was told."""
    claims = Claims(deps.ledger, audit.pk, "/".join(audited.family), day_of(audit.at), now)
    for _ in range(TRIES):
        day, told = claims.seen()
        if waits := _not_now(audit, newest, told, now):
            return waits
        begun = told.begun(audit.version)
        claim = begun or _claim(audit, audited, newest, day, told, deps, now=now)
        if not isinstance(claim, RunClaim):
            return claim
        payloads = _payloads(audit, claim.tell, deps, now=now)
        claim = replace(claim, until=now + timedelta(seconds=LEASE_S))
        if taken := claims.take(day, told, claim):
            break
    else:
        raise Throttled("Too many audits of one family are decided at once.")
    if not begun:
        if _overtaken(audit, _head(audit, deps)):
            claims.release(taken)
            return _OVERTAKEN
        taken = claims.begin(taken)
    try:
        _queue(audit, payloads, deps.queues)
    except _NoneQueued as none:
        if not begun:
            with suppress(AwsError):
                claims.release(taken)
        raise none.error from none
    claims.keep(claim)
    return Queued(tuple(payloads))


def _not_now(
    audit: NewAudit, newest: Head | None, told: RunTold, now: datetime
) -> Quiet | Later | None:
    """What other versions of the audit come to: None where this one is to be told or decided."""
    if told.said and told.said.version >= audit.version:
        return Quiet(f"version {told.said.version} was told")
    if told.newest() > audit.version or (
        _overtaken(audit, newest) and not told.begun(audit.version)
    ):
        return _OVERTAKEN
    if unfinished := told.unfinished(audit.version, audit.at, GIVE_UP_AFTER, now):
        rest_s = _rest_s(unfinished.until, now)
        return Later("another version of the audit is being told", rest_s)
    return None


def _claim(
    audit: NewAudit,
    audited: Figures,
    newest: Head | None,
    day: FamilyDay,
    told: RunTold,
    deps: NotifyDependencies,
    *,
    now: datetime,
) -> RunClaim | Quiet | Later:
    """Decides: a claim to be made, where the audit is worth a message."""
    verdict = weigh(
        audited,
        newest,
        today=day,
        last=told.last(audit.version),
        history=deps.history,
        policy=deps.policy,
        now=now,
    )
    if isinstance(verdict, Silent):
        return Quiet(verdict.reason)
    if busy := day.busy(audit.pk, now):
        reason = "another message about the family is being queued"
        return Later(reason, _rest_s(busy.until, now))
    return RunClaim(audit.version, audited.news, verdict, since=now, until=now)


def _head(audit: NewAudit, deps: NotifyDependencies) -> Head | None:
    with reading_stored("head of the run"):
        return deps.history.head(audit.key)


def _overtaken(audit: NewAudit, newest: Head | None) -> bool:
    return newest is not None and newest.version > audit.version


def _rest_s(until: datetime, now: datetime) -> int:
    """Until the claim ends; a minute where it has, and its own delivery is still to come."""
    rest_s = int((until - now).total_seconds()) + 1
    return rest_s if rest_s > 0 else _COMES_BACK_S


def _payloads(
    audit: NewAudit, tell: Tell, deps: NotifyDependencies, *, now: datetime
) -> dict[str, Payload]:
    day = day_of(audit.at)
    changes = _changes(audit, tell.corrects, deps.history) if tell.corrects else ()
    occasion = Occasion(tell, day=None if day == day_of(now) else day, changes=changes)
    return {
        name: write(audit.document, deps.policy, occasion) for name, write in deps.writers.items()
    }


def _changes(audit: NewAudit, told: Said, history: History) -> tuple[str, ...]:
    """Nothing where the version that was told cannot be read: it is corrected all the same."""
    try:
        before = history.audit(audit.key, told.version)
        return what_changed(before, audit.document) if before else ()
    except (BadHistory, Malformed, *UNREADABLE):
        return ()


def _queue(audit: NewAudit, payloads: Mapping[str, Payload], queues: Mapping[str, Queue]) -> None:
    """Tries every channel: one that fails keeps no other from its notice.

    Raises the first AwsError, or _NoneQueued with it. After some may be queued the claim stays,
    until this audit comes again: deliver knows by their ids which notices it has had.
    """
    failed: list[AwsError] = []
    for channel, payload in payloads.items():
        try:
            queues[channel].send(to_body(Notice(f"{audit.name}|{channel}", channel, payload)))
        except AwsError as error:
            failed.append(error)
    if not failed:
        return
    if len(failed) == len(payloads) and all(isinstance(error, _NOT_TAKEN) for error in failed):
        raise _NoneQueued(failed[0])
    raise failed[0]


def _nothing_found(document: AuditDocument) -> str:
    unjudged = document["judged"] == Judged.NO
    return "no finding worth a message" + (": it could not be judged" if unjudged else "")
