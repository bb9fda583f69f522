"""How each field of a Describe answer is read: whole answers, one field at a time, invalid
values.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.job.describe import parse, sanitize_answer
from sageaudit.domain.job.family import family
from sageaudit.domain.job.fields import Shape, StoredAs
from sageaudit.domain.job.job import InstanceGroup, Job, Parent, Purchase
from sageaudit.domain.job.job_fields import STORED_FIELDS
from sageaudit.domain.job.kinds import JobKind, kind_from_answer
from sageaudit.domain.job.parts import (
    DataSource,
    Direction,
    InputChannel,
    Objective,
    ProcessingOutput,
    TransformBatching,
    TuningSettings,
    WarmPool,
)
from sageaudit.errors import MalformedData
from tests.fakes.jobs import ACCOUNT, REGION, training_answer, transition

TRAINING = JobKind.TRAINING
PROCESSING = JobKind.PROCESSING
TRANSFORM = JobKind.TRANSFORM
TUNING = JobKind.TUNING
AUTOML = JobKind.AUTOML
ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}"
PLAN = f"{ARN}:training-plan/p5-week"
ANSWERS: dict[JobKind, dict[str, Any]] = {
    TRAINING: training_answer(),
    PROCESSING: {
        "ProcessingJobName": "clean",
        "ProcessingJobArn": f"{ARN}:processing-job/clean",
        "ProcessingJobStatus": "Completed",
        "ProcessingResources": {
            "ClusterConfig": {
                "InstanceCount": 3,
                "InstanceType": "ml.m5.xlarge",
                "VolumeSizeInGB": 30,
            }
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "AppSpecification": {
            "ImageUri": f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/proc:1",
            "ContainerEntrypoint": ["python3", "/opt/ml/processing/input/code/clean.py"],
        },
        "ProcessingInputs": [
            {"InputName": "code", "S3Input": {"S3Uri": "s3://b/c", "S3InputMode": "File"}},
            {"InputName": "athena", "DatasetDefinition": {}},
        ],
        "CreationTime": 1763629200.0,
        "ProcessingStartTime": 1763629400.0,
        "ProcessingEndTime": 1763630600.0,
    },
    TRANSFORM: {
        "TransformJobName": "score",
        "TransformJobArn": f"{ARN}:transform-job/score",
        "TransformJobStatus": "Completed",
        "ModelName": "ranker-2026-05-20-10-00-00-000",
        "TransformResources": {"InstanceType": "ml.m5.large", "InstanceCount": 2},
        "BatchStrategy": "MultiRecord",
        "CreationTime": 1763629200.0,
        "TransformStartTime": 1763629300.0,
        "TransformEndTime": 1763629900.0,
    },
    TUNING: {
        "HyperParameterTuningJobName": "sweep",
        "HyperParameterTuningJobArn": f"{ARN}:hyper-parameter-tuning-job/sweep",
        "HyperParameterTuningJobStatus": "Completed",
        "HyperParameterTuningJobConfig": {
            "Strategy": "Bayesian",
            "TrainingJobEarlyStoppingType": "Auto",
        },
        "TrainingJobStatusCounters": {
            "Completed": 6,
            "InProgress": 0,
            "RetryableError": 1,
            "NonRetryableError": 1,
            "Stopped": 2,
        },
        "CreationTime": 1763629200.0,
        "HyperParameterTuningEndTime": 1763636400.0,
    },
    AUTOML: {
        "AutoMLJobName": "churn",
        "AutoMLJobArn": f"{ARN}:automl-job/churn",
        "AutoMLJobStatus": "Completed",
        "AutoMLProblemTypeConfigName": "Tabular",
        "CreationTime": 1763629200.0,
        "EndTime": 1763636400.0,
    },
}
"""Runs of some kinds: an hour on two instances, 20 minutes on three, 10 on two, ten trials, two
hours of candidates."""


def answer(kind: JobKind, **changes: Any) -> dict[str, Any]:
    """Returns the answer of a kind with some keys changed, or absent (...).

    A kind without an answer in the table above has a name and a status.
    """
    bare = {kind.spec.name_key: "job", kind.spec.status_key: "Completed"}
    whole = ANSWERS.get(kind, bare) | changes
    return {key: value for key, value in whole.items() if value is not ...}


def read(kind: JobKind, **changes: Any) -> Job:
    """Returns the job of an answer."""
    return parse(answer(kind, **changes), {"team": "vision"}, key=b"secret")


@pytest.mark.parametrize("kind", JobKind)
def test_the_kind_is_read_from_name_and_status(kind: JobKind) -> None:
    """No other fields are used."""
    assert (kind_from_answer(answer(kind)), read(kind).kind) == (kind, kind)
    for absent in (kind.spec.name_key, kind.spec.status_key):
        assert kind_from_answer(answer(kind, **{absent: ...})) is None
        with pytest.raises(MalformedData, match="describe"):
            read(kind, **{absent: ...})
    assert kind_from_answer({"EndpointName": "e", "EndpointStatus": "InService"}) is None


def test_a_whole_answer_is_read() -> None:
    """Every fact that the audit uses comes from its field."""
    job = read(TRAINING)
    assert (job.name, job.status, job.account, job.region) == (
        "train-vision",
        "Completed",
        ACCOUNT,
        REGION,
    )
    assert (job.training_s, job.billable_s) == (Decimal(3600), Decimal(3600))
    assert job.started_at == datetime(2026, 5, 20, 10, 0, tzinfo=UTC)
    assert job.ended_at == datetime(2026, 5, 20, 11, 0, tzinfo=UTC)
    assert (job.tags, job.has_artifact) == ({"team": "vision"}, True)


def test_the_callers_account_and_region_come_before_the_arns() -> None:
    """A recording's account and region; an ARN of the local mode has none."""
    job = parse(training_answer(), {}, account="999999999999", region="eu-west-1")
    assert (job.account, job.region) == ("999999999999", "eu-west-1")
    job = read(TRAINING, TrainingJobArn="local:arn-does-not-matter")
    assert (job.arn, job.account, job.region) == ("local:arn-does-not-matter", None, None)


NO_TIMES = dict.fromkeys(
    ("TrainingStartTime", "TrainingEndTime", "TrainingTimeInSeconds", "BillableTimeInSeconds"), ...
)


@pytest.mark.parametrize(
    ("kind", "changes", "phases", "elapsed_s"),
    [
        pytest.param(
            TRAINING,
            {},
            [
                ("Starting", 120, False),
                ("Downloading", 600, True),
                ("Training", 2880, True),
                ("Uploading", 120, True),
            ],
            3600,
            id="a training job has its phases, and is billed from the start",
        ),
        pytest.param(
            TRAINING,
            {
                **NO_TIMES,
                "TrainingJobStatus": "Failed",
                "SecondaryStatusTransitions": [transition("Starting", "09:58:00", "10:05:00")],
            },
            [("Starting", 420, False)],
            None,
            id='start, end and seconds "may not be present" in a job that failed early',
        ),
        pytest.param(
            TRAINING,
            {"SecondaryStatusTransitions": ..., "TrainingTimeInSeconds": ...},
            [("Starting", 120, False), ("Running", 3600, True)],
            3600,
            id="an answer of 2018: waiting and one billed run stand in for the phases",
        ),
        pytest.param(
            TRAINING,
            {"SecondaryStatusTransitions": [transition("Starting", "09:58:00")]},
            [("Starting", 120, False), ("Running", 3600, True)],
            3600,
            id="a started and ended job whose answer lists only Starting still ran in between",
        ),
        # the transitions stand in for a start and an end
        pytest.param(
            TRAINING,
            {**NO_TIMES},
            [
                ("Starting", 120, False),
                ("Downloading", 600, True),
                ("Training", 2880, True),
                ("Uploading", 120, True),
            ],
            3600,
            id="the transitions stand in for a missing start and end",
        ),
        pytest.param(
            TRAINING,
            {
                "SecondaryStatusTransitions": [
                    transition("Downloading", "10:00:00", "11:00:00"),
                    transition("Training", "10:30:00"),
                ]
            },
            [("Downloading", 1800, True), ("Training", 1800, True)],
            3600,
            id="a phase ends where the next one starts, whatever its own end says",
        ),
        pytest.param(
            PROCESSING,
            {},
            [("Starting", 200, False), ("Processing", 1200, True)],
            1200,
            id="a processing job has waiting and its work",
        ),
        pytest.param(
            PROCESSING,
            {"ProcessingStartTime": ..., "ProcessingJobStatus": "Failed"},
            [],
            None,
            id="a processing job that never started was not billed",
        ),
        pytest.param(
            TRANSFORM,
            {},
            [("Starting", 100, False), ("Transform", 600, True)],
            600,
            id="a transform job has waiting and its work",
        ),
        pytest.param(TUNING, {}, [], 7200, id="a tuning job has no phases"),
    ],
)
def test_the_run_is_read(
    kind: JobKind,
    changes: dict[str, Any],
    phases: list[tuple[str, int, bool]],
    elapsed_s: int | None,
) -> None:
    """Phases with their seconds. Without a start, nothing was billed."""
    job = read(kind, **changes)
    assert [(p.name, p.seconds, p.billed) for p in job.phases] == phases
    assert (job.elapsed_s, job.has_never_started) == (elapsed_s, elapsed_s is None)


P5 = "ml.p5.48xlarge"
P4 = "ml.p4d.24xlarge"
PREFERENCES = [
    {"InstanceType": P5, "InstanceCount": 1, "TrainingPlanArns": [PLAN]},
    {"InstanceType": P4, "InstanceCount": 2},
]
GROUP_A = {"InstanceGroupName": "a", "InstanceType": "ml.g5.2xlarge", "InstanceCount": 1}
COUNT = "the instance count is not known"
TYPE = "the instance type is not known"


@pytest.mark.parametrize(
    ("resources", "groups", "purchase", "unknown"),
    [
        pytest.param(
            {"InstanceType": P5, "InstanceCount": 1},
            [(P5, 1)],
            Purchase.ON_DEMAND,
            (),
            id="one type and its count",
        ),
        pytest.param(
            {"InstanceType": P5, "InstanceCount": 1, "TrainingPlanArn": PLAN},
            [(P5, 1)],
            Purchase.TRAINING_PLAN,
            (),
            id="a training plan is prepaid",
        ),
        # preferences only ask: the job is billed for the selected type, and its plan decides
        pytest.param(
            {
                "InstancePreferences": PREFERENCES,
                "SelectedInstanceType": P5,
                "SelectedInstanceCount": 1,
            },
            [(P5, 1)],
            Purchase.TRAINING_PLAN,
            (),
            id="the selected type of the preferences is billed, and its plan decides",
        ),
        pytest.param(
            {
                "InstancePreferences": PREFERENCES,
                "SelectedInstanceType": P4,
                "SelectedInstanceCount": 2,
            },
            [(P4, 2)],
            Purchase.ON_DEMAND,
            (),
            id="another selected type without a plan is bought on demand",
        ),
        pytest.param(
            {
                "InstanceCount": 2,
                "InstancePreferences": [{"InstanceType": P5, "TrainingPlanArns": [PLAN]}],
                "SelectedInstanceType": P5,
                "SelectedInstanceCount": 2,
            },
            [(P5, 2)],
            Purchase.TRAINING_PLAN,
            (),
            id="one count for all preferences may stand in the cluster",
        ),
        pytest.param(
            {"InstancePreferences": PREFERENCES},
            [],
            Purchase.ON_DEMAND,
            (),
            id="preferences without a selection are not billed",
        ),
        pytest.param(
            {
                "InstanceGroups": [
                    GROUP_A,
                    {**GROUP_A, "InstanceGroupName": "b", "InstanceCount": 3},
                ]
            },
            [("ml.g5.2xlarge", 1, "a"), ("ml.g5.2xlarge", 3, "b")],
            Purchase.ON_DEMAND,
            (),
            id="each instance group has its own count",
        ),
        # an unknown part does not count as 0
        pytest.param(
            {"InstanceType": P5}, [], Purchase.ON_DEMAND, (COUNT,), id="a type without its count"
        ),
        pytest.param(
            {"InstanceType": P5, "InstanceCount": 0},
            [],
            Purchase.ON_DEMAND,
            (COUNT,),
            id="a count of 0 is not known",
        ),
        pytest.param(
            {"SelectedInstanceType": P4, "InstanceType": P5, "InstanceCount": 1},
            [],
            Purchase.ON_DEMAND,
            (COUNT,),
            id="a selected type without a selected count",
        ),
        pytest.param(
            {"SelectedInstanceCount": 2},
            [],
            Purchase.ON_DEMAND,
            (TYPE,),
            id="a count without its type",
        ),
        pytest.param({}, [], Purchase.ON_DEMAND, (), id="no resources at all"),
        pytest.param(
            {"InstanceGroups": [GROUP_A, {"InstanceGroupName": "b", "InstanceType": P4}]},
            [("ml.g5.2xlarge", 1, "a")],
            Purchase.ON_DEMAND,
            ("instance group b: its count is not known",),
            id="a group without its count",
        ),
        pytest.param(
            {"InstanceGroups": [GROUP_A, {"InstanceGroupName": "b", "InstanceCount": 8}]},
            [("ml.g5.2xlarge", 1, "a")],
            Purchase.ON_DEMAND,
            ("instance group b: its type is not known",),
            id="a group without its type",
        ),
    ],
)
def test_the_billed_instances_are_the_selected_ones(
    resources: dict[str, Any],
    groups: list[tuple[Any, ...]],
    purchase: Purchase,
    unknown: tuple[str, ...],
) -> None:
    """Only training jobs have groups and training plans. Processing jobs have the rest, too."""
    jobs = [read(TRAINING, ResourceConfig=resources)]
    if purchase is Purchase.ON_DEMAND and "InstanceGroups" not in resources:
        jobs.append(read(PROCESSING, ProcessingResources={"ClusterConfig": resources}))
    for job in jobs:
        assert job.groups == tuple(InstanceGroup(*group) for group in groups)
        assert (job.purchase, job.groups_unknown) == (purchase, unknown)


def channel(data: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Returns InputDataConfig with one channel."""
    return {"InputDataConfig": [{"ChannelName": "train", "DataSource": data, **more}]}


def steps(*statuses: str) -> dict[str, Any]:
    """Returns transitions to these statuses."""
    made = [transition(status, f"10:0{n}:00") for n, status in enumerate(statuses)]
    return {"SecondaryStatusTransitions": made}


def pulls(*messages: tuple[str, str | None]) -> dict[str, Any]:
    """Returns transitions with a message each."""
    made = [
        {**transition(status, f"10:0{n}:00"), "StatusMessage": message}
        for n, (status, message) in enumerate(messages)
    ]
    return {"SecondaryStatusTransitions": made}


def metrics(*names: str | None) -> dict[str, Any]:
    """Returns definitions of algorithm metrics."""
    definitions = [{"Name": name, "Regex": "x"} for name in names]
    return {"AlgorithmSpecification": {"MetricDefinitions": definitions}}


def finals(*values: tuple[str, object]) -> dict[str, Any]:
    """Returns the final values of algorithm metrics."""
    return {"FinalMetricDataList": [{"MetricName": n, "Value": v} for n, v in values]}


S3 = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/d"}}
SHARDED = {"S3DataSource": {"S3Uri": "s3://b/20260520", "S3DataDistributionType": "ShardedByS3Key"}}
MODEL = {"S3ModelArtifacts": "s3://b/m"}
PULLED = "Downloading the training image"
DATA = "Downloading input data"
RULES = "503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest"
OUTPUTS = [
    {"OutputName": "train", "S3Output": {"S3Uri": "s3://b/t", "S3UploadMode": "EndOfJob"}},
    {"OutputName": "logs", "S3Output": {"S3Uri": "s3://b/l", "S3UploadMode": "Continuous"}},
    # what the application writes itself, or a feature store takes, has no upload mode
    {"OutputName": "own", "S3Output": {"S3UploadMode": "EndOfJob"}, "AppManaged": True},
    {"FeatureStoreOutput": {"FeatureGroupName": "g"}},
]
PINNED = {"InputName": "d", "S3Input": {"S3Uri": "s3://b/20260520/x"}}
TRANSFORMED = {"DataSource": {"S3DataSource": {"S3Uri": "s3://b/2026-05-20/x"}}}
KEPT_ALIVE = {"KeepAlivePeriodInSeconds": 1800}
IN_POOL = {"ResourceRetainedBillableTimeInSeconds": 640}


@pytest.mark.parametrize(
    ("kind", "changes", "field", "value"),
    [
        # absent is None or empty, never False or 0
        *(
            (TRAINING, {}, field, None)
            for field in (
                "warm_pool",
                "parent",
                "output_compression",
                "image_pull_in_download",
                "is_data_pinned",
                "objective",
            )
        ),
        *((TRAINING, {}, field, ()) for field in ("metric_names", "uploads")),
        (TRAINING, {}, "final_metrics", {}),
        (TRAINING, {}, "volume_gb", 50),
        (TRAINING, {}, "max_runtime_s", 86400),
        (TRAINING, {"EnableManagedSpotTraining": True}, "purchase", Purchase.SPOT),
        (TRAINING, {"ServerlessJobConfig": {"JobType": "x"}}, "purchase", Purchase.SERVERLESS),
        (TRAINING, {"StoppingCondition": {"MaxWaitTimeInSeconds": 7200}}, "max_wait_s", 7200),
        (TRAINING, {"CheckpointConfig": {"S3Uri": "s3://b/c"}}, "checkpointed", True),
        (TRAINING, {"OutputDataConfig": {"CompressionType": "NONE"}}, "output_compression", "NONE"),
        # an FSx job reports File mode too, so the source matters; the default is the job's mode
        *(
            (TRAINING, channel(data), "channels", (InputChannel("train", source, "File", None),))
            for data, source in (
                (S3, DataSource.S3),
                ({}, DataSource.OTHER),
                ({"FileSystemDataSource": {"FileSystemType": "EFS"}}, DataSource.EFS),
                ({"FileSystemDataSource": {"FileSystemType": "FSxLustre"}}, DataSource.FSX),
                ({"DatasetSource": {}}, DataSource.OTHER),
            )
        ),
        (
            TRAINING,
            channel(SHARDED, InputMode="FastFile"),
            "channels",
            (InputChannel("train", DataSource.S3, "FastFile", "ShardedByS3Key"),),
        ),
        (TRAINING, channel(SHARDED), "is_data_pinned", True),
        (TRAINING, channel(S3), "is_data_pinned", False),
        # no keep-alive and no status: no pool
        (
            TRAINING,
            {"ResourceConfig": KEPT_ALIVE, "WarmPoolStatus": IN_POOL | {"Status": "InUse"}},
            "warm_pool",
            WarmPool("InUse", 1800, Decimal(640)),
        ),
        (TRAINING, {"ResourceConfig": KEPT_ALIVE}, "warm_pool", WarmPool(None, 1800, None)),
        (TRAINING, {"TuningJobArn": "arn:p"}, "parent", Parent(TUNING.spec.rollup, "arn:p")),
        (TRAINING, {"AutoMLJobArn": "arn:p"}, "parent", Parent(AUTOML.spec.rollup, "arn:p")),
        (TRAINING, {"LabelingJobArn": "arn:p"}, "parent", Parent(None, "arn:p")),
        (TRAINING, {"TuningJobArn": None}, "parent", None),
        (PROCESSING, {"TrainingJobArn": "arn:p"}, "parent", Parent(None, "arn:p")),
        (PROCESSING, {"AutoMLJobArn": "arn:p"}, "parent", Parent(AUTOML.spec.rollup, "arn:p")),
        (TRANSFORM, {"AutoMLJobArn": "arn:p"}, "parent", Parent(AUTOML.spec.rollup, "arn:p")),
        (AUTOML, {}, "parent", None),
        # Describe may name the path of a model that was never written; an answer without it says
        # only the transitions of a run that ended early show that nothing was uploaded
        *(
            (TRAINING, {**steps(*statuses), "ModelArtifacts": artifacts}, "has_artifact", left)
            for statuses, artifacts, left in (
                (("Training", "Stopping", "Uploading"), MODEL, True),
                (("Training", "Stopping"), MODEL, None),
                (("Training",), {}, False),
                (("Training",), None, False),
                ((), MODEL, None),
                (("Training", "Stopping", "MaxRuntimeExceeded"), ..., False),
                (("Training", "Stopping", "Uploading", "MaxRuntimeExceeded"), ..., True),
                (("Training", "Failed"), ..., False),
                (("Training", "Stopping"), ..., None),
                (("Training", "Completed"), ..., None),
                ((), ..., None),
            )
        ),
        # each once, in their order; 40 at most, none longer than CloudWatch takes
        (TRAINING, metrics("loss", "auc", "loss"), "metric_names", ("loss", "auc")),
        (TRAINING, metrics(None, "", "a" * 256, "a" * 255), "metric_names", ("a" * 255,)),
        (
            TRAINING,
            metrics(*(f"m{n}" for n in range(60))),
            "metric_names",
            tuple(f"m{n}" for n in range(40)),
        ),
        # those that have a last value: the others were never published; of a trial its objective
        (
            TRAINING,
            metrics("loss", "auc", "f1") | finals(("auc", 1), ("f1", 2)),
            "metric_names",
            ("auc", "f1"),
        ),
        *(
            (
                TRAINING,
                metrics("loss", "auc")
                | finals(("loss", 1), ("auc", 2))
                | {"HyperParameters": {"_tuning_objective_metric": tuned}},
                "metric_names",
                result,
            )
            for tuned, result in (("auc", ("auc",)), ("f1", ("loss", "auc")))
        ),
        # as AWS prints them; the last one of a name counts; values that are not finite are left out
        (
            TRAINING,
            finals(("auc", 0.91), ("loss", 3), ("loss", Decimal("2.5"))),
            "final_metrics",
            {"auc": Decimal("0.91"), "loss": Decimal("2.5")},
        ),
        *(
            (TRAINING, finals(("loss", value)), "final_metrics", {})
            for value in (
                float("nan"),
                float("inf"),
                Decimal("NaN"),
                Decimal("Infinity"),
                10**400,
                None,
            )
        ),
        # only Downloading's own message counts: Training's names the image in every job
        *(
            (TRAINING, pulls(*messages), "image_pull_in_download", pulled)
            for messages, pulled in (
                ([("Downloading", None)], None),
                ([("Downloading", DATA)], False),
                ([("Downloading", PULLED)], True),
                ([("Downloading", DATA), ("Interrupted", "x"), ("Downloading", PULLED)], True),
                ([("DownloadingTrainingImage", PULLED)], True),
                ([("Training", "Training image download completed.")], None),
            )
        ),
        (PROCESSING, {}, "groups", (InstanceGroup("ml.m5.xlarge", 3),)),
        (PROCESSING, {}, "volume_gb", 30),
        (PROCESSING, {}, "max_runtime_s", 3600),
        (PROCESSING, {}, "entry_point", "clean.py"),
        (
            PROCESSING,
            {},
            "channels",
            (
                InputChannel("code", DataSource.S3, "File", None),
                InputChannel("athena", DataSource.OTHER, None, None),
            ),
        ),
        (PROCESSING, {"AppSpecification": {"ImageUri": RULES}}, "free", "built-in Debugger rule"),
        (PROCESSING, {}, "free", None),
        (
            PROCESSING,
            {"ProcessingOutputConfig": {"Outputs": OUTPUTS}},
            "uploads",
            (
                ProcessingOutput("train", "EndOfJob"),
                ProcessingOutput("logs", "Continuous"),
                ProcessingOutput("own", None),
                ProcessingOutput("output", None),
            ),
        ),
        # a query's answer may differ each time
        (PROCESSING, {"ProcessingInputs": [PINNED]}, "is_data_pinned", True),
        (PROCESSING, {"ProcessingInputs": [PINNED, {"InputName": "q"}]}, "is_data_pinned", None),
        # the API of transform jobs has no volume; empty strings are absent
        (TRANSFORM, {}, "volume_gb", None),
        (TRANSFORM, {}, "instance_count", 2),
        (TRANSFORM, {}, "entry_point", "ranker"),
        (TRANSFORM, {"LabelingJobArn": "", "FailureReason": ""}, "parent", None),
        (TRANSFORM, {"LabelingJobArn": "", "FailureReason": ""}, "failure", None),
        (TRANSFORM, {"TransformInput": TRANSFORMED}, "is_data_pinned", True),
        (TRANSFORM, {}, "is_data_pinned", None),
        (TRAINING, {}, "batch", TransformBatching()),
        (TRANSFORM, {"BatchStrategy": ...}, "batch", TransformBatching()),
        (
            TRANSFORM,
            {"MaxConcurrentTransforms": 1, "MaxPayloadInMB": 6},
            "batch",
            TransformBatching("MultiRecord", 1, 6),
        ),
        # 0 concurrent transforms leave it to the container, as if none were given
        (
            TRANSFORM,
            {"MaxConcurrentTransforms": 0, "MaxPayloadInMB": 0},
            "batch",
            TransformBatching("MultiRecord", None, 0),
        ),
        (TUNING, {}, "groups", ()),
    ],
)
def test_a_field_is_read(kind: JobKind, changes: dict[str, Any], field: str, value: object) -> None:
    """It is read from its own place in the answer."""
    assert getattr(read(kind, **changes), field) == value


@pytest.mark.parametrize(
    ("status", "final"),
    [("Available", False), ("InUse", False), ("Terminated", True), ("Reused", True)],
)
def test_a_warm_pool_is_final_when_it_is_gone(status: str, final: bool) -> None:
    """Until then its billable seconds still grow."""
    assert WarmPool(status, 1800, Decimal(640)).is_final is final


def plan(config: dict[str, Any], **changes: Any) -> TuningSettings:
    """Returns the search of a tuning job's answer."""
    result = read(TUNING, HyperParameterTuningJobConfig=config, **changes).tuning
    assert result is not None
    return result


def test_a_tuning_jobs_plan_is_read() -> None:
    """Limits and counters: 6 + 0 + 1 + 1 + 2 trials. Absent ones are unknown, not zero."""
    result = plan(
        {
            **ANSWERS[TUNING]["HyperParameterTuningJobConfig"],
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 30, "MaxParallelTrainingJobs": 3},
        }
    )
    assert (result.launched_count, result.strategy, result.early_stopping) == (
        10,
        "Bayesian",
        "Auto",
    )
    assert (result.max_jobs, result.max_parallel) == (30, 3)
    bare = plan({}, TrainingJobStatusCounters=...)
    assert (bare.objective, bare.max_jobs, bare.max_parallel, bare.launched_count) == (None,) * 4


MAX_AUC = {"MetricName": "auc", "Type": "Maximize"}


@pytest.mark.parametrize(
    ("own", "shared", "objective"),
    [
        (None, [], None),
        ({"MetricName": "loss", "Type": "Minimize"}, [], Objective("loss", Direction.MINIMIZE)),
        ({"MetricName": "loss", "Type": "Sideways"}, [], Objective("loss", None)),
        ({"Type": "Minimize"}, [], None),
        (None, [MAX_AUC] * 2, Objective("auc", Direction.MAXIMIZE)),
        (None, [MAX_AUC, {"MetricName": "loss"}], None),
    ],
)
def test_the_objective_is_the_jobs_or_one_that_all_definitions_share(
    own: dict[str, str] | None, shared: list[dict[str, str]], objective: Objective | None
) -> None:
    """Several definitions may each have their own. If these differ, there is no single one."""
    config = {"HyperParameterTuningJobObjective": own} if own else {}
    definitions = [{"TuningObjective": item} for item in shared]
    assert plan(config, TrainingJobDefinitions=definitions).objective == objective


def test_a_trial_has_the_objective_of_its_tuning_job() -> None:
    """It is stored without the hyperparameters, too, but only if it is one of the job's own
    metrics.
    """
    own = metrics("validation:auc")
    trial = answer(TRAINING, **own, HyperParameters={"_tuning_objective_metric": "validation:auc"})
    wanted = Objective("validation:auc", None)
    assert parse(trial, {}).objective == parse(sanitize_answer(trial), {}).objective == wanted
    assert sanitize_answer(sanitize_answer(trial)) == sanitize_answer(trial)
    secret = answer(TRAINING, **own, HyperParameters={"_tuning_objective_metric": "hunter2"})
    assert (parse(secret, {}).objective, read(TRAINING, **own).objective) == (None, None)
    assert "TunedFor" not in sanitize_answer(secret)["Derived"]


def test_pipeline_tags_name_pipeline_and_step() -> None:
    """SageMaker Pipelines tags the jobs that it starts."""
    tags = {
        "sagemaker:pipeline-step-name": "Train",
        "sagemaker:pipeline-execution-arn": f"{ARN}:pipeline/nightly/execution/abc123",
    }
    assert parse(training_answer(), tags).pipeline_step == "pipeline/nightly/Train"


WRONG: dict[StoredAs, list[Any]] = {
    StoredAs.COUNT: ["soon", -5],
    StoredAs.NUMBER: ["low", True],
    StoredAs.FLAG: ["yes", 1],
    StoredAs.TIME: ["noon", {}, True],
    StoredAs.PRESENCE: [],
}
NO_LISTS: list[Any] = [{}, "x", [5]]
NO_OBJECTS: list[Any] = [[], "x"]


def nonsense(shape: Shape) -> Iterator[tuple[str, dict[str, Any]]]:
    """Returns answers with a value of another type in one field of the table, with its key."""
    for key, inner in shape.items():
        if isinstance(inner, StoredAs):
            wrong = WRONG.get(inner, [5, []])
            yield from ((key, {"Status": "Downloading"} | {key: value}) for value in wrong)
        elif isinstance(inner, list):
            yield from ((key, {key: value}) for value in NO_LISTS)
            yield from ((name, {key: [item]}) for name, item in nonsense(inner[0]))
        else:
            yield from ((key, {key: value}) for value in NO_OBJECTS)
            yield from ((name, {key: section}) for name, section in nonsense(inner))


def test_an_invalid_field_is_refused_with_its_key() -> None:
    """So a reader of the error knows which field is wrong."""
    for key, section in nonsense(STORED_FIELDS):
        with pytest.raises(MalformedData) as caught:
            sanitize_answer(section)
        assert caught.value.key == key


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"FailureReason": {"a": 1}}, "FailureReason"),
        ({"HyperParameters": []}, "HyperParameters"),
        ({"Environment": "A=1"}, "Environment"),
        ({"Derived": {"Hints": []}}, "Hints"),
    ],
)
def test_an_invalid_answer_is_refused(changes: dict[str, Any], key: str) -> None:
    """Also in fields of which only signs are read."""
    with pytest.raises(MalformedData) as caught:
        read(TRAINING, **changes)
    assert caught.value.key == key


def test_texts_of_the_user_stay_out_of_the_job() -> None:
    """Hyperparameters, environment, inline commands. Of failures and verdicts, known words are
    kept.
    """
    job = read(TRAINING, HyperParameters={"api_key": "hunter2"}, Environment={"TOKEN": "s3cr3t"})
    assert "hunter2" not in repr(job)
    assert "s3cr3t" not in repr(job)
    failed = read(TRAINING, FailureReason="AlgorithmError: login failed for AKIAABCDEFGHIJKLMNOP")
    assert str(failed.failure) == "AlgorithmError: code error"
    assert (
        str(read(PROCESSING, ExitMessage="exit code 137").failure)
        == "exit code 137: host out of memory"
    )
    inline = ["bash", "-c", "python x.py --password=hunter2secret"]
    command = answer(PROCESSING, AppSpecification={"ContainerEntrypoint": inline})
    assert "hunter2" not in family(parse(command, {})) + str(sanitize_answer(command))
