"""The flow: an ended job -> Job -> Measurements -> Bill -> Findings -> Audit -> History.

Every collaborator is an argument, so Lambda, CLI and tests run the same lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sageaudit.auditing import Child, audit_job, audit_tuning, run_facts
from sageaudit.described import Described, Gone, Tags, describe, read_tags, unreadable
from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.audit.record import (
    Detail,
    Entry,
    Head,
    JobKey,
    Verdict,
)
from sageaudit.domain.audit.sanitize import detail_of
from sageaudit.domain.audit.unaudited import unaudited
from sageaudit.domain.audit.well_formed import reading
from sageaudit.domain.job import buckets
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.event import JobEnded
from sageaudit.domain.job.family import FAMILY_VERSION, family
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.phases import so_far
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.errors import Malformed, Unavailable
from sageaudit.family_runs import (
    earlier_heads,
    family_pool,
    heads_before,
    runs_of,
)
from sageaudit.outcomes import AuditDependencies, Done, Dropped, Outcome, Repeated, Settled
from sageaudit.ports import History
from sageaudit.rechecks import (
    RecordedRun,
    children_of,
    recheck_again,
    recheck_family,
    recheck_sum,
    recheck_summed,
)
from sageaudit.second_look import (
    KeptRun,
    Used,
    amended,
    kept_run,
    same_figures,
    settled,
    settled_document,
    used,
    with_next_look,
)
from sageaudit.waiting import Deliveries, Later, Wait, later, metrics_are_late, wait_for_metrics

__all__ = [
    "AuditDependencies",
    "Done",
    "Dropped",
    "Outcome",
    "Repeated",
    "Settled",
    "audit_finished_job",
    "provisional",
]

RECHECK_AFTER = timedelta(hours=1)
NO_CREATION_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""Placeholder creation time; such runs are identified by their ARN alone."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A job from Describe and ListTags; `notes` are sentences about what was not read."""

    job: Job
    answer: Mapping[str, Any]
    tags: Tags


@dataclass(frozen=True, slots=True)
class _Audit:
    """One audit in hand: of which event, with what, as of when, and what it may wait for."""

    ended: JobEnded
    deps: AuditDependencies
    now: datetime
    deliveries: Deliveries | None
    again: bool
    retried: bool = False
    """Whether an earlier delivery may have recorded it and done nothing more."""
    known: Head | None = None
    """The newest audit of the run."""
    due: Head | None = None
    """The same, where it is due: this is a second look."""

    def later(self, wait: Wait, reason: str) -> Later | None:
        """The next wait for this reason, if there is one."""
        return later(wait, self.deliveries, reason)


def audit_finished_job(
    ended: JobEnded,
    deps: AuditDependencies,
    *,
    now: datetime,
    deliveries: Deliveries | None,
    again: bool = False,
    retried: bool = False,
) -> Outcome:
    """Audits one ended job and records the audit; a second delivery changes nothing.

    `deliveries`: how often the event has waited, by reason; None means that no later delivery is
    possible, so the job is audited with the data there is now. `again`: the audit is recorded
    although nothing about the job changed; so is one that is due. `retried`: an earlier delivery of
    the event was not done, so that what follows a record may have to be done yet. Raises
    RejectedEvent when Describe answers with another job; AccessDenied, Throttled or Unavailable
    when it does not answer.
    """
    described = describe(ended, deps.jobs)
    head = None if again else _head(described.ended, deps.history)
    due = head if _is_due(head, now) else None
    # What a second look misses is due once more: it waits for nothing.
    waits = deliveries if due is None else None
    audit = _Audit(described.ended, deps, now, waits, again or due is not None, retried, head, due)
    if isinstance(described, Gone):
        outcome = _audit_gone(described, audit)
    elif head is not None and _is_repeat(head, described, audit):
        outcome = Repeated(head)
    else:
        outcome = _audit_described(described, audit)
    if retried and isinstance(outcome, Repeated):
        recheck_again(outcome.head, deps.history, now=now)
    return outcome


def _head(ended: JobEnded, history: History) -> Head | None:
    """The newest version of the run, if it has one."""
    return history.head(JobKey(ended.ref.arn, ended.created_at)) if ended.created_at else None


def _is_due(head: Head | None, now: datetime) -> bool:
    return head is not None and head.due_at is not None and head.due_at <= now


def _is_repeat(head: Head, described: Described, audit: _Audit) -> bool:
    """True for a state of the run that is in the history, and not due.

    A person who asks for a job has its unsettled audit made anew before it is due.
    """
    asked_for = audit.ended.replayed or audit.deliveries is None
    same = head.last_modified_at == described.modified_at
    waits = head.due_at is not None and not asked_for
    return same and not _is_due(head, audit.now) and (head.settled or waits)


def _audit_gone(gone: Gone, audit: _Audit) -> Outcome:
    """A run that Describe does not answer: an audit of it stands; else it is unauditable.

    Nothing is recorded of a run that only a person's event names.
    """
    if audit.known is not None:
        return (
            Repeated(audit.known) if audit.due is None else _settle(audit.due, gone.reason, audit)
        )
    if gone.may_come and (wait := audit.later(Wait.NOT_FOUND, gone.reason)):
        return wait
    if not gone.proven:
        return Dropped(gone.reason)
    policy, ruleset = audit.deps.policy, audit.deps.ruleset.version
    return _record(unaudited(gone.ended, gone.reason, policy, ruleset), audit)


def _audit_described(described: Described, audit: _Audit) -> Outcome:
    ended, deps, answer = described.ended, audit.deps, described.answer
    tags = _tags(audit)
    if tags.late and (wait := audit.later(Wait.TAGS, tags.notes[0])):
        return wait
    ref, key = ended.ref, deps.fingerprint_key()
    try:
        job = parse(answer, tags.tags, account=ref.account, region=ref.region, key=key)
        job = so_far(job, audit.now)
    except Malformed as error:
        return _audit_gone(Gone(ended, unreadable(error), proven=True, may_come=True), audit)
    if job.status.startswith("Delet"):
        gone = Gone(ended, f"its status is {job.status}", proven=True)
        return _audit_gone(gone, audit)
    if not job.finished:
        behind = f"Describe still says {job.status}"
        if ended.replayed and audit.deliveries is not None:
            return Dropped(f"{behind}: it is audited when it has ended")
        if wait := audit.later(Wait.DESCRIBE_BEHIND, behind):
            return wait
    if job.kind is JobKind.TUNING and job.finished:
        return _audit_tuning_job(job, audit)
    return _audit_one_job(_Read(job, answer, tags), audit)


def _tags(audit: _Audit) -> Tags:
    """The job's tags; those that are kept of an earlier audit, where they cannot be read again."""
    read, known = read_tags(audit.ended, audit.deps.jobs), audit.known
    kept = audit.deps.history.detail(known.key) if known is not None and read.notes else None
    return read if kept is None else replace(read, tags=kept.tags)


def _audit_one_job(read: _Read, audit: _Audit) -> Done | Later:
    """Job -> Measurements -> Bill -> Findings -> Audit; waits once for late metrics."""
    deps, now = audit.deps, audit.now
    read = _with_regions(read, deps)
    job = read.job
    market = deps.markets.market(job, now)
    of = _used(job, market, audit)
    waited = audit.due is not None or (audit.deliveries or {}).get(Wait.LATE_METRICS, 0) > 0
    late = metrics_are_late(job, of.usage, now=now, waited=waited) or of.unread is not None
    if late and (wait := wait_for_metrics(job, audit.deliveries, now=now)):
        return wait
    made, heads = _judged(job, of.usage, market, audit)
    detail = detail_of(read.answer, read.tags.tags, of.usage)
    if of.kept is not None:
        detail = replace(detail, series=of.kept.series, note=of.kept.note)
    notes = (*read.tags.notes, *filter(None, (detail.note,)))
    made = replace(made, notes=(*made.notes, *notes))
    if late or read.tags.late or not job.finished:
        made = _open(made, audit)
    done = _record(made, audit, detail, compared=heads, of=of)
    run = RecordedRun.of_job(job, made.family, done.key, done.recorded.version)
    if done.recorded.verdict is not Verdict.OLDER:
        recheck_family(run, deps.history, now=now)
    if done.recorded.verdict is Verdict.RECORDED or audit.retried:
        recheck_sum(run, deps.history, now=now)
    return replace(done, notes=notes)


def _used(job: Job, market: Market, audit: _Audit) -> Used:
    """What the run used, as CloudWatch says it or the history keeps it."""
    deps, now = audit.deps, audit.now
    if audit.known is None:
        return Used(deps.metrics.read(job, now))
    return used(audit.known, job, market.types, deps.history, deps.metrics, now=now)


def _judged(
    job: Job, usage: Measurements, market: Market, audit: _Audit
) -> tuple[Audit, tuple[Head, ...] | None]:
    """The audit, and the earlier runs that it was judged with."""
    deps, heads = audit.deps, _earlier(job, audit.deps, now=audit.now)
    made = audit_job(
        job,
        usage,
        market,
        deps.policy,
        deps.ruleset,
        now=audit.now,
        earlier=None if heads is None else runs_of(heads),
        pool=None if heads is None else family_pool(job, usage, market, heads, deps.history),
    )
    return made, heads


def _settle(due: Head, why: str, audit: _Audit) -> Outcome:
    """A second look without Describe: judged by what is kept, else as it stands; the last one."""
    deps = audit.deps
    stored, kept = deps.history.audit(due.key), kept_run(due, deps.history.detail(due.key))
    if stored is None:
        return Repeated(due)
    with reading(stored):
        return _settled(due, stored, kept, why, audit)


def _settled(
    due: Head, stored: AuditDocument, kept: KeptRun | None, why: str, audit: _Audit
) -> Settled:
    deps, now = audit.deps, audit.now
    written, heads = settled_document(stored, why), heads_before(due, deps.history)
    facts, fingerprint = due.facts, due.fingerprint
    if kept is not None and kept.job.finished and not due.rollup:
        market = deps.markets.market(kept.job, now)
        made, _ = _judged(kept.job, kept.usage(market.types), market, audit)
        made = made if made.final else settled(made, why)
        written = document(made)
        facts = due.facts if same_figures(stored, written) else run_facts(made)
        written = amended(stored, written)
    entry = Entry(
        key=due.key,
        last_modified_at=due.last_modified_at,
        document=written,
        family_version=due.family_version,
        fingerprint=fingerprint,
        detail=None,
        again=True,
        facts=facts,
        compared=None if due.rollup else heads,
    )
    recorded = deps.history.record(entry)
    if kept is not None and (recorded.verdict is Verdict.RECORDED or audit.retried):
        run = RecordedRun.of_job(kept.job, due.family, due.key, recorded.version)
        recheck_family(run, deps.history, now=now)
        recheck_sum(run, deps.history, now=now)
    return Settled(recorded, due.key, written)


def _with_regions(read: _Read, deps: AuditDependencies) -> _Read:
    """The same with the regions of its buckets, also in the answer that is stored.

    Only a job that has ended is asked for: one that runs is audited again.
    """
    job = read.job
    names = [bucket.name for bucket in job.buckets]
    if not names or not job.finished or job.never_started:
        return read
    regions = deps.buckets.regions(job.account or "", job.region or "", names)
    return replace(
        read,
        job=replace(job, buckets=buckets.located(job.buckets, regions)),
        answer={**read.answer, buckets.KEY: dict(regions)},
    )


def provisional(audit: Audit, now: datetime) -> Audit:
    """The audit of a job that is due again: it has not ended, or its metrics are late."""
    return replace(audit, final=False, recheck_at=audit.recheck_at or now + RECHECK_AFTER)


def _open(made: Audit, audit: _Audit) -> Audit:
    """An audit that is due again; of a second look, `with_next_look` says when."""
    return provisional(made, audit.now) if audit.due is None else replace(made, final=False)


def _earlier(job: Job, deps: AuditDependencies, *, now: datetime) -> tuple[Head, ...] | None:
    if not deps.history_is_whole:
        return None
    named = family(job, deps.policy.family_tag)
    return earlier_heads(job, named, deps.history, now=now)


def _audit_tuning_job(job: Job, audit: _Audit) -> Done | Later:
    """Waits until the children of a tuning job are audited, then sums their audits."""
    deps, now = audit.deps, audit.now
    heads = children_of(job, deps.history)
    launched = job.tuning.launched if job.tuning else None
    missing = launched is not None and len(heads) < launched
    waits_for = f"{len(heads)} of {launched} training jobs are audited"
    if missing and (wait := audit.later(Wait.CHILDREN, waits_for)):
        return wait
    children = [
        Child(_stored(head, deps.history), head.facts.final_metrics if head.facts else {})
        for head in heads
    ]
    with reading(*(child.document for child in children)):
        made = audit_tuning(job, children, deps.policy, deps.ruleset, now=now)
    done = _record(made if made.final else _open(made, audit), audit)
    recheck_summed(heads, job, done.key, deps.history, now=now)
    return done


def _stored(head: Head, history: History) -> AuditDocument:
    """The audit of a head. Raises Unavailable where it is not there: both are written at once."""
    document = history.audit(head.key)
    if document is None:
        raise Unavailable(f"The audit of {head.name} could not be read: try again later.")
    return document


def _record(
    made: Audit,
    audit: _Audit,
    detail: Detail | None = None,
    *,
    compared: tuple[Head, ...] | None = None,
    of: Used | None = None,
) -> Done:
    """Writes an audit under the job's ARN and creation time. `of`: what its run used."""
    kept, unread = (of.kept is not None, of.unread) if of else (False, None)
    blind = unread is not None and not kept
    if audit.due is not None:
        made = with_next_look(made, audit.now, unread)
    known = audit.due or (audit.known if unread else None)
    job, ended = made.job, audit.ended
    created_at = job.created_at or job.started_at or ended.created_at or NO_CREATION_TIME
    modified_at = job.last_modified_at or job.ended_at or created_at
    key, written = JobKey(job.arn or ended.ref.arn, created_at), document(made)
    facts = run_facts(made) if made.usage is not None else None
    if known is not None:
        stored = audit.deps.history.audit(key)
        with reading(stored):
            if blind or (kept and stored is not None and same_figures(stored, written)):
                facts = known.facts
            written = amended(stored, written, blind=blind)
    recorded = audit.deps.history.record(
        Entry(
            key=key,
            # An end time from the event alone must not look newer than a later Describe answer.
            last_modified_at=created_at if made.unauditable else modified_at,
            document=written,
            family_version=FAMILY_VERSION,
            fingerprint=job.fingerprint,
            detail=None if blind else detail,
            facts=facts,
            compared=compared,
            again=audit.again,
        )
    )
    return Done(recorded, key, made, written, was_due=audit.due is not None)
