from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.bill import UPPER_BOUND, Bill, Line, bill
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import WarmPool
from tests.fakes.jobs import START, job, market, phases, ran


def usd(amount: Decimal | None) -> str:
    """To the millionth of a dollar."""
    assert amount is not None
    return f"{amount:.6f}"


def the(item: str, billed: Bill) -> list[Line]:
    """The lines of one kind."""
    return [line for line in billed.lines if line.item == item]


def test_compute_is_seconds_times_instances_times_rate() -> None:
    """3 h x 2 x $1.515 = $9.09, and nothing for the volume: g5 has local NVMe."""
    billed = bill(job(instances=2), market())
    assert usd(billed.total_usd) == "9.090000"
    assert (billed.basis, billed.complete, billed.missing) == ("billable_seconds", True, ())
    [line] = billed.lines
    assert (line.quantity, line.unit) == (6, "instance-hours")
    assert line.usage_type == "USE1-Training:ml.g5.2xlarge"
    assert line.rate is not None
    assert (line.rate.as_of, line.rate.source) == ("2026-05-20", "fixed")


def test_phases_share_compute_by_their_billed_seconds() -> None:
    """1200, 9540 and 60 of 10800 s of $4.545; waiting costs nothing."""
    billed = bill(job(), market())
    assert [(cost.phase.name, usd(cost.usd)) for cost in billed.phases] == [
        ("Starting", "0.000000"),
        ("Downloading", "0.505000"),
        ("Training", "4.014750"),
        ("Uploading", "0.025250"),
    ]


def test_spot_phases_sum_to_the_billed_part() -> None:
    """A third of the seconds billed: 1 h x $1.515, not 3 h."""
    spot = job(purchase=Purchase.SPOT, billable_s=Decimal(3600))
    billed = bill(spot, market())
    assert usd(billed.compute_usd) == "1.515000"
    assert usd(sum((cost.usd or Decimal(0) for cost in billed.phases), Decimal(0))) == "1.515000"


def test_storage_counts_the_hours_of_the_calendar_month() -> None:
    """100 GB for 1 h of May (744 h) at $0.14: 0.134409 GB-months, $0.018817."""
    [line] = the("storage", bill(ran(3600, volume_gb=100), market()))
    assert usd(line.quantity) == "0.134409"
    assert (usd(line.usd), line.unit) == ("0.018817", "GB-months")
    assert line.usage_type == "USE1-Training:VolumeUsage.gp2"


def test_storage_is_for_each_instance() -> None:
    """3 instances of 100 GB for 1 h: three times the quantity."""
    [line] = the("storage", bill(ran(3600, instances=3, volume_gb=100), market()))
    assert usd(line.quantity) == "0.403226"


@pytest.mark.parametrize(
    ("begun", "quantities"),
    [
        # 2 h of 744 (May) and 2 h of 720 (June)
        (datetime(2026, 5, 31, 22, tzinfo=UTC), ["0.268817", "0.277778"]),
        # 2 h of 744 (December) and 2 h of 744 (January)
        (datetime(2026, 12, 31, 22, tzinfo=UTC), ["0.268817", "0.268817"]),
        # 2 h of 696 (February of a leap year) and 2 h of 744 (March)
        (datetime(2028, 2, 29, 22, tzinfo=UTC), ["0.287356", "0.268817"]),
        # it ends with the month: one line
        (datetime(2026, 5, 31, 20, tzinfo=UTC), ["0.537634"]),
    ],
)
def test_storage_is_split_where_the_month_ends(begun: datetime, quantities: list[str]) -> None:
    """100 GB for 4 h: each calendar month (UTC) has its own line and its own hours."""
    run = ran(14400, at=begun, volume_gb=100)
    lines = the("storage", bill(run, market()))
    assert [usd(line.quantity) for line in lines] == quantities


def test_a_spot_jobs_storage_splits_the_billed_hours_by_elapsed_time() -> None:
    """4 h elapsed across the month's end, 1 h billed: half an hour in each month."""
    begun = datetime(2026, 5, 31, 22, tzinfo=UTC)
    run = ran(
        14400,
        at=begun,
        billable_s=Decimal(3600),
        purchase=Purchase.SPOT,
        volume_gb=100,
    )
    lines = the("storage", bill(run, market()))
    assert [usd(line.quantity) for line in lines] == ["0.067204", "0.069444"]


def test_a_month_of_a_long_run_in_the_middle_is_whole() -> None:
    """15 April to 15 June: all 744 hours of May are 1 month, so 10 GB are 10 GB-months."""
    begun = datetime(2026, 4, 15, tzinfo=UTC)
    run = ran(61 * 86400, at=begun, volume_gb=10)
    lines = the("storage", bill(run, market()))
    assert [f"{line.quantity:.4f}" for line in lines] == ["5.3333", "10.0000", "4.6667"]


def test_an_unsized_volume_is_unknown_only_where_there_is_one() -> None:
    """m5 has an EBS volume of some size; g5 has none whatever its size would be."""
    on_ebs = bill(ran(3600, volume_gb=None), market())
    assert [line.usd for line in the("storage", on_ebs)] == [None]
    assert (on_ebs.complete, usd(on_ebs.total_usd)) == (False, "0.230000")
    assert bill(ran(3600, "ml.g5.2xlarge", volume_gb=None), market()).complete


def test_a_type_that_nobody_knows_of_leaves_its_storage_unknown() -> None:
    """Its rate is known, whether EBS is provisioned is not: unknown, not 0."""
    billed = bill(ran(3600, "ml.odd.xlarge"), market())
    assert [line.quantity for line in the("storage", billed)] == [None]
    assert (usd(billed.total_usd), billed.complete) == ("0.500000", False)


def test_an_unpriced_volume_leaves_the_bill_incomplete() -> None:
    """The quantity is known, the dollars are not: the total is the sum of the known lines."""
    billed = bill(ran(3600, volume_gb=100), market(storage_usd=None))
    [line] = the("storage", billed)
    assert (usd(line.quantity), line.usd) == ("0.134409", None)
    assert usd(billed.total_usd) == "0.230000"
    assert billed.missing == ("storage: no ML storage price for us-east-1 (Training)",)


@pytest.mark.parametrize(
    "strange",
    [ran(3600, "ml.unpriced.xlarge"), ran(3600, region="xx-west-9"), ran(3600, region=None)],
    ids=["type", "region", "no region"],
)
def test_an_unknown_price_is_never_zero(strange: Job) -> None:
    """No rate: line and total are unknown, and the bill says what is missing."""
    billed = bill(strange, market())
    assert [line.usd for line in the("compute", billed)] == [None]
    assert (billed.total_usd, billed.compute_usd, billed.complete) == (None, None, False)
    assert billed.missing
    assert all(cost.usd is None for cost in billed.phases if cost.phase.billed)


def test_the_missing_price_is_named() -> None:
    """Which type, which component, where."""
    billed = bill(ran(3600, "ml.unpriced.xlarge", kind=JobKind.PROCESSING), market())
    assert "no Processing price known for ml.unpriced.xlarge in us-east-1" in billed.missing


def test_no_instance_type_is_no_bill() -> None:
    """Nothing to price, said so."""
    billed = bill(ran(3600, groups=()), market())
    assert (billed.total_usd, billed.missing) == (None, ("the instance type is not known",))


def test_groups_are_billed_for_the_same_seconds() -> None:
    """1 h: 1 x $1.515 + 3 x $0.23 = $2.205 of compute."""
    mixed = ran(3600, groups=(InstanceGroup("ml.g5.2xlarge", 1), InstanceGroup("ml.m5.xlarge", 3)))
    billed = bill(mixed, market())
    assert usd(billed.compute_usd) == "2.205000"
    # only the three m5 have a volume: 30 GB x 3 h / 744 h
    assert [usd(line.quantity) for line in the("storage", billed)] == ["0.120968"]


def test_one_unpriced_group_leaves_the_whole_total_unknown() -> None:
    """Half a compute bill is no bill."""
    groups = (InstanceGroup("ml.g5.2xlarge", 1), InstanceGroup("ml.unpriced.xlarge", 3))
    assert bill(ran(3600, groups=groups), market()).total_usd is None


def test_a_warm_pool_costs_the_same_rate_and_its_volumes() -> None:
    """Half an hour retained, 2 x $0.23 = $0.23; 30 GB x 2 x 0.5 h / 744 h = 0.040323 GB-months."""
    kept = ran(3600, instances=2, warm_pool=WarmPool("Terminated", 1800, Decimal(1800)))
    billed = bill(kept, market())
    [pool], [volume] = the("warm_pool", billed), the("warm_pool_storage", billed)
    assert (usd(pool.usd), pool.quantity) == ("0.230000", 1)
    assert (usd(volume.quantity), usd(volume.usd)) == ("0.040323", "0.005645")
    # 2 x 0.23 compute + 30 x 2 / 744 x 0.14 storage + pool and its volume
    assert usd(billed.total_usd) == "0.706935"


def test_a_pool_without_retained_seconds_has_no_line() -> None:
    """KeepAlive without quota gives no pool."""
    assert not the("warm_pool", bill(ran(60, warm_pool=WarmPool(None, 600, None)), market()))


def test_a_pools_volume_is_of_the_month_after_the_job() -> None:
    """The job ends with May, the pool stands in June (720 h)."""
    begun = datetime(2026, 5, 31, 23, tzinfo=UTC)
    kept = ran(
        3600,
        at=begun,
        warm_pool=WarmPool("Terminated", 3600, Decimal(3600)),
    )
    billed = bill(kept, market())
    assert [usd(line.quantity) for line in the("storage", billed)] == ["0.040323"]
    assert [usd(line.quantity) for line in the("warm_pool_storage", billed)] == ["0.041667"]


NEVER: dict[str, Any] = {
    "started_at": None,
    "ended_at": None,
    "training_s": None,
    "billable_s": None,
}


@pytest.mark.parametrize("status", ["Failed", "Stopped"])
def test_a_job_that_never_started_costs_nothing_and_is_complete(status: str) -> None:
    """No capacity, or stopped while waiting: 0 is known here."""
    billed = bill(job(status=status, phases=phases(("Starting", -900)), **NEVER), market())
    assert (billed.total_usd, billed.complete, billed.basis) == (0, True, "none")
    assert [cost.usd for cost in billed.phases] == [0]


def test_a_completed_job_without_times_is_unknown_not_free() -> None:
    """It did run: an answer that does not say how long has no cost of 0."""
    billed = bill(job(phases=(), **NEVER), market())
    assert (billed.total_usd, billed.complete) == (None, False)


def test_a_failed_job_that_was_seen_training_is_unknown_not_free() -> None:
    """Times "may not be present" on failure; a Training phase says that it ran."""
    cut = job(status="Failed", phases=phases(("Starting", -120), ("Training", 600)), **NEVER)
    assert bill(cut, market()).total_usd is None


def test_billable_seconds_alone_are_enough() -> None:
    """An answer with BillableTimeInSeconds and no start: 1 h x $1.515."""
    billed = bill(job(phases=(), **{**NEVER, "billable_s": Decimal(3600)}), market())
    assert (usd(billed.total_usd), billed.basis) == ("1.515000", "billable_seconds")


@pytest.mark.parametrize("status", ["InProgress", "Stopping"])
def test_an_unfinished_job_has_no_final_cost(status: str) -> None:
    """Without any time it is unknown and said so; its phases have no dollars yet."""
    billed = bill(job(status=status, phases=(), **{**NEVER, "billable_s": None}), market())
    assert (billed.total_usd, billed.complete, billed.basis) == (None, False, "none")
    assert status in billed.missing[0]


def test_spot_without_billable_seconds_is_an_upper_bound() -> None:
    """Wall time at the on-demand rate is the most that it can have cost."""
    billed = bill(job(purchase=Purchase.SPOT, billable_s=None), market())
    assert (usd(billed.total_usd), billed.basis) == ("4.545000", "upper_bound")
    assert (billed.complete, billed.missing) == (False, (UPPER_BOUND,))


def test_a_job_without_billable_seconds_is_estimated_from_its_times() -> None:
    """Processing and answers of 2018: end minus start."""
    billed = bill(job(kind=JobKind.PROCESSING, training_s=None, billable_s=None), market())
    assert (usd(billed.total_usd), billed.basis) == ("4.545000", "estimated_from_times")


def test_a_training_plan_is_prepaid() -> None:
    """Marginal cost 0: neither instances nor volumes are billed again."""
    planned = ran(3600, purchase=Purchase.TRAINING_PLAN)
    billed = bill(planned, market())
    assert (billed.total_usd, billed.basis, billed.complete) == (0, "prepaid", True)


def test_a_training_plan_needs_no_price() -> None:
    """Types sold only through plans have no on-demand rate; the plan's job still costs 0."""
    planned = ran(3600, "ml.unpriced.xlarge", purchase=Purchase.TRAINING_PLAN)
    assert bill(planned, market()).total_usd == 0


def test_a_serverless_job_is_unknown() -> None:
    """It is priced by token, and no token price is known."""
    billed = bill(ran(3600, purchase=Purchase.SERVERLESS, groups=()), market())
    assert (billed.total_usd, billed.complete) == (None, False)
    assert "token" in billed.missing[0]


def test_a_built_in_debugger_rule_is_free() -> None:
    """No additional cost, for the volume neither."""
    free = ran(600, kind=JobKind.PROCESSING, free="built-in Debugger rule")
    billed = bill(free, market())
    assert (billed.total_usd, billed.complete) == (0, True)
    assert [line.item for line in billed.lines] == ["compute"]


def test_a_transform_job_has_no_storage_line() -> None:
    """No volume in its API, no storage usage type in the price list."""
    billed = bill(
        ran(3600, kind=JobKind.TRANSFORM, volume_gb=None, training_s=None, billable_s=None),
        market(),
    )
    assert [line.item for line in billed.lines] == ["compute"]
    assert billed.complete
    assert billed.lines[0].usage_type == "USE1-BatchTransform:ml.m5.xlarge"


def test_processing_has_its_own_storage_rate() -> None:
    """100 GB x 1 h / 744 h at $0.10."""
    run = ran(3600, kind=JobKind.PROCESSING, volume_gb=100, billable_s=None)
    [line] = the("storage", bill(run, market()))
    assert usd(line.usd) == "0.013441"


def test_a_tuning_jobs_cost_is_on_its_children() -> None:
    """It has no lines of its own, and says where the cost is."""
    billed = bill(job(kind=JobKind.TUNING, groups=()), market())
    assert (billed.lines, billed.total_usd, billed.complete) == ((), None, False)


def test_a_failed_run_is_billed_like_any_other() -> None:
    """From start to end."""
    failed = job(status="Failed", secondary_status="Failed")
    assert usd(bill(failed, market()).total_usd) == "4.545000"


def test_a_phase_of_unknown_length_leaves_the_shares_unknown() -> None:
    """The compute line stands; who took which part of it is not known."""
    cut = phases(("Downloading", 1200), ("Training", 9540))
    broken = job(phases=(cut[0], replace(cut[1], seconds=None)))
    billed = bill(broken, market())
    assert usd(billed.compute_usd) == "4.545000"
    assert [cost.usd for cost in billed.phases] == [None, None]


def test_times_at_the_edge_of_a_month_do_not_go_missing() -> None:
    """A run of one second in the month's last second has one line."""
    begun = START.replace(day=31, hour=23, minute=59, second=59)
    run = ran(
        1,
        at=begun,
    )
    assert len(the("storage", bill(run, market()))) == 1
