"""What is only half known is unknown: no part of a job vanishes from its bill."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.bill.bill import Bill, bill
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.family import family
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Metric, Missing, RawSeries

ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-job/train"
START = datetime(2026, 5, 1, 10, tzinfo=UTC)


def answer(**changes: Any) -> dict[str, Any]:
    """A two-hour run on one ml.g5.2xlarge."""
    return {
        "TrainingJobName": "train",
        "TrainingJobArn": ARN,
        "TrainingJobStatus": "Completed",
        "ResourceConfig": {"InstanceType": "ml.g5.2xlarge", "InstanceCount": 1},
        "CreationTime": START - timedelta(minutes=2),
        "TrainingStartTime": START,
        "TrainingEndTime": START + timedelta(hours=2),
        "TrainingTimeInSeconds": 7200,
        "BillableTimeInSeconds": 7200,
        **changes,
    }


def job(**changes: Any) -> Job:
    """The run as it is read."""
    return parse(answer(**changes), {})


def billed(**changes: Any) -> Bill:
    """Its bill at packaged prices."""
    return bill(job(**changes), packaged.market())


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ({"InstanceType": "ml.g5.2xlarge"}, "the instance count is not known"),
        ({"InstanceType": "ml.g5.2xlarge", "InstanceCount": 0}, "the instance count is not known"),
        (
            {
                "SelectedInstanceType": "ml.p4d.24xlarge",
                "InstanceType": "ml.g5.2xlarge",
                "InstanceCount": 1,
            },
            "the instance count is not known",
        ),
        ({"SelectedInstanceCount": 2}, "the instance type is not known"),
        ({}, "the instance type is not known"),
        (
            {
                "InstanceGroups": [
                    {"InstanceGroupName": "a", "InstanceType": "ml.g5.2xlarge", "InstanceCount": 1},
                    {"InstanceGroupName": "b", "InstanceType": "ml.p4d.24xlarge"},
                ]
            },
            "instance group b: its count is not known",
        ),
        (
            {
                "InstanceGroups": [
                    {"InstanceGroupName": "a", "InstanceType": "ml.g5.2xlarge", "InstanceCount": 1},
                    {"InstanceGroupName": "b", "InstanceCount": 8},
                ]
            },
            "instance group b: its type is not known",
        ),
    ],
)
def test_instances_that_are_not_known_make_the_bill_unknown(
    resources: dict[str, Any], said: str
) -> None:
    """The total is null and says why; the known part alone is no total."""
    result = billed(ResourceConfig=resources)
    assert result.total_usd is None
    assert said in result.missing


def test_a_warm_pool_without_its_seconds_is_missing_from_the_bill() -> None:
    """Available, or ended without the figure: not complete."""
    for status in ("Available", "Terminated"):
        result = billed(WarmPoolStatus={"Status": status})
        assert any("warm pool" in line for line in result.missing)


def test_an_open_warm_pool_is_billed_so_far_and_says_so() -> None:
    """600 retained seconds of $1.515 an hour are $0.2525, and may become more."""
    pool = {"Status": "Available", "ResourceRetainedBillableTimeInSeconds": 600}
    result = billed(WarmPoolStatus=pool)
    [line] = [line for line in result.lines if line.item == "warm_pool"]
    assert line.usd == Decimal("0.2525")
    assert "warm pool: still available, its figure grows" in result.missing


def test_a_run_without_a_start_time_takes_it_from_its_phases() -> None:
    """Transitions say when it downloaded: its phases are billed, and sum to compute."""
    steps = [("Starting", -2), ("Downloading", 0), ("Training", 20), ("Uploading", 110)]
    transitions = [
        {"Status": name, "StartTime": START + timedelta(minutes=minute)} for name, minute in steps
    ]
    closing = {"Status": "Completed", "StartTime": START + timedelta(hours=2)}
    changed = answer(SecondaryStatusTransitions=[*transitions, closing])
    del changed["TrainingStartTime"], changed["TrainingEndTime"]
    result = bill(parse(changed, {}), packaged.market())
    paid = {cost.phase.name: cost.usd for cost in result.phases}
    assert paid["Starting"] == 0
    assert paid["Downloading"] == Decimal("0.505")
    assert sum(usd for usd in paid.values() if usd is not None) == pytest.approx(Decimal("3.03"))


def test_overlapping_phases_are_not_paid_twice() -> None:
    """A phase ends where the next one starts, whatever its own end says."""
    transitions = [
        {
            "Status": "Downloading",
            "StartTime": START,
            "EndTime": START + timedelta(hours=2),
        },
        {"Status": "Training", "StartTime": START + timedelta(hours=1)},
    ]
    read = job(SecondaryStatusTransitions=transitions)
    assert [phase.seconds for phase in read.phases] == [3600, 3600]


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({}, None),
        ({"ModelArtifacts": {"S3ModelArtifacts": "s3://b/m.tar.gz"}}, None),
        ({"ModelArtifacts": {}}, False),
        ({"ModelArtifacts": None}, False),
    ],
)
def test_without_transitions_only_an_empty_path_says_that_no_model_is_left(
    changes: dict[str, Any], left: bool | None
) -> None:
    """An absent key proves nothing, nor does a path: Describe names it for every job."""
    assert job(TrainingJobStatus="Stopped", **changes).left_artifact is left


def test_an_upload_is_proof_of_a_model() -> None:
    """Whatever ModelArtifacts says."""
    transitions = [{"Status": "Uploading", "StartTime": START}]
    assert job(SecondaryStatusTransitions=transitions).left_artifact is True


def test_an_inline_command_is_no_entry_point() -> None:
    """Its arguments may hold a secret: it is in no family name."""
    processing = {
        "ProcessingJobName": "p",
        "ProcessingJobStatus": "Completed",
        "AppSpecification": {
            "ImageUri": "111122223333.dkr.ecr.us-east-1.amazonaws.com/a:1",
            "ContainerEntrypoint": ["bash", "-c", "python x.py --password=hunter2secret"],
        },
    }
    assert "hunter2" not in family(parse(processing, {}))


def test_the_partition_of_an_arn_fits_its_region() -> None:
    """One job has one ARN: another partition of the same job is forged."""
    assert JobRef.from_arn(ARN) is not None
    assert JobRef.from_arn(ARN.replace("arn:aws:", "arn:aws-cn:")) is None
    china = "arn:aws-cn:sagemaker:cn-north-1:111122223333:training-job/train"
    assert JobRef.from_arn(china) is not None
    assert JobRef.from_arn("arn:aws-us-gov:sagemaker:us-gov-west-1:111122223333:training-job/t")


def series(host: str, metric: str, period_s: int = 60, value: float = 50.0) -> RawSeries:
    """Two hours of one figure."""
    return RawSeries(host, metric, START, period_s, (value,) * (7200 // period_s))


def test_series_of_other_jobs_are_left_out_and_said() -> None:
    """A name that only starts alike is another job's."""
    usage = measure(
        job(),
        [series("train/algo-1", "GPUUtilization"), series("train-2/algo-1", "GPUUtilization")],
        packaged.types(),
        absent=Missing("metric_missing", "none"),
    )
    assert usage.hosts == ("train/algo-1",)
    assert usage.notes == ("1 series are not of this job's hosts",)


def test_series_of_another_job_are_not_its_own() -> None:
    """Also where nothing else is there: the job is not judged by another's work."""
    usage = measure(
        job(),
        [series("job/algo-1", "GPUUtilization")],
        packaged.types(),
        absent=Missing("metric_missing", "none"),
    )
    assert not usage.series
    assert usage.notes == ("1 series are not of this job's hosts",)


def test_a_coarse_series_of_another_metric_blurs_neither_cpu_nor_gpu() -> None:
    """Hourly disk points make disk missing, and leave the minutes of the GPU as they are."""
    usage = measure(
        job(),
        [
            series("train/algo-1", "GPUUtilization"),
            series("train/algo-1", "DiskUtilization", period_s=3600),
        ],
        packaged.types(),
        absent=Missing("metric_missing", "none"),
    )
    assert usage.period_s == 60
    assert usage.missing[Metric.DISK].code == "period_too_coarse"
    assert Metric.GPU in usage.series
