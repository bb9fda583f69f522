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
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import islice

from sageaudit.domain.alert.advice import SILENT, Advice, advice_id, advices_of
from sageaudit.domain.alert.alert import Alert, Kind, Told
from sageaudit.domain.alert.rule import Case, Month, Notify, Quiet, decide
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.earlier import Advised, advised_of
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.record import Head, JobKey, RunQuery
from sageaudit.domain.audit.sums import RuleSums, Scope, Sums, total
from sageaudit.domain.audit.well_formed import reading
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import UNREADABLE, BadHistory, Malformed, Throttled, Unavailable
from sageaudit.output.text.envelope import Notice, Writer, to_body
from sageaudit.output.text.notice import (
    counted_findings,
    figures_of,
    regression_of,
    trial_findings,
    why_never,
    without,
)
from sageaudit.ports import AlertLedger, Decisions, History
from sageaudit.workflows.audit.whole_audit import whole_audit

TRIES = 8
"""The messages of a family are written by one process at a time; each try means another one was."""
LOOK_BACK = timedelta(days=30)
_RUNS_BACK = timedelta(days=90)
_MOST_RUNS = 100
"""Of a family, the newest: what they were advised, and what came of it. Our choice."""
_ANY = Month(Decimal("Infinity"), Decimal("Infinity"), 1)


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

    `writers`: by channel name, enabled ones only. `installed_at`: no message is sent about a job
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
        if audit.version == 1 and (reason := _why_never_enough(audit.document, deps.policy, now)):
            unjudged = audit.document["judged"] == Judged.NO
            return Quiet(reason + (": it could not be judged" if unjudged else ""))
        for _ in range(TRIES):
            outcome = _try(audit, deps, now=now)
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


def _try(audit: NewAudit, deps: NotifyDependencies, *, now: datetime) -> Notify | Quiet | None:
    """Decides and writes; None where somebody else wrote since this was read."""
    with _reading_stored("head of the run"):
        head = deps.history.head(audit.key)
    if head is None:
        raise Unavailable("The history answered without the head of a run that it has.")
    past = deps.ledger.past(audit.pk, f"{head.account}/{head.region}/{head.family}")
    if reason := _why_not_now(audit, head, past.last, deps, now):
        return Quiet(reason)
    family = _Family(head, deps, now)
    if past.last is None and not past.told:
        first = decide(_case(audit.document, family, ()), None)
        if isinstance(first, Quiet):  # what people decided makes nothing louder
            return first
    document = without(audit.document, family.silent)
    pairs = zip(document["findings"], audit.document["findings"], strict=True)
    silent = frozenset(one["rule"] for one, before in pairs if one is not before)
    case = _case(document, family, past.told, silent)
    outcome = decide(case, past.last)
    if isinstance(outcome, Quiet):
        return outcome
    of_trial = outcome.kind is Kind.TRIAL
    advised, month = case.trials if of_trial else case.advised, case.month()
    corrects = outcome.corrects
    outcome = replace(
        outcome,
        before=whole_audit(deps.history, audit.key, corrects.version) if corrects else None,
        month=month,
        advice=family.advices().get(advised[0]) if advised else None,
    )
    bodies = {}
    for channel, write in deps.writers.items():
        notice_id = f"{audit.pk}|{audit.version}|{channel}"
        payload = write(document, deps.policy, outcome)
        bodies[channel] = to_body(Notice(notice_id, channel, payload))
    alert = Alert(audit.version, case.figures, now)
    usd = month.possible_usd if of_trial else month.usd
    after = past.with_message(Told(audit.pk, outcome.kind, alert, tuple(advised), usd))
    return outcome if deps.ledger.write(past, after, bodies, now) else None


class _Family:
    """The family of a run, read as far as it is asked for, once."""

    def __init__(self, head: Head, deps: NotifyDependencies, now: datetime) -> None:
        self._head, self._deps, self.now = head, deps, now
        self.policy = deps.policy
        self.month = cache(self._month)
        self.advices = cache(self._advices)

    def id_of(self, advised: Advised) -> str:
        """The id of an advice to the family."""
        head = self._head
        return advice_id(head.account, head.region, head.family, advised)

    def silent(self, advised: Advised) -> Advice | None:
        """An advice of which no message speaks now; None where one may."""
        advice = self.advices().get(self.id_of(advised))
        return advice if advice and advice.state in SILENT else None

    def _advices(self) -> dict[str, Advice]:
        head, history, since = self._head, self._deps.history, self.now - _RUNS_BACK
        query = RunQuery.of_family(head.account, head.region, head.family)
        with _reading_stored("runs of the family"):
            newest = islice(history.runs(query, page_size=_MOST_RUNS), _MOST_RUNS)
            runs = [run for run in newest if run.ended_at >= since and run.key != head.key]
        decided = self._deps.decisions.decisions()
        return {one.id: one for one in advices_of([head, *runs], decided, self.now)}

    def _month(self, silent: frozenset[str]) -> Month:
        """The family's last 30 days, this run's included, without the dollars of silent rules.

        What this run may have lost counts at its upper end: its owner can still resume it. Of a
        roll-up, whose children are counted, its own findings count.
        """
        head, since, until = self._head, _since(self.now), _day_of(self.now)
        with _reading_stored("sums of the family"):
            own = head.sums if head.sums and since <= _day_of(head.ended_at) <= until else Sums()
            rows = self._deps.history.sums(
                Scope.FAMILY,
                since,
                until,
                account=head.account,
                region=head.region,
                name=head.family,
            )
            whole = total(rows)
        quiet = sum((whole.rules.get(rule, RuleSums()) for rule in silent), RuleSums())
        usd = whole.waste_usd - quiet.waste_usd + own.lost_up_to_usd - own.lost_usd
        return Month(usd, whole.possible_usd - quiet.possible_usd, whole.jobs)


def _case(
    document: AuditDocument,
    family: _Family,
    told: Sequence[Told],
    silent: frozenset[str] = frozenset(),
) -> Case:
    """What a decision about this audit rests on."""
    return Case(
        figures=figures_of(document),
        advised=[family.id_of(one) for one in advised_of(counted_findings(document))],
        trials=[family.id_of(one) for one in advised_of(trial_findings(document))],
        regression=regression_of(document),
        told=told,
        policy=family.policy,
        now=family.now,
        month=lambda: family.month(silent),
        advices=family.advices,
    )


def _why_never_enough(document: AuditDocument, policy: Policy, now: datetime) -> str | None:
    """Why there is no message even if the family had none and lost any amount of dollars.

    Most audits end here: neither the history nor the ledger is asked.
    """
    case = Case(
        figures=figures_of(document),
        advised=[one.rule for one in advised_of(counted_findings(document))],
        trials=[one.rule for one in advised_of(trial_findings(document))],
        regression=regression_of(document),
        told=(),
        policy=policy,
        now=now,
        month=lambda: _ANY,
        advices=dict,
    )
    best = decide(case, None)
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
