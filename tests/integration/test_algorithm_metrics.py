"""A recording's algorithm metrics, published to the local CloudWatch and read back as curves."""

from datetime import timedelta
from math import nan

import boto3
from moto import mock_aws

from local.recorded import RecordedJob
from local.sagemaker import put_series
from sageaudit.adapters.aws.cloudwatch import CloudWatchMetrics
from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Metric, MissingMetrics, RawSeries
from tests.fakes.jobs import REGION, START, training_answer

TRAINING = START + timedelta(minutes=10)
"""Where Training begins in the answer."""


def test_curves_of_a_recording_are_served_by_cloudwatch() -> None:
    """What the command line reads from the file, the deployed reader gets from CloudWatch."""
    names = ("validation:auc", "loss", "never printed")
    answer = training_answer(
        AlgorithmSpecification={"MetricDefinitions": [{"Name": name} for name in names]}
    )
    raw = (
        RawSeries("train-vision", "validation:auc", TRAINING, 60, (0.5, None, 0.625, nan, 0.75)),
        RawSeries("train-vision", "loss", TRAINING + timedelta(minutes=40), 60, (2.0,)),
        RawSeries("train-vision/algo-1", "CPUUtilization", TRAINING, 60, (100.0,) * 48),
    )
    job = parse(answer, {})
    with mock_aws():
        session = boto3.Session(region_name=REGION)
        put_series(session, RecordedJob(JobKind.TRAINING, answer, {}, raw))
        reader = CloudWatchMetrics(
            lambda _, region: session.client("cloudwatch", region_name=region),
            packaged.instance_types(),
        )
        served = reader.read(job, START + timedelta(hours=2))
    recorded = measure(
        job,
        raw,
        packaged.instance_types(),
        missing_reason=MissingMetrics("metric_missing", "CloudWatch has no points"),
    )
    assert served.curves == recorded.curves
    assert [len(curve.points) for curve in served.curves.values()] == [3, 1]
    assert served.series[Metric.CPU] == recorded.series[Metric.CPU]
