"""Audits recorded jobs with a history, and records them in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from sageaudit.adapters.files import recording
from sageaudit.cli.support.recordings.recorded_lanes import RecordedJobs
from sageaudit.domain.job.event import JobEnded
from sageaudit.domain.job.listed import Listed
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadRecording
from sageaudit.ports import History
from sageaudit.workflows.audit import run as flow


@dataclass(frozen=True, slots=True)
class KeptRun:
    """One recorded audit, and as of when the job was audited."""

    done: flow.Done
    as_of: datetime


@dataclass(frozen=True, slots=True)
class KeptFile:
    """The audits of one file. `tuning`: of a set's own tuning job, if the file has it."""

    runs: tuple[KeptRun, ...]
    tuning: KeptRun | None
    is_set: bool


@dataclass(frozen=True, slots=True)
class _File:
    jobs: RecordedJobs
    is_set: bool


class KeptRecordings:
    """Several files, audited in order of the jobs' ends, so that each is judged by those before."""

    def __init__(self, paths: Sequence[Path], history: History, policy: Policy) -> None:
        self._paths = tuple(dict.fromkeys(paths))
        self._history = history
        self._policy = policy

    def of(self, path: Path) -> KeptFile:
        """The audits of one file; the first call audits all files. Raises BadRecording."""
        kept = self._kept[path]
        if isinstance(kept, BadRecording):
            raise kept
        return kept

    @cached_property
    def _kept(self) -> dict[Path, KeptFile | BadRecording]:
        files = {path: _read(path) for path in self._paths}
        jobs = [
            (file.jobs.as_of(job), bool(job.ref.kind.row.rollup), path, job)
            for path, file in files.items()
            if isinstance(file, _File)
            for job in file.jobs.jobs
        ]
        runs: dict[Path, list[KeptRun]] = {path: [] for path in files}
        for _, _, path, job in sorted(jobs, key=lambda row: row[:2]):
            file = files[path]
            if isinstance(file, _File):
                runs[path].append(self._audited(file.jobs, job))
        return {
            path: file if isinstance(file, BadRecording) else _kept_file(runs[path], file.is_set)
            for path, file in files.items()
        }

    def _audited(self, jobs: RecordedJobs, job: Listed) -> KeptRun:
        ended = JobEnded(job.ref, job.status, job.created_at, job.ended_at, {})
        deps, as_of = jobs.dependencies(self._history, self._policy), jobs.as_of(job)
        done = flow.audit_finished_job(ended, deps, now=as_of, deliveries=None, again=True)
        if not isinstance(done, flow.Done):
            raise BadRecording(f"{job.ref.name}: it cannot be audited")
        return KeptRun(done, as_of)


def _read(path: Path) -> _File | BadRecording:
    jobs = RecordedJobs()
    try:
        jobs.add(path)
        return _File(jobs, not isinstance(recording.read(path), recording.Recording))
    except BadRecording as error:
        return error


def _kept_file(runs: Sequence[KeptRun], is_set: bool) -> KeptFile:
    own = [run for run in runs if run.done.audit.job.kind.row.rollup]
    children = tuple(run for run in runs if not is_set or run not in own)
    return KeptFile(children, own[0] if is_set and own else None, is_set)
