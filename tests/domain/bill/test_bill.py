from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.bill import UPPER_BOUND, Bill, BillLine, bill
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import WarmPool
from sageaudit.structs import replace
from tests.fakes.jobs import job, market, phases, ran


def usd(amount: Decimal | None) -> str | None:
    """Returns the amount to the millionth of a dollar."""
    return None if amount is None else f"{amount:.6f}"


def lines_of_item(item: str, billed: Bill) -> list[BillLine]:
    """Returns the lines of one item."""
    return [line for line in billed.lines if line.item == item]


def quantities(item: str, job: Job) -> list[str | None]:
    """Returns the quantities of the lines of one item."""
    return [usd(line.quantity) for line in lines_of_item(item, bill(job, market()))]


def test_compute_is_seconds_times_instances_times_rate() -> None:
    """3 h x 2 x $1.515 = $9.09. The volume costs nothing: g5 has local NVMe."""
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


@pytest.mark.parametrize(
    ("job", "total", "basis", "missing"),
    [
        pytest.param(
            job(),
            "4.545000",
            "billable_seconds",
            None,
            id="a completed job costs its billable seconds",
        ),
        pytest.param(
            job(status="Failed", secondary_status="Failed"),
            "4.545000",
            "billable_seconds",
            None,
            id="a failed job costs its billable seconds",
        ),
        # On spot a third of the seconds is billed, 1 h x $1.515 and not 3 h.
        # a third of the seconds billed: 1 h x $1.515, not 3 h
        pytest.param(
            job(purchase=Purchase.SPOT, billable_s=Decimal(3600)),
            "1.515000",
            "billable_seconds",
            None,
            id="on spot only the billed third of the seconds costs",
        ),
        # wall time at the on-demand rate is the most that it can have cost
        pytest.param(
            job(purchase=Purchase.SPOT, billable_s=None),
            "4.545000",
            "upper_bound",
            UPPER_BOUND,
            id="on spot without billable seconds wall time on demand is the upper bound",
        ),
        # processing and answers of 2018: end minus start
        pytest.param(
            job(kind=JobKind.PROCESSING, **FROM_TIMES),
            "4.545000",
            "estimated_from_times",
            None,
            id="a processing job costs end minus start as an answer of 2018 does",
        ),
        # an answer with BillableTimeInSeconds and no start
        pytest.param(
            job(phases=(), **NEVER | {"billable_s": Decimal(3600)}),
            "1.515000",
            "billable_seconds",
            None,
            id="an answer has billable seconds and no start",
        ),
        # a plan is prepaid: neither instances nor volumes are billed again, priced or not
        pytest.param(
            ran(3600, purchase=Purchase.TRAINING_PLAN),
            "0.000000",
            "prepaid",
            None,
            id="a training plan is prepaid",
        ),
        pytest.param(
            ran(3600, "ml.unpriced.xlarge", purchase=Purchase.TRAINING_PLAN),
            "0.000000",
            "prepaid",
            None,
            id="a training plan is prepaid priced or not",
        ),
        pytest.param(
            ran(3600, purchase=Purchase.SERVERLESS, groups=()),
            None,
            "none",
            "a serverless job is priced by token, and no token price is known",
            id="a serverless job is priced by token",
        ),
        # no capacity, or stopped while waiting: 0 is known here
        pytest.param(
            job(status="Failed", phases=phases(("Starting", -900)), **NEVER),
            "0.000000",
            "none",
            None,
            id="a job that found no capacity cost 0",
        ),
        pytest.param(
            job(status="Stopped", phases=phases(("Starting", -900)), **NEVER),
            "0.000000",
            "none",
            None,
            id="a job that was stopped while waiting cost 0",
        ),
        # it did run: an answer that does not say how long has no cost of 0
        pytest.param(
            job(phases=(), **NEVER),
            None,
            "none",
            "neither billable seconds nor start and end are known",
            id="a job that ran with an answer that does not say how long",
        ),
        pytest.param(
            job(status="Failed", phases=phases(("Starting", -120), ("Training", 600)), **NEVER),
            None,
            "none",
            "neither billable seconds nor start and end are known",
            id="a failed job that ran with an answer that does not say how long",
        ),
        pytest.param(
            job(status="InProgress", phases=(), **NEVER),
            None,
            "none",
            "the job is still running (status InProgress), and its cost so far is not known",
            id="a job that still runs",
        ),
        pytest.param(
            job(status="Stopping", phases=(), **NEVER),
            None,
            "none",
            "the job is still running (status Stopping), and its cost so far is not known",
            id="a job that is being stopped",
        ),
        # an unknown price is never zero
        pytest.param(
            ran(3600, "ml.unpriced.xlarge", kind=JobKind.PROCESSING, **FROM_TIMES),
            None,
            "estimated_from_times",
            "no Processing price known for ml.unpriced.xlarge in us-east-1",
            id="a type without a price is never zero",
        ),
        pytest.param(
            ran(3600, "ml.g5.2xlarge", region="xx-west-9"),
            None,
            "billable_seconds",
            "no Training price known for ml.g5.2xlarge in xx-west-9",
            id="a region without prices is never zero",
        ),
        pytest.param(
            ran(3600, region=None),
            None,
            "billable_seconds",
            "the region is not known",
            id="a job without a region",
        ),
        pytest.param(
            ran(3600, groups=()),
            None,
            "billable_seconds",
            "the instance type is not known",
            id="a job without an instance type",
        ),
        pytest.param(
            job(kind=JobKind.TUNING, groups=()),
            None,
            "none",
            "the cost is on the training jobs that it launched",
            id="a tuning job costs nothing of its own",
        ),
    ],
)
def test_a_bill_needs_seconds_and_prices(
    job: Job, total: str | None, basis: str, missing: str | None
) -> None:
    """A bill needs seconds and prices, and says what is missing."""
    billed = bill(job, market())
    assert (usd(billed.total_usd), billed.basis) == (total, basis)
    assert (billed.complete, missing in billed.missing) == (missing is None, missing is not None)
    if total in {None, "0.000000"}:
        share = None if total is None else 0
        assert all(cost.usd == share for cost in billed.phases if cost.phase.billed)


def test_phases_share_compute_by_their_billed_seconds() -> None:
    """1200, 9540 and 60 of 10800 s of $4.545, or of a third of it on spot. Waiting is free."""
    costs = {cost.phase.name: usd(cost.usd) for cost in bill(job(), market()).phases}
    assert costs == {
        "Starting": "0.000000",
        "Downloading": "0.505000",
        "Training": "4.014750",
        "Uploading": "0.025250",
    }
    spot = bill(job(purchase=Purchase.SPOT, billable_s=Decimal(3600)), market())
    assert usd(sum((cost.usd or Decimal(0) for cost in spot.phases), Decimal(0))) == "1.515000"
    # the share of a phase of unknown length is unknown; the compute line stays the same
    cut = phases(("Downloading", 1200), ("Training", 9540))
    billed = bill(job(phases=(cut[0], replace(cut[1], seconds=None))), market())
    assert usd(billed.compute_usd) == "4.545000"
    assert [cost.usd for cost in billed.phases] == [None, None]


def test_storage_is_gb_months_at_the_components_rate() -> None:
    """100 GB for 1 h of May (744 h) at $0.14, of Processing at $0.10: $0.018817 and $0.013441."""
    [line] = lines_of_item("storage", bill(ran(3600, volume_gb=100), market()))
    assert (usd(line.quantity), line.unit) == ("0.134409", "GB-months")
    assert (usd(line.usd), line.usage_type) == ("0.018817", "USE1-Training:VolumeUsage.gp2")
    run = ran(3600, kind=JobKind.PROCESSING, volume_gb=100, billable_s=None)
    [line] = lines_of_item("storage", bill(run, market()))
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
def test_storage_is_split_at_the_end_of_the_month(run: Job, expected: list[str]) -> None:
    """Each calendar month (UTC) has its own line and its own number of hours."""
    assert quantities("storage", run) == expected


@pytest.mark.parametrize(
    ("run", "storage_usd", "quantity", "total", "missing"),
    [
        # m5 has an EBS volume of some size; g5 has none whatever its size would be
        pytest.param(
            ran(3600, volume_gb=None),
            "0.14",
            [None],
            "0.230000",
            ("storage: the volume's size is not known",),
            id="an m5 has an ebs volume whose size is not known",
        ),
        pytest.param(
            ran(3600, "ml.g5.2xlarge", volume_gb=None),
            "0.14",
            [],
            "1.515000",
            (),
            id="a g5 has no ebs volume whatever its size would be",
        ),
        pytest.param(
            ran(3600, "ml.odd.xlarge"),
            "0.14",
            [None],
            "0.500000",
            ("storage: whether EBS is provisioned is not known",),
            id="a type for which it is unknown whether it has a volume",
        ),
        pytest.param(
            ran(3600, volume_gb=100),
            None,
            ["0.134409"],
            "0.230000",
            ("storage: no ML storage price for us-east-1 (Training)",),
            id="a volume without a price",
        ),
    ],
)
def test_storage_is_billed_besides_the_instances(
    run: Job,
    storage_usd: str | None,
    quantity: list[str | None],
    total: str,
    missing: tuple[str, ...],
) -> None:
    """If the storage cost is unknown, the bill is incomplete, and its total sums the known
    lines.
    """
    billed = bill(run, market(storage_usd=storage_usd))
    lines = lines_of_item("storage", billed)
    assert ([usd(line.quantity) for line in lines], usd(billed.total_usd)) == (quantity, total)
    assert (billed.missing, {line.usd for line in lines} <= {None}) == (missing, True)


def test_groups_are_billed_for_the_same_seconds() -> None:
    """1 h: 1 x $1.515 + 3 x $0.23 = $2.205 of compute. If one has no price, there is no total."""
    compute, three = InstanceGroup("ml.g5.2xlarge", 1), InstanceGroup("ml.m5.xlarge", 3)
    billed = bill(ran(3600, groups=(compute, three)), market())
    assert usd(billed.compute_usd) == "2.205000"
    # only the three m5 have a volume: 30 GB x 3 h / 744 h
    assert [usd(line.quantity) for line in lines_of_item("storage", billed)] == ["0.120968"]
    unpriced = (compute, InstanceGroup("ml.unpriced.xlarge", 3))
    assert bill(ran(3600, groups=unpriced), market()).total_usd is None


def test_a_warm_pool_costs_the_same_rate_and_its_volumes() -> None:
    """Half an hour retained, 2 x $0.23 = $0.23; 30 GB x 2 x 0.5 h / 744 h = 0.040323 GB-months."""
    kept = ran(3600, instances=2, warm_pool=WarmPool("Terminated", 1800, Decimal(1800)))
    billed = bill(kept, market())
    [pool], [volume] = (
        lines_of_item("warm_pool", billed),
        lines_of_item("warm_pool_storage", billed),
    )
    assert (usd(pool.usd), pool.quantity) == ("0.230000", 1)
    assert (usd(volume.quantity), usd(volume.usd)) == ("0.040323", "0.005645")
    # 2 x 0.23 compute + 30 x 2 / 744 x 0.14 storage + pool and its volume
    assert usd(billed.total_usd) == "0.706935"
    # KeepAlive without quota gives no pool
    assert not lines_of_item(
        "warm_pool", bill(ran(60, warm_pool=WarmPool(None, 600, None)), market())
    )


def test_a_pools_volume_is_of_the_month_after_the_job() -> None:
    """The job ends with May, and the pool is retained in June (720 h)."""
    kept = ran(
        3600,
        at=datetime(2026, 5, 31, 23, tzinfo=UTC),
        warm_pool=WarmPool("Terminated", 3600, Decimal(3600)),
    )
    assert quantities("storage", kept) == ["0.040323"]
    assert quantities("warm_pool_storage", kept) == ["0.041667"]


@pytest.mark.parametrize(
    ("job", "usage_type"),
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
def test_some_jobs_have_only_a_compute_line(job: Job, usage_type: str | None) -> None:
    """Their bill is complete."""
    billed = bill(job, market())
    assert [(line.item, line.usage_type) for line in billed.lines] == [("compute", usage_type)]
    assert billed.complete
    assert bool(billed.total_usd) is not bool(job.free)


@pytest.mark.parametrize("unknown", ["the instance count is not known", "the type of group b"])
def test_unknown_instances_make_the_bill_unknown(unknown: str) -> None:
    """The total is null, with the reason. The known part alone is not a total."""
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
def test_an_unknown_warm_pool_makes_the_bill_incomplete(
    status: str, retained_s: Decimal | None, pool_usd: str | None, missing: str
) -> None:
    """Its line is the cost so far."""
    pool = WarmPool(status, 1800, retained_s)
    billed = bill(ran(3600, "ml.g5.2xlarge", warm_pool=pool), market())
    assert [usd(line.usd) for line in lines_of_item("warm_pool", billed)] == (
        [pool_usd] if pool_usd else []
    )
    assert billed.missing == (missing,)
