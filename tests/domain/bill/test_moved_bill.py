"""The bill on another type, computed without lines, equals the total of the real bill."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.bill.bill import Bill, bill
from sageaudit.domain.bill.billed_job import BilledJob, BillOnType
from sageaudit.domain.bill.change import SetType
from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.parts import WarmPool
from sageaudit.domain.prices.market import Market
from sageaudit.structs import replace
from tests.fakes.jobs import TYPES, FixedPrices, market, not_none, ran

MONTH_ENDS = datetime(2026, 6, 1, tzinfo=UTC)
UNSURE = replace(TYPES["ml.m5.large"], name="ml.unsure.large", is_ebs_billed=None)
ON = Market({**TYPES, UNSURE.name: UNSURE}, FixedPrices())


@given(
    seconds=st.integers(1, 10 * 86_400),
    before_month_ends_s=st.integers(1, 12 * 86_400),
    other_type=st.sampled_from(sorted(set(TYPES) - {"ml.unpriced.xlarge"})),
    times=st.decimals("0.2", 3, places=4),
    count=st.integers(1, 9),
    volume_gb=st.sampled_from((0, 30, 500, None)),
    billed_share=st.sampled_from((None, Decimal("0.3"))),
)
def test_its_total_is_that_of_the_bill(
    seconds: int, before_month_ends_s: int, other_type: str, times: Decimal, **changes: Any
) -> None:
    """Also for spot runs, with one group or two. Only the bill itself has the cost if a volume
    lasts into the next month, or if its size is unknown.
    """
    share = changes.pop("billed_share")
    at = MONTH_ENDS - timedelta(seconds=before_month_ends_s)
    run = ran(seconds, instances=changes["count"], at=at, volume_gb=changes["volume_gb"])
    if share is not None:
        billable = (seconds * share).quantize(Decimal(1))
        run = replace(run, purchase=Purchase.SPOT, billable_s=billable)
    if changes["count"] > 1:
        name = run.groups[0].instance_type
        run = replace(run, groups=(InstanceGroup(name, 1, "a"), InstanceGroup(name, 2, "b")))
    on = market()
    rate = not_none(on.hourly(run.region, run.kind, other_type))
    result = not_none(BillOnType.from_job(run, on)).total_usd(TYPES[other_type], rate, times)
    moved = bill(SetType(other_type, times).apply(run), on)
    expected = moved.total_usd
    current_bill = BilledJob(run, bill(run, on), on)
    assert current_bill.compute_usd(SetType(other_type, times)) == moved.compute_usd
    assert current_bill.saving_usd(SetType(other_type, times)) == _difference(
        current_bill.bill, moved
    )
    into_next = seconds * times > before_month_ends_s
    on_ebs = TYPES[other_type].is_ebs_billed is not False and run.volume_gb != 0
    sure = TYPES[other_type].is_ebs_billed and run.volume_gb and not into_next
    assert result == (expected if sure or not on_ebs else None)


def _difference(current_bill: Bill, moved_bill: Bill) -> Decimal | None:
    """Returns the difference of the totals, at least 0; None if the new bill lacks a current
    line.
    """
    if (
        current_bill.total_usd is None
        or moved_bill.total_usd is None
        or set(moved_bill.gaps) - set(current_bill.gaps)
    ):
        return None
    return max(current_bill.total_usd - moved_bill.total_usd, Decimal(0))


@pytest.mark.parametrize(
    "changes",
    [
        {"free": "a built-in Debugger rule"},
        {"groups_unknown": ("its types are not known",)},
        {"purchase": Purchase.TRAINING_PLAN},
        {"purchase": Purchase.SERVERLESS},
    ],
)
def test_jobs_with_other_lines_need_the_bill(changes: dict[str, Any]) -> None:
    """For example a job without seconds, and a type of which it is unknown whether it has a
    volume.
    """
    assert BillOnType.from_job(ran(3600, **changes), ON) is None


def test_a_pool_and_an_unknown_volume_need_the_bill() -> None:
    """A pool has lines of its own."""
    run = ran(3600, volume_gb=30)
    pool = WarmPool("Terminated", 600, Decimal(600))
    assert BillOnType.from_job(replace(run, warm_pool=pool), ON) is None
    rate = not_none(ON.hourly(run.region, run.kind, "ml.m5.large"))
    assert not_none(BillOnType.from_job(run, ON)).total_usd(UNSURE, rate, Decimal(1)) is None
