from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.bill import UPPER_BOUND, Bill, Line, bill
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import WarmPool
from sageaudit.structs import replace
from tests.fakes.jobs import job, market, phases, ran


def usd(amount: Decimal | None) -> str | None:
    """To the millionth of a dollar."""
    return None if amount is None else f"{amount:.6f}"


def the(item: str, billed: Bill) -> list[Line]:
    """The lines of one kind."""
    return [line for line in billed.lines if line.item == item]


def quantities(item: str, of: Job) -> list[str | None]:
    """Of the lines of one kind."""
    return [usd(line.quantity) for line in the(item, bill(of, market()))]


def test_compute_is_seconds_times_instances_times_rate() -> None:
    """3 h x 2 x $1.515 = $9.09, and nothing for the volume: g5 has local NVMe."""
    billed = bill(job(instances=2), market())
    assert usd(billed.total_usd) == "9.090000"
    [line] = billed.lines
    assert (line.quantity, line.unit) == (6, "instance-hours")
    assert line.usage_type == "USE1-Training:ml.g5.2xlarge"
    assert line.rate is not None
    assert (line.rate.as_of, line.rate.source) == ("2026-05-20", "fixed")


NEVER: dict[str, Any] = {
    "started_at": None,
    "ended_at": None,
    "training_s": None,
    "billable_s": None,
}
FROM_TIMES: dict[str, Any] = {"training_s": None, "billable_s": None}


def assert_bill(*, of: Job, total: str | None, basis: str, missing: str | None) -> None:
    """A bill is known by what its seconds and prices are, and says what is missing."""
    billed = bill(of, market())
    assert (usd(billed.total_usd), billed.basis) == (total, basis)
    assert (billed.complete, missing in billed.missing) == (missing is None, missing is not None)
    if total in {None, "0.000000"}:
        share = None if total is None else 0
        assert all(cost.usd == share for cost in billed.phases if cost.phase.billed)


def test_a_completed_job_costs_its_billable_seconds() -> None:
    assert_bill(
        of=job(),
        total="4.545000",
        basis="billable_seconds",
        missing=None,
    )


def test_a_failed_job_costs_its_billable_seconds() -> None:
    assert_bill(
        of=job(status="Failed", secondary_status="Failed"),
        total="4.545000",
        basis="billable_seconds",
        missing=None,
    )


def test_on_spot_only_the_billed_third_of_the_seconds_costs() -> None:
    """On spot a third of the seconds is billed, 1 h x $1.515 and not 3 h."""
    # a third of the seconds billed: 1 h x $1.515, not 3 h
    assert_bill(
        of=job(purchase=Purchase.SPOT, billable_s=Decimal(3600)),
        total="1.515000",
        basis="billable_seconds",
        missing=None,
    )


def test_on_spot_without_billable_seconds_wall_time_on_demand_is_the_upper_bound() -> None:
    # wall time at the on-demand rate is the most that it can have cost
    assert_bill(
        of=job(purchase=Purchase.SPOT, billable_s=None),
        total="4.545000",
        basis="upper_bound",
        missing=UPPER_BOUND,
    )


def test_a_processing_job_costs_end_minus_start_as_an_answer_of_2018_does() -> None:
    # processing and answers of 2018: end minus start
    assert_bill(
        of=job(kind=JobKind.PROCESSING, **FROM_TIMES),
        total="4.545000",
        basis="estimated_from_times",
        missing=None,
    )


def test_an_answer_has_billable_seconds_and_no_start() -> None:
    # an answer with BillableTimeInSeconds and no start
    assert_bill(
        of=job(phases=(), **NEVER | {"billable_s": Decimal(3600)}),
        total="1.515000",
        basis="billable_seconds",
        missing=None,
    )


def test_a_training_plan_is_prepaid() -> None:
    # a plan is prepaid: neither instances nor volumes are billed again, priced or not
    assert_bill(
        of=ran(3600, purchase=Purchase.TRAINING_PLAN),
        total="0.000000",
        basis="prepaid",
        missing=None,
    )


def test_a_training_plan_is_prepaid_priced_or_not() -> None:
    assert_bill(
        of=ran(3600, "ml.unpriced.xlarge", purchase=Purchase.TRAINING_PLAN),
        total="0.000000",
        basis="prepaid",
        missing=None,
    )


def test_a_serverless_job_is_priced_by_token() -> None:
    assert_bill(
        of=ran(3600, purchase=Purchase.SERVERLESS, groups=()),
        total=None,
        basis="none",
        missing="a serverless job is priced by token, and no token price is known",
    )


def test_a_job_that_found_no_capacity_cost_0() -> None:
    # no capacity, or stopped while waiting: 0 is known here
    assert_bill(
        of=job(status="Failed", phases=phases(("Starting", -900)), **NEVER),
        total="0.000000",
        basis="none",
        missing=None,
    )


def test_a_job_that_was_stopped_while_waiting_cost_0() -> None:
    assert_bill(
        of=job(status="Stopped", phases=phases(("Starting", -900)), **NEVER),
        total="0.000000",
        basis="none",
        missing=None,
    )


def test_a_job_that_ran_with_an_answer_that_does_not_say_how_long() -> None:
    # it did run: an answer that does not say how long has no cost of 0
    assert_bill(
        of=job(phases=(), **NEVER),
        total=None,
        basis="none",
        missing="neither billable seconds nor start and end are known",
    )


def test_a_failed_job_that_ran_with_an_answer_that_does_not_say_how_long() -> None:
    assert_bill(
        of=job(status="Failed", phases=phases(("Starting", -120), ("Training", 600)), **NEVER),
        total=None,
        basis="none",
        missing="neither billable seconds nor start and end are known",
    )


def test_a_job_that_still_runs() -> None:
    assert_bill(
        of=job(status="InProgress", phases=(), **NEVER),
        total=None,
        basis="none",
        missing="the job still runs (status InProgress): its cost so far is not known",
    )


def test_a_job_that_is_being_stopped() -> None:
    assert_bill(
        of=job(status="Stopping", phases=(), **NEVER),
        total=None,
        basis="none",
        missing="the job still runs (status Stopping): its cost so far is not known",
    )


def test_a_type_without_a_price_is_never_zero() -> None:
    # an unknown price is never zero
    assert_bill(
        of=ran(3600, "ml.unpriced.xlarge", kind=JobKind.PROCESSING, **FROM_TIMES),
        total=None,
        basis="estimated_from_times",
        missing="no Processing price known for ml.unpriced.xlarge in us-east-1",
    )


def test_a_region_without_prices_is_never_zero() -> None:
    assert_bill(
        of=ran(3600, "ml.g5.2xlarge", region="xx-west-9"),
        total=None,
        basis="billable_seconds",
        missing="no Training price known for ml.g5.2xlarge in xx-west-9",
    )


def test_a_job_without_a_region() -> None:
    assert_bill(
        of=ran(3600, region=None),
        total=None,
        basis="billable_seconds",
        missing="the region is not known",
    )


def test_a_job_without_an_instance_type() -> None:
    assert_bill(
        of=ran(3600, groups=()),
        total=None,
        basis="billable_seconds",
        missing="the instance type is not known",
    )


def test_a_tuning_job_costs_nothing_of_its_own() -> None:
    assert_bill(
        of=job(kind=JobKind.TUNING, groups=()),
        total=None,
        basis="none",
        missing="the cost is on the training jobs that it launched",
    )


def test_phases_share_compute_by_their_billed_seconds() -> None:
    """1200, 9540 and 60 of 10800 s of $4.545, or of a third of it on spot; waiting is free."""
    costs = {cost.phase.name: usd(cost.usd) for cost in bill(job(), market()).phases}
    assert costs == {
        "Starting": "0.000000",
        "Downloading": "0.505000",
        "Training": "4.014750",
        "Uploading": "0.025250",
    }
    spot = bill(job(purchase=Purchase.SPOT, billable_s=Decimal(3600)), market())
    assert usd(sum((cost.usd or Decimal(0) for cost in spot.phases), Decimal(0))) == "1.515000"
    # of a phase of unknown length nobody knows which part it took: the compute line stands
    cut = phases(("Downloading", 1200), ("Training", 9540))
    billed = bill(job(phases=(cut[0], replace(cut[1], seconds=None))), market())
    assert usd(billed.compute_usd) == "4.545000"
    assert [cost.usd for cost in billed.phases] == [None, None]


def test_storage_is_gb_months_at_the_components_rate() -> None:
    """100 GB for 1 h of May (744 h) at $0.14, of Processing at $0.10: $0.018817 and $0.013441."""
    [line] = the("storage", bill(ran(3600, volume_gb=100), market()))
    assert (usd(line.quantity), line.unit) == ("0.134409", "GB-months")
    assert (usd(line.usd), line.usage_type) == ("0.018817", "USE1-Training:VolumeUsage.gp2")
    run = ran(3600, kind=JobKind.PROCESSING, volume_gb=100, billable_s=None)
    [line] = the("storage", bill(run, market()))
    assert usd(line.usd) == "0.013441"


MAYS_END = datetime(2026, 5, 31, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(
            ran(3600, instances=3, volume_gb=100),
            ["0.403226"],
            id="three instances: three times the quantity",
        ),
        pytest.param(
            ran(14400, at=MAYS_END, volume_gb=100),
            ["0.268817", "0.277778"],
            id="100 GB for 4 h: 2 h of 744 (May) and 2 h of 720 (June)",
        ),
        pytest.param(
            ran(14400, at=datetime(2026, 12, 31, 22, tzinfo=UTC), volume_gb=100),
            ["0.268817", "0.268817"],
            id="2 h of 744 (December) and 2 h of 744 (January)",
        ),
        pytest.param(
            ran(14400, at=datetime(2028, 2, 29, 22, tzinfo=UTC), volume_gb=100),
            ["0.287356", "0.268817"],
            id="2 h of 696 (February of a leap year) and 2 h of 744 (March)",
        ),
        pytest.param(
            ran(14400, at=datetime(2026, 5, 31, 20, tzinfo=UTC), volume_gb=100),
            ["0.537634"],
            id="it ends with the month: one line",
        ),
        pytest.param(
            ran(
                14400, at=MAYS_END, billable_s=Decimal(3600), purchase=Purchase.SPOT, volume_gb=100
            ),
            ["0.067204", "0.069444"],
            id="1 of 4 hours billed: half an hour in each month",
        ),
        pytest.param(
            ran(61 * 86400, at=datetime(2026, 4, 15, tzinfo=UTC), volume_gb=10),
            ["5.333333", "10.000000", "4.666667"],
            id=("15 April to 15 June: all 744 hours of May are 1 month, so 10 GB are 10 GB-months"),
        ),
    ],
)
def test_storage_is_split_where_the_month_ends(run: Job, expected: list[str]) -> None:
    """Each calendar month (UTC) has its own line and its own hours."""
    assert quantities("storage", run) == expected


def assert_bill_with_storage(
    *,
    run: Job,
    storage_usd: str | None,
    quantity: list[str | None],
    total: str,
    missing: tuple[str, ...],
) -> None:
    """Without a known storage the bill is incomplete, and its total the sum of the known lines."""
    billed = bill(run, market(storage_usd=storage_usd))
    lines = the("storage", billed)
    assert ([usd(line.quantity) for line in lines], usd(billed.total_usd)) == (quantity, total)
    assert (billed.missing, {line.usd for line in lines} <= {None}) == (missing, True)


def test_an_m5_has_an_ebs_volume_whose_size_is_not_known() -> None:
    # m5 has an EBS volume of some size; g5 has none whatever its size would be
    assert_bill_with_storage(
        run=ran(3600, volume_gb=None),
        storage_usd="0.14",
        quantity=[None],
        total="0.230000",
        missing=("storage: the volume's size is not known",),
    )


def test_a_g5_has_no_ebs_volume_whatever_its_size_would_be() -> None:
    assert_bill_with_storage(
        run=ran(3600, "ml.g5.2xlarge", volume_gb=None),
        storage_usd="0.14",
        quantity=[],
        total="1.515000",
        missing=(),
    )


def test_a_type_of_which_nobody_knows_whether_it_has_a_volume() -> None:
    assert_bill_with_storage(
        run=ran(3600, "ml.odd.xlarge"),
        storage_usd="0.14",
        quantity=[None],
        total="0.500000",
        missing=("storage: whether EBS is provisioned is not known",),
    )


def test_a_volume_without_a_price() -> None:
    assert_bill_with_storage(
        run=ran(3600, volume_gb=100),
        storage_usd=None,
        quantity=["0.134409"],
        total="0.230000",
        missing=("storage: no ML storage price for us-east-1 (Training)",),
    )


def test_groups_are_billed_for_the_same_seconds() -> None:
    """1 h: 1 x $1.515 + 3 x $0.23 = $2.205 of compute; one without a price leaves no total."""
    one, three = InstanceGroup("ml.g5.2xlarge", 1), InstanceGroup("ml.m5.xlarge", 3)
    billed = bill(ran(3600, groups=(one, three)), market())
    assert usd(billed.compute_usd) == "2.205000"
    # only the three m5 have a volume: 30 GB x 3 h / 744 h
    assert [usd(line.quantity) for line in the("storage", billed)] == ["0.120968"]
    unpriced = (one, InstanceGroup("ml.unpriced.xlarge", 3))
    assert bill(ran(3600, groups=unpriced), market()).total_usd is None


def test_a_warm_pool_costs_the_same_rate_and_its_volumes() -> None:
    """Half an hour retained, 2 x $0.23 = $0.23; 30 GB x 2 x 0.5 h / 744 h = 0.040323 GB-months."""
    kept = ran(3600, instances=2, warm_pool=WarmPool("Terminated", 1800, Decimal(1800)))
    billed = bill(kept, market())
    [pool], [volume] = the("warm_pool", billed), the("warm_pool_storage", billed)
    assert (usd(pool.usd), pool.quantity) == ("0.230000", 1)
    assert (usd(volume.quantity), usd(volume.usd)) == ("0.040323", "0.005645")
    # 2 x 0.23 compute + 30 x 2 / 744 x 0.14 storage + pool and its volume
    assert usd(billed.total_usd) == "0.706935"
    # KeepAlive without quota gives no pool
    assert not the("warm_pool", bill(ran(60, warm_pool=WarmPool(None, 600, None)), market()))


def test_a_pools_volume_is_of_the_month_after_the_job() -> None:
    """The job ends with May, the pool stands in June (720 h)."""
    kept = ran(
        3600,
        at=datetime(2026, 5, 31, 23, tzinfo=UTC),
        warm_pool=WarmPool("Terminated", 3600, Decimal(3600)),
    )
    assert quantities("storage", kept) == ["0.040323"]
    assert quantities("warm_pool_storage", kept) == ["0.041667"]


@pytest.mark.parametrize(
    ("of", "usage_type"),
    [
        # no additional cost for a built-in rule, for the volume neither
        pytest.param(
            ran(600, kind=JobKind.PROCESSING, free="built-in Debugger rule"),
            None,
            id="a built-in rule costs nothing, and its volume neither",
        ),
        # no volume in the API of transform jobs, no storage usage type in the price list
        pytest.param(
            ran(3600, kind=JobKind.TRANSFORM, volume_gb=None, **FROM_TIMES),
            "USE1-BatchTransform:ml.m5.xlarge",
            id="a transform job has no volume in its API, and no storage in the price list",
        ),
    ],
)
def test_some_jobs_have_a_compute_line_alone(of: Job, usage_type: str | None) -> None:
    """And a bill that is complete."""
    billed = bill(of, market())
    assert [(line.item, line.usage_type) for line in billed.lines] == [("compute", usage_type)]
    assert billed.complete
    assert bool(billed.total_usd) is not bool(of.free)


@pytest.mark.parametrize("unknown", ["the instance count is not known", "the type of group b"])
def test_instances_that_are_not_known_make_the_bill_unknown(unknown: str) -> None:
    """The total is null and says why; the known part alone is no total."""
    for groups in ((), (InstanceGroup("ml.g5.2xlarge", 1, "a"),)):
        billed = bill(ran(3600, groups=groups, groups_unknown=(unknown,)), market())
        assert (billed.total_usd, unknown in billed.missing) == (None, True)


@pytest.mark.parametrize(
    ("status", "retained_s", "pool_usd", "missing"),
    [
        ("Available", None, None, "warm pool: the seconds that it was retained are not known"),
        ("Terminated", None, None, "warm pool: the seconds that it was retained are not known"),
        # 600 retained seconds of $1.515 an hour, which may become more
        ("Available", Decimal(600), "0.252500", "warm pool: still available, its figure grows"),
    ],
)
def test_a_warm_pool_that_is_not_known_leaves_the_bill_incomplete(
    status: str, retained_s: Decimal | None, pool_usd: str | None, missing: str
) -> None:
    """Its line is the cost so far."""
    pool = WarmPool(status, 1800, retained_s)
    billed = bill(ran(3600, "ml.g5.2xlarge", warm_pool=pool), market())
    assert [usd(line.usd) for line in the("warm_pool", billed)] == ([pool_usd] if pool_usd else [])
    assert billed.missing == (missing,)
