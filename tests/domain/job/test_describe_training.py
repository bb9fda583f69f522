from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import DataSource, InstanceGroup, Job, ParentKind, Purchase
from sageaudit.errors import Malformed
from tests.fakes.jobs import ACCOUNT, REGION, training_answer, transition

PLAN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-plan/p5-week"


def read(**changes: Any) -> Job:
    """The job of a training answer."""
    return parse(training_answer(**changes), {"team": "vision"}, key=b"secret")


def resources(**changes: Any) -> Job:
    """The job of a training answer with another ResourceConfig."""
    return read(ResourceConfig=changes)


def test_a_whole_answer_is_read() -> None:
    """Every fact that the audit rests on comes out of its field."""
    job = read(SecondaryStatus="Completed", FailureReason=None)
    assert (job.kind.value, job.name, job.status) == ("training", "train-vision", "Completed")
    assert (job.account, job.region) == (ACCOUNT, REGION)
    assert job.groups == (InstanceGroup("ml.g4dn.xlarge", 2),)
    assert (job.training_s, job.billable_s, job.volume_gb) == (Decimal(3600), Decimal(3600), 50)
    assert job.started_at == datetime(2026, 5, 20, 10, 0, tzinfo=UTC)
    assert job.ended_at == datetime(2026, 5, 20, 11, 0, tzinfo=UTC)
    assert [(p.name, p.seconds, p.billed) for p in job.phases] == [
        ("Starting", 120, False),
        ("Downloading", 600, True),
        ("Training", 2880, True),
        ("Uploading", 120, True),
    ]
    assert (job.purchase, job.max_runtime_s) == (Purchase.ON_DEMAND, 86400)
    assert job.tags == {"team": "vision"}
    assert job.left_artifact is True


def test_the_recordings_account_and_region_come_before_the_arns() -> None:
    """What the caller knows wins; the ARN stands in."""
    job = parse(training_answer(), {}, account="999999999999", region="eu-west-1")
    assert (job.account, job.region) == ("999999999999", "eu-west-1")


def test_a_local_mode_arn_names_no_region() -> None:
    """Local mode prints a made-up ARN: the region is unknown, not guessed."""
    job = read(TrainingJobArn="local:arn-does-not-matter")
    assert (job.arn, job.account, job.region) == ("local:arn-does-not-matter", None, None)


def test_a_job_that_failed_early_has_no_times() -> None:
    """Start, end and seconds "may not be present": they stay unknown."""
    answer = training_answer(TrainingJobStatus="Failed", SecondaryStatus="Failed")
    for key in (
        "TrainingStartTime",
        "TrainingEndTime",
        "TrainingTimeInSeconds",
        "BillableTimeInSeconds",
        "ModelArtifacts",
    ):
        del answer[key]
    answer["SecondaryStatusTransitions"] = [transition("Starting", "09:58:00", "10:05:00")]
    job = parse(answer, {})
    assert job.never_started
    assert (job.started_at, job.elapsed_s, job.billable_s) == (None, None, None)
    assert [(p.name, p.seconds, p.billed) for p in job.phases] == [("Starting", 420, False)]


def test_an_answer_of_2018_has_neither_transitions_nor_seconds() -> None:
    """Waiting and one billed run stand in for the phases; the run is end minus start."""
    answer = training_answer()
    for key in ("SecondaryStatusTransitions", "TrainingTimeInSeconds", "BillableTimeInSeconds"):
        del answer[key]
    job = parse(answer, {})
    assert job.elapsed_s == 3600
    assert [(p.name, p.seconds, p.billed) for p in job.phases] == [
        ("Starting", 120, False),
        ("Running", 3600, True),
    ]


@pytest.mark.parametrize("absent", ["TrainingJobStatus", "TrainingJobName"])
def test_an_answer_without_name_or_status_is_of_no_kind(absent: str) -> None:
    """Name and status are the two fields that nothing can stand in for."""
    answer = training_answer()
    del answer[absent]
    with pytest.raises(Malformed, match="describe"):
        parse(answer, {})


def test_the_selected_instances_are_the_billed_ones() -> None:
    """InstancePreferences only ask; the job is billed for the selected type and count."""
    job = resources(
        InstancePreferences=[
            {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1},
            {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2},
        ],
        SelectedInstanceType="ml.p4d.24xlarge",
        SelectedInstanceCount=2,
    )
    assert job.groups == (InstanceGroup("ml.p4d.24xlarge", 2),)


def test_preferences_without_a_selection_name_no_instances() -> None:
    """Nothing was selected, so nothing is guessed."""
    job = resources(InstancePreferences=[{"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1}])
    assert (job.groups, job.instance_count) == ((), None)


def test_instance_groups_are_read_in_order() -> None:
    """A heterogeneous cluster: the count is the sum."""
    job = resources(
        InstanceGroups=[
            {"InstanceType": "ml.g5.2xlarge", "InstanceCount": 1, "InstanceGroupName": "gpu"},
            {"InstanceType": "ml.c5.9xlarge", "InstanceCount": 3, "InstanceGroupName": "data"},
        ]
    )
    assert job.instance_count == 4
    assert job.instances == "1 x ml.g5.2xlarge + 3 x ml.c5.9xlarge"


def test_a_training_plan_is_prepaid_capacity() -> None:
    """TrainingPlanArn of the job makes its hours prepaid, also when the spot flag is there."""
    job = resources(InstanceType="ml.p5.48xlarge", InstanceCount=1, TrainingPlanArn=PLAN)
    assert job.purchase is Purchase.TRAINING_PLAN


def test_a_training_plan_of_the_selected_preference_counts() -> None:
    """Each preference may have its own plan: the selected one's decides."""
    preferences = [
        {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "TrainingPlanArns": [PLAN]},
        {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2},
    ]
    planned = resources(
        InstancePreferences=preferences,
        SelectedInstanceType="ml.p5.48xlarge",
        SelectedInstanceCount=1,
    )
    bought = resources(
        InstancePreferences=preferences,
        SelectedInstanceType="ml.p4d.24xlarge",
        SelectedInstanceCount=2,
    )
    assert planned.purchase is Purchase.TRAINING_PLAN
    assert bought.purchase is Purchase.ON_DEMAND


def test_a_preferences_plan_counts_when_the_job_gives_one_count_for_all() -> None:
    """InstanceCount may stand in ResourceConfig and be absent in every preference (botocore)."""
    job = resources(
        InstanceCount=2,
        InstancePreferences=[{"InstanceType": "ml.p5.48xlarge", "TrainingPlanArns": [PLAN]}],
        SelectedInstanceType="ml.p5.48xlarge",
        SelectedInstanceCount=2,
    )
    assert job.purchase is Purchase.TRAINING_PLAN


def test_a_serverless_job_has_no_instances() -> None:
    """Its billable unit is the token."""
    job = read(ServerlessJobConfig={"JobType": "FineTuning"}, ResourceConfig={},
               BillableTokenCount=1_200_000)  # fmt: skip
    assert (job.purchase, job.groups) == (Purchase.SERVERLESS, ())


def test_managed_spot_is_read_from_its_flag() -> None:
    """Spot is a flag; the wait limit stands beside the run limit."""
    job = read(
        EnableManagedSpotTraining=True,
        StoppingCondition={"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200},
        CheckpointConfig={"S3Uri": "s3://bucket/checkpoints"},
    )
    assert (job.purchase, job.max_wait_s, job.checkpointed) == (Purchase.SPOT, 7200, True)


@pytest.mark.parametrize(
    ("data", "source"),
    [
        ({"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/d"}}, DataSource.S3),
        ({"FileSystemDataSource": {"FileSystemType": "EFS"}}, DataSource.EFS),
        ({"FileSystemDataSource": {"FileSystemType": "FSxLustre"}}, DataSource.FSX),
        ({"DatasetSource": {"DatasetArn": "arn"}}, DataSource.OTHER),
        ({}, DataSource.OTHER),
    ],
)
def test_a_channel_says_where_its_data_lies(data: dict[str, Any], source: DataSource) -> None:
    """An FSx job reports File mode too, so the source matters."""
    job = read(InputDataConfig=[{"ChannelName": "train", "DataSource": data}])
    assert [(c.name, c.source, c.mode) for c in job.channels] == [("train", source, "File")]


def test_a_channels_own_mode_overrides_the_jobs() -> None:
    """Channel.InputMode is often absent: then the job's TrainingInputMode holds."""
    s3 = {"S3DataSource": {"S3Uri": "s3://b/d", "S3DataDistributionType": "ShardedByS3Key"}}
    job = read(
        InputDataConfig=[
            {"ChannelName": "train", "DataSource": s3, "InputMode": "FastFile"},
            {"ChannelName": "test", "DataSource": s3},
        ]
    )
    assert [(c.mode, c.distribution) for c in job.channels] == [
        ("FastFile", "ShardedByS3Key"),
        ("File", "ShardedByS3Key"),
    ]


@pytest.mark.parametrize(
    ("status", "final"),
    [("Available", False), ("InUse", False), ("Terminated", True), ("Reused", True)],
)
def test_a_warm_pool_is_final_when_it_is_gone(status: str, final: bool) -> None:
    """Until then its billable seconds still grow."""
    job = read(
        ResourceConfig={
            "InstanceType": "ml.m5.xlarge",
            "InstanceCount": 1,
            "KeepAlivePeriodInSeconds": 1800,
        },
        WarmPoolStatus={"Status": status, "ResourceRetainedBillableTimeInSeconds": 640},
    )
    assert job.warm_pool is not None
    assert (job.warm_pool.final, job.warm_pool.retained_s) == (final, 640)


def test_no_keep_alive_means_no_warm_pool() -> None:
    """Absent is absent: a job without pool has none, not an empty one."""
    assert read().warm_pool is None


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("TuningJobArn", ParentKind.TUNING),
        ("AutoMLJobArn", ParentKind.AUTOML),
        ("LabelingJobArn", ParentKind.LABELING),
    ],
)
def test_a_parent_is_read_from_its_arn(field: str, kind: ParentKind) -> None:
    """And null, as events send it, is no parent."""
    child = read(**{field: "arn:parent"})
    assert child.parent is not None
    assert (child.parent.kind, child.parent.arn) == (kind, "arn:parent")
    assert read(**{field: None}).parent is None


@pytest.mark.parametrize(
    ("transitions", "artifacts", "left"),
    [
        (["Training", "Stopping", "Uploading"], {"S3ModelArtifacts": "s3://b/m"}, True),
        (["Training", "Stopping"], {"S3ModelArtifacts": "s3://b/m"}, False),
        (["Training"], {}, False),
        ([], {"S3ModelArtifacts": "s3://b/m"}, None),
        (["Training", "Stopping", "MaxRuntimeExceeded"], None, False),
        (["Training", "Stopping", "Uploading", "MaxRuntimeExceeded"], None, True),
        (["Training", "Failed"], None, False),
        (["Training", "Stopping"], None, None),
        (["Training", "Completed"], None, None),
        ([], None, None),
    ],
)
def test_an_artifact_was_left_only_where_it_was_uploaded(
    transitions: list[str], artifacts: dict[str, str] | None, left: bool | None
) -> None:
    """Describe names the path also of a model that was never written.

    An answer without ModelArtifacts says that nothing was uploaded only where its transitions go
    to the end of a run that ended early.
    """
    steps = [transition(status, f"10:0{n}:00") for n, status in enumerate(transitions)]
    answer = training_answer(ModelArtifacts=artifacts, SecondaryStatusTransitions=steps)
    if artifacts is None:
        del answer["ModelArtifacts"]
    assert parse(answer, {}).left_artifact is left


@pytest.mark.parametrize(
    ("key", "nonsense"),
    [
        ("TrainingJobName", 5),
        ("TrainingJobStatus", []),
        ("TrainingJobArn", 7),
        ("ResourceConfig", "ml.m5.large"),
        ("SecondaryStatusTransitions", {}),
        ("SecondaryStatusTransitions", ["Starting"]),
        ("InputDataConfig", "s3://b/d"),
        ("TrainingTimeInSeconds", "soon"),
        ("BillableTimeInSeconds", -5),
        ("TrainingStartTime", "noon"),
        ("CreationTime", {}),
        ("EnableManagedSpotTraining", "yes"),
        ("HyperParameters", []),
        ("WarmPoolStatus", 1),
        ("StoppingCondition", 86400),
        ("FailureReason", {"a": 1}),
        ("ModelArtifacts", "s3://b/m"),
    ],
)
def test_nonsense_names_the_key_that_holds_it(key: str, nonsense: object) -> None:
    """A reader of the error knows where to look."""
    with pytest.raises(Malformed) as caught:
        read(**{key: nonsense})
    assert caught.value.key == key
