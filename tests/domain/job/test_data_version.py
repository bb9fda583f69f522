from __future__ import annotations

import pytest

from sageaudit.domain.job.buckets import data_pinned
from sageaudit.domain.job.describe import parse
from tests.fakes.jobs import training_answer

PINNED = "s3://bucket/data/v3/train"
MOVING = "s3://bucket/data/train"


@pytest.mark.parametrize(
    "path",
    [
        "data/v1/train",
        "data/v2.3.1",
        "data/version=7/",
        "data/dataset_version=1.2/part-0.csv",
        "data/2026-05-20/",
        "data/20260520",
        "data/20260520T103000Z/train.csv",
        "data/2026/05/20/13",
        "data/year=2026/month=05/day=20/",
        "data/dt=2026-05-20/",
        "KMeans-2018-01-12-18-27-57-930/.amazon.manifest",
        "export-1614050333/",
        "data/1763632620265/train",
        "data/9f86d081884c7d65/",
        "data/217fbab1/train",
        "models/3f2504e0-4f89-41d3-9a0c-0305e82c3301/",
        "churn/j2vr4zwau6n3/Prepare/output",
        "bias/pipelines-j2vr4zwau6n3-createmodel/x.jsonl",
        "data/train.csv?versionId=3HL4kqtJlcpXroDTDmJ",
    ],
)
def test_an_address_that_names_a_version_is_pinned(path: str) -> None:
    """A version, a day or moment, a hash, a pipeline's execution, an object's own version."""
    assert data_pinned([("train", f"s3://bucket/{path}")]) is True


@pytest.mark.parametrize(
    "path",
    [
        "",
        "data",
        "data/train/",
        "data/latest/train",
        "data/v3/latest/",
        "data/2026-05-20/current/",
        "data/train-latest.csv",
        "data/year=2026/",
        "data/2026/05/",
        "data/2026-05",
        "mobilenet_v2/train",
        "data/training2024",
        "data/deadbeef",
        "data/111122223333/train",
        "chapter05/input/training_data.csv",
        "data/train.csv?versionId=",
        "data/.amazon.manifest",
    ],
)
def test_an_address_that_may_hold_other_data_tomorrow_is_not(path: str) -> None:
    """A month still grows; a word, an account's number and a model's name are no versions."""
    assert data_pinned([("train", f"s3://bucket-20260520/{path}")]) is False


@pytest.mark.parametrize(
    ("inputs", "pinned"),
    [
        ([], None),
        ([("train", None)], None),
        ([("train", PINNED), ("files", None)], None),
        ([("train", MOVING), ("files", None)], False),
        ([("train", PINNED), ("test", PINNED)], True),
        ([("train", PINNED), ("test", MOVING)], False),
        ([("code", PINNED)], None),
        ([("code", PINNED), ("train", PINNED)], True),
        ([("code", MOVING), ("train", PINNED)], False),
        ([("train", "not an address")], False),
    ],
)
def test_all_inputs_must_name_a_version(
    inputs: list[tuple[str, str | None]], pinned: bool | None
) -> None:
    """A file system may change unseen, and code alone fetches data that nobody sees."""
    assert data_pinned(inputs) is pinned


def test_a_training_jobs_channels_are_asked() -> None:
    """One channel on a moving prefix is enough."""

    def channel(name: str, address: str) -> dict[str, object]:
        source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": address}}
        return {"ChannelName": name, "DataSource": source}

    one, other = channel("train", PINNED), channel("test", MOVING)
    assert parse(training_answer(InputDataConfig=[one]), {}).data_pinned is True
    assert parse(training_answer(InputDataConfig=[one, other]), {}).data_pinned is False
    assert parse(training_answer(), {}).data_pinned is None


def test_a_long_hostile_address_is_read_quickly() -> None:
    """Only what S3 can hold is looked at."""
    assert data_pinned([("train", "s3://b/" + "version" * 200_000)]) is False
    assert data_pinned([("train", "s3://b/" + "0" * 500_000)]) is False
