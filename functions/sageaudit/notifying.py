"""From a new audit to its notices: is it worth a message, and then one notice per channel.

audit -> family's dollars -> worth a message? -> news since the last notice? -> the family's message
of the day? -> queue
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import JobKey
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import Malformed
from sageaudit.ports import History, LastNotice, Ledger, Queue
from sageaudit.text.envelope import Notice, Writer, to_body
from sageaudit.text.money import usd
from sageaudit.text.notice import counted_findings, decide, worst

LOOK_BACK = timedelta(days=30)
UNKNOWN = "unknown"
"""An account or region that the audit does not name, as the history's keys have it."""
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading raises over a document that is not one."""


@dataclass(frozen=True, slots=True)
class NewAudit:
    """An audit that the history just took: `pk` is its partition, `at` when it was written."""

    pk: str
    key: JobKey
    version: int
    at: datetime
    document: AuditDocument

    @property
    def name(self) -> str:
        """This version of this run's audit, for ledgers and logs."""
        return f"{self.pk}|{self.version}"


@dataclass(frozen=True, slots=True)
class NotifyDependencies:
    """What `notify` works with. `writers`: one for each channel that is on, by its name."""

    history: History
    ledger: Ledger
    queue: Queue
    policy: Policy
    writers: Mapping[str, Writer]


@dataclass(frozen=True, slots=True)
class Queued:
    """One notice for each of these channels waits for its delivery."""

    channels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Quiet:
    """No notice is sent, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the decision needs of a document.

    `own_usd` is what it adds to its family. `news` is what the message reports: a later version
    with the same news is not sent.
    """

    family: tuple[str, str, str]
    own_usd: Decimal
    news: str


def notify(audit: NewAudit, deps: NotifyDependencies, *, now: datetime) -> Queued | Quiet:
    """Decides for one audit; a second delivery of it decides the same and queues the same notices.

    Raises Malformed when the document cannot be read, or AwsError. What a writer raises is a defect
    of this program and is raised as it is, before anything is claimed.
    """
    policy = deps.policy
    with _reading():
        # As if the family had reached the floor: most audits need no look into the history.
        if reason := _why_quiet(audit, policy, policy.floor_usd):
            return Quiet(reason)
        facts = _facts(audit.document, now)
    family_usd = facts.own_usd + _others_usd(audit, deps.history, facts, policy, now)
    if reason := _why_quiet(audit, policy, family_usd):
        return Quiet(reason)
    if reason := _why_no_news(audit, facts.news, deps.ledger):
        return Quiet(reason)
    payloads = {name: write(audit.document, policy) for name, write in deps.writers.items()}
    day = audit.at.astimezone(UTC).date()
    if not deps.ledger.claim_family_day("/".join(facts.family), day, audit.name):
        return Quiet("the family already had its message of the day")
    deps.ledger.remember_notice(audit.pk, LastNotice(audit.version, facts.news))
    for channel, payload in payloads.items():
        deps.queue.send(to_body(Notice(f"{audit.name}|{channel}", channel, payload)))
    return Queued(tuple(payloads))


def _why_quiet(audit: NewAudit, policy: Policy, family_usd: Decimal) -> str | None:
    decision = decide(
        audit.document,
        mode=policy.mode,
        family_avoidable_30d_usd=family_usd,
        floor_usd=policy.floor_usd,
    )
    return None if decision.notify else decision.reason


def _why_no_news(audit: NewAudit, news: str, ledger: Ledger) -> str | None:
    """The same version again is no repetition: its delivery may have died on the way."""
    last = ledger.last_notice(audit.pk)
    if last is None or last.version == audit.version:
        return None
    if last.version > audit.version:
        return f"the newer version {last.version} was already sent"
    return f"version {last.version} was sent with the same figures" if last.news == news else None


def _facts(document: AuditDocument, now: datetime) -> _Facts:
    avoidable_usd, lost_usd = document["avoidable_usd"], document["lost_usd"]
    known = avoidable_usd is not None or lost_usd is not None
    figure = (avoidable_usd or Decimal(0)) + (lost_usd or Decimal(0)) if known else None
    # As it is shown: a fraction of a cent that metrics of a second later bring is no news.
    news = f"{worst(counted_findings(document))} {usd(figure)}"
    return _Facts(_family(document), _own_usd(document, now), news)


def _own_usd(document: AuditDocument, now: datetime) -> Decimal:
    """What this audit adds to its family; a roll-up's dollars are its children's, counted there."""
    ended_at = document["job"]["ended_at"]
    if document["rollup"] or (ended_at and _moment(ended_at) < now - LOOK_BACK):
        return Decimal(0)
    return (document["avoidable_usd"] or Decimal(0)) + (document["lost_usd"] or Decimal(0))


def _others_usd(
    audit: NewAudit,
    history: History,
    facts: _Facts,
    policy: Policy,
    now: datetime,
) -> Decimal:
    """The family's other runs, counted as far as the floor needs them."""
    needed_usd = policy.floor_usd - facts.own_usd
    if needed_usd <= 0:
        return Decimal(0)
    return history.family_avoidable_usd(
        *facts.family, since=now - LOOK_BACK, enough_usd=needed_usd, other_than=audit.key
    )


def _family(document: AuditDocument) -> tuple[str, str, str]:
    job = document["job"]
    return job["account"] or UNKNOWN, job["region"] or UNKNOWN, job["family"]


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except _UNREADABLE as error:
        raise Malformed("document", f"cannot be read: {type(error).__name__} {error}") from error
