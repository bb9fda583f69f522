"""Decides whether a new audit is worth a message, and queues one notice for each channel.

audit -> family's dollars -> worth a message? -> different from the last notice? -> first message of
the family today? -> queue
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument, lost_up_to
from sageaudit.domain.audit.record import NOT_NAMED, JobKey
from sageaudit.domain.audit.sums import Scope, sums_of, total
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import Malformed
from sageaudit.ports import History, LastNotice, Queue, TellLedger
from sageaudit.text.envelope import Notice, Writer, to_body
from sageaudit.text.money import usd
from sageaudit.text.notice import counted_findings, decide, worst

LOOK_BACK = timedelta(days=30)
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
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
        """Identifies this version of this run's audit, in the ledger and in logs."""
        return f"{self.pk}|{self.version}"


@dataclass(frozen=True, slots=True)
class NotifyDependencies:
    """What `notify` reads, writes and decides by.

    `writers` and `queues`: by channel name, enabled ones only.
    """

    history: History
    ledger: TellLedger
    queues: Mapping[str, Queue]
    policy: Policy
    writers: Mapping[str, Writer]


@dataclass(frozen=True, slots=True)
class Queued:
    """One notice for each of these channels was queued."""

    channels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Quiet:
    """No notice was queued, for this reason."""

    reason: str


def notify(audit: NewAudit, deps: NotifyDependencies, *, now: datetime) -> Queued | Quiet:
    """Queues the notices of one audit; a second delivery of it queues the same notices again.

    Raises Malformed when the document cannot be read, or AwsError. An error in a writer is a defect
    of this program: it passes through, before anything is claimed.
    """
    policy = deps.policy
    with _reading():
        # First as if the family had reached the floor: most audits then need no history query.
        if reason := _why_quiet(audit, policy, policy.floor_usd):
            return Quiet(reason)
        since, until = _days(now)
        own_usd, news = _own_usd(audit.document, since), _news(audit.document)
        family = _family(audit.document)
    family_usd = own_usd
    if own_usd < policy.floor_usd:
        family_usd += _others_usd(deps.history, audit.key, family, since, until)
    if reason := _why_quiet(audit, policy, family_usd):
        return Quiet(reason)
    if reason := _why_no_news(audit, news, deps.ledger):
        return Quiet(reason)
    payloads = {name: write(audit.document, policy) for name, write in deps.writers.items()}
    day = _day(audit.at)
    if not deps.ledger.claim_family_day("/".join(family), day, audit.name):
        return Quiet("the family already had a message today")
    deps.ledger.remember_notice(audit.pk, LastNotice(audit.version, news))
    for channel, payload in payloads.items():
        deps.queues[channel].send(to_body(Notice(f"{audit.name}|{channel}", channel, payload)))
    return Queued(tuple(payloads))


def _why_quiet(audit: NewAudit, policy: Policy, family_usd: Decimal) -> str | None:
    decision = decide(
        audit.document,
        mode=policy.mode,
        family_avoidable_30d_usd=family_usd,
        floor_usd=policy.floor_usd,
    )
    return None if decision.notify else decision.reason


def _why_no_news(audit: NewAudit, news: str, ledger: TellLedger) -> str | None:
    """The same version may be queued again: an earlier delivery may have failed midway."""
    last = ledger.last_notice(audit.pk)
    if last is None or last.version == audit.version:
        return None
    if last.version > audit.version:
        return f"the newer version {last.version} was already sent"
    return f"version {last.version} was sent with the same figures" if last.news == news else None


def _news(document: AuditDocument) -> str:
    """Severity and dollars of the message; a later version with the same news is not sent."""
    avoidable_usd, lost_usd = document["avoidable_usd"], document["lost_usd"]
    known = avoidable_usd is not None or lost_usd is not None
    figure = (avoidable_usd or Decimal(0)) + (lost_usd or Decimal(0)) if known else None
    # Rounded as it is shown: metrics read a second later may add a fraction of a cent.
    return f"{worst(counted_findings(document))} {usd(figure)}"


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
    history: History, key: JobKey, family: tuple[str, str, str], since: date, until: date
) -> Decimal:
    """Avoidable and certainly lost USD of the family's other audits.

    The sums have this run in its newest version, which may be later than the one in hand: exactly
    that is taken out.
    """
    newest = history.head(key)
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
def _reading() -> Iterator[None]:
    try:
        yield
    except _UNREADABLE as error:
        raise Malformed("document", f"cannot be read: {type(error).__name__} {error}") from error
