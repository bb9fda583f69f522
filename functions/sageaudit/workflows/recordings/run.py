"""Audits recorded jobs like live jobs, in the order of their ends, and records the audits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from msgspec import Struct, field

from sageaudit.adapters.files.recording import RecordedSet, Recording
from sageaudit.adapters.history.deferred import DeferredHistory
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
    RecordedPart,
    all_recordings,
    make_recorded_jobs,
    measure_recording,
    read_recording,
    recorded_parts,
)
from sageaudit.workflows.report import explain_rules


class AuditedPart(Struct):
    """A recording of a file, and the audits of its jobs."""

    part: RecordedPart
    audits: dict[int, AuditRecorded | BadRecording] = field(default_factory=dict)
    """The audits by the index of their job; BadRecording for a job that cannot be audited."""

    def audit(
        self, index: int, policy: Policy, history: History, *, is_history_persistent: bool
    ) -> None:
        """Audits one job, and stores the result in `audits`.

        Raises HistoryFileError. Any other error is stored as the job's result.
        """
        job, reason = self.part.jobs[index], "it cannot be audited"
        try:
            recorded_audit = audit_recorded_job(
                job, policy, history, is_history_persistent=is_history_persistent
            )
        except HistoryFileError:
            raise
        except SageauditError as error:
            recorded_audit, reason = None, str(error)
        failure = BadRecording(f"{self.part.name}: {job.list_row.ref.name}: {reason}")
        self.audits[index] = failure if recorded_audit is None else recorded_audit

    def document(self, policy: Policy) -> AuditDocument:
        """Returns the audit of the part's job, or of a roll-up with its jobs. Raises
        BadRecording.
        """
        jobs, is_set = self.part.jobs, self.part.is_set
        audits = []
        for index in range(len(jobs)):
            audit = self.audits[index]
            if isinstance(audit, BadRecording):
                raise audit
            audits.append(audit)
        documents = [audit.document for audit in audits]
        rollup_audit = audits[-1].audit if jobs[-1].is_rollup else None
        if rollup_audit is not None and (is_set or rollup_audit.job.finished):
            return document(rollup_audit, documents[:-1])
        if not is_set:
            return documents[0]
        children = [
            Child(child.document, child.audit.job.final_metrics) for child in audits if child.audit
        ]
        newest_read_at, ruleset = max(job.read_at for job in jobs), catalogue.ruleset()
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


def recorded_files(
    paths: Sequence[Path], *, is_history_persistent: bool = False
) -> list[AuditedPart | BadRecording]:
    """Returns the recordings of all files, in their order, and a refusal for each bad one."""
    parts_by_path = {
        path: [
            part if isinstance(part, BadRecording) else AuditedPart(part)
            for part in recorded_parts(path, for_history=is_history_persistent)
        ]
        for path in dict.fromkeys(paths)
    }
    return [part for path in paths for part in parts_by_path[path]]


def audit_recordings(
    parts: Sequence[AuditedPart | BadRecording],
    policy: Policy,
    history: History | None = None,
    *,
    is_history_persistent: bool = False,
) -> Iterator[AuditDocument | BadRecording]:
    """Yields each recording's audit, or why there is none, in their order.

    Audits are made only when they are needed. Each run is judged by its family's earlier runs.
    Without `is_history_persistent`, only short runs are judged by them. Rules on a family then
    answer Unknown.
    """
    audits = _audits(
        [*{id(part): part for part in parts if isinstance(part, AuditedPart)}.values()],
        policy,
        DeferredHistory() if history is None else history,
        is_history_persistent=is_history_persistent,
    )
    for part in parts:
        yield _document(part, audits, policy)


def audit_recording(
    path: Path,
    policy: Policy,
    history: History | None = None,
    *,
    is_history_persistent: bool = False,
) -> AuditDocument:
    """Returns the audit of a file with one job. Raises BadRecording that names file and key."""
    read_recording(path)  # refuses a file with several jobs
    parts = recorded_files([path], is_history_persistent=is_history_persistent)
    [audit] = audit_recordings(parts, policy, history, is_history_persistent=is_history_persistent)
    if isinstance(audit, BadRecording):
        raise audit
    return audit


def audit_parsed_recording(recording: Recording | RecordedSet, policy: Policy) -> AuditDocument:
    """Returns the audit of a file's parsed content. Raises MalformedData or BadRecording."""
    recordings = all_recordings(recording)
    jobs = make_recorded_jobs(recording, lambda index: partial(recordings.__getitem__, index))
    part = AuditedPart(RecordedPart("the recording", jobs, isinstance(recording, RecordedSet)))
    [audit] = audit_recordings([part], policy)
    if isinstance(audit, BadRecording):
        raise audit
    return audit


def recorded_report(path: Path, document: AuditDocument) -> JobReport:
    """Returns the report of a recording's job. Raises BadRecording."""
    recorded = read_recording(path)
    if not isinstance(recorded, Recording):
        return JobReport(document, None, rules=explain_rules())
    run = measure_recording(recorded)
    summary = summary_of_run(run.job, reason=failure_class(run.job), usage=run.usage)
    guides = select_guides(traits_of_audit(document, run.job, summary, (), run.market.types))
    return JobReport(document, run.usage, guides, explain_rules())


def _audits(
    parts: Sequence[AuditedPart], policy: Policy, history: History, *, is_history_persistent: bool
) -> Iterator[None]:
    """Audits all jobs in the order of their ends. Yields after each audit."""
    jobs = [(job, index, part) for part in parts for index, job in enumerate(part.part.jobs)]
    for _, index, part in sorted(jobs, key=lambda row: audit_order(row[0])):
        part.audit(index, policy, history, is_history_persistent=is_history_persistent)
        yield


def _document(
    part: AuditedPart | BadRecording, audits: Iterator[None], policy: Policy
) -> AuditDocument | BadRecording:
    """Returns the part's audit. Continues `audits` until all jobs of the part have one."""
    if isinstance(part, BadRecording):
        return part
    while len(part.audits) < len(part.part.jobs):
        next(audits)
    try:
        return part.document(policy)
    except BadRecording as error:
        return error
