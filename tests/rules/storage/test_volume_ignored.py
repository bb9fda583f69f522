from __future__ import annotations

from typing import Any

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Found
from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.jobs import job
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown

RULE = "volume-ignored"
NVME, EBS = InstanceGroup("ml.g5.2xlarge", 2), InstanceGroup("ml.m5.xlarge", 1)


def test_a_size_that_does_nothing_is_found() -> None:
    """The parameter goes, and no dollars with it."""
    what = found(RULE, job(groups=(NVME,), volume_gb=500))
    assert what.summary == (
        "VolumeSizeInGB is 500 and has no effect on 2 x ml.g5.2xlarge: the storage is local NVMe."
    )
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == ("ResourceConfig.VolumeSizeInGB", 500, None)
    assert what.bucket is Bucket.NONE
    assert (what.caution or "").startswith("No volume is provisioned")


def test_it_saves_nothing() -> None:
    """No volume is billed there."""
    finding = priced(RULE, job(groups=(NVME,), volume_gb=500))
    assert (finding.saving_usd, finding.alone_usd) == (None, None)
    assert finding.severity.value == "info"


def test_exactly_the_default_is_nobodys_choice() -> None:
    """30 GB; one more or less was set by somebody."""
    assert outcome(RULE, job(groups=(NVME,), volume_gb=30)) == Clear()
    for size in (29, 31):
        assert isinstance(outcome(RULE, job(groups=(NVME,), volume_gb=size)), Found)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"groups": (EBS,)}, "get a volume"),
        ({"volume_gb": None}, "no VolumeSizeInGB"),
        ({"volume_gb": 0}, "no VolumeSizeInGB"),
        ({"purchase": Purchase.SERVERLESS}, "serverless"),
        ({"kind": JobKind.PROCESSING}, "processing"),
    ],
)
def test_other_jobs_are_not_its_concern(changes: dict[str, Any], why: str) -> None:
    """The advised job among them; processing jobs must give a size."""
    assert why in not_applicable(RULE, job(**{"groups": (NVME,), "volume_gb": 500, **changes}))


@pytest.mark.parametrize(
    "groups",
    [
        (),
        (NVME, EBS),
        (InstanceGroup("ml.odd.xlarge", 1),),
        (InstanceGroup("ml.new.xlarge", 1),),
    ],
)
def test_instances_of_unknown_or_both_kinds_are_unknown(groups: tuple[InstanceGroup, ...]) -> None:
    """Some of them may use the size."""
    assert unknown(RULE, job(groups=groups, volume_gb=500)) == "storage_unknown"


def test_a_part_of_the_cluster_that_is_not_known_is_unknown() -> None:
    """It may have a volume."""
    run = job(groups=(NVME,), groups_unknown=("instance group b: its type is not known",))
    assert outcome(RULE, run) != Clear()
    assert unknown(RULE, run) == "storage_unknown"
