"""The settings that a policy may require, in AWS's answers and as they are stored."""

import re
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.aws.service_model import api_model
from sageaudit.domain.job.describe import parse, sanitize_answer
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.settings import SETTINGS, setting_path
from sageaudit.domain.request.request import REQUEST_SHAPES, TRIAL_SHAPE
from tests.fakes.jobs import training_answer
from tests.fakes.planned import ROLE

NETWORK = {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}


def values(**changes: Any) -> dict[str, Any]:
    """Returns the values by path, from an AWS answer that is stored and read back."""
    settings = parse(sanitize_answer(training_answer(RoleArn=ROLE, **changes)), {}).settings
    return {path: value for each in settings.values() for path, value in each.items()}


def test_only_the_presence_of_a_network_is_stored() -> None:
    """Subnets and groups show where an organisation's machines are."""
    kept = sanitize_answer(training_answer(RoleArn=ROLE, VpcConfig=NETWORK))
    assert kept["VpcConfig"] == "withheld"
    assert values(VpcConfig=NETWORK)["VpcConfig"] == "set"
    assert values()["VpcConfig"] is None


def test_only_the_presence_of_a_key_or_address_is_stored() -> None:
    """A switch, a number and a word are stored as they are."""
    read = values(
        OutputDataConfig={"KmsKeyId": "alias/secret", "CompressionType": "NONE"},
        CheckpointConfig={"S3Uri": "s3://bucket/of/ada"},
        EnableNetworkIsolation=True,
        StoppingCondition={"MaxRuntimeInSeconds": 60},
    )
    assert read["OutputDataConfig.KmsKeyId"] == read["CheckpointConfig.S3Uri"] == "set"
    assert read["OutputDataConfig.CompressionType"] == "NONE"
    assert read["EnableNetworkIsolation"] is True
    assert read["StoppingCondition.MaxRuntimeInSeconds"] == 60


def test_a_setting_that_an_older_stored_answer_lacks_is_unknown() -> None:
    """It does not count as not set, unlike what AWS's own answer lacks."""
    kept = sanitize_answer(training_answer(RoleArn=ROLE))
    del kept["VpcConfig"]
    old = parse(kept, {}).settings
    assert "VpcConfig" not in old
    assert old["EnableNetworkIsolation"] == {"EnableNetworkIsolation": None}


def test_an_incomplete_answer_does_not_show_what_is_not_set() -> None:
    """AWS returns the role of every job, which a request must have. Present settings are known."""
    cut = parse(training_answer(EnableManagedSpotTraining=True), {}).settings
    assert cut["EnableManagedSpotTraining"] == {"EnableManagedSpotTraining": True}
    assert not cut.keys() & {"VpcConfig", "EnableNetworkIsolation"}


def test_a_word_that_aws_added_later_is_unknown() -> None:
    """It is stored as Unknown, and may be any word."""
    answer = training_answer(OutputDataConfig={"CompressionType": "ZSTD"})
    assert "OutputDataConfig.CompressionType" not in parse(answer, {}).settings


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", JobKind)
def test_each_path_is_one_of_awss_requests(setting: str, kind: JobKind) -> None:
    """For a tuning job, of the training jobs that it requests."""
    path = setting_path(kind, setting)
    if path is None:
        return
    model = api_model()
    shape = TRIAL_SHAPE if kind is JobKind.TUNING else REQUEST_SHAPES[kind]
    for name in path.split("."):
        members = model.members(shape)
        assert name in members, path
        shape = members[name]["shape"]


def test_the_page_lists_every_setting() -> None:
    """With its paths in the other kinds of jobs."""
    page = (Path(__file__).parents[3] / "docs" / "check.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]*)` \| (?:`([^`]*)` )?\| (?:`([^`]*)` )?\|$", page, re.MULTILINE)
    other = (JobKind.PROCESSING, JobKind.TRANSFORM)
    expected = [(name, *(setting_path(kind, name) or "" for kind in other)) for name in SETTINGS]
    assert [row for row in rows if row[0] != "Tags.NAME"] == expected
