"""The table of a job's fields: which parts of a Describe answer are stored, and how they are read.

All other parts of an answer are dropped. The paths are botocore's. To add a field of a job, add a
row here and a field of Job (or of a part of it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct

from sageaudit.domain.job import course, describe_parts, fields, hints
from sageaudit.domain.job.addresses import is_data_pinned, s3_inputs
from sageaudit.domain.job.describe_parts import Answer
from sageaudit.domain.job.failure_words import Failure, parse_failure
from sageaudit.domain.job.fields import DERIVED, Paths, StoredAs, nest_paths, nested_reader
from sageaudit.domain.job.job import PARENT_KEYS, Hints, Parent, Phase
from sageaudit.domain.job.kinds import IMAGE_PATHS, JobKind
from sageaudit.domain.job.settings import stored_setting_paths

Value_co = TypeVar("Value_co", covariant=True)


class JobField(Struct, Generic[Value_co], frozen=True):
    """A field of Job, the paths of an answer that are stored for it, and its reader.

    `read` may also use values that were derived before the answer was stored (`DERIVED`).
    """

    name: str
    stored_paths: Paths
    read: Callable[[Answer], Value_co]


def _row(
    field: str, path: str, stored_as: StoredAs, read: Callable[[Answer, str], Value_co]
) -> JobField[Value_co]:
    return JobField(field, {path: stored_as}, nested_reader(path, read))


def job_arguments(kind: JobKind, answer: Answer) -> dict[str, Any]:
    """Returns the arguments of Job from an answer. Raises MalformedData if one is invalid."""
    return {row.name: row.read(answer) for row in FIELDS_BY_KIND[kind]}


def _failure(answer: Answer) -> Failure | None:
    return parse_failure(fields.text(answer, "FailureReason") or fields.text(answer, "ExitMessage"))


def _parent(kind: JobKind, answer: Answer) -> Parent | None:
    for key, rollup in PARENT_KEYS.items():
        if key != kind.spec.arn_key and (arn := fields.text(answer, key)):
            return Parent(rollup, arn)
    return None


def _hints(answer: Answer) -> Hints:
    return hints.from_stored(fields.section(fields.section(answer, DERIVED), "Hints"))


def _started_at(kind: JobKind, answer: Answer) -> datetime | None:
    return fields.time(answer, kind.spec.start_key) or _run_times(answer)[0]


def _ended_at(kind: JobKind, answer: Answer) -> datetime | None:
    """Returns when the job ended; None if it has not ended or never started.

    The status transitions count only if the answer has no end time.
    """
    if (end := fields.time(answer, kind.spec.end_key)) is not None:
        return end
    ended_at = _run_times(answer)[1]
    return ended_at if ended_at and _started_at(kind, answer) else None


def _run_times(answer: Answer) -> tuple[datetime | None, datetime | None]:
    return course.run_times_from_transitions(fields.items(answer, "SecondaryStatusTransitions"))


def _phases(kind: JobKind, answer: Answer) -> tuple[Phase, ...]:
    transitions = fields.items(answer, "SecondaryStatusTransitions")
    billable_s = fields.count(answer, "BillableTimeInSeconds")
    start, end = _started_at(kind, answer), _ended_at(kind, answer)
    phases = course.phases_from_transitions(transitions, start, end, billable_s)
    if (
        kind.spec.single_phase_name
        and start is not None
        and not any(phase.billed for phase in phases)
    ):
        created = fields.time(answer, "CreationTime")
        phases = course.phases_without_transitions(kind.spec.single_phase_name, created, start, end)
    return phases


def _common_fields(kind: JobKind) -> Iterator[JobField[Any]]:
    spec = kind.spec
    start = {spec.start_key: StoredAs.TIME, **(_TRANSITIONS if spec.has_transitions else {})}
    end = {spec.end_key: StoredAs.TIME, **(start if spec.has_transitions else {})}
    yield _row("name", spec.name_key, StoredAs.JOB, fields.text)
    yield _row("arn", spec.arn_key, StoredAs.ARN, fields.text)
    yield _row("status", spec.status_key, StoredAs.STATE, fields.text)
    yield JobField(
        "failure", dict.fromkeys(("FailureReason", "ExitMessage"), StoredAs.FAILURE), _failure
    )
    yield _row("created_at", "CreationTime", StoredAs.TIME, fields.time)
    yield _row("last_modified_at", "LastModifiedTime", StoredAs.TIME, fields.time)
    parents = dict.fromkeys(PARENT_KEYS.keys() - {spec.arn_key}, StoredAs.ARN)
    yield JobField("parent", parents, lambda answer: _parent(kind, answer))
    yield JobField("hints", {}, _hints)
    yield JobField("started_at", start, lambda answer: _started_at(kind, answer))
    yield JobField("ended_at", end, lambda answer: _ended_at(kind, answer))
    if spec.single_phase_name:
        paths = {
            "CreationTime": StoredAs.TIME,
            **start,
            **end,
            **(_PHASES if spec.has_transitions else {}),
        }
        yield JobField("phases", paths, lambda answer: _phases(kind, answer))


_TRANSITIONS = {
    "SecondaryStatusTransitions[].Status": StoredAs.STATE,
    "SecondaryStatusTransitions[].StartTime": StoredAs.TIME,
}
_PHASES = {
    "SecondaryStatusTransitions[].EndTime": StoredAs.TIME,
    "BillableTimeInSeconds": StoredAs.COUNT,
}
_INSTANCES = {"InstanceType": StoredAs.TYPE, "InstanceCount": StoredAs.COUNT}
_PREFERENCE_PATHS = {
    **_INSTANCES,
    "SelectedInstanceType": StoredAs.TYPE,
    "SelectedInstanceCount": StoredAs.COUNT,
}
_CLUSTERS = {
    JobKind.TRAINING: {
        **_PREFERENCE_PATHS,
        "InstanceGroups[].InstanceGroupName": StoredAs.GROUP,
        "InstanceGroups[].InstanceType": StoredAs.TYPE,
        "InstanceGroups[].InstanceCount": StoredAs.COUNT,
    },
    JobKind.PROCESSING: _PREFERENCE_PATHS,
}
"""The stored paths of clusters that have more than a type and a count, by kind."""
_PURCHASES = {
    JobKind.TRAINING: {
        "ResourceConfig.TrainingPlanArn": StoredAs.PRESENCE,
        "ResourceConfig.InstancePreferences[].InstanceType": StoredAs.TYPE,
        "ResourceConfig.InstancePreferences[].TrainingPlanArns": StoredAs.PRESENCE,
        "ServerlessJobConfig": StoredAs.PRESENCE,
        "EnableManagedSpotTraining": StoredAs.FLAG,
    }
}
"""The stored paths that show how the capacity was bought, by kind. Other kinds are on demand."""


def _cluster_fields(kind: JobKind) -> Iterator[JobField[Any]]:
    path = kind.spec.cluster_path
    if path is None:
        return
    resources = nested_reader(path, fields.section)
    instance_paths = {
        f"{path}.{key}": stored_as for key, stored_as in _CLUSTERS.get(kind, _INSTANCES).items()
    }

    yield JobField(
        "groups", instance_paths, lambda answer: describe_parts.instances(resources(answer))[0]
    )
    yield JobField(
        "groups_unknown",
        instance_paths,
        lambda answer: describe_parts.instances(resources(answer))[1],
    )
    if purchase_paths := _PURCHASES.get(kind):
        yield JobField(
            "purchase",
            {**instance_paths, **purchase_paths},
            lambda answer: describe_parts.purchase(answer, resources(answer)),
        )
    if kind.spec.has_volumes:
        yield _row("volume_gb", f"{path}.VolumeSizeInGB", StoredAs.COUNT, fields.count)


def _input_fields(kind: JobKind) -> Iterator[JobField[Any]]:
    inputs = kind.spec.inputs
    if inputs is None:
        return
    item = f"{inputs.list_key}[]." if inputs.list_key else ""
    names = {f"{item}{inputs.name_key}": StoredAs.CHANNEL} if inputs.list_key else {}
    yield JobField(
        "is_data_pinned",
        {**names, f"{item}{inputs.address}": StoredAs.ADDRESS},
        lambda answer: is_data_pinned(s3_inputs(kind, answer)),
    )


_ENTRY_POINT = JobField("entry_point", {}, nested_reader(f"{DERIVED}.EntryPoint", fields.text))
_MAX_RUNTIME = _row(
    "max_runtime_s", "StoppingCondition.MaxRuntimeInSeconds", StoredAs.COUNT, fields.count
)
_LAST_METRICS = {
    "FinalMetricDataList[].MetricName": StoredAs.METRIC,
    "FinalMetricDataList[].Value": StoredAs.NUMBER,
}
_PROCESSING_IMAGE = IMAGE_PATHS[JobKind.PROCESSING]
_LIMITS = "HyperParameterTuningJobConfig.ResourceLimits"
_COUNTERS = "TrainingJobStatusCounters"
_FIELDS_BY_KIND: Mapping[JobKind, tuple[JobField[Any], ...]] = {
    JobKind.TRAINING: (
        _row("secondary_status", "SecondaryStatus", StoredAs.STATE, fields.text),
        _row("training_s", "TrainingTimeInSeconds", StoredAs.COUNT, describe_parts.seconds),
        _row("billable_s", "BillableTimeInSeconds", StoredAs.COUNT, describe_parts.seconds),
        JobField(
            "channels",
            {
                "AlgorithmSpecification.TrainingInputMode": StoredAs.STATE,
                "InputDataConfig[].ChannelName": StoredAs.CHANNEL,
                "InputDataConfig[].InputMode": StoredAs.STATE,
                "InputDataConfig[].DataSource.S3DataSource.S3Uri": StoredAs.ADDRESS,
                "InputDataConfig[].DataSource.S3DataSource.S3DataDistributionType": StoredAs.STATE,
                "InputDataConfig[].DataSource.FileSystemDataSource.FileSystemType": StoredAs.STATE,
            },
            describe_parts.training_channels,
        ),
        JobField(
            "image",
            {
                "AlgorithmSpecification.TrainingImage": StoredAs.IMAGE,
                "AlgorithmSpecification.AlgorithmName": StoredAs.IMAGE,
            },
            describe_parts.training_image,
        ),
        _ENTRY_POINT,
        _MAX_RUNTIME,
        _row("max_wait_s", "StoppingCondition.MaxWaitTimeInSeconds", StoredAs.COUNT, fields.count),
        _row("checkpointed", "CheckpointConfig.S3Uri", StoredAs.ADDRESS, fields.has_value),
        JobField(
            "has_artifact",
            {
                "ModelArtifacts.S3ModelArtifacts": StoredAs.PRESENCE,
                "SecondaryStatusTransitions[].Status": StoredAs.STATE,
            },
            describe_parts.has_artifact,
        ),
        JobField(
            "warm_pool",
            {
                "ResourceConfig.KeepAlivePeriodInSeconds": StoredAs.COUNT,
                "WarmPoolStatus.Status": StoredAs.STATE,
                "WarmPoolStatus.ResourceRetainedBillableTimeInSeconds": StoredAs.COUNT,
            },
            describe_parts.warm_pool,
        ),
        JobField(
            "custom_rules",
            {
                "ProfilerRuleConfigurations[].RuleConfigurationName": StoredAs.RULE,
                "ProfilerRuleConfigurations[].InstanceType": StoredAs.TYPE,
                "DebugRuleConfigurations[].RuleConfigurationName": StoredAs.RULE,
                "DebugRuleConfigurations[].InstanceType": StoredAs.TYPE,
            },
            describe_parts.custom_rules,
        ),
        JobField(
            "image_pull_in_download",
            {
                "SecondaryStatusTransitions[].Status": StoredAs.STATE,
                "SecondaryStatusTransitions[].StatusMessage": StoredAs.IMAGE_PULL,
            },
            describe_parts.image_pull_in_download,
        ),
        _row("output_compression", "OutputDataConfig.CompressionType", StoredAs.STATE, fields.text),
        JobField(
            "metric_names",
            {
                "AlgorithmSpecification.MetricDefinitions[].Name": StoredAs.METRIC,
                "FinalMetricDataList[].MetricName": StoredAs.METRIC,
            },
            describe_parts.metric_names,
        ),
        JobField("final_metrics", _LAST_METRICS, describe_parts.final_metrics),
        JobField("objective", {}, describe_parts.objective),
    ),
    JobKind.PROCESSING: (
        JobField(
            "channels",
            {
                "ProcessingInputs[].InputName": StoredAs.CHANNEL,
                "ProcessingInputs[].S3Input.S3InputMode": StoredAs.STATE,
                "ProcessingInputs[].S3Input.S3DataDistributionType": StoredAs.STATE,
            },
            describe_parts.processing_inputs,
        ),
        _row("image", _PROCESSING_IMAGE, StoredAs.IMAGE, fields.text),
        _ENTRY_POINT,
        _MAX_RUNTIME,
        JobField(
            "free",
            {_PROCESSING_IMAGE: StoredAs.IMAGE, "ProcessingJobArn": StoredAs.ARN},
            describe_parts.free_reason,
        ),
        JobField(
            "uploads",
            {
                "ProcessingOutputConfig.Outputs[].OutputName": StoredAs.CHANNEL,
                "ProcessingOutputConfig.Outputs[].AppManaged": StoredAs.FLAG,
                "ProcessingOutputConfig.Outputs[].S3Output.S3UploadMode": StoredAs.STATE,
            },
            describe_parts.uploads,
        ),
    ),
    JobKind.TRANSFORM: (
        _row("entry_point", "ModelName", StoredAs.MODEL, fields.text),
        JobField(
            "batch",
            {
                "BatchStrategy": StoredAs.STATE,
                "MaxConcurrentTransforms": StoredAs.COUNT,
                "MaxPayloadInMB": StoredAs.COUNT,
            },
            describe_parts.batch,
        ),
    ),
    JobKind.TUNING: (
        JobField(
            "tuning",
            {
                "HyperParameterTuningJobConfig.Strategy": StoredAs.STATE,
                "HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType": StoredAs.STATE,
                f"{_LIMITS}.MaxNumberOfTrainingJobs": StoredAs.COUNT,
                f"{_LIMITS}.MaxParallelTrainingJobs": StoredAs.COUNT,
                **{
                    f"{path}.{key}": stored_as
                    for path in (
                        "HyperParameterTuningJobConfig.HyperParameterTuningJobObjective",
                        "TrainingJobDefinitions[].TuningObjective",
                    )
                    for key, stored_as in (
                        ("MetricName", StoredAs.METRIC),
                        ("Type", StoredAs.STATE),
                    )
                },
                f"{_COUNTERS}.Completed": StoredAs.COUNT,
                f"{_COUNTERS}.InProgress": StoredAs.COUNT,
                f"{_COUNTERS}.RetryableError": StoredAs.COUNT,
                f"{_COUNTERS}.NonRetryableError": StoredAs.COUNT,
                f"{_COUNTERS}.Stopped": StoredAs.COUNT,
            },
            describe_parts.tuning,
        ),
    ),
}
FIELDS_BY_KIND = {
    kind: (
        *_common_fields(kind),
        *_cluster_fields(kind),
        *_FIELDS_BY_KIND.get(kind, ()),
        *_input_fields(kind),
    )
    for kind in JobKind
}
"""The rows of fields that each kind of job has."""
_LATEST_TIME_PATHS = {"FinalMetricDataList[].Timestamp": StoredAs.TIME}
"""Stored paths that only `latest_time` reads, to find when a job was last observed."""
STORED_FIELDS = nest_paths(
    *(row.stored_paths for rows in FIELDS_BY_KIND.values() for row in rows),
    stored_setting_paths(),
    _LATEST_TIME_PATHS,
)
"""The shape of the stored part of an answer of any kind, for Job's fields and a policy's
requirements."""
