"""Which buckets a job uses, and what is known of their regions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.job.buckets import KEY, bucket_of, known_region
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.kept import keep

TRAINING: dict[str, Any] = {
    "TrainingJobName": "train",
    "TrainingJobArn": "arn:aws:sagemaker:us-east-1:111122223333:training-job/train",
    "TrainingJobStatus": "Completed",
    "InputDataConfig": [
        {
            "ChannelName": "train",
            "DataSource": {"S3DataSource": {"S3Uri": "s3://raw-data/images/", "S3DataType": "x"}},
        },
        {
            "ChannelName": "test",
            "DataSource": {"S3DataSource": {"S3Uri": "s3://raw-data/test", "S3DataType": "x"}},
        },
        {"ChannelName": "lustre", "DataSource": {"FileSystemDataSource": {"FileSystemId": "fs"}}},
    ],
    "OutputDataConfig": {"S3OutputPath": "s3://models"},
    "CheckpointConfig": {"S3Uri": "s3://ckpts/run-1?versionId=3"},
}
PROCESSING: dict[str, Any] = {
    "ProcessingJobName": "process",
    "ProcessingJobStatus": "Completed",
    "ProcessingInputs": [
        {"InputName": "raw", "S3Input": {"S3Uri": "s3://raw-data/x"}},
        {"InputName": "sql", "DatasetDefinition": {}},
    ],
    "ProcessingOutputConfig": {
        "Outputs": [{"OutputName": "out", "S3Output": {"S3Uri": "s3://features/y"}}]
    },
}
TRANSFORM: dict[str, Any] = {
    "TransformJobName": "transform",
    "TransformJobStatus": "Completed",
    "TransformInput": {"DataSource": {"S3DataSource": {"S3Uri": "s3://raw-data/x"}}},
    "TransformOutput": {"S3OutputPath": "s3://scores/"},
}


def names(answer: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """The buckets of an answer with the parameters that name them."""
    return {one.name: one.parameters for one in parse(answer, {}).buckets}


def test_a_training_jobs_channels_output_and_checkpoints_name_buckets() -> None:
    """Each bucket once; a file system is none."""
    assert names(TRAINING) == {
        "raw-data": (
            "InputDataConfig[train].DataSource.S3DataSource.S3Uri",
            "InputDataConfig[test].DataSource.S3DataSource.S3Uri",
        ),
        "models": ("OutputDataConfig.S3OutputPath",),
        "ckpts": ("CheckpointConfig.S3Uri",),
    }


def test_processing_and_transform_jobs_name_theirs() -> None:
    """Inputs and outputs; a dataset definition is no bucket."""
    assert names(PROCESSING) == {
        "raw-data": ("ProcessingInputs[raw].S3Input.S3Uri",),
        "features": ("ProcessingOutputConfig.Outputs[out].S3Output.S3Uri",),
    }
    assert list(names(TRANSFORM)) == ["raw-data", "scores"]
    assert names({"TransformJobName": "x", "TransformJobStatus": "Failed"}) == {}


@pytest.mark.parametrize(
    "address",
    [
        None,
        "",
        "s3://",
        "s3:///key",
        "s3://ab/key",
        "s3://Old_Style/key",
        "s3://10.0.0.1/key",
        "s3://my-point-abc123-s3alias/key",
        "s3://fast--use1-az4--x-s3/key",
        "s3://lambda-abc--ol-s3/key",
        "s3://arn:aws:s3:us-east-1:111122223333:accesspoint/mine/key",
        "arn:aws:s3:us-east-1:111122223333:accesspoint/mine",
        "https://bucket.s3.amazonaws.com/key",
        "file:///opt/ml/model",
        "s3://user:secret@bucket/key",
        "s3://" + "a" * 64,
    ],
)
def test_what_is_no_plain_bucket_is_unknown(address: str | None) -> None:
    """Access points, directory buckets, ARNs and HTTP addresses are never asked for."""
    assert bucket_of(address) is None


def test_a_plain_bucket_is_read_with_and_without_a_key() -> None:
    """Dots and digits are part of names."""
    for address in ("s3://my.bucket-1", "s3://my.bucket-1/", "S3://my.bucket-1/a?versionId=1"):
        assert bucket_of(address) == "my.bucket-1"


def test_regions_of_all_partitions_are_read() -> None:
    """And nothing else that an answer may hold."""
    named = "us-east-1 eu-central-2 cn-northwest-1 us-gov-west-1 us-iso-east-1 eusc-de-east-1"
    for region in named.split():
        assert known_region(region) == region
    for other in (None, "", "EU", "us-east-1\n", "us-east-1; x", 1, "<b>"):
        assert known_region(other) is None


def test_a_stored_answer_gives_the_same_buckets_again() -> None:
    """With the regions that were known when it was stored."""
    asked = {**TRAINING, KEY: {"raw-data": "eu-west-1", "models": "nonsense here"}}
    first = parse(asked, {}).buckets
    assert [one.region for one in first] == ["eu-west-1", None, None]
    assert parse(keep(asked), {}).buckets == first


@given(st.text(max_size=80))
def test_any_address_gives_a_name_that_s3_accepts_or_none(text: str) -> None:
    """3 to 63 characters, lower case."""
    for address in (text, f"s3://{text}"):
        name = bucket_of(address)
        assert name is None or (3 <= len(name) <= 63 and name == name.lower() and "/" not in name)
