"""The fields of Describe* answers that are kept, and how: the one table of what may be shown.

Names are botocore's; a field that is not here is dropped, whatever it is.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import BILLED_KINDS, JobKind


class Field(enum.Enum):
    """How a field is kept. A member whose value is a text is shown by design: what it shows."""

    COUNT = enum.auto()
    NUMBER = enum.auto()
    SWITCH = enum.auto()
    TIME = enum.auto()
    STATE = enum.auto()
    """A word of AWS's own; any other is Unknown."""
    GIVEN = enum.auto()
    """Only that there is something."""
    FAILURE = enum.auto()
    """The known words of a message."""
    PULL = enum.auto()
    """Whether the message of a Downloading phase mentions the image."""
    TYPE = "instance type"
    JOB = "name of the job"
    ARN = "ARN of the job, and of what started it"
    IMAGE = "container image without its digest; name of an algorithm"
    MODEL = "name of the model, without times and hashes"
    ADDRESS = "S3 bucket, and whether the address names a version of its data"
    CHANNEL = "name of an input or output"
    GROUP = "name of an instance group"
    METRIC = "name of a metric of the job's code"
    RULE = "name of a Debugger rule"


Shape = Mapping[str, "Field | Shape | list[Shape]"]
_INSTANCES: Shape = {"InstanceType": Field.TYPE, "InstanceCount": Field.COUNT}
_CLUSTER: Shape = {
    **_INSTANCES,
    "SelectedInstanceType": Field.TYPE,
    "SelectedInstanceCount": Field.COUNT,
    "VolumeSizeInGB": Field.COUNT,
}
_S3: Shape = {"S3Uri": Field.ADDRESS, "S3DataDistributionType": Field.STATE}
_OBJECTIVE: Shape = {"MetricName": Field.METRIC, "Type": Field.STATE}
_RULE: Shape = {"RuleConfigurationName": Field.RULE, "InstanceType": Field.TYPE}
_EVALUATION: Shape = {
    "RuleConfigurationName": Field.RULE,
    "RuleEvaluationStatus": Field.STATE,
    "StatusDetails": Field.FAILURE,
    "LastModifiedTime": Field.TIME,
}
FIELDS: Shape = {
    # Every kind.
    **{kind.row.name_key: Field.JOB for kind in JobKind},
    **{kind.row.arn_key: Field.ARN for kind in JobKind},
    **{kind.row.status_key: Field.STATE for kind in JobKind},
    **{f"{kind.row.prefix}StartTime": Field.TIME for kind in BILLED_KINDS},
    **{f"{kind.row.prefix}EndTime": Field.TIME for kind in JobKind},
    **dict.fromkeys(("CreationTime", "LastModifiedTime"), Field.TIME),
    **dict.fromkeys(("FailureReason", "ExitMessage"), Field.FAILURE),
    **dict.fromkeys(
        ("TuningJobArn", "AutoMLJobArn", "LabelingJobArn", "MonitoringScheduleArn"), Field.ARN
    ),
    "StoppingCondition": dict.fromkeys(
        ("MaxRuntimeInSeconds", "MaxWaitTimeInSeconds"), Field.COUNT
    ),
    # Training jobs.
    "SecondaryStatus": Field.STATE,
    "AlgorithmSpecification": {
        "TrainingImage": Field.IMAGE,
        "AlgorithmName": Field.IMAGE,
        "TrainingInputMode": Field.STATE,
        "MetricDefinitions": [{"Name": Field.METRIC}],
    },
    "ResourceConfig": {
        **_CLUSTER,
        "KeepAlivePeriodInSeconds": Field.COUNT,
        "InstanceGroups": [{**_INSTANCES, "InstanceGroupName": Field.GROUP}],
        "TrainingPlanArn": Field.GIVEN,
        "InstancePreferences": [{"InstanceType": Field.TYPE, "TrainingPlanArns": Field.GIVEN}],
    },
    "InputDataConfig": [
        {
            "ChannelName": Field.CHANNEL,
            "InputMode": Field.STATE,
            "DataSource": {
                "S3DataSource": _S3,
                "FileSystemDataSource": {"FileSystemType": Field.STATE},
            },
        }
    ],
    "OutputDataConfig": {"S3OutputPath": Field.ADDRESS, "CompressionType": Field.STATE},
    "CheckpointConfig": {"S3Uri": Field.ADDRESS},
    "ModelArtifacts": {"S3ModelArtifacts": Field.GIVEN},
    "WarmPoolStatus": {
        "Status": Field.STATE,
        "ResourceRetainedBillableTimeInSeconds": Field.COUNT,
    },
    "SecondaryStatusTransitions": [
        {
            "Status": Field.STATE,
            "StartTime": Field.TIME,
            "EndTime": Field.TIME,
            "StatusMessage": Field.PULL,
        }
    ],
    "FinalMetricDataList": [
        {"MetricName": Field.METRIC, "Value": Field.NUMBER, "Timestamp": Field.TIME}
    ],
    **dict.fromkeys(("EnableManagedSpotTraining", "EnableNetworkIsolation"), Field.SWITCH),
    **dict.fromkeys(("TrainingTimeInSeconds", "BillableTimeInSeconds"), Field.COUNT),
    "ServerlessJobConfig": Field.GIVEN,
    "ProfilingStatus": Field.STATE,
    "ProfilerConfig": {"DisableProfiler": Field.SWITCH, "S3OutputPath": Field.GIVEN},
    "ProfilerRuleConfigurations": [_RULE],
    "DebugRuleConfigurations": [_RULE],
    "ProfilerRuleEvaluationStatuses": [_EVALUATION],
    "DebugRuleEvaluationStatuses": [_EVALUATION],
    # Processing jobs.
    "ProcessingResources": {"ClusterConfig": _CLUSTER},
    "AppSpecification": {"ImageUri": Field.IMAGE},
    "NetworkConfig": {"EnableNetworkIsolation": Field.SWITCH},
    "ProcessingInputs": [
        {"InputName": Field.CHANNEL, "S3Input": {**_S3, "S3InputMode": Field.STATE}}
    ],
    "ProcessingOutputConfig": {
        "Outputs": [
            {
                "OutputName": Field.CHANNEL,
                "AppManaged": Field.SWITCH,
                "S3Output": {"S3Uri": Field.ADDRESS, "S3UploadMode": Field.STATE},
            }
        ]
    },
    # Transform jobs.
    "ModelName": Field.MODEL,
    "TransformResources": _INSTANCES,
    "TransformInput": {"DataSource": {"S3DataSource": {"S3Uri": Field.ADDRESS}}},
    "TransformOutput": {"S3OutputPath": Field.ADDRESS},
    "BatchStrategy": Field.STATE,
    **dict.fromkeys(("MaxConcurrentTransforms", "MaxPayloadInMB"), Field.COUNT),
    # Tuning jobs.
    "HyperParameterTuningJobConfig": {
        "Strategy": Field.STATE,
        "TrainingJobEarlyStoppingType": Field.STATE,
        "HyperParameterTuningJobObjective": _OBJECTIVE,
        "ResourceLimits": dict.fromkeys(
            ("MaxNumberOfTrainingJobs", "MaxParallelTrainingJobs"), Field.COUNT
        ),
    },
    "TrainingJobDefinitions": [{"TuningObjective": _OBJECTIVE}],
    "TrainingJobStatusCounters": dict.fromkeys(
        ("Completed", "InProgress", "RetryableError", "NonRetryableError", "Stopped"), Field.COUNT
    ),
}
"""The fields that are kept, with how. The names are botocore's."""


Read = Callable[[Field, Mapping[str, Any], str], Any]
"""What becomes of a field: how it is kept, the section that it is in, and its key."""


def walked(section: Mapping[str, Any], shape: Shape, read: Read) -> dict[str, Any]:
    """The fields of a shape that a section has, each as `read` gives it. Raises Malformed."""
    kept: dict[str, Any] = {}
    for key, inner in shape.items():
        if section.get(key) is None:
            if key in section:
                kept[key] = None
        elif isinstance(inner, Field):
            kept[key] = read(inner, section, key)
        elif isinstance(inner, list):
            kept[key] = [walked(item, inner[0], read) for item in fields.items(section, key)]
        else:
            kept[key] = walked(fields.section(section, key), inner, read)
    return kept


def shown_fields() -> Iterator[tuple[tuple[str, ...], Field]]:
    """The paths of the fields whose text is shown by design; "*" stands for a place in a list."""
    yield from _shown(FIELDS, ())


def _shown(shape: Shape, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    for key, inner in shape.items():
        if isinstance(inner, Field):
            if isinstance(inner.value, str):
                yield (*path, key), inner
        elif isinstance(inner, list):
            yield from _shown(inner[0], (*path, key, "*"))
        else:
            yield from _shown(inner, (*path, key))
