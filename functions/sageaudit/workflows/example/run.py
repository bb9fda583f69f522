"""Makes the example company's history: recordings of its runs, audited like other recorded jobs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from sageaudit.adapters.files.local_files import data_folder
from sageaudit.adapters.files.recording import Recording, parse
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.prices import packaged
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import InstanceType
from sageaudit.errors import BadUsage, NoHistory
from sageaudit.ports import History
from sageaudit.queries.window import FIRST_MOMENT
from sageaudit.structs import replace
from sageaudit.workflows.example.company import (
    Workload,
    WorkPhase,
    WorkPhaseLoad,
    WorkRun,
    generate_runs,
)
from sageaudit.workflows.recordings.jobs import RecordedJob, all_recordings
from sageaudit.workflows.recordings.run import audit_order, audit_recorded_job

POLICY = Policy(cost_tag_names=("project",), version="example-company")
"""The example's policy. Its version marks the example's audits, since no policy file has it."""
Json = dict[str, Any]
OBJECTIVE = "validation:rmse"
_SPOT_SHARE = 0.36
"""The billed share of a spot run's seconds (our choice)."""
_BILLED_PHASES = frozenset({"Downloading", "Training", "Uploading"})
_VOLUME_GB = 100
_PARALLEL_TRIALS = 2
_MINUTELY_UP_TO_MIN = 240
"""Longer runs have a point every 5 minutes instead of every minute, which saves time."""
_COPY_LOAD = WorkPhaseLoad(1, cores=0.4, gib=2)
"""The load of a minute of Downloading or Uploading."""
_NOISE_SHARES = {
    "CPUUtilization": 0.04,
    "MemoryUtilization": 0.01,
    "DiskUtilization": 0.01,
    "GPUUtilization": 0.03,
    "GPUMemoryUtilization": 0.01,
}
"""The noise of each metric, as a share of its mean."""


def default_path() -> Path:
    """Returns the example's file in the user's data folder."""
    return data_folder() / "example-company.db"


def example_jobs(last_day: date) -> list[RecordedJob]:
    """Returns the jobs of the eight weeks that end with this day, ordered by their ends."""
    parsed_files = (parse(document) for document in generate_recordings(last_day))
    jobs = [
        RecordedJob.from_recording(recorded, partial(_return_recording, recorded))
        for file in parsed_files
        for recorded in all_recordings(file)
    ]
    return sorted(jobs, key=audit_order)


def _return_recording(recording: Recording) -> Recording:
    return recording


def record_example(history: History, last_day: date) -> Iterator[RecordedJob]:
    """Audits all jobs of the example into a history. Yields each job after its audit."""
    for job in example_jobs(last_day):
        audit_recorded_job(job, POLICY, history)
        yield job


def remove_example(path: Path) -> None:
    """Removes an earlier example at this path, if there is one.

    Raises BadUsage for a history with other audits; HistoryFileError for another kind of file.
    """
    with suppress(NoHistory):
        with SqliteHistory(path, create=False) as history:
            if not _is_example(history):
                raise BadUsage(
                    f"{path} has audits of other jobs than the example company's, and was not"
                    " changed: name another file with --history"
                )
        for name in (path, *(path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm"))):
            name.unlink(missing_ok=True)


def _is_example(history: History) -> bool:
    days = {row.day for row in history.daily_sums(Scope.ACCOUNT, FIRST_MOMENT.date(), date.max)}
    summaries = (summary for day in days for summary in history.runs(RunQuery.for_day(day)))
    return all(summary.policy == POLICY.version for summary in summaries)


def generate_recordings(last_day: date) -> Iterator[Json]:
    """Yields the recordings of all runs of the eight weeks that end with this day, in no order."""
    return map(make_recording, generate_runs(last_day))


def make_recording(run: WorkRun) -> Json:
    """Returns a run's recording. A tuning job's recording includes its trials."""
    kind = run.workload.kind
    if kind is JobKind.TUNING:
        return _tuning_set(run)
    answer = _training(run) if kind is JobKind.TRAINING else _batch(run)
    return _recording_document(run, answer) | {"metrics": {"series": [*series(run)]}}


def _recording_document(run: WorkRun, answer: Json) -> Json:
    workload = run.workload
    tags = {"owner": workload.team.owner, "project": workload.team.project}
    return {
        "region": workload.account_region.region,
        "account": workload.account_region.account,
        "tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "describe": answer | dict(workload.answer),
    }


def _training(run: WorkRun) -> Json:
    workload, phases = run.workload, run.phases
    billable_s = _billable_seconds(phases)
    limits = {"MaxRuntimeInSeconds": 3600 * workload.limit_h}
    if workload.is_spot:
        limits["MaxWaitTimeInSeconds"] = 2 * 3600 * workload.limit_h
    answer = {
        "HyperParameters": {
            **({"sagemaker_program": workload.script} if workload.script else {}),
            **workload.hyperparameters,
        },
        "AlgorithmSpecification": {
            "TrainingImage": workload.image,
            "TrainingInputMode": "File",
        },
        "InputDataConfig": [{"ChannelName": "training", "DataSource": _data(run)}],
        "OutputDataConfig": {"S3OutputPath": f"{_bucket(workload)}/models"},
        "ResourceConfig": _cluster(workload) | {"VolumeSizeInGB": _VOLUME_GB},
        "StoppingCondition": limits,
        "SecondaryStatus": workload.status,
        "SecondaryStatusTransitions": _transitions(run),
        "TrainingTimeInSeconds": billable_s,
        "BillableTimeInSeconds": round(billable_s * (_SPOT_SHARE if workload.is_spot else 1)),
        "EnableManagedSpotTraining": workload.is_spot,
    }
    if workload.status == "Completed":
        model = f"{_bucket(workload)}/models/{run.name}/output/model.tar.gz"
        answer["ModelArtifacts"] = {"S3ModelArtifacts": model}
    return _common_fields(run) | answer


def _billable_seconds(phases: list[WorkPhase]) -> int:
    # A repeated download is billed once. Spot's discount is not applied.
    download_s = [phase.seconds for phase in phases if phase.name == "Downloading"]
    billed_s = sum(phase.seconds for phase in phases if phase.name in _BILLED_PHASES)
    return billed_s - sum(download_s[1:])


def _batch(run: WorkRun) -> Json:
    # Processing and transform jobs have no phases.
    workload = run.workload
    if workload.kind is JobKind.TRANSFORM:
        return _common_fields(run) | {
            "ModelName": f"{workload.name}-model",
            "TransformInput": {"DataSource": _data(run)},
            "TransformResources": _cluster(workload),
        }
    cluster = _cluster(workload) | {"VolumeSizeInGB": _VOLUME_GB}
    return _common_fields(run) | {
        "AppSpecification": {"ImageUri": workload.image},
        "ProcessingResources": {"ClusterConfig": cluster},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600 * workload.limit_h},
    }


def _common_fields(run: WorkRun) -> Json:
    spec, phases = run.workload.kind.spec, run.phases
    failure = run.workload.failure
    return {
        spec.name_key: run.name,
        spec.arn_key: run.arn,
        spec.status_key: run.workload.status,
        "CreationTime": _stamp(run.begin),
        spec.start_key: _stamp(phases[0].end),
        spec.end_key: _stamp(phases[-1].end),
        "LastModifiedTime": _stamp(phases[-1].end),
        **({"FailureReason": failure} if failure else {}),
    }


def _transitions(run: WorkRun) -> list[Json]:
    phases = run.phases
    end_phase = WorkPhase(run.workload.status, phases[-1].end, phases[-1].end)
    return [
        {"Status": phase.name, "StartTime": _stamp(phase.begin), "EndTime": _stamp(phase.end)}
        for phase in (*phases, end_phase)
    ]


def _cluster(workload: Workload) -> Json:
    return {"InstanceType": workload.instance, "InstanceCount": workload.hosts}


def _bucket(workload: Workload) -> str:
    return f"s3://example-company-{workload.team.project}"


def _data(run: WorkRun) -> Json:
    # Each run reads the data of its own day.
    address = f"{_bucket(run.workload)}/{run.workload.name}/{run.begin:%Y-%m-%d}"
    source = {"S3DataType": "S3Prefix", "S3Uri": address}
    return {"S3DataSource": source | {"S3DataDistributionType": "FullyReplicated"}}


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _tuning_set(run: WorkRun) -> Json:
    # Two trials run at a time.
    workload, spec = run.workload, run.workload.kind.spec
    trials = [_trial(run, number) for number in range(len(workload.objectives))]
    ends = [trial["describe"]["TrainingEndTime"] for trial in trials]
    config = {
        "Strategy": "Bayesian",
        "TrainingJobEarlyStoppingType": "Auto",
        "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": OBJECTIVE},
        "ResourceLimits": {
            "MaxNumberOfTrainingJobs": len(trials),
            "MaxParallelTrainingJobs": _PARALLEL_TRIALS,
        },
    }
    answer = {
        spec.name_key: run.name,
        spec.arn_key: run.arn,
        spec.status_key: workload.status,
        "CreationTime": _stamp(run.begin),
        spec.end_key: max(ends),
        "LastModifiedTime": max(ends),
        "HyperParameterTuningJobConfig": config,
        "TrainingJobStatusCounters": {"Completed": len(trials)},
    }
    return _recording_document(run, answer) | {"children": trials}


def _trial(run: WorkRun, number: int) -> Json:
    # The hash in the trial's name is derived from its number.
    workload, minutes = run.workload, run.workload.minutes + 10
    begin = run.begin + timedelta(minutes=minutes * (number // _PARALLEL_TRIALS))
    objective = {"MetricName": OBJECTIVE, "Value": workload.objectives[number]}
    trial_answer = {"TuningJobArn": run.arn, "FinalMetricDataList": [objective]}
    trial = replace(
        workload,
        kind=JobKind.TRAINING,
        hyperparameters={"max_depth": str(3 + number), "eta": "0.1"},
        answer=trial_answer,
    )
    name = f"{run.name}-{number + 1:03d}-{0x9E3779B9 * (number + 1) % 2**32:08x}"
    return make_recording(WorkRun(trial, name, begin, f"{run.seed} {number}"))


def series(run: WorkRun) -> Iterator[dict[str, Any]]:
    """Yields the series of each host and metric, in the form of recordings."""
    workload, noise = run.workload, run.noise_source
    loads = [*_minute_loads(run)]
    period_min = 1 if len(loads) <= _MINUTELY_UP_TO_MIN else 5
    begin = run.phases[0].end.replace(second=0) + timedelta(minutes=1)
    for number in range(1, workload.hosts + 1):
        for metric, values in _values(workload, loads[::period_min], noise).items():
            yield {
                "host": f"{run.name}/{_host(workload.kind, number)}",
                "metric": metric,
                "start": f"{begin:%Y-%m-%dT%H:%M:%SZ}",
                "period_s": 60 * period_min,
                "values": values,
            }


def _host(kind: JobKind, number: int) -> str:
    metrics = kind.spec.metrics
    has_numbered_hosts = metrics is not None and metrics.has_numbered_hosts
    return f"algo-{number}" if has_numbered_hosts else f"i-0c41d7a92be5f{number:04x}"


def _minute_loads(run: WorkRun) -> Iterator[WorkPhaseLoad | None]:
    """Yields None for minutes without an instance."""
    phases, work_loads = run.phases[1:], run.workload.work
    work_s = sum(phase.seconds for phase in phases if phase.name == "Training")
    stretch = work_s / (60 * run.workload.minutes)
    remaining_loads = iter(
        [load for load in work_loads for _ in range(round(load.minutes * stretch))]
    )
    for phase in phases:
        for _ in range(round(phase.seconds / 60)):
            if phase.name == "Training":
                yield next(remaining_loads, work_loads[-1])
            else:
                yield None if phase.name in {"Interrupted", "Starting"} else _COPY_LOAD


def _values(
    workload: Workload, loads: Sequence[WorkPhaseLoad | None], noise: random.Random
) -> dict[str, list[float | None]]:
    """Returns one host's points by metric.

    CPU and GPU utilisation are sums: 100 for each core and each GPU.
    """
    instance_type = packaged.instance_types()[workload.instance]
    max_values = {"CPUUtilization": 100 * instance_type.vcpu, "MemoryUtilization": 100}
    if workload.kind is not JobKind.TRANSFORM:
        max_values |= {"DiskUtilization": 100}
    if instance_type.gpus:
        max_values |= {
            "GPUUtilization": 100 * instance_type.gpus,
            "GPUMemoryUtilization": 100 * instance_type.gpus,
        }
    points: dict[str, list[float | None]] = {metric: [] for metric in max_values}
    for load in loads:
        means = {} if load is None else _means(load, instance_type)
        for metric, values in points.items():
            mean, spread = means.get(metric), _NOISE_SHARES[metric]
            value = None if mean is None else noise.gauss(mean, mean * spread)
            values.append(
                None if value is None else round(min(max(value, 0), max_values[metric]), 2)
            )
    return points


def _means(load: WorkPhaseLoad, instance_type: InstanceType) -> dict[str, float]:
    return {
        "CPUUtilization": 100 * load.cores,
        "MemoryUtilization": 100 * load.gib / float(instance_type.memory_gib),
        "DiskUtilization": 12.0,
        "GPUUtilization": 100 * load.gpus,
        "GPUMemoryUtilization": 100 * load.gpu_gib / float(instance_type.gpu_memory_gib or 1),
    }
