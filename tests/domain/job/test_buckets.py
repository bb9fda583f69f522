"""The bucket of an address, and whether a job's inputs name a version."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.job.addresses import bucket_name, is_data_pinned

NO_BUCKETS = """
s3:// s3:///key s3://ab/key s3://Old_Style/key s3://10.0.0.1/key file:///opt/ml/model
s3://my-point-abc123-s3alias/key s3://fast--use1-az4--x-s3/key s3://lambda-abc--ol-s3/key
s3://arn:aws:s3:us-east-1:111122223333:accesspoint/mine/key s3://user:secret@bucket/key
arn:aws:s3:us-east-1:111122223333:accesspoint/mine https://bucket.s3.amazonaws.com/key
"""


@pytest.mark.parametrize("address", [None, "", "s3://" + "a" * 64, *NO_BUCKETS.split()])
def test_other_addresses_have_no_bucket(address: str | None) -> None:
    """Access points, directory buckets, ARNs and HTTP addresses have no bucket."""
    assert bucket_name(address) is None


def test_a_plain_bucket_is_read_with_and_without_a_key() -> None:
    """Its name may have dots and digits."""
    for address in ("s3://my.bucket-1", "s3://my.bucket-1/", "S3://my.bucket-1/a?versionId=1"):
        assert bucket_name(address) == "my.bucket-1"


@given(st.text(max_size=80))
def test_any_address_gives_a_name_that_s3_accepts_or_none(text: str) -> None:
    """3 to 63 lower-case characters."""
    for address in (text, f"s3://{text}"):
        name = bucket_name(address)
        assert name is None or (3 <= len(name) <= 63 and name == name.lower() and "/" not in name)


PINNED = "s3://bucket/data/2026-05-20/train"
MOVING = "s3://bucket/data/train"


VERSIONS = """
data/version=7/ data/dataset_version=1.2/part-0.csv data/2026-05-20/
data/20260520 data/20260520T103000Z/train.csv data/2026/05/20/13 data/year=2026/month=05/day=20/
data/dt=2026-05-20/ KMeans-2018-01-12-18-27-57-930/.amazon.manifest export-1614050333/
data/1763632620265/train data/9f86d081884c7d65/ data/217fbab1/train
models/3f2504e0-4f89-41d3-9a0c-0305e82c3301/ churn/j2vr4zwau6n3/Prepare/output
bias/pipelines-j2vr4zwau6n3-createmodel/x.jsonl data/train.csv?versionId=3HL4kqtJlcpXroDTDmJ
"""
NO_VERSIONS = """
data data/v1/train data/v2.3.1 data/train/ data/latest/train data/v3/latest/
data/2026-05-20/current/ data/train-latest.csv
data/year=2026/ data/2026/05/ data/2026-05 mobilenet_v2/train data/training2024 data/deadbeef
data/111122223333/train chapter05/input/training_data.csv data/train.csv?versionId=
data/.amazon.manifest
"""


@pytest.mark.parametrize("path", VERSIONS.split())
def test_an_address_that_names_a_version_is_pinned(path: str) -> None:
    """A version, a day or time, a hash, a pipeline's execution, or an object's own version."""
    assert is_data_pinned([("train", f"s3://bucket/{path}")]) is True


@pytest.mark.parametrize("path", ["", *NO_VERSIONS.split()])
def test_an_address_whose_data_may_change_is_not_pinned(path: str) -> None:
    """A month's data still grows. A word, an account's number and a model's name are not
    versions.
    """
    assert is_data_pinned([("train", f"s3://bucket-20260520/{path}")]) is False


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
    """A file system may change unnoticed, and code alone fetches its data itself."""
    assert is_data_pinned(inputs) is pinned


def test_a_long_hostile_address_is_read_quickly() -> None:
    """Only as many characters as S3 allows are read."""
    assert is_data_pinned([("train", "s3://b/" + "version" * 200_000)]) is False
    assert is_data_pinned([("train", "s3://b/" + "0" * 500_000)]) is False
