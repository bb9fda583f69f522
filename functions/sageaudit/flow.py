"""The flow: an ended job -> Job -> Measurements -> Bill -> Findings -> Audit -> History.

Every collaborator is an argument, so Lambda, CLI and tests run the same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sageaudit.auditing import Child, audit_job, audit_tuning, run_facts
from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.audit.record import (
    Detail,
    Entry,
    Head,
    JobKey,
    Recorded,
    Verdict,
)
from sageaudit.domain.audit.sanitize import detail_of
from sageaudit.domain.audit.unaudited import unaudited
from sageaudit.domain.job import buckets
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.event import JobEnded
from sageaudit.domain.job.family import FAMILY_VERSION, family
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.phases import so_far
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import (
    MIN_ACTIVE_MINUTES,
    MIN_COVERAGE,
    Measurements,
    Metric,
)
from sageaudit.errors import AccessDenied, JobNotFound, Malformed, Throttled, Unavailable
from sageaudit.family_runs import earlier_heads, family_pool, recheck_family, runs_of
from sageaudit.ports import Buckets, History, Jobs, Markets, Metrics
from sageaudit.rules.card import Ruleset

LATE_METRICS_WITHIN = timedelta(minutes=20)
"""No metrics are expected to arrive later than this after the end of a job."""
LOOK_AGAIN_S = 900
"""The longest delay that SQS gives a message."""
LOOK_AGAIN_SOON_S = 60
"""When Describe is still behind the event: eventual consistency takes seconds."""
ROLL_UP_ATTEMPTS = 4
"""A tuning job waits up to three quarters of an hour for its children's audits."""
RECHECK_AFTER = timedelta(hours=1)
NO_CREATION_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""Placeholder creation time; such runs are identified by their ARN alone."""


@dataclass(frozen=True, slots=True)
class AuditDependencies:
    """What an audit reads from, writes to and is judged by."""

    jobs: Jobs
    metrics: Metrics
    history: History
    markets: Markets
    buckets: Buckets
    policy: Policy
    ruleset: Ruleset
    fingerprint_key: Callable[[], bytes | None]
    history_is_whole: bool = True
    """False for the command line's empty history: family rules then answer Unknown."""


@dataclass(frozen=True, slots=True)
class Later:
    """The audit must wait: deliver the same event again after `delay_s` seconds."""

    delay_s: int
    reason: str


@dataclass(frozen=True, slots=True)
class Done:
    """The audit is in the history: recorded now, or by an earlier delivery.

    `notes`: those of its audit that say what could not be read or kept.
    """

    recorded: Recorded
    key: JobKey
    audit: Audit
    document: AuditDocument
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Described:
    """A job from Describe and ListTags; `notes` are sentences about denied permissions."""

    job: Job
    answer: Mapping[str, Any]
    tags: Mapping[str, str]
    notes: tuple[str, ...]


def audit_finished_job(
    ended: JobEnded,
    deps: AuditDependencies,
    *,
    now: datetime,
    attempt: int | None,
    again: bool = False,
) -> Done | Later:
    """Audits one ended job and records the audit; a second delivery changes nothing.

    `attempt` is the number of this delivery, from 1; None means that no later delivery is possible,
    so the job is audited with the data there is now. `again`: the audit is due, and is recorded
    although nothing about the job changed. Raises AccessDenied, Throttled or Unavailable
    when the job cannot be described.
    """
    try:
        described = _describe(ended, deps, now, attempt=attempt)
    except JobNotFound as error:
        if attempt == 1:
            return Later(LOOK_AGAIN_SOON_S, "Describe does not find the job yet")
        described = str(error)
    if isinstance(described, str):
        audit = unaudited(ended, described, deps.policy, deps.ruleset.version)
        return _record(audit, ended, deps)
    job = described.job
    if not job.finished and attempt == 1:
        return Later(LOOK_AGAIN_SOON_S, f"Describe still says {job.status}")
    if job.kind is JobKind.TUNING and job.finished:
        return _audit_tuning_job(job, ended, deps, now=now, attempt=attempt)
    return _audit_one_job(described, ended, deps, now=now, attempt=attempt, again=again)


def _describe(
    ended: JobEnded, deps: AuditDependencies, now: datetime, *, attempt: int | None
) -> _Described | str:
    """The job as of `now`, or a sentence that says why it cannot be audited. Raises JobNotFound."""
    ref = ended.ref
    answer = deps.jobs.describe(ref)
    tags, notes = _tags(ended, deps.jobs, attempt=attempt)
    key = deps.fingerprint_key()
    try:
        job = so_far(parse(answer, tags, account=ref.account, region=ref.region, key=key), now)
    except Malformed as error:
        return f"its Describe answer cannot be read: {error}"
    if job.status.startswith("Delet"):
        return f"its status is {job.status}"
    return _Described(job, answer, tags, notes)


def _audit_one_job(
    described: _Described,
    ended: JobEnded,
    deps: AuditDependencies,
    *,
    now: datetime,
    attempt: int | None,
    again: bool,
) -> Done | Later:
    """Job -> Measurements -> Bill -> Findings -> Audit; waits once for late metrics."""
    described = _with_regions(described, deps)
    job = described.job
    usage = deps.metrics.read(job, now)
    late = metrics_are_late(job, usage, now=now, attempt=attempt)
    if late and attempt == 1:
        return Later(LOOK_AGAIN_S, "its metrics are not complete yet")
    market = deps.markets.market(job, now)
    heads = _earlier(job, deps, now=now)
    audit = audit_job(
        job,
        usage,
        market,
        deps.policy,
        deps.ruleset,
        now=now,
        earlier=None if heads is None else runs_of(heads),
        pool=None if heads is None else family_pool(job, usage, market, heads, deps.history),
    )
    detail = detail_of(described.answer, described.tags, usage)
    notes = (*described.notes, *filter(None, (detail.note,)))
    audit = replace(audit, notes=(*audit.notes, *notes))
    if late or not job.finished:
        audit = provisional(audit, now)
    done = _record(audit, ended, deps, detail, compared=heads, again=again)
    if done.recorded.verdict is not Verdict.OLDER:
        recheck_family(job, audit.family, done.key, deps.history, now=now)
    return replace(done, notes=notes)


def _with_regions(described: _Described, deps: AuditDependencies) -> _Described:
    """The same with the regions of its buckets, also in the answer that is stored.

    Only a job that has ended is asked for: one that runs is audited again.
    """
    job = described.job
    names = [bucket.name for bucket in job.buckets]
    if not names or not job.finished or job.never_started:
        return described
    regions = deps.buckets.regions(job.account or "", job.region or "", names)
    return replace(
        described,
        job=replace(job, buckets=buckets.located(job.buckets, regions)),
        answer={**described.answer, buckets.KEY: dict(regions)},
    )


def provisional(audit: Audit, now: datetime) -> Audit:
    """The audit of a job that is due again: it has not ended, or its metrics are late."""
    return replace(audit, final=False, recheck_at=audit.recheck_at or now + RECHECK_AFTER)


def _earlier(job: Job, deps: AuditDependencies, *, now: datetime) -> tuple[Head, ...] | None:
    if not deps.history_is_whole:
        return None
    named = family(job, deps.policy.family_tag)
    return earlier_heads(job, named, deps.history, now=now)


def _tags(
    ended: JobEnded, jobs: Jobs, *, attempt: int | None
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """The job's tags; the event's, and a sentence that says so, where they cannot be read.

    Raises Throttled or Unavailable on a first delivery alone: a later one may read them.
    """
    try:
        return jobs.tags(ended.ref), ()
    except AccessDenied as denied:
        why = f"{denied.action} is not permitted"
    except (Throttled, Unavailable) as error:
        if attempt == 1:
            raise
        why = str(error).rstrip(".")
    instead = "; the event's tags are used" if ended.tags else ""
    return ended.tags, (f"tags: {why}{instead}",)


def metrics_are_late(
    job: Job, usage: Measurements, *, now: datetime, attempt: int | None = None
) -> bool:
    """True when metrics are incomplete, if the job ended recently or the audit waited for them."""
    fresh = job.ended_at is not None and now - job.ended_at < LATE_METRICS_WITHIN
    waited = attempt is not None and attempt > 1
    return (fresh or waited) and _metrics_incomplete(job, usage)


def _metrics_incomplete(job: Job, usage: Measurements) -> bool:
    """True when a run that is long enough to be judged has too few metric points."""
    if not job.elapsed_s or job.elapsed_s < MIN_ACTIVE_MINUTES * 60:
        return False
    missing = usage.missing.get(Metric.CPU)
    if missing is not None:
        return missing.code == "metric_missing"
    wanted = [Metric.CPU, *([Metric.GPU] if usage.gpus else [])]
    return any((usage.share(metric) or 0.0) < MIN_COVERAGE for metric in wanted)


def _audit_tuning_job(
    job: Job,
    ended: JobEnded,
    deps: AuditDependencies,
    *,
    now: datetime,
    attempt: int | None,
) -> Done | Later:
    """Waits until the children of a tuning job are audited, then sums their audits."""
    family = deps.history.by_family(job.account or "", job.region or "", job.arn or "")
    heads = [head for head in family if not head.rollup]
    launched = job.tuning.launched if job.tuning else None
    missing = launched is not None and len(heads) < launched
    if missing and attempt is not None and attempt < ROLL_UP_ATTEMPTS:
        return Later(LOOK_AGAIN_S, f"{len(heads)} of {launched} training jobs are audited")
    children = [
        Child(audited, head.facts.final_metrics if head.facts else {})
        for head in heads
        if (audited := deps.history.audit(head.key)) is not None
    ]
    audit = audit_tuning(job, children, deps.policy, deps.ruleset, now=now)
    return _record(audit if audit.final else provisional(audit, now), ended, deps)


def _record(
    audit: Audit,
    ended: JobEnded,
    deps: AuditDependencies,
    detail: Detail | None = None,
    *,
    compared: tuple[Head, ...] | None = None,
    again: bool = False,
) -> Done:
    """Writes the audit under the job's ARN and creation time."""
    job = audit.job
    created_at = job.created_at or job.started_at or ended.created_at or NO_CREATION_TIME
    modified_at = job.last_modified_at or job.ended_at or created_at
    key, written = JobKey(job.arn or ended.ref.arn, created_at), document(audit)
    recorded = deps.history.record(
        Entry(
            key=key,
            # An end time from the event alone must not look newer than a later Describe answer.
            last_modified_at=created_at if audit.unauditable else modified_at,
            document=written,
            family_version=FAMILY_VERSION,
            fingerprint=job.fingerprint,
            detail=detail,
            facts=run_facts(audit) if audit.usage is not None else None,
            compared=compared,
            again=again,
        )
    )
    return Done(recorded, key, audit, written)
