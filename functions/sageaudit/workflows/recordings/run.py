"""Audits recorded jobs like live jobs, in the order of their ends, and records the audits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from msgspec import Struct, field

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
    read_recording,
    recorded_jobs,
    recorded_jobs_with_arns,
)


class _RecordedFile(Struct):
    """The jobs of one file. `is_set` means that the file has a roll-up's jobs."""

    name: str
    jobs: Sequence[RecordedJob]
    is_set: bool
    audits: dict[int, AuditRecorded | BadRecording] = field(default_factory=dict)
    """The audits by the index of their job; BadRecording for a job that cannot be audited."""

    def audit(
        self, index: int, policy: Policy, history: History, *, is_history_persistent: bool
    ) -> None:
        """Audits one job, and stores the result in `audits`.

        Raises HistoryFileError. Any other error is stored as the job's result.
        """
        job, reason = self.jobs[index], "it cannot be audited"
        try:
            recorded_audit = audit_recorded_job(
                job, policy, history, is_history_persistent=is_history_persistent
            )
        except HistoryFileError:
            raise
        except SageauditError as error:
            recorded_audit, reason = None, str(error)
        failure = BadRecording(f"{self.name}: {job.list_row.ref.name}: {reason}")
        self.audits[index] = failure if recorded_audit is None else recorded_audit

    def document(self, policy: Policy) -> AuditDocument:
        """Returns the audit of the file's job, or of a roll-up with its jobs. Raises
        BadRecording.
        """
        audits = []
        for index in range(len(self.jobs)):
            audit = self.audits[index]
            if isinstance(audit, BadRecording):
                raise audit
            audits.append(audit)
        documents = [audit.document for audit in audits]
        rollup_audit = audits[-1].audit if self.jobs[-1].is_rollup else None
        if rollup_audit is not None and (self.is_set or rollup_audit.job.finished):
            return document(rollup_audit, documents[:-1])
        if not self.is_set:
            return documents[0]
        children = [
            Child(child.document, child.audit.job.final_metrics) for child in audits if child.audit
        ]
        newest_read_at, ruleset = max(job.read_at for job in self.jobs), catalogue.ruleset()
        return document(
            audit_roll_up(None, children, policy, ruleset, now=newest_read_at), documents
        )


def audit_recorded_job(
    job: RecordedJob, policy: Policy, history: History, *, is_history_persistent: bool = True
) -> AuditRecorded | None:
    """Audits a recorded job like a live job, and records the audit.

    Returns None if the job cannot be audited. If `is_history_persistent`, the audit is made as of a
    day after the job's end, so that it is final.
    """
    listed = job.list_row
    end_event = JobEndEvent(listed.ref, listed.status, listed.created_at, listed.ended_at, {})
    deps = job.dependencies(history, policy, is_history_persistent=is_history_persistent)
    now = job.final_at if is_history_persistent else job.read_at
    outcome = audit_finished_job(end_event, deps, now=now, caller=AuditTrigger.PERSON, force=True)
    if isinstance(outcome, AuditRecorded) and outcome.document["unauditable"] is None:
        return outcome
    return None


def audit_order(job: RecordedJob) -> tuple[datetime, bool]:
    """Returns a sort key by end, with a roll-up after its jobs."""
    return job.read_at, job.is_rollup


def audit_recordings(
    paths: Sequence[Path],
    policy: Policy,
    history: History | None = None,
    *,
    is_history_persistent: bool = True,
) -> Iterator[AuditDocument | BadRecording]:
    """Yields each file's audit, or why there is none, in the order of the files.

    Audits are made only when they are needed. Each run is judged by its family's earlier runs.
    Without `is_history_persistent`, only short runs are judged by them. Rules on a family then
    answer Unknown.
    """
    is_history_persistent = is_history_persistent and history is not None
    file_by_path = {
        path: _read(path, is_history_persistent=is_history_persistent) for path in paths
    }
    files = [file for file in file_by_path.values() if isinstance(file, _RecordedFile)]
    audits = _audits(
        files,
        policy,
        SqliteHistory() if history is None else history,
        is_history_persistent=is_history_persistent,
    )
    for path in paths:
        yield _document(file_by_path[path], audits, policy)


def audit_recording(path: Path, policy: Policy) -> AuditDocument:
    """Returns the audit of one file. Raises BadRecording that names the file and key."""
    [audit] = audit_recordings([path], policy)
    if isinstance(audit, BadRecording):
        raise audit
    return audit


def audit_parsed_recording(recording: Recording | RecordedSet, policy: Policy) -> AuditDocument:
    """Returns the audit of a file's parsed content. Raises MalformedData or BadRecording."""
    recordings = all_recordings(recording)
    jobs = make_recorded_jobs(recording, lambda index: partial(recordings.__getitem__, index))
    file = _RecordedFile("the recording", jobs, isinstance(recording, RecordedSet))
    audit = _document(
        file, _audits([file], policy, SqliteHistory(), is_history_persistent=False), policy
    )
    if isinstance(audit, BadRecording):
        raise audit
    return audit


def recorded_report(path: Path, document: AuditDocument) -> JobReport:
    """Returns the report of a recording's job. Raises BadRecording."""
    recorded = read_recording(path)
    if not isinstance(recorded, Recording):
        return JobReport(document, None)
    run = measure_recording(recorded)
    summary = summary_of_run(run.job, reason=failure_class(run.job), usage=run.usage)
    guides = select_guides(traits_of_audit(document, run.job, summary, (), run.market.types))
    return JobReport(document, run.usage, guides)


def _read(path: Path, *, is_history_persistent: bool) -> _RecordedFile | BadRecording:
    try:
        jobs = recorded_jobs_with_arns(path) if is_history_persistent else recorded_jobs(path)
        return _RecordedFile(str(path), jobs, isinstance(read_recording(path), RecordedSet))
    except BadRecording as error:
        return error


def _audits(
    files: Sequence[_RecordedFile], policy: Policy, history: History, *, is_history_persistent: bool
) -> Iterator[None]:
    """Audits all jobs in the order of their ends. Yields after each audit."""
    jobs = [(job, index, file) for file in files for index, job in enumerate(file.jobs)]
    for _, index, file in sorted(jobs, key=lambda row: audit_order(row[0])):
        file.audit(index, policy, history, is_history_persistent=is_history_persistent)
        yield


def _document(
    file: _RecordedFile | BadRecording, audits: Iterator[None], policy: Policy
) -> AuditDocument | BadRecording:
    """Returns the file's audit. Continues `audits` until all jobs of the file have one."""
    if isinstance(file, BadRecording):
        return file
    while len(file.audits) < len(file.jobs):
        next(audits)
    try:
        return file.document(policy)
    except BadRecording as error:
        return error
