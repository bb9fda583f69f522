"""The recording of a run of the example company: SageMaker's answer, the tags and the metrics."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sageaudit.domain.job.kinds import JobKind
from sageaudit.structs import replace
from sageaudit.workflows.example.company import Phase, Run, Workload
from sageaudit.workflows.example.run import series

Json = dict[str, Any]
OBJECTIVE = "validation:rmse"
_SPOT_SHARE = 0.36
"""Of the seconds that a spot run works, those that are billed: our choice."""
_BILLED = frozenset({"Downloading", "Training", "Uploading"})
_VOLUME_GB = 100
_PARALLEL_TRIALS = 2


def recording(run: Run) -> Json:
    """The recording of a run; of a tuning job, the set with its trials."""
    kind = run.workload.kind
    if kind is JobKind.TUNING:
        return _search(run)
    answer = _training(run) if kind is JobKind.TRAINING else _batch(run)
    return _file(run, answer) | {"metrics": {"series": [*series(run)]}}


def _file(run: Run, answer: Json) -> Json:
    workload = run.workload
    tags = {"owner": workload.team.owner, "project": workload.team.project}
    return {
        "region": workload.place.region,
        "account": workload.place.account,
        "tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "describe": answer | dict(workload.answer),
    }


def _training(run: Run) -> Json:
    workload, phases = run.workload, run.phases
    used_s = _used_s(phases)
    limits = {"MaxRuntimeInSeconds": 3600 * workload.limit_h}
    if workload.spot:
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
        "TrainingTimeInSeconds": used_s,
        "BillableTimeInSeconds": round(used_s * (_SPOT_SHARE if workload.spot else 1)),
        "EnableManagedSpotTraining": workload.spot,
    }
    if workload.status == "Completed":
        model = f"{_bucket(workload)}/models/{run.name}/output/model.tar.gz"
        answer["ModelArtifacts"] = {"S3ModelArtifacts": model}
    return _head(run) | answer


def _used_s(phases: list[Phase]) -> int:
    """The seconds that are billed at most: a download is billed once, also if it is repeated."""
    downloads = [phase.seconds for phase in phases if phase.name == "Downloading"]
    used = sum(phase.seconds for phase in phases if phase.name in _BILLED)
    return used - sum(downloads[1:])


def _batch(run: Run) -> Json:
    """The answer about a processing or transform job, which has no phases."""
    workload = run.workload
    if workload.kind is JobKind.TRANSFORM:
        return _head(run) | {
            "ModelName": f"{workload.name}-model",
            "TransformInput": {"DataSource": _data(run)},
            "TransformResources": _cluster(workload),
        }
    cluster = _cluster(workload) | {"VolumeSizeInGB": _VOLUME_GB}
    return _head(run) | {
        "AppSpecification": {"ImageUri": workload.image},
        "ProcessingResources": {"ClusterConfig": cluster},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600 * workload.limit_h},
    }


def _head(run: Run) -> Json:
    """What the answers of all kinds have."""
    row, phases = run.workload.kind.row, run.phases
    failure = run.workload.failure
    return {
        row.name_key: run.name,
        row.arn_key: run.arn,
        row.status_key: run.workload.status,
        "CreationTime": _stamp(run.begin),
        row.start_key: _stamp(phases[0].end),
        row.end_key: _stamp(phases[-1].end),
        "LastModifiedTime": _stamp(phases[-1].end),
        **({"FailureReason": failure} if failure else {}),
    }


def _transitions(run: Run) -> list[Json]:
    """The phases, and the state in which the run ended."""
    phases = run.phases
    ended = Phase(run.workload.status, phases[-1].end, phases[-1].end)
    return [
        {"Status": phase.name, "StartTime": _stamp(phase.begin), "EndTime": _stamp(phase.end)}
        for phase in (*phases, ended)
    ]


def _cluster(workload: Workload) -> Json:
    return {"InstanceType": workload.instance, "InstanceCount": workload.hosts}


def _bucket(workload: Workload) -> str:
    return f"s3://example-company-{workload.team.project}"


def _data(run: Run) -> Json:
    """Each run reads the data of its own day."""
    address = f"{_bucket(run.workload)}/{run.workload.name}/{run.begin:%Y-%m-%d}"
    source = {"S3DataType": "S3Prefix", "S3Uri": address}
    return {"S3DataSource": source | {"S3DataDistributionType": "FullyReplicated"}}


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _search(run: Run) -> Json:
    """A tuning job with its trials, two of which run at a time."""
    workload, row = run.workload, run.workload.kind.row
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
        row.name_key: run.name,
        row.arn_key: run.arn,
        row.status_key: workload.status,
        "CreationTime": _stamp(run.begin),
        row.end_key: max(ends),
        "LastModifiedTime": max(ends),
        "HyperParameterTuningJobConfig": config,
        "TrainingJobStatusCounters": {"Completed": len(trials)},
    }
    return _file(run, answer) | {"children": trials}


def _trial(run: Run, number: int) -> Json:
    """A training job of the search. Its name has no hash of its own: it is the number's."""
    workload, minutes = run.workload, run.workload.minutes + 10
    begin = run.begin + timedelta(minutes=minutes * (number // _PARALLEL_TRIALS))
    objective = {"MetricName": OBJECTIVE, "Value": workload.objectives[number]}
    of_search = {"TuningJobArn": run.arn, "FinalMetricDataList": [objective]}
    trial = replace(
        workload,
        kind=JobKind.TRAINING,
        hyperparameters={"max_depth": str(3 + number), "eta": "0.1"},
        answer=of_search,
    )
    name = f"{run.name}-{number + 1:03d}-{0x9E3779B9 * (number + 1) % 2**32:08x}"
    return recording(Run(trial, name, begin, f"{run.seed} {number}"))
