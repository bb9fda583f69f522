"""The history of the example company: its recordings, audited as recorded jobs are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from functools import partial
from pathlib import Path

from sageaudit.adapters.files import recording
from sageaudit.adapters.files.local_files import data_folder
from sageaudit.adapters.files.recording import Recording
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadUsage, NoHistory
from sageaudit.ports import History
from sageaudit.queries.window import FIRST
from sageaudit.workflows.example.company import recordings
from sageaudit.workflows.recordings.jobs import RecordedJob, recordings_in
from sageaudit.workflows.recordings.run import audit_recorded_job, in_order_of_ends

POLICY = Policy(tags_shown=("project",), version="example-company")
"""Its version marks the audits of the example company: no policy of a user has it."""


def default_path() -> Path:
    """The file of the example in the user's data folder, beside the user's own history."""
    return data_folder() / "example-company.db"


def example_jobs(last_day: date) -> list[RecordedJob]:
    """The jobs of the eight weeks that end with this day, in the order of their ends."""
    read = (recording.parsed(document) for document in recordings(last_day))
    jobs = [
        RecordedJob.of(recorded, partial(_given, recorded))
        for file in read
        for recorded in recordings_in(file)
    ]
    return sorted(jobs, key=in_order_of_ends)


def _given(recorded: Recording) -> Recording:
    return recorded


def record_example(history: History, last_day: date) -> Iterator[RecordedJob]:
    """Audits all jobs of the example into a history; yields each job when its audit is made."""
    for job in example_jobs(last_day):
        audit_recorded_job(job, POLICY, history)
        yield job


def remove_example(path: Path) -> None:
    """Removes an earlier example from this path, if there is one.

    Raises BadUsage for a history with other audits, HistoryFileError for a file that is none.
    """
    with suppress(NoHistory):
        with SqliteHistory(path, create=False) as history:
            if not _is_example(history):
                raise BadUsage(
                    f"{path} has audits that are not of the example company, and is not touched:"
                    " name another file with --history"
                )
        for name in (path, *(path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm"))):
            name.unlink(missing_ok=True)


def _is_example(history: History) -> bool:
    days = {row.day for row in history.sums(Scope.ACCOUNT, FIRST.date(), date.max)}
    heads = (head for day in days for head in history.runs(RunQuery.of_day(day)))
    return all(head.policy == POLICY.version for head in heads)
