"""The table of fixes that exclude each other, and what a fix changes in a job."""

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.billed_job import change_refusal, early_stopping_refusal, spot_refusal
from sageaudit.domain.bill.change import CutPhase, SetPurchase, SetType
from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.parts import WarmPool
from sageaudit.structs import replace
from tests.fakes.jobs import job

JOB = job()
TWO_GROUPS = (InstanceGroup("ml.g5.2xlarge", 1, "gpu"), InstanceGroup("ml.c5.xlarge", 2, "cpu"))
SPOT = SetPurchase(Decimal("0.4"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"warm_pool": WarmPool("Available", 600, Decimal(10))}, "warm pool"),
        ({"groups": TWO_GROUPS}, "instance groups"),
        ({"purchase": Purchase.TRAINING_PLAN}, "prepaid"),
        ({"purchase": Purchase.SERVERLESS}, "serverless"),
        ({"purchase": Purchase.SPOT}, "managed spot"),
    ],
)
def test_managed_spot_is_refused_for_some_jobs(changes: dict[str, Any], reason: str | None) -> None:
    """SageMaker refuses the request, or the job would save nothing."""
    job = replace(JOB, **changes)
    for result in (spot_refusal(job), change_refusal(SPOT, job, savings_plan=False)):
        assert (result is None) if reason is None else reason in (result or "")


def test_spot_does_not_add_to_a_savings_plan() -> None:
    """A Savings Plan is paid whether used or not. For other fixes only the cash effect is
    uncertain.
    """
    assert "Savings Plan" in (change_refusal(SPOT, JOB, savings_plan=True) or "")
    for change in (SetType("ml.g5.xlarge"), CutPhase("Downloading", Decimal(60))):
        assert change_refusal(change, JOB, savings_plan=True) is None


def test_hyperband_takes_no_early_stopping() -> None:
    """It stops trials itself."""
    result = [early_stopping_refusal(name) for name in ("Hyperband", "Bayesian", None)]
    assert result == ["Hyperband stops trials early itself", None, None]


def test_leaving_spot_is_never_refused() -> None:
    """Not even by a Savings Plan, which then covers the run."""
    change = SetPurchase(Decimal("0.9"), Purchase.ON_DEMAND)
    spot = replace(JOB, purchase=Purchase.SPOT, billable_s=Decimal(1000))
    assert change_refusal(change, spot, savings_plan=True) is None
    after = change.apply(spot)
    assert (after.purchase, after.billable_s) == (Purchase.ON_DEMAND, 900)


def test_a_cut_leaves_the_other_phases_as_they_are() -> None:
    """Only the named phase gets shorter, and the billed seconds of the job by the same share."""
    after = CutPhase("Downloading", Decimal(600)).apply(JOB)
    before = {phase.name: phase.seconds for phase in JOB.phases}
    seconds = {phase.name: phase.seconds for phase in after.phases}
    assert seconds == before | {"Downloading": Decimal(600)}
    assert after.billable_s == Decimal(10200)
