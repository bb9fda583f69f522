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
    AUTOML = "automl"

    @property
    def spec(self) -> KindSpec:
        """The facts about this kind of job."""
        return _ROWS[self]


class JobMetrics(Struct, frozen=True, kw_only=True):
    """CloudWatch namespace and log group of a kind, which have the same name."""

    namespace: str
    has_numbered_hosts: bool
    """True: hosts are algo-1 to algo-n. False: they are named after instance ids; list them."""
    has_disk_metric: bool
    """Whether DiskUtilization is published."""
    algorithm_dimension: str | None = None
    """The dimension with the job's name, for metrics that the user's code publishes."""


class S3Inputs(Struct, frozen=True, kw_only=True):
    """The keys of the inputs' S3 addresses in answers and requests of a kind."""

    list_key: str | None = None
    """The key of the list of inputs; None: there is one input."""
    name_key: str | None = None
    """The key of an input's name in that list."""
    source: str
    """The path of an input's S3 source, in the list or at the top."""

    @property
    def address(self) -> str:
        """The path of an input's address, in the list or at the top."""
        return f"{self.source}.S3Uri"

    @property
    def distribution(self) -> str | None:
        """The path in a request that says how hosts share an input, with {} for the input's name;
        None if there is one input.
        """
        return self.list_key and f"{self.list_key}[{{}}].{self.source}.S3DataDistributionType"


class ChildList(Struct, frozen=True, kw_only=True):
    """The API action that lists the jobs of a roll-up, and where they are in a page."""

    action: str
    rows_key: str
    """The key of a page's list."""
    steps_key: str | None = None
    """The key of the list of jobs in each row; None: a row is a job."""
    arn_key: str
    name_key: str
    is_resource_limited: bool = False
    """Whether an IAM policy may limit the action to certain jobs."""


class RollUp(Struct, frozen=True, kw_only=True):
    """A kind whose jobs launch other jobs. Its audit sums theirs, and is not included in other
    sums.

    A launched job is in the roll-up's family, and gets no message of its own.
    """

    child_key: str
    """The key in a launched job's answer that has the roll-up's ARN."""
    child_list: ChildList
    child_kind: JobKind | None = None
    """The only kind of the jobs that it launches; None: any kind with a bill."""
    definition_key: str | None = None
    """The key of the request for its jobs, in its own request and answer; with an "s", the key of a
    list of such requests. None: it has no such requests."""
    children_label: str
    """The jobs that it launches, in text for people: a plural that ends in "jobs"."""
    has_child_count: bool = False
    """Whether Describe returns the number of the jobs that it launched; else they are listed."""
    has_name_prefix: bool = False
    """Whether the names of its jobs begin with its own name, so that a list of jobs shows which are
    its."""
    is_search: bool = False
    """Whether its jobs are trials of a search. A trial's metric is its result, even without a
    model, and the search sets its parameters."""

    @property
    def child_label(self) -> str:
        """One of its launched jobs, for people."""
        return self.children_label.removesuffix("s")

    @property
    def cost_label(self) -> str:
        """Where its cost is, for people."""
        return f"the cost is on the {self.children_label} that it launched"


class KindSpec(Struct, frozen=True, kw_only=True):
    """The facts that differ between kinds of jobs."""

    label: str
    """A job of the kind, for people."""
    longest_name: int = 63
    """The most characters of a name."""
    prefix: str
    """The prefix of JobName, JobArn and JobStatus in answers and events, and of API actions."""
    sdk_noun: str
    """The job in boto3's method names: `create_training_job`."""
    action_suffix: str = ""
    """The ending of the actions Create and Describe of a newer form, such as "V2"."""
    arn_word: str
    """The resource type in the job's ARN."""
    detail_type: str
    """The EventBridge detail-type of its state changes."""
    has_event: bool = True
    """Whether SageMaker sends that event. If not, sweeps find the finished jobs and write the
    event."""
    list_key: str
    """The key of the jobs in an answer of the action that lists them."""
    start_key: str
    """The key of the start time in a Describe answer."""
    end_key: str
    """The key of the end time."""
    single_phase_name: str | None = None
    """The name of the billed phase if the answer has no transitions."""
    has_transitions: bool = False
    """Whether answers have a secondary status and its transitions: the phases, including the
    download of the data."""
    required_key: str = "RoleArn"
    """A key of each request, and of each definition of a roll-up's jobs. An answer without it is
    incomplete, so what it lacks may still be set in the job."""
    image_path: str | None = None
    """The path of its container's image; None if it has none."""
    inputs: S3Inputs | None = None
    """Where its S3 inputs are; None if answers show none."""
    can_hosts_communicate: bool = True
    """Whether its instances may exchange data while they work."""
    cluster_path: str | None = None
    """The path of its instances, in answers and in Create requests; None if it has none."""
    has_volumes: bool = False
    """Whether the cluster has a volume size."""
    component: Component
    usage_role: str | None = None
    """The component in usage types, `EU-Train:ml.m5.large`; None for a kind without a bill."""
    metrics: JobMetrics | None = None
    console_page: str
    rollup: RollUp | None = None

    @property
    def label_with_article(self) -> str:
        """A job of the kind, for people: "a training job", "an AutoML job"."""
        return f"{'an' if self.label[0] in 'AEIOUaeiou' else 'a'} {self.label}"

    @property
    def name_key(self) -> str:
        """The key of the job's name, in answers, events and requests."""
        return f"{self.prefix}JobName"

    @property
    def arn_key(self) -> str:
        """The key of the job's ARN, in answers and events."""
        return f"{self.prefix}JobArn"

    @property
    def status_key(self) -> str:
        """The key of the job's status, in answers and events."""
        return f"{self.prefix}JobStatus"

    @property
    def describe_call(self) -> str:
        """The API's action, as IAM names it."""
        return f"Describe{self.prefix}Job{self.action_suffix}"

    @property
    def describe_method(self) -> str:
        """The action as a method of boto3's client."""
        return "_".join(filter(None, ("describe", self.sdk_noun, self.action_suffix.lower())))

    @property
    def list_call(self) -> str:
        """The API's action that lists an account's jobs of this kind."""
        return f"List{self.prefix}Jobs"

    @property
    def list_method(self) -> str:
        """The action as a method of boto3's client."""
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
    # DescribeAutoMLJobV2 answers for jobs of CreateAutoMLJob and of CreateAutoMLJobV2, and
    # DescribeAutoMLJob only for jobs of the former (botocore). AWS documents no AutoML job events.
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
"""By kind: the path of the instance type in requests."""
COUNT_PATHS = {kind: f"{kind.spec.cluster_path}.InstanceCount" for kind in BILLED_KINDS}
"""By kind: the path of the instance count in requests."""
VOLUME_PATHS = {
    kind: f"{kind.spec.cluster_path}.VolumeSizeInGB"
    for kind in BILLED_KINDS
    if kind.spec.has_volumes
}
"""By kind: the path of the volume size (GB) in requests, for kinds with a volume."""
IMAGE_PATHS = {kind: kind.spec.image_path for kind in JobKind if kind.spec.image_path is not None}
"""By kind: the path of the image, in answers and requests, for kinds that name one."""


def kind_from_answer(answer: Mapping[str, Any]) -> JobKind | None:
    """Returns the kind whose `...JobName` and `...JobStatus` a Describe* answer has, or None."""
    for kind in JobKind:
        if kind.spec.name_key in answer and kind.spec.status_key in answer:
            return kind
    return None
