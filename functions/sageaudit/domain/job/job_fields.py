"""The one table of a job's fields: of each kind what its Describe answer gives, and what is kept
of it.

A row has the field of Job, what of an answer is kept for it, and how it is read from that. All else
of an answer is dropped, whatever it is; names are botocore's. A new field of a job is a row here
and a field of Job (or of a part of it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct

from sageaudit.domain.job import course, describe_parts, fields, hints
from sageaudit.domain.job.addresses import is_data_pinned, s3_inputs
from sageaudit.domain.job.describe_parts import Answer
from sageaudit.domain.job.failure_words import Failure, failure_of
from sageaudit.domain.job.fields import DERIVED, KeptAs, Paths, at, shape_of
from sageaudit.domain.job.job import PARENT_KEYS, Hints, Parent, Phase
from sageaudit.domain.job.kinds import IMAGE_PATHS, JobKind
from sageaudit.domain.job.settings import kept_settings

Value_co = TypeVar("Value_co", covariant=True)


class Row(Struct, Generic[Value_co], frozen=True):
    """A field of Job: the paths of the answer that are kept for it, and how it is read from them.

    What was derived of an answer before it was kept (`DERIVED`) is there for every row.
    """

    field: str
    keeps: Paths
    read: Callable[[Answer], Value_co]


def _row(
    field: str, path: str, kept: KeptAs, read: Callable[[Answer, str], Value_co]
) -> Row[Value_co]:
    """The row of a field that is one value of the answer."""
    return Row(field, {path: kept}, at(path, read))


def fields_of(kind: JobKind, answer: Answer) -> dict[str, Any]:
    """The arguments of Job that an answer of this kind gives. Raises Malformed."""
    return {row.field: row.read(answer) for row in ROWS[kind]}


def _failure(answer: Answer) -> Failure | None:
    return failure_of(fields.text(answer, "FailureReason") or fields.text(answer, "ExitMessage"))


def _parent(kind: JobKind, answer: Answer) -> Parent | None:
    for key, rollup in PARENT_KEYS.items():
        if key != kind.row.arn_key and (arn := fields.text(answer, key)):
            return Parent(rollup, arn)
    return None


def _hints(answer: Answer) -> Hints:
    return hints.restored(fields.section(fields.section(answer, DERIVED), "Hints"))


def _start(kind: JobKind, answer: Answer) -> datetime | None:
    """A training job's transitions stand in for a time that it lacks, as for its end."""
    return fields.time(answer, kind.row.start_key) or _run_of_transitions(answer)[0]


def _end(kind: JobKind, answer: Answer) -> datetime | None:
    if (end := fields.time(answer, kind.row.end_key)) is not None:
        return end
    over = _run_of_transitions(answer)[1]
    return over if over and _start(kind, answer) else None


def _run_of_transitions(answer: Answer) -> tuple[datetime | None, datetime | None]:
    return course.run_of(fields.items(answer, "SecondaryStatusTransitions"))


def _phases(kind: JobKind, answer: Answer) -> tuple[Phase, ...]:
    transitions = fields.items(answer, "SecondaryStatusTransitions")
    billable_s = fields.count(answer, "BillableTimeInSeconds")
    start, end = _start(kind, answer), _end(kind, answer)
    found = course.from_transitions(transitions, start, end, billable_s)
    if kind.row.whole_run and start is not None and not any(phase.billed for phase in found):
        created = fields.time(answer, "CreationTime")
        found = course.whole_run(kind.row.whole_run, created, start, end)
    return found


def _common(kind: JobKind) -> Iterator[Row[Any]]:
    """The rows of every kind."""
    row = kind.row
    start = {row.start_key: KeptAs.TIME, **(_TRANSITIONS if row.in_steps else {})}
    end = {row.end_key: KeptAs.TIME, **(start if row.in_steps else {})}
    yield _row("name", row.name_key, KeptAs.JOB, fields.text)
    yield _row("arn", row.arn_key, KeptAs.ARN, fields.text)
    yield _row("status", row.status_key, KeptAs.STATE, fields.text)
    yield Row("failure", dict.fromkeys(("FailureReason", "ExitMessage"), KeptAs.FAILURE), _failure)
    yield _row("created_at", "CreationTime", KeptAs.TIME, fields.time)
    yield _row("last_modified_at", "LastModifiedTime", KeptAs.TIME, fields.time)
    parents = dict.fromkeys(PARENT_KEYS.keys() - {row.arn_key}, KeptAs.ARN)
    yield Row("parent", parents, lambda answer: _parent(kind, answer))
    yield Row("hints", {}, _hints)
    yield Row("started_at", start, lambda answer: _start(kind, answer))
    yield Row("ended_at", end, lambda answer: _end(kind, answer))
    if row.whole_run:
        whole = {"CreationTime": KeptAs.TIME, **start, **end, **(_PHASES if row.in_steps else {})}
        yield Row("phases", whole, lambda answer: _phases(kind, answer))


_TRANSITIONS = {
    "SecondaryStatusTransitions[].Status": KeptAs.STATE,
    "SecondaryStatusTransitions[].StartTime": KeptAs.TIME,
}
_PHASES = {
    "SecondaryStatusTransitions[].EndTime": KeptAs.TIME,
    "BillableTimeInSeconds": KeptAs.COUNT,
}
_INSTANCES = {"InstanceType": KeptAs.TYPE, "InstanceCount": KeptAs.COUNT}
_SELECTED = {
    **_INSTANCES,
    "SelectedInstanceType": KeptAs.TYPE,
    "SelectedInstanceCount": KeptAs.COUNT,
}
_CLUSTERS = {
    JobKind.TRAINING: {
        **_SELECTED,
        "InstanceGroups[].InstanceGroupName": KeptAs.GROUP,
        "InstanceGroups[].InstanceType": KeptAs.TYPE,
        "InstanceGroups[].InstanceCount": KeptAs.COUNT,
    },
    JobKind.PROCESSING: _SELECTED,
}
"""What a cluster says of its instances, in answers that say more than their type and count."""
_PURCHASES = {
    JobKind.TRAINING: {
        "ResourceConfig.TrainingPlanArn": KeptAs.GIVEN,
        "ResourceConfig.InstancePreferences[].InstanceType": KeptAs.TYPE,
        "ResourceConfig.InstancePreferences[].TrainingPlanArns": KeptAs.GIVEN,
        "ServerlessJobConfig": KeptAs.GIVEN,
        "EnableManagedSpotTraining": KeptAs.SWITCH,
    }
}
"""How they were bought, beside the instances; other kinds are on demand."""


def _of_cluster(kind: JobKind) -> Iterator[Row[Any]]:
    """The instances that the job is billed for, their volume, and how they were bought."""
    path = kind.row.cluster
    if path is None:
        return
    resources = at(path, fields.section)
    keeps = {f"{path}.{key}": kept for key, kept in _CLUSTERS.get(kind, _INSTANCES).items()}

    yield Row("groups", keeps, lambda answer: describe_parts.instances(resources(answer))[0])
    yield Row(
        "groups_unknown", keeps, lambda answer: describe_parts.instances(resources(answer))[1]
    )
    if bought := _PURCHASES.get(kind):
        yield Row(
            "purchase",
            {**keeps, **bought},
            lambda answer: describe_parts.purchase(answer, resources(answer)),
        )
    if kind.row.volumes:
        yield _row("volume_gb", f"{path}.VolumeSizeInGB", KeptAs.COUNT, fields.count)


def _of_inputs(kind: JobKind) -> Iterator[Row[Any]]:
    """Whether the inputs in S3 name a version of their data."""
    inputs = kind.row.inputs
    if inputs is None:
        return
    item = f"{inputs.items}[]." if inputs.items else ""
    names = {f"{item}{inputs.name_key}": KeptAs.CHANNEL} if inputs.items else {}
    yield Row(
        "is_data_pinned",
        {**names, f"{item}{inputs.address}": KeptAs.ADDRESS},
        lambda answer: is_data_pinned(s3_inputs(kind, answer)),
    )


_ENTRY_POINT = Row("entry_point", {}, at(f"{DERIVED}.EntryPoint", fields.text))
_MAX_RUNTIME = _row(
    "max_runtime_s", "StoppingCondition.MaxRuntimeInSeconds", KeptAs.COUNT, fields.count
)
_LAST_METRICS = {
    "FinalMetricDataList[].MetricName": KeptAs.METRIC,
    "FinalMetricDataList[].Value": KeptAs.NUMBER,
}
_PROCESSING_IMAGE = IMAGE_PATHS[JobKind.PROCESSING]
_LIMITS = "HyperParameterTuningJobConfig.ResourceLimits"
_COUNTERS = "TrainingJobStatusCounters"
_OF_KIND: Mapping[JobKind, tuple[Row[Any], ...]] = {
    JobKind.TRAINING: (
        _row("secondary_status", "SecondaryStatus", KeptAs.STATE, fields.text),
        _row("training_s", "TrainingTimeInSeconds", KeptAs.COUNT, describe_parts.seconds),
        _row("billable_s", "BillableTimeInSeconds", KeptAs.COUNT, describe_parts.seconds),
        Row(
            "channels",
            {
                "AlgorithmSpecification.TrainingInputMode": KeptAs.STATE,
                "InputDataConfig[].ChannelName": KeptAs.CHANNEL,
                "InputDataConfig[].InputMode": KeptAs.STATE,
                "InputDataConfig[].DataSource.S3DataSource.S3Uri": KeptAs.ADDRESS,
                "InputDataConfig[].DataSource.S3DataSource.S3DataDistributionType": KeptAs.STATE,
                "InputDataConfig[].DataSource.FileSystemDataSource.FileSystemType": KeptAs.STATE,
            },
            describe_parts.training_channels,
        ),
        Row(
            "image",
            {
                "AlgorithmSpecification.TrainingImage": KeptAs.IMAGE,
                "AlgorithmSpecification.AlgorithmName": KeptAs.IMAGE,
            },
            describe_parts.training_image,
        ),
        _ENTRY_POINT,
        _MAX_RUNTIME,
        _row("max_wait_s", "StoppingCondition.MaxWaitTimeInSeconds", KeptAs.COUNT, fields.count),
        _row("checkpointed", "CheckpointConfig.S3Uri", KeptAs.ADDRESS, fields.has),
        Row(
            "has_artifact",
            {
                "ModelArtifacts.S3ModelArtifacts": KeptAs.GIVEN,
                "SecondaryStatusTransitions[].Status": KeptAs.STATE,
            },
            describe_parts.has_artifact,
        ),
        Row(
            "warm_pool",
            {
                "ResourceConfig.KeepAlivePeriodInSeconds": KeptAs.COUNT,
                "WarmPoolStatus.Status": KeptAs.STATE,
                "WarmPoolStatus.ResourceRetainedBillableTimeInSeconds": KeptAs.COUNT,
            },
            describe_parts.warm_pool,
        ),
        Row(
            "custom_rules",
            {
                "ProfilerRuleConfigurations[].RuleConfigurationName": KeptAs.RULE,
                "ProfilerRuleConfigurations[].InstanceType": KeptAs.TYPE,
                "DebugRuleConfigurations[].RuleConfigurationName": KeptAs.RULE,
                "DebugRuleConfigurations[].InstanceType": KeptAs.TYPE,
            },
            describe_parts.custom_rules,
        ),
        Row(
            "image_pull_in_download",
            {
                "SecondaryStatusTransitions[].Status": KeptAs.STATE,
                "SecondaryStatusTransitions[].StatusMessage": KeptAs.PULL,
            },
            describe_parts.image_pull_in_download,
        ),
        _row("output_compression", "OutputDataConfig.CompressionType", KeptAs.STATE, fields.text),
        Row(
            "metric_names",
            {
                "AlgorithmSpecification.MetricDefinitions[].Name": KeptAs.METRIC,
                "FinalMetricDataList[].MetricName": KeptAs.METRIC,
            },
            describe_parts.metric_names,
        ),
        Row("final_metrics", _LAST_METRICS, describe_parts.final_metrics),
        Row("objective", {}, describe_parts.objective),
    ),
    JobKind.PROCESSING: (
        Row(
            "channels",
            {
                "ProcessingInputs[].InputName": KeptAs.CHANNEL,
                "ProcessingInputs[].S3Input.S3InputMode": KeptAs.STATE,
                "ProcessingInputs[].S3Input.S3DataDistributionType": KeptAs.STATE,
            },
            describe_parts.processing_inputs,
        ),
        _row("image", _PROCESSING_IMAGE, KeptAs.IMAGE, fields.text),
        _ENTRY_POINT,
        _MAX_RUNTIME,
        Row(
            "free",
            {_PROCESSING_IMAGE: KeptAs.IMAGE, "ProcessingJobArn": KeptAs.ARN},
            describe_parts.free,
        ),
        Row(
            "uploads",
            {
                "ProcessingOutputConfig.Outputs[].OutputName": KeptAs.CHANNEL,
                "ProcessingOutputConfig.Outputs[].AppManaged": KeptAs.SWITCH,
                "ProcessingOutputConfig.Outputs[].S3Output.S3UploadMode": KeptAs.STATE,
            },
            describe_parts.uploads,
        ),
    ),
    JobKind.TRANSFORM: (
        _row("entry_point", "ModelName", KeptAs.MODEL, fields.text),
        Row(
            "batch",
            {
                "BatchStrategy": KeptAs.STATE,
                "MaxConcurrentTransforms": KeptAs.COUNT,
                "MaxPayloadInMB": KeptAs.COUNT,
            },
            describe_parts.batch,
        ),
    ),
    JobKind.TUNING: (
        Row(
            "tuning",
            {
                "HyperParameterTuningJobConfig.Strategy": KeptAs.STATE,
                "HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType": KeptAs.STATE,
                f"{_LIMITS}.MaxNumberOfTrainingJobs": KeptAs.COUNT,
                f"{_LIMITS}.MaxParallelTrainingJobs": KeptAs.COUNT,
                **{
                    f"{path}.{key}": kept
                    for path in (
                        "HyperParameterTuningJobConfig.HyperParameterTuningJobObjective",
                        "TrainingJobDefinitions[].TuningObjective",
                    )
                    for key, kept in (("MetricName", KeptAs.METRIC), ("Type", KeptAs.STATE))
                },
                f"{_COUNTERS}.Completed": KeptAs.COUNT,
                f"{_COUNTERS}.InProgress": KeptAs.COUNT,
                f"{_COUNTERS}.RetryableError": KeptAs.COUNT,
                f"{_COUNTERS}.NonRetryableError": KeptAs.COUNT,
                f"{_COUNTERS}.Stopped": KeptAs.COUNT,
            },
            describe_parts.tuning,
        ),
    ),
}
ROWS = {
    kind: (*_common(kind), *_of_cluster(kind), *_OF_KIND.get(kind, ()), *_of_inputs(kind))
    for kind in JobKind
}
"""By kind, the rows of its fields."""
_SEEN_LAST = {"FinalMetricDataList[].Timestamp": KeptAs.TIME}
"""Read by `latest_time` alone, which says until when a job was seen."""
FIELDS = shape_of(
    *(row.keeps for rows in ROWS.values() for row in rows), kept_settings(), _SEEN_LAST
)
"""What is kept of an answer, of whatever kind: what the fields of Job and a policy's requirements
need.
"""
