"""The fields of Describe* answers that are kept, and how: the one table of what may be shown.

Names are botocore's; a field that is not here is dropped, whatever it is.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import JobKind

UNKNOWN = "Unknown"
"""In place of a state that the packaged service model does not have."""


class KeptAs(enum.Enum):
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


Shape = Mapping[str, "KeptAs | Shape | list[Shape]"]
_INSTANCES: Shape = {"InstanceType": KeptAs.TYPE, "InstanceCount": KeptAs.COUNT}
_CLUSTER: Shape = {
    **_INSTANCES,
    "SelectedInstanceType": KeptAs.TYPE,
    "SelectedInstanceCount": KeptAs.COUNT,
    "VolumeSizeInGB": KeptAs.COUNT,
    "VolumeKmsKeyId": KeptAs.GIVEN,
}
_NETWORK: Shape = {
    "VpcConfig": KeptAs.GIVEN,
    "EnableNetworkIsolation": KeptAs.SWITCH,
    "EnableInterContainerTrafficEncryption": KeptAs.SWITCH,
}
_STOPPING = dict.fromkeys(("MaxRuntimeInSeconds", "MaxWaitTimeInSeconds"), KeptAs.COUNT)
_KEEP_ALIVE = {"KeepAlivePeriodInSeconds": KeptAs.COUNT}
_RETRIES = {"MaximumRetryAttempts": KeptAs.COUNT}
_OUTPUT: Shape = {"CompressionType": KeptAs.STATE, "KmsKeyId": KeptAs.GIVEN}
_S3: Shape = {"S3Uri": KeptAs.ADDRESS, "S3DataDistributionType": KeptAs.STATE}
_OBJECTIVE: Shape = {"MetricName": KeptAs.METRIC, "Type": KeptAs.STATE}
_RULE: Shape = {"RuleConfigurationName": KeptAs.RULE, "InstanceType": KeptAs.TYPE}
_DEFINITION: Shape = {
    **_NETWORK,
    "AlgorithmSpecification": {"TrainingInputMode": KeptAs.STATE},
    "ResourceConfig": {
        "VolumeSizeInGB": KeptAs.COUNT,
        "VolumeKmsKeyId": KeptAs.GIVEN,
        **_KEEP_ALIVE,
    },
    "OutputDataConfig": _OUTPUT,
    "CheckpointConfig": {"S3Uri": KeptAs.ADDRESS},
    "StoppingCondition": _STOPPING,
    "RetryStrategy": _RETRIES,
    "EnableManagedSpotTraining": KeptAs.SWITCH,
}
"""What a tuning job asks for each of its training jobs, as far as a policy may require it."""
FIELDS: Shape = {
    # Every kind.
    **{kind.row.name_key: KeptAs.JOB for kind in JobKind},
    **{kind.row.arn_key: KeptAs.ARN for kind in JobKind},
    **{kind.row.status_key: KeptAs.STATE for kind in JobKind},
    **{kind.row.start_key: KeptAs.TIME for kind in JobKind},
    **{kind.row.end_key: KeptAs.TIME for kind in JobKind},
    **dict.fromkeys(("CreationTime", "LastModifiedTime"), KeptAs.TIME),
    **dict.fromkeys(("FailureReason", "ExitMessage"), KeptAs.FAILURE),
    **dict.fromkeys(
        (
            *(kind.row.rollup.child_key for kind in JobKind if kind.row.rollup),
            *("LabelingJobArn", "MonitoringScheduleArn"),
        ),
        KeptAs.ARN,
    ),
    "StoppingCondition": _STOPPING,
    # Training jobs.
    **_NETWORK,
    "SecondaryStatus": KeptAs.STATE,
    "AlgorithmSpecification": {
        "TrainingImage": KeptAs.IMAGE,
        "AlgorithmName": KeptAs.IMAGE,
        "TrainingInputMode": KeptAs.STATE,
        "MetricDefinitions": [{"Name": KeptAs.METRIC}],
    },
    "ResourceConfig": {
        **_CLUSTER,
        **_KEEP_ALIVE,
        "InstanceGroups": [{**_INSTANCES, "InstanceGroupName": KeptAs.GROUP}],
        "TrainingPlanArn": KeptAs.GIVEN,
        "InstancePreferences": [{"InstanceType": KeptAs.TYPE, "TrainingPlanArns": KeptAs.GIVEN}],
    },
    "InputDataConfig": [
        {
            "ChannelName": KeptAs.CHANNEL,
            "InputMode": KeptAs.STATE,
            "DataSource": {
                "S3DataSource": _S3,
                "FileSystemDataSource": {"FileSystemType": KeptAs.STATE},
            },
        }
    ],
    "OutputDataConfig": _OUTPUT,
    "CheckpointConfig": {"S3Uri": KeptAs.ADDRESS},
    "RetryStrategy": _RETRIES,
    "ModelArtifacts": {"S3ModelArtifacts": KeptAs.GIVEN},
    "WarmPoolStatus": {
        "Status": KeptAs.STATE,
        "ResourceRetainedBillableTimeInSeconds": KeptAs.COUNT,
    },
    "SecondaryStatusTransitions": [
        {
            "Status": KeptAs.STATE,
            "StartTime": KeptAs.TIME,
            "EndTime": KeptAs.TIME,
            "StatusMessage": KeptAs.PULL,
        }
    ],
    "FinalMetricDataList": [
        {"MetricName": KeptAs.METRIC, "Value": KeptAs.NUMBER, "Timestamp": KeptAs.TIME}
    ],
    "EnableManagedSpotTraining": KeptAs.SWITCH,
    **dict.fromkeys(("TrainingTimeInSeconds", "BillableTimeInSeconds"), KeptAs.COUNT),
    "ServerlessJobConfig": KeptAs.GIVEN,
    "ProfilerRuleConfigurations": [_RULE],
    "DebugRuleConfigurations": [_RULE],
    # Processing jobs.
    "ProcessingResources": {"ClusterConfig": _CLUSTER},
    "NetworkConfig": _NETWORK,
    "AppSpecification": {"ImageUri": KeptAs.IMAGE},
    "ProcessingInputs": [
        {"InputName": KeptAs.CHANNEL, "S3Input": {**_S3, "S3InputMode": KeptAs.STATE}}
    ],
    "ProcessingOutputConfig": {
        "KmsKeyId": KeptAs.GIVEN,
        "Outputs": [
            {
                "OutputName": KeptAs.CHANNEL,
                "AppManaged": KeptAs.SWITCH,
                "S3Output": {"S3UploadMode": KeptAs.STATE},
            }
        ],
    },
    # Transform jobs.
    "ModelName": KeptAs.MODEL,
    "TransformResources": {**_INSTANCES, "VolumeKmsKeyId": KeptAs.GIVEN},
    "TransformOutput": {"KmsKeyId": KeptAs.GIVEN},
    "TransformInput": {"DataSource": {"S3DataSource": {"S3Uri": KeptAs.ADDRESS}}},
    "BatchStrategy": KeptAs.STATE,
    **dict.fromkeys(("MaxConcurrentTransforms", "MaxPayloadInMB"), KeptAs.COUNT),
    # Tuning jobs.
    "HyperParameterTuningJobConfig": {
        "Strategy": KeptAs.STATE,
        "TrainingJobEarlyStoppingType": KeptAs.STATE,
        "HyperParameterTuningJobObjective": _OBJECTIVE,
        "ResourceLimits": dict.fromkeys(
            ("MaxNumberOfTrainingJobs", "MaxParallelTrainingJobs"), KeptAs.COUNT
        ),
    },
    "TrainingJobDefinition": _DEFINITION,
    "TrainingJobDefinitions": [{"TuningObjective": _OBJECTIVE, **_DEFINITION}],
    "TrainingJobStatusCounters": dict.fromkeys(
        ("Completed", "InProgress", "RetryableError", "NonRetryableError", "Stopped"), KeptAs.COUNT
    ),
}


Read = Callable[[KeptAs, Mapping[str, Any], str], Any]
"""What becomes of a field: how it is kept, the section that it is in, and its key."""


def walked(section: Mapping[str, Any], shape: Shape, read: Read) -> dict[str, Any]:
    """The fields of a shape that a section has, each as `read` gives it. Raises Malformed."""
    kept: dict[str, Any] = {}
    for key, inner in shape.items():
        if section.get(key) is None:
            if key in section:
                kept[key] = None
        elif isinstance(inner, KeptAs):
            kept[key] = read(inner, section, key)
        elif isinstance(inner, list):
            kept[key] = [walked(item, inner[0], read) for item in fields.items(section, key)]
        else:
            kept[key] = walked(fields.section(section, key), inner, read)
    return kept


def shown_fields(
    shape: Shape = FIELDS, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], KeptAs]]:
    """The paths of the fields whose text is shown by design; "*" stands for a place in a list."""
    for key, inner in shape.items():
        if isinstance(inner, KeptAs):
            if isinstance(inner.value, str):
                yield (*path, key), inner
        elif isinstance(inner, list):
            yield from shown_fields(inner[0], (*path, key, "*"))
        else:
            yield from shown_fields(inner, (*path, key))
