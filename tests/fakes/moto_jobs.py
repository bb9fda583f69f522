"""Adds finished jobs to moto, created through boto3, and puts their metrics into CloudWatch.

moto ends every job when it begins; its times are then set to those of a run.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from moto.sagemaker.models import sagemaker_backends

from tests.fakes.jobs import ACCOUNT

IMAGE = f"{ACCOUNT}.dkr.ecr.eu-west-1.amazonaws.com/bert:1"
_ROLE = f"arn:aws:iam::{ACCOUNT}:role/train"


def add_training_job(
    session: Any,
    name: str,
    *,
    minutes: int = 60,
    days_ago: float = 1,
    instance_type: str = "ml.g5.12xlarge",
    owner: str = "ann",
    gpu: float = 20.0,
    status: str = "Completed",
) -> None:
    """Adds a training job of one host whose GPUs add up to `gpu` percent of one."""
    region = session.region_name
    session.client("sagemaker").create_training_job(
        TrainingJobName=name,
        AlgorithmSpecification={"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        RoleArn=_ROLE,
        OutputDataConfig={"S3OutputPath": "s3://bucket/out"},
        ResourceConfig={"InstanceType": instance_type, "InstanceCount": 1, "VolumeSizeInGB": 30},
        StoppingCondition={"MaxRuntimeInSeconds": 86_400},
        Tags=[{"Key": "owner", "Value": owner}],
    )
    now = datetime.now(UTC).replace(second=0, microsecond=0, tzinfo=None)  # as moto's own times
    end = now - timedelta(days=days_ago)
    begun = end - timedelta(minutes=minutes)
    job: Any = sagemaker_backends[ACCOUNT][region].training_jobs[name]
    job.creation_time = begun - timedelta(minutes=2)
    job.training_start_time, job.training_end_time, job.last_modified_time = begun, end, end
    job.training_time_in_seconds = job.billable_time_in_seconds = minutes * 60
    job.training_job_status = job.secondary_status = status
    job.secondary_status_transitions = [
        {"Status": "Training", "StartTime": begun, "EndTime": end, "StatusMessage": "Training"}
    ]
    job.final_metric_data_list, job.algorithm_specification["MetricDefinitions"] = [], []
    _put(session, name, begun, minutes, gpu)


def _put(session: Any, name: str, begun: datetime, minutes: int, gpu: float) -> None:
    levels = {
        "CPUUtilization": 100.0,
        "MemoryUtilization": 10.0,
        "DiskUtilization": 10.0,
        "GPUUtilization": gpu,
        "GPUMemoryUtilization": gpu,
    }
    points = [
        {
            "MetricName": metric,
            "Dimensions": [{"Name": "Host", "Value": f"{name}/algo-1"}],
            "Timestamp": begun + timedelta(minutes=minute),
            "Value": level,
            "Unit": "Percent",
        }
        for metric, level in levels.items()
        for minute in range(minutes)
    ]
    client = session.client("cloudwatch")
    for first in range(0, len(points), 500):
        client.put_metric_data(
            Namespace="/aws/sagemaker/TrainingJobs", MetricData=points[first : first + 500]
        )
