"""The kinds of job that are audited, with everything that differs by kind in one row each.

Sources: botocore's sagemaker model (calls, ARNs, requests); EventBridge's SageMaker events; AWS's
page on CloudWatch metrics of SageMaker jobs; price lists and bills (components and roles); the
console's own addresses as public projects record them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class Component(enum.Enum):
    """The Price List API's `component` that jobs are billed under."""

    TRAINING = "Training"
    PROCESSING = "Processing"
    TRANSFORM = "BatchTransform"


class JobKind(enum.StrEnum):
    """The kinds of job, with the words used in documents and on the command line."""

    TRAINING = "training"
    PROCESSING = "processing"
    TRANSFORM = "transform"
    TUNING = "tuning"

    @property
    def row(self) -> KindRow:
        """Everything that differs by kind."""
        return _ROWS[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPaths:
    """Paths in a Create*Job request of the instances and volumes. None: no such parameter."""

    instance_type: str
    instance_count: str
    volume_gb: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMetrics:
    """CloudWatch namespace and log group of a kind, which have the same name."""

    namespace: str
    hosts_numbered: bool
    """True: hosts are algo-1 to algo-n. False: they are named after instance ids; list them."""
    disk: bool
    """Whether DiskUtilization is published."""
    algorithm_dimension: str | None = None
    """The dimension that contains the job's name, of metrics that the user's code publishes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """What differs by kind of job."""

    prefix: str
    """The prefix of JobName, JobArn, JobStatus, StartTime and EndTime in answers, and in calls.

    Also the name of the phase in which the user's code runs.
    """
    sdk_noun: str
    """The job in boto3's method names: `describe_training_job`."""
    arn_word: str
    """The resource type in the job's ARN."""
    detail_type: str
    """The EventBridge detail-type of its state changes."""
    component: Component
    usage_role: str | None
    """The component in usage types, `EU-Train:ml.m5.large`; None for a kind without a bill."""
    request: RequestPaths | None
    metrics: JobMetrics | None
    console_page: str
    cost_elsewhere: str | None = None
    """Why a job of this kind has no cost of its own (the jobs that it launches are billed)."""
    list_children: str | None = None
    """The API action that lists the jobs that it launched."""

    @property
    def describe_call(self) -> str:
        """The API's action, as IAM names it."""
        return f"Describe{self.prefix}Job"

    @property
    def list_call(self) -> str:
        """The API's action that lists an account's jobs of this kind."""
        return f"List{self.prefix}Jobs"


_ROWS = {
    JobKind.TRAINING: KindRow(
        prefix="Training",
        sdk_noun="training_job",
        arn_word="training-job",
        detail_type="SageMaker Training Job State Change",
        component=Component.TRAINING,
        usage_role="Train",
        request=RequestPaths(
            instance_type="ResourceConfig.InstanceType",
            instance_count="ResourceConfig.InstanceCount",
            volume_gb="ResourceConfig.VolumeSizeInGB",
        ),
        metrics=JobMetrics(
            namespace="/aws/sagemaker/TrainingJobs",
            hosts_numbered=True,
            disk=True,
            algorithm_dimension="TrainingJobName",
        ),
        console_page="jobs",
    ),
    JobKind.PROCESSING: KindRow(
        prefix="Processing",
        sdk_noun="processing_job",
        arn_word="processing-job",
        detail_type="SageMaker Processing Job State Change",
        component=Component.PROCESSING,
        usage_role="Processing",
        request=RequestPaths(
            instance_type="ProcessingResources.ClusterConfig.InstanceType",
            instance_count="ProcessingResources.ClusterConfig.InstanceCount",
            volume_gb="ProcessingResources.ClusterConfig.VolumeSizeInGB",
        ),
        metrics=JobMetrics(
            namespace="/aws/sagemaker/ProcessingJobs", hosts_numbered=True, disk=True
        ),
        console_page="processing-jobs",
    ),
    JobKind.TRANSFORM: KindRow(
        prefix="Transform",
        sdk_noun="transform_job",
        arn_word="transform-job",
        detail_type="SageMaker Transform Job State Change",
        component=Component.TRANSFORM,
        usage_role="Tsform",
        request=RequestPaths(
            instance_type="TransformResources.InstanceType",
            instance_count="TransformResources.InstanceCount",
            volume_gb=None,
        ),
        metrics=JobMetrics(
            namespace="/aws/sagemaker/TransformJobs", hosts_numbered=False, disk=False
        ),
        console_page="transform-jobs",
    ),
    JobKind.TUNING: KindRow(
        prefix="HyperParameterTuning",
        sdk_noun="hyper_parameter_tuning_job",
        arn_word="hyper-parameter-tuning-job",
        detail_type="SageMaker HyperParameter Tuning Job State Change",
        component=Component.TRAINING,
        usage_role=None,
        request=None,
        metrics=None,
        console_page="hyper-tuning-jobs",
        cost_elsewhere="the cost is on the training jobs that it launched",
        list_children="ListTrainingJobsForHyperParameterTuningJob",
    ),
}

BILLED_KINDS = tuple(kind for kind in JobKind if kind.row.usage_role is not None)
"""The kinds with a bill of their own."""

_REQUESTS = {kind: kind.row.request for kind in JobKind if kind.row.request is not None}
TYPE_PATHS = {kind: request.instance_type for kind, request in _REQUESTS.items()}
"""By kind: the request's path of the instance type."""
COUNT_PATHS = {kind: request.instance_count for kind, request in _REQUESTS.items()}
"""By kind: the request's path of the instance count."""
VOLUME_PATHS = {
    kind: request.volume_gb for kind, request in _REQUESTS.items() if request.volume_gb is not None
}
"""By kind: the request's path of the volume size in GB, for kinds with a volume."""


def kind_of(answer: Mapping[str, Any]) -> JobKind | None:
    """The kind whose `...JobName` and `...JobStatus` are in a Describe* answer, or None."""
    for kind in JobKind:
        if f"{kind.row.prefix}JobName" in answer and f"{kind.row.prefix}JobStatus" in answer:
            return kind
    return None
