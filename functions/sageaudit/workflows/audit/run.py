"""The flow: an ended job -> Job -> Measurements -> Bill -> Findings -> Audit -> History.

Every collaborator is an argument, so Lambda, CLI and tests run the same lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sageaudit.domain.audit.detail import detail_of
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Head, JobKey, Verdict
from sageaudit.domain.audit.unaudited import unaudited
from sageaudit.domain.audit.well_formed import reading
from sageaudit.domain.job import buckets
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.event import JobEnded
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kept import keep, kept_tags
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.phases import so_far
from sageaudit.domain.prices.market import Market
from sageaudit.errors import Malformed, Unavailable
from sageaudit.ports import History
from sageaudit.workflows.audit.judge import Child, audit_tuning
from sageaudit.workflows.audit.last_look import settle
from sageaudit.workflows.audit.outcomes import (
    AuditDependencies,
    Done,
    Dropped,
    Outcome,
    Repeated,
    Settled,
)
from sageaudit.workflows.audit.read import Described, Gone, Tags, describe, read_tags, unreadable
from sageaudit.workflows.audit.reaudit import Used, used
from sageaudit.workflows.audit.rechecks import (
    RecordedRun,
    children_of,
    recheck_again,
    recheck_family,
    recheck_sum,
    recheck_summed,
)
from sageaudit.workflows.audit.record import AuditInHand, judged, open_again, record
from sageaudit.workflows.audit.waits import (
    Deliveries,
    Later,
    Wait,
    metrics_are_late,
    wait_for_metrics,
)

__all__ = [
    "AuditDependencies",
    "Done",
    "Dropped",
    "Outcome",
    "Repeated",
    "Settled",
    "audit_finished_job",
]


@dataclass(frozen=True, slots=True)
class _Read:
    """A job from Describe and ListTags; `notes` are sentences about what was not read."""

    job: Job
    answer: Mapping[str, Any]
    tags: Tags


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
    ended = replace(ended, tags=kept_tags(ended.tags, deps.policy.tags_read))
    described = describe(ended, deps.jobs)
    head = None if again else _head(described.ended, deps.history)
    due = head if _is_due(head, now) else None
    # What a second look misses is due once more: it waits for nothing.
    waits = deliveries if due is None else None
    audit = AuditInHand(
        described.ended, deps, now, waits, again or due is not None, retried, head, due
    )
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


def _is_repeat(head: Head, described: Described, audit: AuditInHand) -> bool:
    """True for a state of the run that is in the history, and not due.

    A person who asks for a job has its unsettled audit made anew before it is due.
    """
    asked_for = audit.ended.replayed or audit.deliveries is None
    same = head.last_modified_at == described.modified_at
    waits = head.due_at is not None and not asked_for
    return same and not _is_due(head, audit.now) and (head.settled or waits)


def _audit_gone(gone: Gone, audit: AuditInHand) -> Outcome:
    """A run that Describe does not answer: an audit of it stands; else it is unauditable.

    Nothing is recorded of a run that only a person's event names.
    """
    if audit.known is not None:
        return Repeated(audit.known) if audit.due is None else settle(audit.due, gone.reason, audit)
    if gone.may_come and (wait := audit.later(Wait.NOT_FOUND, gone.reason)):
        return wait
    if not gone.proven:
        return Dropped(gone.reason)
    policy, ruleset = audit.deps.policy, audit.deps.ruleset.version
    return record(unaudited(gone.ended, gone.reason, policy, ruleset), audit)


def _audit_described(described: Described, audit: AuditInHand) -> Outcome:
    ended, deps = described.ended, audit.deps
    tags = _tags(audit)
    if tags.late and (wait := audit.later(Wait.TAGS, tags.notes[0])):
        return wait
    ref, key = ended.ref, deps.fingerprint_key()
    try:
        answer = keep(described.answer, key)
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


def _tags(audit: AuditInHand) -> Tags:
    """The job's tags; those that are kept of an earlier audit, where they cannot be read again."""
    read, known = read_tags(audit.ended, audit.deps.jobs), audit.known
    kept = audit.deps.history.detail(known.key) if known is not None and read.notes else None
    tags = read.tags if kept is None else kept.tags
    return replace(read, tags=kept_tags(tags, audit.deps.policy.tags_read))


def _audit_one_job(read: _Read, audit: AuditInHand) -> Done | Later:
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
    made, heads = judged(job, of.usage, market, audit)
    detail = detail_of(read.answer, read.tags.tags, of.usage)
    if of.kept is not None:
        detail = replace(detail, series=of.kept.series, note=of.kept.note)
    notes = (*read.tags.notes, *filter(None, (detail.note,)))
    made = replace(made, notes=(*made.notes, *notes))
    if late or read.tags.late or not job.finished:
        made = open_again(made, audit)
    done = record(made, audit, detail, compared=heads, of=of)
    run = RecordedRun.of_job(job, made.family, done.key, done.recorded.version)
    if done.recorded.verdict is not Verdict.OLDER:
        recheck_family(run, deps.history, now=now)
    if done.recorded.verdict is Verdict.RECORDED or audit.retried:
        recheck_sum(run, deps.history, now=now)
    return replace(done, notes=notes)


def _used(job: Job, market: Market, audit: AuditInHand) -> Used:
    """What the run used, as CloudWatch says it or the history keeps it."""
    deps, now = audit.deps, audit.now
    if audit.known is None:
        return Used(deps.metrics.read(job, now))
    return used(audit.known, job, market.types, deps.history, deps.metrics, now=now)


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


def _audit_tuning_job(job: Job, audit: AuditInHand) -> Done | Later:
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
    done = record(made if made.final else open_again(made, audit), audit)
    recheck_summed(heads, job, done.key, deps.history, now=now)
    return done


def _stored(head: Head, history: History) -> AuditDocument:
    """The audit of a head. Raises Unavailable where it is not there: both are written at once."""
    document = history.audit(head.key)
    if document is None:
        raise Unavailable(f"The audit of {head.name} could not be read: try again later.")
    return document
