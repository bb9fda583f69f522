"""Which types a run cannot move to, whatever they cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.bill.type_vetoes import has_bf16, has_tensor_cores, type_refused
from sageaudit.domain.job.job import Hints, InstanceGroup, Job
from sageaudit.domain.job.kinds import JobKind

JOB = Job(
    kind=JobKind.TRAINING,
    name="train",
    arn=None,
    account=None,
    region="us-east-1",
    status="Completed",
    groups=(InstanceGroup("ml.g5.2xlarge", 1),),
)


def moved(today: str, other: str, count: int = 1, hints: Hints | None = None) -> str | None:
    """Why a job with so many instances cannot change its type."""
    job = replace(JOB, groups=(InstanceGroup(today, count),), hints=hints or Hints())
    types = packaged.types()
    return type_refused(job, types[today], types[other])


def test_gpus_joined_by_nvlink_stay_joined() -> None:
    """One GPU, or one after, needs no link; from PCIe anything goes."""
    assert "NVLink" in (moved("ml.p3.8xlarge", "ml.g5.12xlarge") or "")
    assert "NVLink" in (moved("ml.p4d.24xlarge", "ml.g6e.48xlarge") or "")
    assert moved("ml.p3.16xlarge", "ml.p4d.24xlarge") is None
    assert moved("ml.p3.2xlarge", "ml.g5.2xlarge") is None
    assert moved("ml.p3.8xlarge", "ml.g5.16xlarge") is None
    assert moved("ml.g5.12xlarge", "ml.g6e.12xlarge") is None


def test_several_instances_keep_their_gpu_and_their_efa() -> None:
    """On another GPU their network is not known; on the same one EFA counts where they train."""
    together = Hints(distribution="ddp")
    assert "network" in (moved("ml.g5.2xlarge", "ml.g6.2xlarge", 2) or "")
    assert "EFA" in (moved("ml.g5.48xlarge", "ml.g5.4xlarge", 2, together) or "")
    assert moved("ml.g5.48xlarge", "ml.g5.4xlarge", 2) is None
    assert moved("ml.g5.48xlarge", "ml.g5.4xlarge", 1, together) is None
    assert moved("ml.g5.48xlarge", "ml.g5.24xlarge", 2, together) is None
    assert "network" in (moved("ml.p4d.24xlarge", "ml.p4de.24xlarge", 2) or "")


@pytest.mark.parametrize("hints", [Hints(flash_attention=True), Hints(mixed_precision=True)])
def test_bf16_and_flash_attention_need_ampere(hints: Hints) -> None:
    """A run on a GPU without them cannot have used them."""
    assert "too old" in (moved("ml.g5.xlarge", "ml.g4dn.xlarge", hints=hints) or "")
    assert "too old" in (moved("ml.g5.2xlarge", "ml.p3.2xlarge", hints=hints) or "")
    assert moved("ml.g5.xlarge", "ml.g6.xlarge", hints=hints) is None
    assert moved("ml.p3.2xlarge", "ml.g4dn.2xlarge", hints=hints) is None
    assert moved("ml.g5.xlarge", "ml.g4dn.xlarge") is None


def test_what_each_gpu_can_do() -> None:
    """K80 has neither; V100 and T4 have tensor cores without bf16; a CPU type has no GPU."""
    types = packaged.types()
    able = {
        name: (has_tensor_cores(types[f"ml.{name}"]), has_bf16(types[f"ml.{name}"]))
        for name in ("p2.xlarge", "p3.2xlarge", "g4dn.xlarge", "g5.xlarge", "m5.xlarge")
    }
    assert able == {
        "p2.xlarge": (False, False),
        "p3.2xlarge": (True, False),
        "g4dn.xlarge": (True, False),
        "g5.xlarge": (True, True),
        "m5.xlarge": (False, False),
    }
