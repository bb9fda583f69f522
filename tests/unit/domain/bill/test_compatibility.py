"""The table of fixes that do not go together."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.bill.change import CutPhase, SetPurchase, SetType
from sageaudit.domain.bill.compatibility import (
    early_stopping_refused,
    has_bf16,
    has_tensor_cores,
    refused,
    spot_refused,
    type_refused,
)
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase, WarmPool
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
TWO_GROUPS = (InstanceGroup("ml.g5.2xlarge", 1, "gpu"), InstanceGroup("ml.c5.xlarge", 2, "cpu"))


def test_a_plain_on_demand_job_may_go_spot() -> None:
    """Nothing speaks against it."""
    assert spot_refused(JOB) is None


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (replace(JOB, warm_pool=WarmPool("Available", 600, Decimal(10))), "warm pool"),
        (replace(JOB, groups=TWO_GROUPS), "instance groups"),
        (replace(JOB, purchase=Purchase.TRAINING_PLAN), "prepaid"),
        (replace(JOB, purchase=Purchase.SERVERLESS), "serverless"),
        (replace(JOB, purchase=Purchase.SPOT), "managed spot"),
    ],
)
def test_what_managed_spot_does_not_go_with(job: Job, why: str) -> None:
    """SageMaker refuses the request, or the job has nothing to gain."""
    assert why in (spot_refused(job) or "")
    assert why in (refused(SetPurchase(Decimal("0.4")), job, savings_plan=False) or "")


def test_spot_and_a_commitment_do_not_add_up() -> None:
    """The plan is paid used or not."""
    change = SetPurchase(Decimal("0.4"))
    assert "Savings Plan" in (refused(change, JOB, savings_plan=True) or "")
    assert refused(change, JOB, savings_plan=False) is None


def test_other_fixes_go_with_a_savings_plan() -> None:
    """Their list value stands; only its cash effect is another question."""
    for change in (SetType("ml.g5.xlarge"), CutPhase("Downloading", Decimal(60))):
        assert refused(change, JOB, savings_plan=True) is None


@pytest.mark.parametrize(
    ("strategy", "refuses"), [("Hyperband", True), ("Bayesian", False), (None, False)]
)
def test_hyperband_takes_no_early_stopping(strategy: str | None, refuses: bool) -> None:
    """It stops trials itself."""
    assert (early_stopping_refused(strategy) is not None) is refuses


def moved(today: str, other: str, count: int = 1, hints: Hints | None = None) -> str | None:
    """Why a job with so many instances cannot change its type."""
    job = replace(JOB, groups=(InstanceGroup(today, count),), hints=hints or Hints())
    types = packaged.types()
    return type_refused(job, types[today], types[other])


def test_leaving_spot_is_refused_by_nothing() -> None:
    """Not even by a Savings Plan, which then pays for it."""
    change = SetPurchase(Decimal("0.9"), Purchase.ON_DEMAND)
    spot = replace(JOB, purchase=Purchase.SPOT, billable_s=Decimal(1000))
    assert refused(change, spot, savings_plan=True) is None
    after = change.apply(spot)
    assert (after.purchase, after.billable_s) == (Purchase.ON_DEMAND, 900)


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
