from __future__ import annotations

from typing import Any

import pytest

from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import DataSource, InstanceGroup, ParentKind, Purchase
from sageaudit.domain.job.kinds import JobKind, kind_of
from sageaudit.domain.job.ref import JobRef
from sageaudit.errors import Malformed
from tests.fakes.jobs import ACCOUNT, REGION, training_answer

ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}"


def processing(**changes: Any) -> dict[str, Any]:
    """A DescribeProcessingJob answer of twenty minutes on three instances."""
    return {
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
    } | changes


def transform(**changes: Any) -> dict[str, Any]:
    """A DescribeTransformJob answer of ten minutes on two instances."""
    return {
        "TransformJobName": "score",
        "TransformJobArn": f"{ARN}:transform-job/score",
        "TransformJobStatus": "Completed",
        "ModelName": "ranker-2026-05-20-10-00-00-000",
        "TransformResources": {"InstanceType": "ml.m5.large", "InstanceCount": 2},
        "BatchStrategy": "MultiRecord",
        "CreationTime": 1763629200.0,
        "TransformStartTime": 1763629300.0,
        "TransformEndTime": 1763629900.0,
    } | changes


def tuning(**changes: Any) -> dict[str, Any]:
    """A DescribeHyperParameterTuningJob answer of ten trials."""
    return {
        "HyperParameterTuningJobName": "sweep",
        "HyperParameterTuningJobArn": f"{ARN}:hyper-parameter-tuning-job/sweep",
        "HyperParameterTuningJobStatus": "Completed",
        "HyperParameterTuningJobConfig": {
            "Strategy": "Bayesian",
            "TrainingJobEarlyStoppingType": "Auto",
        },
        "TrainingJobStatusCounters": {
            "Completed": 6, "InProgress": 0, "RetryableError": 1,
            "NonRetryableError": 1, "Stopped": 2,
        },
        "CreationTime": 1763629200.0,
        "HyperParameterTuningEndTime": 1763636400.0,
    } | changes  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (training_answer(), JobKind.TRAINING),
        (processing(), JobKind.PROCESSING),
        (transform(), JobKind.TRANSFORM),
        (tuning(), JobKind.TUNING),
        ({"EndpointName": "e", "EndpointStatus": "InService"}, None),
        ({}, None),
    ],
)
def test_the_kind_is_told_by_name_and_status(answer: dict[str, Any], kind: JobKind | None) -> None:
    """Each Describe* answer carries the name and status of its own kind."""
    assert kind_of(answer) is kind


def test_a_processing_job_is_one_billed_phase() -> None:
    """It has no transitions: waiting, then the run between its own two times."""
    job = parse(processing(), {})
    assert [(p.name, p.seconds, p.billed) for p in job.phases] == [
        ("Starting", 200, False),
        ("Processing", 1200, True),
    ]
    assert job.groups == (InstanceGroup("ml.m5.xlarge", 3),)
    assert (job.volume_gb, job.max_runtime_s, job.entry_point) == (30, 3600, "clean.py")
    assert [(c.source, c.mode) for c in job.channels] == [
        (DataSource.S3, "File"),
        (DataSource.OTHER, None),
    ]


def test_a_processing_job_that_never_started_has_no_phase() -> None:
    """No capacity: no start, nothing billed."""
    answer = processing(ProcessingJobStatus="Failed")
    del answer["ProcessingStartTime"]
    del answer["ProcessingEndTime"]
    job = parse(answer, {})
    assert job.never_started
    assert job.phases == ()


def test_a_processing_job_names_its_selected_instances_and_plan() -> None:
    """ProcessingClusterConfig has the same Selected pair as a training job."""
    cluster = {
        "InstancePreferences": [{"InstanceType": "ml.m5.xlarge"}, {"InstanceType": "ml.m5.large"}],
        "InstanceCount": 2,
        "SelectedInstanceType": "ml.m5.large",
        "SelectedInstanceCount": 2,
        "VolumeSizeInGB": 30,
    }
    job = parse(processing(ProcessingResources={"ClusterConfig": cluster}), {})
    assert job.groups == (InstanceGroup("ml.m5.large", 2),)
    assert job.purchase is Purchase.ON_DEMAND


def test_a_built_in_debugger_rule_is_free() -> None:
    """Its image says so; a custom rule's own image does not."""
    image = "503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest"
    built_in = parse(processing(AppSpecification={"ImageUri": image}, TrainingJobArn="arn:t"), {})
    custom = parse(processing(TrainingJobArn="arn:t"), {})
    assert built_in.free is not None
    assert custom.free is None
    assert custom.parent is not None
    assert custom.parent.kind is ParentKind.TRAINING


def test_an_exit_message_is_a_failure_text() -> None:
    """Processing jobs say why in ExitMessage when FailureReason is absent."""
    job = parse(processing(ProcessingJobStatus="Failed", ExitMessage="exit code 137"), {})
    assert str(job.failure) == "exit code 137: host out of memory"


def test_a_transform_job_has_no_volume() -> None:
    """Its API has none: only type, count and the two times."""
    job = parse(transform(), {})
    assert (job.volume_gb, job.elapsed_s, job.instance_count) == (None, 600, 2)
    assert job.entry_point == "ranker"


def test_empty_strings_of_a_transform_answer_are_absent() -> None:
    """LabelingJobArn and FailureReason come back empty where there is none."""
    job = parse(transform(LabelingJobArn="", FailureReason=""), {})
    assert (job.parent, job.failure) == (None, None)


def test_a_tuning_job_counts_what_it_launched() -> None:
    """All states of TrainingJobStatusCounters together: 6 + 0 + 1 + 1 + 2."""
    job = parse(tuning(), {})
    assert job.tuning is not None
    assert (job.tuning.launched, job.tuning.strategy) == (10, "Bayesian")
    assert job.tuning.early_stopping == "Auto"
    assert job.groups == ()


def test_a_tuning_job_without_counters_does_not_know_what_it_launched() -> None:
    """Absent counters are unknown, not zero trials."""
    answer = tuning()
    del answer["TrainingJobStatusCounters"]
    job = parse(answer, {})
    assert job.tuning is not None
    assert job.tuning.launched is None


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        (processing(ProcessingResources=[]), "ProcessingResources"),
        (processing(ProcessingStartTime=True), "ProcessingStartTime"),
        (transform(TransformResources="ml.m5.large"), "TransformResources"),
        (tuning(TrainingJobStatusCounters=5), "TrainingJobStatusCounters"),
        (tuning(TrainingJobStatusCounters={"Completed": "many"}), "Completed"),
    ],
)
def test_nonsense_names_its_key(answer: dict[str, Any], key: str) -> None:
    """For every kind."""
    with pytest.raises(Malformed) as caught:
        parse(answer, {})
    assert caught.value.key == key


def test_pipeline_tags_name_pipeline_and_step() -> None:
    """SageMaker Pipelines tags the jobs that it starts."""
    tags = {
        "sagemaker:pipeline-step-name": "Train",
        "sagemaker:pipeline-execution-arn": f"{ARN}:pipeline/nightly/execution/abc123",
    }
    assert parse(training_answer(), tags).pipeline_step == "pipeline/nightly/Train"


@pytest.mark.parametrize(
    ("arn", "name", "same"),
    [
        (f"{ARN}:training-job/my-job", "My-Job", True),
        (f"{ARN}:training-job/my-job", "other", False),
        (f"{ARN}:training-job/my-job", None, True),
        (f"{ARN}:endpoint/my-job", "my-job", False),
        ("arn:aws:s3:::bucket", None, False),
        (f"{ARN}:training-job/my-job\n", "my-job", False),
        (f"{ARN}:training-job/my-job/x", None, False),
        ("arn:aws-cn:sagemaker:cn-north-1:111122223333:processing-job/a", "a", True),
        ("arn:aws-us-gov:sagemaker:us-gov-west-1:111122223333:transform-job/a", "a", True),
        ("arn:aws-eusc:sagemaker:eusc-de-east-1:111122223333:training-job/a", "a", True),
    ],
)
def test_an_arn_names_a_job_or_nothing(arn: str, name: str | None, same: bool) -> None:
    """Real ARNs carry the name in lower case; anything else than a job's is refused."""
    assert (JobRef.from_arn(arn, name) is not None) is same
