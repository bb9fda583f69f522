"""Following a fix: what a person writes where the advice leaves a value open."""

from __future__ import annotations

from typing import Any

import pytest

from sageaudit.domain.bill.change import SetVolume
from sageaudit.domain.bill.finding import (
    Bucket,
    Confidence,
    Finding,
    Found,
    Parameter,
    RuleName,
    Scalar,
    Severity,
)
from tests.labelled.followed import followed, left_open, ways
from tests.labelled.machine import Doing, Plot, alike, training
from tests.labelled.test_no_ping_pong import DAY

SIZE = "ResourceConfig.VolumeSizeInGB"


def finding(*fix: Parameter) -> Finding:
    """A large volume, to be made smaller."""
    found = Found(Confidence.DERIVED, Bucket.AVOIDABLE, "", {}, fix, (fix,), SetVolume(100))
    return Finding(RuleName("SA999", "made-up"), found, Severity.LOW, None, None, None)


def next_run(*fix: Parameter) -> dict[str, Any]:
    """The request of the run that follows the advice."""
    told = training(Plot("ml.m5.xlarge", alike(1, Doing(30)), volume_gb=1000), 1)
    [way, *_] = ways(finding(*fix))
    answer: dict[str, Any] = followed(told, [way], later=DAY)["describe"]
    return answer


@pytest.mark.parametrize(
    ("new", "size"), [(100, 100), ("<100 + GB of the input>", 105), ("100 <or a little more>", 105)]
)
def test_a_size_is_the_number_that_the_advice_names(new: Scalar, size: int) -> None:
    """With a little more where it asks for more."""
    assert next_run(Parameter(SIZE, 1000, new))["ResourceConfig"]["VolumeSizeInGB"] == size


@pytest.mark.parametrize(
    "parameter",
    [
        Parameter(SIZE, 1000, "<what the data needs>"),
        Parameter("ResourceConfig.InstanceCount", None, "<fewer>"),
        Parameter("ResourceConfig.InstanceType", "ml.m5.xlarge", "<another type>"),
        Parameter("ResourceConfig.InstanceType", "ml.m5.xlarge", "<a size below ml.m5.xlarge>"),
    ],
)
def test_a_value_without_a_number_is_left_to_the_reader(parameter: Parameter) -> None:
    """Nobody can guess it, so no next run is made up, of the fix or of another way."""
    assert left_open((parameter,))
    assert list(ways(finding(parameter, Parameter("Environment.A", None, "1")))) == []


@pytest.mark.parametrize(
    ("new", "written"),
    [
        ("s3://<bucket>/<prefix>", "s3://bucket/prefix"),
        ("<a bucket>", None),
        ("s3://a/b", "s3://a/b"),
    ],
)
def test_any_word_does_for_a_text(new: str, written: str | None) -> None:
    """A blank without a hint stays as it was."""
    answer = next_run(Parameter("CheckpointConfig.S3Uri", None, new))
    assert answer["CheckpointConfig"].get("S3Uri") == written
