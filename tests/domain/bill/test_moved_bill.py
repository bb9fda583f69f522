"""A bill on another type without its lines is the bill's own total, to the last digit."""

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
    other=st.sampled_from(sorted(set(TYPES) - {"ml.unpriced.xlarge"})),
    times=st.decimals("0.2", 3, places=4),
    count=st.integers(1, 9),
    volume_gb=st.sampled_from((0, 30, 500, None)),
    billed_share=st.sampled_from((None, Decimal("0.3"))),
)
def test_its_total_is_that_of_the_bill(
    seconds: int, before_month_ends_s: int, other: str, times: Decimal, **changes: Any
) -> None:
    """Of spot runs too, with one group or two; where a volume lasts into the next month, or its
    size is not known, only the bill itself says what it costs.
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
    rate = not_none(on.hourly(run.region, run.kind, other))
    found = not_none(BillOnType.from_job(run, on)).total_usd(TYPES[other], rate, times)
    moved = bill(SetType(other, times).apply(run), on)
    expected = moved.total_usd
    today = BilledJob(run, bill(run, on), on)
    assert today.compute_usd(SetType(other, times)) == moved.compute_usd
    assert today.saving_usd(SetType(other, times)) == _difference(today.bill, moved)
    into_next = seconds * times > before_month_ends_s
    on_ebs = TYPES[other].is_ebs_billed is not False and run.volume_gb != 0
    sure = TYPES[other].is_ebs_billed and run.volume_gb and not into_next
    assert found == (expected if sure or not on_ebs else None)


def _difference(today: Bill, moved: Bill) -> Decimal | None:
    """Of the totals, at least 0, where the new bill lacks nothing that today's has."""
    if today.total_usd is None or moved.total_usd is None or set(moved.gaps) - set(today.gaps):
        return None
    return max(today.total_usd - moved.total_usd, Decimal(0))


@pytest.mark.parametrize(
    "changes",
    [
        {"free": "a built-in Debugger rule"},
        {"groups_unknown": ("its types are not known",)},
        {"purchase": Purchase.TRAINING_PLAN},
        {"purchase": Purchase.SERVERLESS},
    ],
)
def test_what_has_other_lines_is_left_to_the_bill(changes: dict[str, Any]) -> None:
    """As a job without seconds, and a type of which nobody knows whether it has a volume."""
    assert BillOnType.from_job(ran(3600, **changes), ON) is None


def test_a_pool_and_an_unknown_volume_are_left_to_the_bill() -> None:
    """A pool has lines of its own."""
    run = ran(3600, volume_gb=30)
    pool = WarmPool("Terminated", 600, Decimal(600))
    assert BillOnType.from_job(replace(run, warm_pool=pool), ON) is None
    rate = not_none(ON.hourly(run.region, run.kind, "ml.m5.large"))
    assert not_none(BillOnType.from_job(run, ON)).total_usd(UNSURE, rate, Decimal(1)) is None
