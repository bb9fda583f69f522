"""The audited kinds of job, with everything that differs by kind in one row each.

Sources: botocore's sagemaker model (calls, ARNs, requests); EventBridge's SageMaker events; AWS's
page on CloudWatch metrics of SageMaker jobs; price lists and bills (components and roles); the
console's own addresses as public projects record them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Component(enum.Enum):
    """The values of the Price List API's `component` for jobs."""

    TRAINING = "Training"
    PROCESSING = "Processing"
    TRANSFORM = "BatchTransform"


class JobKind(enum.StrEnum):
    """A kind of job. The values are used in documents and on the command line."""

    TRAINING = "training"
    PROCESSING = "processing"
    TRANSFORM = "transform"
    TUNING = "tuning"
    AUTOML = "automl"

    @property
    def spec(self) -> KindSpec:
        """The facts about this kind of job."""
        return _ROWS[self]


class JobMetrics(Struct, frozen=True, kw_only=True):
    """A kind's metrics in CloudWatch. The namespace and the log group have the same name."""

    namespace: str
    has_numbered_hosts: bool
    """Whether hosts are named algo-1 to algo-n. Other hosts have instance ids as names, and must be
    listed."""
    has_disk_metric: bool
    """Whether SageMaker publishes DiskUtilization."""
    algorithm_dimension: str | None = None
    """The dimension that has the job's name, for metrics that the user's code publishes."""


class S3Inputs(Struct, frozen=True, kw_only=True):
    """The keys of the inputs' S3 addresses, in answers and requests of a kind."""

    list_key: str | None = None
    """The key of the list of inputs; None if the kind has one input."""
    name_key: str | None = None
    """The key of an input's name, inside an item of the list; None if the kind has one input."""
    source: str
    """The path of an input's S3 source, inside an item of the list; without a list, inside the
    answer."""

    @property
    def address(self) -> str:
        """The path of an input's S3 address. It begins where `source` begins."""
        return f"{self.source}.S3Uri"

    @property
    def distribution(self) -> str | None:
        """The path in a request that says how hosts share an input; None if the kind has one input.

        The path has {} in place of the input's name.
        """
        return self.list_key and f"{self.list_key}[{{}}].{self.source}.S3DataDistributionType"


class ChildList(Struct, frozen=True, kw_only=True):
    """The API action that lists a roll-up's jobs, and the keys of the jobs in its answer."""

    action: str
    rows_key: str
    """The key of the list in a page."""
    steps_key: str | None = None
    """The key of the list of jobs in each row; None if each row is a job."""
    arn_key: str
    name_key: str
    is_resource_limited: bool = False
    """Whether an IAM policy may limit the action to certain jobs."""


class RollUp(Struct, frozen=True, kw_only=True):
    """A kind of job that launches other jobs.

    The audit of a roll-up sums the audits of the launched jobs, and is in no other sum. A launched
    job belongs to the roll-up's family and gets no message of its own.
    """

    child_key: str
    """The key of the roll-up's ARN in a launched job's answer."""
    child_list: ChildList
    child_kind: JobKind | None = None
    """The only kind of the launched jobs; None if they may be of any billed kind."""
    definition_key: str | None = None
    """The key of the request for the launched jobs, in a roll-up's own request and answer. The same
    key with an "s" has a list of requests. None if there are no such requests."""
    children_label: str
    """The launched jobs, in text for people. It is a plural that ends in "jobs"."""
    has_child_count: bool = False
    """Whether Describe returns the number of the launched jobs. If not, sageaudit lists them."""
    has_name_prefix: bool = False
    """Whether the names of the launched jobs begin with the roll-up's name."""
    is_search: bool = False
    """Whether the launched jobs are trials of a search, which sets their parameters. A trial's
    metric is a result even without a model."""

    @property
    def child_label(self) -> str:
        """One launched job, in text for people."""
        return self.children_label.removesuffix("s")

    @property
    def cost_label(self) -> str:
        """Why a roll-up has no cost of its own, in text for people."""
        return f"the cost is on the {self.children_label} that it launched"


class KindSpec(Struct, frozen=True, kw_only=True):
    """The facts that differ between kinds of jobs."""

    label: str
    """The name of a job of the kind, in text for people."""
    longest_name: int = 63
    """The maximum number of characters in a job's name."""
    prefix: str
    """The prefix of JobName, JobArn and JobStatus in answers and events, and of API actions."""
    sdk_noun: str
    """The word for the job in boto3's method names: `training_job` in `create_training_job`."""
    action_suffix: str = ""
    """The ending of the names of newer Create and Describe actions, such as "V2"."""
    arn_word: str
    """The resource type in the job's ARN."""
    detail_type: str
    """The EventBridge detail-type of a job's state changes."""
    has_event: bool = True
    """Whether SageMaker sends an event when a job ends. If not, sweeps find the finished jobs and
    write the events."""
    list_key: str
    """The key of the list of jobs in an answer of the action that lists jobs."""
    start_key: str
    """The key of the start time in a Describe answer."""
    end_key: str
    """The key of the end time in a Describe answer."""
    single_phase_name: str | None = None
    """The name of the only billed phase if the answer has no transitions."""
    has_transitions: bool = False
    """Whether answers have a secondary status and its transitions, which show the phases."""
    required_key: str = "RoleArn"
    """A key that every request has, and every definition of a roll-up's jobs. An answer without
    this key is incomplete, so the absent settings are unknown."""
    image_path: str | None = None
    """The path of the container's image in answers and requests; None for a kind without an
    image."""
    inputs: S3Inputs | None = None
    """Where the S3 inputs are; None if answers show no inputs."""
    can_hosts_communicate: bool = True
    """Whether a job's instances may exchange data while they work."""
    cluster_path: str | None = None
    """The path of the instances in answers and requests; None for a kind without instances."""
    has_volumes: bool = False
    """Whether the cluster has a volume size."""
    component: Component
    usage_role: str | None = None
    """The word for the component in usage types: `Train` in `EU-Train:ml.m5.large`. None for a kind
    without a bill of its own."""
    metrics: JobMetrics | None = None
    console_page: str
    rollup: RollUp | None = None

    @property
    def label_with_article(self) -> str:
        """A job of the kind, in text for people: "a training job", "an AutoML job"."""
        return f"{'an' if self.label[0] in 'AEIOUaeiou' else 'a'} {self.label}"

    @property
    def name_key(self) -> str:
        """The key of the job's name in answers, events and requests."""
        return f"{self.prefix}JobName"

    @property
    def arn_key(self) -> str:
        """The key of the job's ARN in answers and events."""
        return f"{self.prefix}JobArn"

    @property
    def status_key(self) -> str:
        """The key of the job's status in answers and events."""
        return f"{self.prefix}JobStatus"

    @property
    def describe_call(self) -> str:
        """The API action that describes a job, in IAM's spelling."""
        return f"Describe{self.prefix}Job{self.action_suffix}"

    @property
    def describe_method(self) -> str:
        """The boto3 method that describes a job."""
        return "_".join(filter(None, ("describe", self.sdk_noun, self.action_suffix.lower())))

    @property
    def list_call(self) -> str:
        """The API action that lists an account's jobs of this kind."""
        return f"List{self.prefix}Jobs"

    @property
    def list_method(self) -> str:
        """The boto3 method that lists an account's jobs of this kind."""
        return f"list_{self.sdk_noun}s"


_ROWS = {
    JobKind.TRAINING: KindSpec(
        label="training job",
        prefix="Training",
        sdk_noun="training_job",
        arn_word="training-job",
        detail_type="SageMaker Training Job State Change",
        list_key="TrainingJobSummaries",
        start_key="TrainingStartTime",
        end_key="TrainingEndTime",
        single_phase_name="Running",
        has_transitions=True,
        image_path="AlgorithmSpecification.TrainingImage",
        inputs=S3Inputs(
            list_key="InputDataConfig", name_key="ChannelName", source="DataSource.S3DataSource"
        ),
        cluster_path="ResourceConfig",
        has_volumes=True,
        component=Component.TRAINING,
        usage_role="Train",
        metrics=JobMetrics(
            namespace="/aws/sagemaker/TrainingJobs",
            has_numbered_hosts=True,
            has_disk_metric=True,
            algorithm_dimension="TrainingJobName",
        ),
        console_page="jobs",
    ),
    JobKind.PROCESSING: KindSpec(
        label="processing job",
        prefix="Processing",
        sdk_noun="processing_job",
        arn_word="processing-job",
        detail_type="SageMaker Processing Job State Change",
        list_key="ProcessingJobSummaries",
        start_key="ProcessingStartTime",
        end_key="ProcessingEndTime",
        single_phase_name="Processing",
        image_path="AppSpecification.ImageUri",
        inputs=S3Inputs(list_key="ProcessingInputs", name_key="InputName", source="S3Input"),
        cluster_path="ProcessingResources.ClusterConfig",
        has_volumes=True,
        component=Component.PROCESSING,
        usage_role="Processing",
        metrics=JobMetrics(
            namespace="/aws/sagemaker/ProcessingJobs", has_numbered_hosts=True, has_disk_metric=True
        ),
        console_page="processing-jobs",
    ),
    JobKind.TRANSFORM: KindSpec(
        label="transform job",
        prefix="Transform",
        sdk_noun="transform_job",
        arn_word="transform-job",
        detail_type="SageMaker Transform Job State Change",
        list_key="TransformJobSummaries",
        start_key="TransformStartTime",
        end_key="TransformEndTime",
        single_phase_name="Transform",
        required_key="TransformOutput",
        inputs=S3Inputs(source="TransformInput.DataSource.S3DataSource"),
        can_hosts_communicate=False,
        cluster_path="TransformResources",
        component=Component.TRANSFORM,
        usage_role="Tsform",
        metrics=JobMetrics(
            namespace="/aws/sagemaker/TransformJobs",
            has_numbered_hosts=False,
            has_disk_metric=False,
        ),
        console_page="transform-jobs",
    ),
    JobKind.TUNING: KindSpec(
        label="tuning job",
        longest_name=32,
        prefix="HyperParameterTuning",
        sdk_noun="hyper_parameter_tuning_job",
        arn_word="hyper-parameter-tuning-job",
        detail_type="SageMaker HyperParameter Tuning Job State Change",
        list_key="HyperParameterTuningJobSummaries",
        start_key="CreationTime",
        end_key="HyperParameterTuningEndTime",
        component=Component.TRAINING,
        console_page="hyper-tuning-jobs",
        rollup=RollUp(
            child_key="TuningJobArn",
            child_list=ChildList(
                action="ListTrainingJobsForHyperParameterTuningJob",
                rows_key="TrainingJobSummaries",
                arn_key="TrainingJobArn",
                name_key="TrainingJobName",
                is_resource_limited=True,
            ),
            child_kind=JobKind.TRAINING,
            definition_key="TrainingJobDefinition",
            children_label="training jobs",
            has_child_count=True,
            has_name_prefix=True,
            is_search=True,
        ),
    ),
    # DescribeAutoMLJobV2 takes jobs of CreateAutoMLJob and CreateAutoMLJobV2, DescribeAutoMLJob
    # only jobs of CreateAutoMLJob (botocore). AWS documents no events of AutoML jobs.
    JobKind.AUTOML: KindSpec(
        label="AutoML job",
        longest_name=32,
        prefix="AutoML",
        sdk_noun="auto_ml_job",
        action_suffix="V2",
        arn_word="automl-job",
        detail_type="SageMaker AutoML Job State Change",
        has_event=False,
        list_key="AutoMLJobSummaries",
        start_key="CreationTime",
        end_key="EndTime",
        component=Component.TRAINING,
        console_page="automl-jobs",
        rollup=RollUp(
            child_key="AutoMLJobArn",
            child_list=ChildList(
                action="ListCandidatesForAutoMLJob",
                rows_key="Candidates",
                steps_key="CandidateSteps",
                arn_key="CandidateStepArn",
                name_key="CandidateStepName",
            ),
            children_label="jobs",
        ),
    ),
}

BILLED_KINDS = tuple(kind for kind in JobKind if kind.spec.usage_role is not None)
"""The kinds with a bill of their own."""
TYPE_PATHS = {kind: f"{kind.spec.cluster_path}.InstanceType" for kind in BILLED_KINDS}
"""The path of the instance type in requests, by kind."""
COUNT_PATHS = {kind: f"{kind.spec.cluster_path}.InstanceCount" for kind in BILLED_KINDS}
"""The path of the instance count in requests, by kind."""
VOLUME_PATHS = {
    kind: f"{kind.spec.cluster_path}.VolumeSizeInGB"
    for kind in BILLED_KINDS
    if kind.spec.has_volumes
}
"""The path of the volume size (GB) in requests, by kind, for kinds with a volume."""
IMAGE_PATHS = {kind: kind.spec.image_path for kind in JobKind if kind.spec.image_path is not None}
"""The path of the image in answers and requests, by kind, for kinds that name an image."""


def kind_from_answer(answer: Mapping[str, Any]) -> JobKind | None:
    """Returns the kind of the job that a Describe answer is about; None if unknown."""
    for kind in JobKind:
        if kind.spec.name_key in answer and kind.spec.status_key in answer:
            return kind
    return None
