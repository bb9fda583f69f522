"""How the time of one audit grows: with the points of each series, and with a tuning job's trials.

- "points to audit, by points": `measure` and `audit_job` of one host with five series.
- "audit of a tuning job, by trials": the roll-up's audit, from its recording to the history, which
  has the audits of all trials.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from sageaudit.adapters.files import recording
from sageaudit.adapters.files.recording import Recording
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.job.course import work_windows
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import MissingMetrics, RawSeries
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.audit.judge import audit_job
from sageaudit.workflows.recordings.jobs import MeasuredJob, RecordedJob, measure_recording
from sageaudit.workflows.recordings.run import audit_recorded_job
from tests.labelled.machine import Doing, one_host
from tests.labelled.made_up_job import Phase, Plot, training
from tests.labelled.story import sweep

POINTS = (100, 1_000, 10_000, 40_000)
TRIALS = (50, 500, 5_000)
LEVELS = {"CPUUtilization": 600.0, "MemoryUtilization": 21.0, "GPUUtilization": 120.0,
          "GPUMemoryUtilization": 133.0, "DiskUtilization": 2.0}  # fmt: skip
"""The mean values of a host's series."""
_ABSENT = MissingMetrics("metric_missing", "no points")


def points_to_audit_ms(count: int) -> float:
    """Returns the CPU ms of a job with this many points of a minute in each series."""
    run, raw = _job_of(count)
    begin = time.process_time()
    usage = measure(run.job, raw, run.market.types, missing_reason=_ABSENT)
    audit_job(run.job, usage, run.market, Policy(), catalogue.ruleset(), now=run.now)
    return 1000 * (time.process_time() - begin)


@cache
def _job_of(count: int) -> tuple[MeasuredJob, Sequence[RawSeries]]:
    phases = (Phase("Downloading", 60), Phase("Training", 60 * count), Phase("Uploading", 20))
    doing = Doing(60, cores=6, gpus=(0.3,) * 4, gib=40, gpu_gib=(8,) * 4)
    plot = Plot("ml.g5.12xlarge", one_host(doing), phases=phases)
    run = measure_recording(recording.parse_job(training(plot, 1)))
    (start, _), dice = next(work_windows(run.job)), random.Random(1)
    host = f"{run.job.name}/algo-1"
    return run, [
        RawSeries(
            host,
            metric,
            start.replace(second=0),
            60,
            tuple(level * min(max(dice.gauss(1, 0.1), 0), 1.5) for _ in range(count)),
        )
        for metric, level in LEVELS.items()
    ]


def tuning_job_ms(trials: int) -> float:
    """Returns the CPU ms of the audit of a tuning job with this many trials."""
    job, history = _tuning_job(trials)
    begin = time.process_time()
    if audit_recorded_job(job, Policy(), history) is None:
        raise RuntimeError("the tuning job was not audited")
    return 1000 * (time.process_time() - begin)


@cache
def _tuning_job(trials: int) -> tuple[RecordedJob, SqliteHistory]:
    """Returns a tuning job, and a history with the audits of its trials."""
    objectives = [0.7 + 0.0001 * (number % 997) for number in range(trials)]
    recordings = sweep(1, objectives, {"Completed": trials})
    *trial_jobs, job = [
        RecordedJob.from_recording(parsed, partial(_same, parsed))
        for parsed in map(recording.parse_job, recordings)
    ]
    history = SqliteHistory()
    for trial_job in trial_jobs:
        audit_recorded_job(trial_job, Policy(), history)
    launched = tuple(trial_job.list_row.ref for trial_job in trial_jobs)
    return replace(job, launched_jobs=launched), history


def _same(parsed: Recording) -> Recording:
    return parsed


MEASURED: Mapping[str, tuple[str, Callable[[], float]]] = {
    **{
        f"points to audit, by points, n={count}": ("ms", partial(points_to_audit_ms, count))
        for count in POINTS
    },
    **{
        f"audit of a tuning job, by trials, n={count}": ("ms", partial(tuning_job_ms, count))
        for count in TRIALS
    },
}
