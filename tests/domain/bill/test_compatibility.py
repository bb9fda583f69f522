"""The table of fixes that do not go together."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from sageaudit.domain.bill.change import CutPhase, SetPurchase, SetType
from sageaudit.domain.bill.compatibility import early_stopping_refused, refused, spot_refused
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import WarmPool

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


def test_leaving_spot_is_refused_by_nothing() -> None:
    """Not even by a Savings Plan, which then pays for it."""
    change = SetPurchase(Decimal("0.9"), Purchase.ON_DEMAND)
    spot = replace(JOB, purchase=Purchase.SPOT, billable_s=Decimal(1000))
    assert refused(change, spot, savings_plan=True) is None
    after = change.apply(spot)
    assert (after.purchase, after.billable_s) == (Purchase.ON_DEMAND, 900)
