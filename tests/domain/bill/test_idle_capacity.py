from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.change import (
    Change,
    CutPhase,
    DropRun,
    SetPurchase,
    SetType,
    SetVolume,
    ShortenPool,
)
from sageaudit.domain.bill.counterfactual import Severities, allocate
from sageaudit.domain.bill.finding import Bucket, Confidence, Exemption, Found, RuleName
from sageaudit.domain.bill.idle_capacity import IdleCapacity, idle_capacity
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.parts import WarmPool
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from sageaudit.structs import replace
from tests.fakes.jobs import HOURLY_USD, flat, job, market, phases, ran, series, usage

GPUS = "ml.g4dn.12xlarge"
MARKET = market(hourly_usd={**HOURLY_USD, GPUS: "4.80", "ml.g4dn.xlarge": "1.20"})


def ten_hours(**changes: Any) -> Job:
    """The docstring's run: an hour Downloading, nine Training on four GPUs."""
    plain: dict[str, Any] = {
        "phases": phases(("Downloading", 3600), ("Training", 32400)),
        "training_s": Decimal(36000),
        "billable_s": Decimal(36000),
    }
    return job(GPUS, **plain | changes)


def at_forty(of: Job) -> Measurements:
    """All four GPUs at 40% for nine hours."""
    return flat(of, 540, gpu=40)


def figure_of(
    of: Job,
    measured: Measurements,
    *changes: tuple[Bucket, Change],
    exempt: frozenset[str] = frozenset(),
    **prices: Any,
) -> IdleCapacity | Missing:
    """The figure of a job with these findings."""
    at = market(**prices) if prices else MARKET
    named = [Found(Confidence.MEASURED, bucket, "", {}, change=one) for bucket, one in changes]
    founds = [(RuleName(f"SA{n}", f"r{n}"), found) for n, found in enumerate(named)]
    excused = {name: Exemption("ana", None, "accepted") for name in exempt}
    billed = bill(of, at)
    savings = allocate(of, billed, founds, at, Severities(), excused)
    return idle_capacity(of, measured, billed, at, savings)


def idle_of(*args: Any, **kwargs: Any) -> IdleCapacity:
    """The same where it must be known."""
    figure = figure_of(*args, **kwargs)
    assert isinstance(figure, IdleCapacity)
    return figure


AVOIDABLE, LOST = Bucket.AVOIDABLE, Bucket.LOST
HALF_THE_DOWNLOAD = (AVOIDABLE, CutPhase("Downloading", Decimal(1800)))
CHEAPER = (AVOIDABLE, SetType("ml.g4dn.xlarge"))


def with_pool() -> Job:
    """Ten hours on four vCPUs, with a warm pool."""
    return ran(36000, "ml.m5.xlarge", warm_pool=WarmPool("Terminated", 3600, Decimal(3600)))


PLAN, SPOT = Purchase.TRAINING_PLAN, Purchase.SPOT
POOL, VOLUME = (AVOIDABLE, ShortenPool(Decimal(0))), (AVOIDABLE, SetVolume(1))


def assert_idle_capacity(
    *,
    of: Job,
    findings: tuple[tuple[Bucket, Change], ...],
    exempt: tuple[str, ...],
    paid: str,
    idle: str,
    list_usd: str | None,
    counted: str | None,
) -> None:
    """Idle hours and their value, worked out by hand."""
    on_gpus = of.groups[0].instance_type == GPUS
    minutes = int(of.elapsed_s or 0) // 60
    measured = at_forty(of) if on_gpus else flat(of, minutes, cpu=50)
    figure = idle_of(of, measured, *findings, exempt=frozenset(exempt))
    assert figure.unit == ("gpu_hours" if on_gpus else "vcpu_hours")
    assert figure.worked == figure.paid - figure.idle
    found = (figure.paid, figure.idle, figure.list_usd, figure.counted_usd)
    expected = (paid, idle, list_usd, counted)
    assert [None if value is None else round(value, 4) for value in found] == [
        None if value is None else Decimal(value) for value in expected
    ]


def test_the_example_of_the_docstring_holds() -> None:
    """The docstring's example: 40 GPU-hours paid, 14.4 worked, 25.6 idle: $30.72 of $48."""
    assert_idle_capacity(
        of=ten_hours(),
        findings=(),
        exempt=(),
        paid="40",
        idle="25.6",
        list_usd="30.72",
        counted="0",
    )


def test_half_the_download_is_counted() -> None:
    assert_idle_capacity(
        of=ten_hours(),
        findings=(HALF_THE_DOWNLOAD,),
        exempt=(),
        paid="40",
        idle="25.6",
        list_usd="30.72",
        counted="2.40",
    )


def test_half_the_download_and_a_cheaper_type_are_counted_up_to_the_idle_capacity() -> None:
    assert_idle_capacity(
        of=ten_hours(),
        findings=(HALF_THE_DOWNLOAD, CHEAPER),
        exempt=(),
        paid="40",
        idle="25.6",
        list_usd="30.72",
        counted="30.72",
    )


def test_a_lost_run_is_counted_up_to_the_idle_capacity() -> None:
    assert_idle_capacity(
        of=ten_hours(),
        findings=((LOST, DropRun()),),
        exempt=(),
        paid="40",
        idle="25.6",
        list_usd="30.72",
        counted="30.72",
    )


def test_possible_dollars_are_in_neither_sum() -> None:
    # possible and exempt dollars are in neither sum
    assert_idle_capacity(
        of=ten_hours(),
        findings=((Bucket.POSSIBLE, HALF_THE_DOWNLOAD[1]),),
        exempt=(),
        paid="40",
        idle="25.6",
        list_usd="30.72",
        counted="0",
    )


def test_exempt_dollars_are_in_neither_sum() -> None:
    assert_idle_capacity(
        of=ten_hours(),
        findings=(HALF_THE_DOWNLOAD,),
        exempt=("r0",),
        paid="40",
        idle="25.6",
        list_usd="30.72",
        counted="0",
    )


def test_another_purchase_takes_only_the_idle_share() -> None:
    """40% fewer seconds, 0.4 x $30.72."""
    assert_idle_capacity(
        of=ten_hours(),
        findings=((AVOIDABLE, SetPurchase(Decimal("0.6"))),),
        exempt=(),
        paid="40",
        idle="25.6",
        list_usd="30.72",
        counted="12.288",
    )


def test_spot_pays_its_billable_seconds_a_third_of_the_hours_at_the_same_rate() -> None:
    # spot pays its billable seconds: a third of the hours, at the same rate; else all of them
    assert_idle_capacity(
        of=ten_hours(purchase=SPOT, billable_s=Decimal(12000)),
        findings=(),
        exempt=(),
        paid="13.3333",
        idle="8.5333",
        list_usd="10.24",
        counted="0",
    )


def test_spot_without_billable_seconds_pays_all_hours() -> None:
    assert_idle_capacity(
        of=ten_hours(purchase=SPOT, billable_s=None),
        findings=(),
        exempt=(),
        paid="40",
        idle="25.6",
        list_usd="30.72",
        counted="0",
    )


def test_prepaid_capacity_is_worth_its_on_demand_price() -> None:
    """Prepaid capacity is worth its on-demand price, and as its bill is 0 nothing is counted."""
    # prepaid capacity is worth its on-demand price; its bill is 0, so nothing is counted
    assert_idle_capacity(
        of=ten_hours(purchase=PLAN),
        findings=(HALF_THE_DOWNLOAD,),
        exempt=(),
        paid="40",
        idle="25.6",
        list_usd="30.72",
        counted="0",
    )


def test_storage_and_warm_pools_are_no_device_hours() -> None:
    # storage and warm pools are no device hours: their savings are in other lines
    assert_idle_capacity(
        of=with_pool(),
        findings=(POOL, VOLUME),
        exempt=(),
        paid="40",
        idle="20",
        list_usd="1.15",
        counted="0",
    )


def test_an_unpriced_type_has_hours_without_dollars() -> None:
    # an unpriced type has hours without dollars: unknown is not 0
    assert_idle_capacity(
        of=ran(3600, "ml.unpriced.xlarge"),
        findings=(),
        exempt=(),
        paid="4",
        idle="2",
        list_usd=None,
        counted=None,
    )


def test_eight_hosts_at_a_quarter_of_their_gpus_have_three_quarters_of_the_bill_idle() -> None:
    """Also where no finding counts anything: $691.20 of $921.60."""
    of = ran(86400, GPUS, 8)
    figure = idle_of(of, flat(of, 1440, hosts=8, gpu=25))
    assert (figure.paid, figure.idle, figure.list_usd) == (768, 576, Decimal("691.20"))
    assert (figure.counted_usd, figure.look_at) == (0, ("communication", "profile"))


def test_what_is_not_priced_or_not_paid_for() -> None:
    """Idle hours of groups at two rates may be those of either; a job that never started paid 0."""
    groups = (InstanceGroup("ml.g4dn.xlarge", 1), InstanceGroup("ml.g4dn.2xlarge", 1))
    figure = idle_of(ran(3600, groups=groups), flat(ran(3600, "ml.g4dn.xlarge"), 60, 1, gpu=50))
    assert figure.list_usd is None
    of = job(GPUS, status="Failed", started_at=None, training_s=None, billable_s=None, phases=())
    figure = idle_of(of, usage(of))
    assert (figure.paid, figure.idle, figure.list_usd, figure.look_at) == (0, 0, 0, ())


def _trainium(of: Job) -> Measurements:
    return replace(
        usage(of, series(Metric.CPU, [50] * 600)),
        gpus=None,
        missing={Metric.GPU: Missing("accelerator_unseen", "CloudWatch records no use of it")},
    )


@pytest.mark.parametrize(
    ("of", "measured", "why"),
    [
        (ten_hours(), usage, "no points"),
        (ten_hours(), _trainium, "CloudWatch records no use of it"),
        (ten_hours(free="a built-in rule"), at_forty, "AWS does not bill it (a built-in rule)"),
        (
            ten_hours(status="InProgress"),
            at_forty,
            "the job has not ended (status InProgress): its cost is not final",
        ),
        (ran(3600, "ml.new.large"), usage, "ml.new.large is not in the catalogue"),
    ],
)
def test_where_there_is_no_figure_the_reason_is_said(of: Job, measured: Any, why: str) -> None:
    """Never 0 for what is not known."""
    missing = figure_of(of, measured(of))
    assert isinstance(missing, Missing)
    assert missing.reason == why
