"""Measures a scan of recordings and the audits of `import sageaudit`, in CPU time of this process.

The recordings are made-up training jobs of one host and one hour, of one family or of many. Each
figure of a scan is the last jobs' share, when each job of the family already has its 50 earlier
runs. The peer of `sageaudit.audit` is `audit_job` alone, of the same jobs with new measurements.
Recordings, and histories of the family's runs before, stay in BENCH_FOLDER.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import sageaudit
from sageaudit.adapters.files import recording
from sageaudit.adapters.history.sqlite import schema
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.threads import DaemonThreads
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadRecording
from sageaudit.rules import catalogue
from sageaudit.workflows.audit.judge import audit_job
from sageaudit.workflows.recordings.jobs import (
    measure_recording,
    recorded_jobs_in_folder,
    recorded_measurements,
)
from sageaudit.workflows.scan.run import ScanRun, ScanScope
from tests.labelled.machine import Doing, one_host
from tests.labelled.made_up_job import Plot, training

FAMILY_RUNS = (100, 1_000, 10_000)
FOLDER_FILES = (1_000, 10_000, 100_000)
JOBS = 200
"""The jobs of one sample."""
_PLOT = Plot("ml.g5.xlarge", one_host(Doing(60, cores=2, gpus=(0.1,), gib=9, gpu_gib=(10,))))
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)")


def _recordings(first: int, end: int, families: int) -> Iterator[str]:
    """Yields the JSON of these runs, one every half hour."""
    text = json.dumps(training(_PLOT, 1))
    name = json.loads(text)["describe"]["TrainingJobName"]
    for number in range(first, end):
        shift = timedelta(minutes=30 * number)
        moved = _MOMENT.sub(lambda m: (datetime.fromisoformat(m[0]) + shift).isoformat(), text)  # noqa: B023
        new_name = f"run-{number:06d}"
        script = f"family_{number % families}.py"
        document = json.loads(moved.replace(name, new_name))
        parameters = document["describe"].setdefault("HyperParameters", {})
        parameters["sagemaker_program"] = json.dumps(script)
        yield json.dumps(document)


@cache
def _folder() -> Path:
    default = Path(tempfile.gettempdir(), "sageaudit-bench")
    folder = Path(os.environ.get("BENCH_FOLDER", default))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def _recordings_folder(runs: int, families: int, first: int = 0) -> Path:
    """Returns a folder with one file of the recordings from `first` to `runs`."""
    folder = _folder() / f"recordings-{first}-{runs}-{families}"
    if not (folder / "jobs.jsonl").exists():
        folder.mkdir(exist_ok=True)
        unfinished = folder / f"{os.getpid()}.txt"
        with unfinished.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in _recordings(first, runs, families))
        unfinished.replace(folder / "jobs.jsonl")
    return folder


def _scan(folder: Path, history: SqliteHistory) -> None:
    scope = ScanScope(None, tuple(JobKind), None, False, Policy())
    with DaemonThreads(4) as workers:
        run = ScanRun(history, scope, workers, print)
        run.list_recordings(folder)
        run.audit_all(lambda: False, lambda: None)
        if run.tally.codes or run.remaining:
            raise RuntimeError(f"the scan failed: {run.tally}")


@cache
def _filled(runs: int) -> bytes:
    """Returns a history's file with this many runs of one family."""
    path = _folder() / f"family-{runs}-{schema.VERSION}.db"
    if not path.exists():
        unfinished = path.with_suffix(f".{os.getpid()}")
        with SqliteHistory(unfinished) as history:
            _scan(_recordings_folder(runs, 1), history)
        unfinished.replace(path)
    return path.read_bytes()


def _scan_ms(recordings: Path, file: bytes = b"") -> float:
    """Returns the CPU ms a job of a scan of new copies of recordings into this history."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "history.db")
        if file:
            path.write_bytes(file)
        folder = shutil.copytree(recordings, Path(place, "recordings"))
        with SqliteHistory(path) as history:
            begin = time.process_time()
            _scan(folder, history)
            return 1000 * (time.process_time() - begin) / JOBS


def scan_family_ms(runs: int) -> float:
    """Returns the CPU ms a job of a scan of `JOBS` runs after `runs` others of their family."""
    return _scan_ms(_recordings_folder(runs + JOBS, 1, runs), _filled(runs))


def scan_families_ms(families: int) -> float:
    """Returns the CPU ms a job of a scan of recordings of many families into a new history."""
    return _scan_ms(_recordings_folder(JOBS, families))


@cache
def _documents() -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(text) for text in _recordings(0, JOBS, JOBS))


def api_audits_per_second() -> float:
    """Returns how many parsed recordings `sageaudit.audit` audits in a CPU second."""
    documents = _documents()
    sageaudit.audit(documents[0])
    begin = time.process_time()
    for document in documents:
        sageaudit.audit(document)
    return len(documents) / (time.process_time() - begin)


def core_audits_per_second() -> float:
    """Returns how many of the same jobs the core audits in a CPU second, from their series."""
    recorded = [recording.parse_job(document) for document in _documents()]
    runs = [measure_recording(row) for row in recorded]
    usages = [
        recorded_measurements(row, run.job, run.market.types)
        for row, run in zip(recorded, runs, strict=True)
    ]
    policy, ruleset = Policy(), catalogue.ruleset()
    audit_job(runs[0].job, runs[0].usage, runs[0].market, policy, ruleset, now=runs[0].now)
    begin = time.process_time()
    for run, usage in zip(runs, usages, strict=True):
        audit_job(run.job, usage, run.market, policy, ruleset, now=run.now)
    return len(runs) / (time.process_time() - begin)


@cache
def _one_file_a_job(files: int) -> Path:
    folder = _folder() / f"files-{files}"
    if not folder.exists():
        unfinished = Path(tempfile.mkdtemp(dir=_folder()))
        for number, text in enumerate(_recordings(0, files, 500)):
            document = json.loads(text) | {"metrics": {}}
            (unfinished / f"{number}.json").write_text(json.dumps(document), encoding="utf-8")
        unfinished.rename(folder)
    return folder


def list_folder_ms(files: int) -> float:
    """Returns the CPU ms a file of listing a folder of recordings."""

    def refuse(error: BadRecording) -> None:
        raise error

    folder = _one_file_a_job(files)
    begin = time.process_time()
    jobs = recorded_jobs_in_folder(folder, refuse)
    taken_s = time.process_time() - begin
    if len(jobs) != files:
        raise RuntimeError(f"{len(jobs)} of {files} files were listed")
    return 1000 * taken_s / files


MEASURED: Mapping[str, tuple[str, Callable[[], float]]] = {
    **{
        f"scan of one family's next runs, n={runs}": ("ms/job", partial(scan_family_ms, runs))
        for runs in FAMILY_RUNS
    },
    "scan of 50 families": ("ms/job", partial(scan_families_ms, 50)),
    "sageaudit.audit(dict)": ("audits/s", api_audits_per_second),
    "peer: audit_job of the same jobs": ("audits/s", core_audits_per_second),
    **{
        f"listing a folder of recordings, n={files}": ("ms/file", partial(list_folder_ms, files))
        for files in FOLDER_FILES
    },
}
