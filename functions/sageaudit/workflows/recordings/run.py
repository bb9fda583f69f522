"""Audits recorded jobs as live ones, in the order of their ends, and records them in a history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from msgspec import Struct, field

from sageaudit.adapters.files import recording
from sageaudit.adapters.files.recording import RecordedSet, Recording
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.audit.family_runs import summary_of_run
from sageaudit.domain.guides import select_guides, traits_of_audit
from sageaudit.domain.job.course import failure_class
from sageaudit.domain.job.ref import JobEndEvent
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadRecording, HistoryFileError, SageauditError
from sageaudit.output.html.contents import JobReport
from sageaudit.ports import History
from sageaudit.rules import catalogue
from sageaudit.workflows.audit.attempt import AuditRecorded, AuditTrigger
from sageaudit.workflows.audit.judge import Child, audit_roll_up
from sageaudit.workflows.audit.run import audit_finished_job
from sageaudit.workflows.recordings.jobs import (
    RecordedJob,
    all_recordings,
    make_recorded_jobs,
    measure_recording,
    recorded_jobs,
    recorded_jobs_with_arns,
)


class _RecordedFile(Struct):
    """The jobs of one file and their audits, in its order. `is_set`: they belong to a roll-up."""

    name: str
    jobs: Sequence[RecordedJob]
    is_set: bool
    audits: dict[int, AuditRecorded | BadRecording] = field(default_factory=dict)
    """The audits by the index of their job; an error for a job that cannot be audited."""

    def audit(self, number: int, policy: Policy, history: History, *, lasts: bool) -> None:
        """Audits one of its jobs, and records the audit.

        Raises HistoryFileError; any other error is stored as the result of this job.
        """
        job, reason = self.jobs[number], "it cannot be audited"
        try:
            audited = audit_recorded_job(job, policy, history, is_history_persistent=lasts)
        except HistoryFileError:
            raise
        except SageauditError as error:
            audited, reason = None, str(error)
        failed = BadRecording(f"{self.name}: {job.list_row.ref.name}: {reason}")
        self.audits[number] = failed if audited is None else audited

    def document(self, policy: Policy) -> AuditDocument:
        """The audit of its job, or of a roll-up with its jobs. Raises BadRecording."""
        audits = []
        for number in range(len(self.jobs)):
            audited = self.audits[number]
            if isinstance(audited, BadRecording):
                raise audited
            audits.append(audited)
        documents = [audited.document for audited in audits]
        own = audits[-1].audit if self.jobs[-1].is_rollup else None
        if own is not None and (self.is_set or own.job.finished):
            return document(own, documents[:-1])
        if not self.is_set:
            return documents[0]
        children = [Child(one.document, one.audit.job.final_metrics) for one in audits if one.audit]
        now, ruleset = max(job.read_at for job in self.jobs), catalogue.ruleset()
        return document(audit_roll_up(None, children, policy, ruleset, now=now), documents)


def audit_recorded_job(
    job: RecordedJob, policy: Policy, history: History, *, is_history_persistent: bool = True
) -> AuditRecorded | None:
    """Audits a recorded job as a live one, and records the audit; None if it cannot be audited.

    If `is_history_persistent`, the audit is made as of a day after the job's end, so it is final.
    """
    listed = job.list_row
    ended = JobEndEvent(listed.ref, listed.status, listed.created_at, listed.ended_at, {})
    deps = job.dependencies(history, policy, is_history_persistent=is_history_persistent)
    now = job.final_at if is_history_persistent else job.read_at
    outcome = audit_finished_job(ended, deps, now=now, caller=AuditTrigger.PERSON, force=True)
    if isinstance(outcome, AuditRecorded) and outcome.document["unauditable"] is None:
        return outcome
    return None


def audit_order(job: RecordedJob) -> tuple[datetime, bool]:
    """The sort key of jobs to be audited: by end, a roll-up after its jobs."""
    return job.read_at, job.is_rollup


def audit_recordings(
    paths: Sequence[Path],
    policy: Policy,
    history: History | None = None,
    *,
    is_history_persistent: bool = True,
) -> Iterator[AuditDocument | BadRecording]:
    """Yields the audit of each file, or why there is none, in their order and when it is made.

    Each run is judged by its family's earlier runs, including those in the history. Unless
    `is_history_persistent`, only short runs are: rules on a family's runs then answer Unknown.
    """
    is_history_persistent = is_history_persistent and history is not None
    read = {path: _read(path, lasts=is_history_persistent) for path in paths}
    files = [file for file in read.values() if isinstance(file, _RecordedFile)]
    audits = _audits(
        files, policy, SqliteHistory() if history is None else history, lasts=is_history_persistent
    )
    for path in paths:
        yield _document(read[path], audits, policy)


def audit_recording(path: Path, policy: Policy) -> AuditDocument:
    """The audit of one file. Raises BadRecording, naming file and key."""
    [audit] = audit_recordings([path], policy)
    if isinstance(audit, BadRecording):
        raise audit
    return audit


def audit_parsed_recording(recorded: Recording | RecordedSet, policy: Policy) -> AuditDocument:
    """The audit of a file's parsed content. Raises MalformedData or BadRecording."""
    recordings = all_recordings(recorded)
    jobs = make_recorded_jobs(recorded, lambda number: partial(recordings.__getitem__, number))
    file = _RecordedFile("the recording", jobs, isinstance(recorded, RecordedSet))
    audit = _document(file, _audits([file], policy, SqliteHistory(), lasts=False), policy)
    if isinstance(audit, BadRecording):
        raise audit
    return audit


def recorded_report(path: Path, document: AuditDocument) -> JobReport:
    """The report of the one job in a recording. Raises BadRecording."""
    recorded = recording.read(path)
    if not isinstance(recorded, Recording):
        return JobReport(document, None)
    run = measure_recording(recorded)
    summary = summary_of_run(run.job, reason=failure_class(run.job), usage=run.usage)
    guides = select_guides(traits_of_audit(document, run.job, summary, (), run.market.types))
    return JobReport(document, run.usage, guides)


def _read(path: Path, *, lasts: bool) -> _RecordedFile | BadRecording:
    try:
        jobs = recorded_jobs_with_arns(path) if lasts else recorded_jobs(path)
        return _RecordedFile(str(path), jobs, isinstance(recording.read(path), RecordedSet))
    except BadRecording as error:
        return error


def _audits(
    files: Sequence[_RecordedFile], policy: Policy, history: History, *, lasts: bool
) -> Iterator[None]:
    """Audits all jobs in the order of their ends, roll-ups after their jobs."""
    jobs = [(job, number, file) for file in files for number, job in enumerate(file.jobs)]
    for _, number, file in sorted(jobs, key=lambda row: audit_order(row[0])):
        file.audit(number, policy, history, lasts=lasts)
        yield


def _document(
    file: _RecordedFile | BadRecording, audits: Iterator[None], policy: Policy
) -> AuditDocument | BadRecording:
    """Continues the audits until those of this file are made; returns the file's audit."""
    if isinstance(file, BadRecording):
        return file
    while len(file.audits) < len(file.jobs):
        next(audits)
    try:
        return file.document(policy)
    except BadRecording as error:
        return error
