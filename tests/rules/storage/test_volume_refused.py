from __future__ import annotations

from sageaudit.domain.bill.finding import Clear, Unknown
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, said, told

RULE = "volume-refused"
SIZE, KEY = "ResourceConfig.VolumeSizeInGB", "ResourceConfig.VolumeKmsKeyId"
NVME = {"ResourceConfig.InstanceType": "ml.g5.2xlarge"}


def test_a_type_without_local_storage_needs_a_size() -> None:
    """Local storage needs none."""
    assert told(RULE, {SIZE: None}).found.fix[0].path == SIZE
    assert said(RULE, NVME | {SIZE: None}) == Clear()


def test_local_storage_takes_no_key() -> None:
    """A volume does."""
    assert told(RULE, NVME | {KEY: "key"}).found.fix[0].path == KEY
    assert said(RULE, {KEY: "key"}) == Clear()


def test_a_type_that_is_known_later_is_not_judged() -> None:
    """It may be of either kind."""
    assert isinstance(said(RULE, {"ResourceConfig.InstanceType": LATER, SIZE: None}), Unknown)


def test_a_healthy_request_of_each_kind_is_clear() -> None:
    """Processing must give a size anyway."""
    for kind in (JobKind.TRAINING, JobKind.PROCESSING, JobKind.TRANSFORM):
        assert said(RULE, kind=kind) == Clear()
