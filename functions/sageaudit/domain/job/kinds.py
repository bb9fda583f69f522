"""The kinds of job that are audited: one row each says all that differs by kind.

Sources: botocore's sagemaker model (calls, ARNs, requests); EventBridge's SageMaker events; AWS's
page on CloudWatch metrics of SageMaker jobs; price lists and bills (components and roles); the
console's own addresses as public projects record them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Component(enum.Enum):
    """The Price List API's `component`: what jobs are billed under."""

    TRAINING = "Training"
    PROCESSING = "Processing"
    TRANSFORM = "BatchTransform"


class JobKind(enum.StrEnum):
    """The kinds of job, by the word that documents and command lines use."""

    TRAINING = "training"
    PROCESSING = "processing"
    TRANSFORM = "transform"
    TUNING = "tuning"

    @property
    def row(self) -> KindRow:
        """All that differs by kind."""
        return _ROWS[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPaths:
    """Where a Create*Job request says what the job runs on. None: it has no such parameter."""

    instance_type: str
    instance_count: str
    volume_gb: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMetrics:
    """Where CloudWatch has a kind's series and its logs, under one name."""

    namespace: str
    hosts_numbered: bool
    """Hosts are algo-1 to n; else they are named after instance ids, which only a list tells."""
    disk: bool
    """Whether DiskUtilization is published."""
    algorithm_dimension: str | None = None
    """The dimension of the metrics that the user's code publishes, by the job's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """What differs by kind of job."""

    prefix: str
    """Before JobName, JobArn, JobStatus, StartTime and EndTime in an answer, and in its calls.

    Also the name of the phase in which the user's code runs.
    """
    sdk_noun: str
    """The job in boto3's method names: `describe_training_job`."""
    arn_word: str
    """The resource type in the job's ARN."""
    detail_type: str
    """The event of its end."""
    component: Component
    usage_role: str | None
    """The component in usage types, `EU-Train:ml.m5.large`; None for a kind without a bill."""
    request: RequestPaths | None
    metrics: JobMetrics | None
    console_page: str
    cost_elsewhere: str | None = None
    """Why a job of this kind has no cost of its own: the jobs that it launches are billed."""
    list_children: str | None = None
    """The call that lists the jobs that it launched."""

    @property
    def describe_call(self) -> str:
        """The API's action, as IAM names it."""
        return f"Describe{self.prefix}Job"


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
"""Where a Create*Job request names the instance type."""
COUNT_PATHS = {kind: request.instance_count for kind, request in _REQUESTS.items()}
"""Where it says how many instances."""
VOLUME_PATHS = {
    kind: request.volume_gb for kind, request in _REQUESTS.items() if request.volume_gb is not None
}
"""Where it says the size of each instance's volume, for the kinds that take one."""
