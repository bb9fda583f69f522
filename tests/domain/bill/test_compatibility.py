"""The table of fixes that do not go together, and what a fix leaves of a job."""

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
    ("changes", "why"),
    [
        ({}, None),
        ({"warm_pool": WarmPool("Available", 600, Decimal(10))}, "warm pool"),
        ({"groups": TWO_GROUPS}, "instance groups"),
        ({"purchase": Purchase.TRAINING_PLAN}, "prepaid"),
        ({"purchase": Purchase.SERVERLESS}, "serverless"),
        ({"purchase": Purchase.SPOT}, "managed spot"),
    ],
)
def test_what_managed_spot_does_not_go_with(changes: dict[str, Any], why: str | None) -> None:
    """SageMaker refuses the request, or the job has nothing to gain."""
    of = replace(JOB, **changes)
    for found in (spot_refusal(of), change_refusal(SPOT, of, savings_plan=False)):
        assert (found is None) if why is None else why in (found or "")


def test_spot_and_a_commitment_do_not_add_up() -> None:
    """The plan is paid used or not; of other fixes only the cash effect is another question."""
    assert "Savings Plan" in (change_refusal(SPOT, JOB, savings_plan=True) or "")
    for change in (SetType("ml.g5.xlarge"), CutPhase("Downloading", Decimal(60))):
        assert change_refusal(change, JOB, savings_plan=True) is None


def test_hyperband_takes_no_early_stopping() -> None:
    """It stops trials itself."""
    found = [early_stopping_refusal(name) for name in ("Hyperband", "Bayesian", None)]
    assert found == ["Hyperband stops trials early itself", None, None]


def test_leaving_spot_is_refused_by_nothing() -> None:
    """Not even by a Savings Plan, which then pays for it."""
    change = SetPurchase(Decimal("0.9"), Purchase.ON_DEMAND)
    spot = replace(JOB, purchase=Purchase.SPOT, billable_s=Decimal(1000))
    assert change_refusal(change, spot, savings_plan=True) is None
    after = change.apply(spot)
    assert (after.purchase, after.billable_s) == (Purchase.ON_DEMAND, 900)


def test_a_cut_leaves_the_other_phases_as_they_are() -> None:
    """Only the named phase loses seconds, and the job as many billed ones."""
    after = CutPhase("Downloading", Decimal(600)).apply(JOB)
    before = {phase.name: phase.seconds for phase in JOB.phases}
    seconds = {phase.name: phase.seconds for phase in after.phases}
    assert seconds == before | {"Downloading": Decimal(600)}
    assert after.billable_s == Decimal(10200)
