"""Audits recordings as the Lambda audits live jobs, without a call to AWS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from sageaudit.adapters.files import recording
from sageaudit.adapters.files.as_read import AsRead
from sageaudit.adapters.files.recording import RecordedSet, Recording
from sageaudit.cli.support.recordings import recorded_run
from sageaudit.cli.support.recordings.recorded_run import RecordedRuns, Run
from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.job.job import Job
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadRecording, Malformed
from sageaudit.rules import catalogue
from sageaudit.workflows.audit.judge import Child, audit_job, audit_tuning
from sageaudit.workflows.audit.record import provisional
from sageaudit.workflows.audit.waits import metrics_are_late


def of_recording(path: Path, policy: Policy, beside: RecordedRuns | None = None) -> AuditDocument:
    """The audit of one recording file. Raises BadRecording, naming file and key.

    A short run is judged with those of its family that are `beside` it: by default in its file.
    """
    recorded = recording.read(path)
    try:
        return of_recorded(recorded, policy, beside or RecordedRuns((path,)))
    except Malformed as error:
        raise BadRecording(f"{path}: {error}") from error


def of_recorded(
    recorded: Recording | RecordedSet, policy: Policy, beside: RecordedRuns
) -> AuditDocument:
    """The audit of what a file holds. Raises Malformed."""
    if isinstance(recorded, Recording):
        return _one(recorded, policy, beside).document
    own, children = recorded.tuning, [_child(one, policy, beside) for one in recorded.children]
    if own is None or own.as_read is None:
        tuning, now = recorded_run.of_recording(own).job if own else None, max(map(_now, children))
        return of_set(tuning, [child.child for child in children], policy, now)
    return _live_set(own, own.as_read, children, policy)


@dataclass(frozen=True, slots=True)
class _Audited:
    """One recorded job's audit."""

    audit: Audit
    document: AuditDocument
    final_metrics: Mapping[str, Decimal]
    now: datetime

    @property
    def child(self) -> Child:
        """The input for the audit of its tuning job."""
        return Child(self.document, self.final_metrics)


def _child(recorded: Recording, policy: Policy, beside: RecordedRuns) -> _Audited:
    """A training job of a set. A live audit judges each of them by its own minutes alone."""
    return _one(recorded, policy, RecordedRuns(()) if recorded.as_read else beside)


def _one(recorded: Recording, policy: Policy, beside: RecordedRuns) -> _Audited:
    """One recorded job, as of the moment when it was read, or of its end."""
    run, ruleset = recorded_run.of_recording(recorded), catalogue.ruleset()
    job = run.job
    if job.kind.row.rollup and job.finished:
        audited = audit_tuning(job, [], policy, ruleset, now=run.now)
        return _Audited(audited, document(audited, []), job.final_metrics, run.now)
    pool = beside.pool(run, policy.family_tag)
    if recorded.as_read is not None:
        pool = pool if pool and pool.names else None
    audited = audit_job(job, run.usage, run.market, policy, ruleset, now=run.now, pool=pool)
    if recorded.as_read is not None:
        audited = _as_live(audited, run, recorded.as_read)
    return _Audited(audited, document(audited), job.final_metrics, run.now)


def _as_live(audited: Audit, run: Run, read: AsRead) -> Audit:
    """With what the flow adds to the audit of a live job."""
    audited = replace(audited, notes=(*audited.notes, *read.notes))
    late = metrics_are_late(run.job, run.usage, now=run.now)
    return provisional(audited, run.now) if late or not run.job.finished else audited


def of_set(
    tuning: Job | None, children: Sequence[Child], policy: Policy, now: datetime
) -> AuditDocument:
    """The audit of a tuning job, None where it was not recorded, with its training jobs."""
    audited = audit_tuning(tuning, children, policy, catalogue.ruleset(), now=now)
    return document(audited, [child.document for child in children])


def _live_set(
    own: Recording, read: AsRead, children: list[_Audited], policy: Policy
) -> AuditDocument:
    """The audit that the live tuning job got: summed with the newest training job first, which is
    the order of a history, and shown in the order of the file.
    """
    run = recorded_run.of_recording(own)
    documents = [child.document for child in children]
    if not run.job.finished:
        return document(_one(own, policy, RecordedRuns(())).audit, documents)
    newest = sorted(children, key=_ended, reverse=True)
    ruleset = catalogue.ruleset()
    audited = audit_tuning(
        run.job, [child.child for child in newest], policy, ruleset, now=read.as_of
    )
    if not audited.final:
        audited = provisional(audited, read.as_of)
    return document(audited, documents)


def _ended(child: _Audited) -> tuple[datetime, str]:
    job = child.audit.job
    return job.ended_at or child.now, job.arn or job.name


def _now(child: _Audited) -> datetime:
    return child.now
