"""The flow: an ended job -> Job -> Measurements -> Bill -> Findings -> Audit -> History.

Every collaborator is an argument, so Lambda, CLI and tests run the same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sageaudit.auditing import Child, audit_job, audit_tuning, run_facts
from sageaudit.domain.audit import rollup
from sageaudit.domain.audit.audit import iso
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.earlier import EarlierRun, RunFacts
from sageaudit.domain.audit.record import Detail, Entry, JobKey, Recorded, earlier_run
from sageaudit.domain.audit.sanitize import detail_of
from sageaudit.domain.audit.unaudited import unaudited
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.event import JobEnded
from sageaudit.domain.job.family import FAMILY_VERSION, family
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import (
    MIN_ACTIVE_MINUTES,
    MIN_COVERAGE,
    Measurements,
    Metric,
)
from sageaudit.errors import AccessDenied, JobNotFound, Malformed
from sageaudit.ports import History, Jobs, Markets, Metrics
from sageaudit.rules.card import Ruleset

LATE_METRICS_WITHIN = timedelta(minutes=20)
"""A job that ended longer ago has the metrics that it will have."""
LOOK_AGAIN_S = 900
"""The longest delay that SQS gives a message."""
LOOK_AGAIN_SOON_S = 60
"""For answers that are behind their event: eventual consistency is a matter of seconds."""
ROLL_UP_ATTEMPTS = 4
"""A tuning job waits up to three quarters of an hour for its children's audits."""
FAMILY_RUNS = 50
"""How many earlier runs rules compare with: one query of some 50 KB."""
SECOND_LOOK_AFTER = timedelta(hours=1)
_NEVER_TOLD_APART = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for a creation time that nobody gives: such runs are one by their ARN alone."""


@dataclass(frozen=True, slots=True)
class AuditDependencies:
    """Who an audit works with."""

    jobs: Jobs
    metrics: Metrics
    history: History
    markets: Markets
    policy: Policy
    ruleset: Ruleset
    fingerprint_key: Callable[[], bytes | None]
    history_is_whole: bool = True
    """False for a history that starts empty, as the command line's: families are unknown then."""


@dataclass(frozen=True, slots=True)
class Later:
    """Not yet: deliver the same event again after `delay_s` seconds."""

    delay_s: int
    reason: str


@dataclass(frozen=True, slots=True)
class Done:
    """Recorded (or already there), with the document that was made for it."""

    recorded: Recorded
    key: JobKey
    document: AuditDocument


def audit_finished_job(
    ended: JobEnded, deps: AuditDependencies, *, now: datetime, attempt: int | None
) -> Done | Later:
    """Audits one job that ended and records it; a second delivery changes nothing.

    `attempt` counts deliveries from 1 while the flow may ask for another one; None takes what is
    there now. Raises AccessDenied, Throttled or Unavailable when the job cannot be described.
    """
    try:
        answer = deps.jobs.describe(ended.ref)
        tags, tag_notes = _tags(ended, deps.jobs)
        job = parse(
            answer,
            tags,
            account=ended.ref.account,
            region=ended.ref.region,
            key=deps.fingerprint_key(),
        )
    except JobNotFound as gone:
        if attempt == 1:
            return Later(LOOK_AGAIN_SOON_S, "the job is not found yet")
        return _record(
            deps,
            ended,
            unaudited(ended, str(gone), deps.policy, deps.ruleset.version),
        )
    except Malformed as error:
        reason = f"its Describe answer cannot be read: {error}"
        return _record(
            deps,
            ended,
            unaudited(ended, reason, deps.policy, deps.ruleset.version),
        )
    if job.status.startswith("Delet"):
        reason = f"its status is {job.status}"
        return _record(
            deps,
            ended,
            unaudited(ended, reason, deps.policy, deps.ruleset.version),
        )
    if not job.finished and attempt == 1:
        return Later(LOOK_AGAIN_SOON_S, f"Describe still says {job.status}")
    if job.kind is JobKind.TUNING and job.finished:
        return _roll_up(job, ended, deps, now=now, attempt=attempt)
    usage = deps.metrics.read(job, now)
    fresh = job.ended_at is not None and now - job.ended_at < LATE_METRICS_WITHIN
    asked_again = attempt is not None and attempt > 1
    late = (fresh or asked_again) and _metrics_incomplete(job, usage)
    if late and attempt == 1:
        return Later(LOOK_AGAIN_S, "its metrics are not complete yet")
    market = deps.markets.market(job, now)
    earlier = _earlier(job, deps, now=now)
    audit = audit_job(job, usage, market, deps.policy, deps.ruleset, now=now, earlier=earlier)
    detail = detail_of(answer, tags, usage)
    if notes := (*tag_notes, *filter(None, (detail.note,))):
        audit = replace(audit, notes=(*audit.notes, *notes))
    if late or not job.finished:
        audit = replace(audit, settled=False, due_at=audit.due_at or now + SECOND_LOOK_AFTER)
    return _record(deps, ended, audit.document(), job=job, detail=detail, facts=run_facts(audit))


def earlier_runs(
    job: Job, named: str, history: History, *, now: datetime
) -> tuple[EarlierRun, ...]:
    """The newest runs of a job's family that ended before it, in one query."""
    heads = history.by_family(
        job.account or "",
        job.region or "",
        named,
        before=job.ended_at or now,
        limit=FAMILY_RUNS,
    )
    return tuple(run for head in heads if (run := earlier_run(head)) is not None)


def _earlier(job: Job, deps: AuditDependencies, *, now: datetime) -> tuple[EarlierRun, ...] | None:
    if not deps.history_is_whole:
        return None
    named = family(job, deps.policy.family_tag)
    return earlier_runs(job, named, deps.history, now=now)


def _tags(ended: JobEnded, jobs: Jobs) -> tuple[Mapping[str, str], tuple[str, ...]]:
    try:
        return jobs.tags(ended.ref), ()
    except AccessDenied as denied:
        instead = "; the event's stand in" if ended.tags else ""
        return ended.tags, (f"tags: {denied.action} is not permitted{instead}",)


def _metrics_incomplete(job: Job, usage: Measurements) -> bool:
    """Coverage under the gate of a run long enough to be judged."""
    if not job.elapsed_s or job.elapsed_s < MIN_ACTIVE_MINUTES * 60:
        return False
    missing = usage.missing.get(Metric.CPU)
    if missing is not None:
        return missing.code == "metric_missing"
    wanted = [Metric.CPU, *([Metric.GPU] if usage.gpus else [])]
    return any((usage.share(metric) or 0.0) < MIN_COVERAGE for metric in wanted)


def _roll_up(
    job: Job,
    ended: JobEnded,
    deps: AuditDependencies,
    *,
    now: datetime,
    attempt: int | None,
) -> Done | Later:
    """A tuning job waits for its children's audits, then adds them up."""
    family_heads = deps.history.by_family(job.account or "", job.region or "", job.arn or "")
    children = [head for head in family_heads if not head.rollup]
    launched = job.tuning.launched if job.tuning else None
    missing = launched is not None and len(children) < launched
    if missing and attempt is not None and attempt < ROLL_UP_ATTEMPTS:
        return Later(LOOK_AGAIN_S, f"{len(children)} of {launched} training jobs are audited")
    documents = [
        Child(document, head.facts.final_metrics if head.facts else {})
        for head in children
        if (document := deps.history.audit(head.key)) is not None
    ]
    named = rollup.of_job(job, deps.policy.owner(job.tags))
    document = audit_tuning(job, named, documents, deps.policy, deps.ruleset, now=now)
    if not document["audit"]["settled"]:
        document["audit"]["due_at"] = iso(now + SECOND_LOOK_AFTER)
    document["children"] = None  # they stand in the history, under this family
    return _record(deps, ended, document, job=job)


def _record(
    deps: AuditDependencies,
    ended: JobEnded,
    document: AuditDocument,
    *,
    job: Job | None = None,
    detail: Detail | None = None,
    facts: RunFacts | None = None,
) -> Done:
    """Writes the audit under the job's ARN and creation time."""
    created_at = (job and (job.created_at or job.started_at)) or ended.created_at
    created_at = created_at or _NEVER_TOLD_APART
    key = JobKey((job and job.arn) or ended.ref.arn, created_at)
    modified_at = (job and job.last_modified_at) or (job and job.ended_at) or created_at
    recorded = deps.history.record(
        Entry(
            key=key,
            last_modified_at=modified_at,
            document=document,
            family_version=FAMILY_VERSION,
            fingerprint=job.fingerprint if job else None,
            detail=detail,
            facts=facts,
        )
    )
    return Done(recorded, key, document)
