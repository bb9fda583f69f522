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
from sageaudit.domain.bill.counterfactual import Severities, allocate_savings
from sageaudit.domain.bill.finding import Bucket, Confidence, Detection, Exemption, RuleInfo
from sageaudit.domain.bill.idle_capacity import IdleCapacity, idle_capacity
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.parts import WarmPool
from sageaudit.domain.usage.measurements import Measurements, Metric, MissingMetrics
from sageaudit.structs import replace
from tests.fakes.jobs import HOURLY_USD, flat, job, market, phases, ran, series, usage

GPUS = "ml.g4dn.12xlarge"
MARKET = market(hourly_usd={**HOURLY_USD, GPUS: "4.80", "ml.g4dn.xlarge": "1.20"})


def ten_hours(**changes: Any) -> Job:
    """Returns the example run of the docstring: an hour Downloading, nine Training on four GPUs."""
    plain: dict[str, Any] = {
        "phases": phases(("Downloading", 3600), ("Training", 32400)),
        "training_s": Decimal(36000),
        "billable_s": Decimal(36000),
    }
    return job(GPUS, **plain | changes)


def at_forty(job: Job) -> Measurements:
    """Returns the use of all four GPUs at 40% for nine hours."""
    return flat(job, 540, gpu=40)


def figure_of(
    job: Job,
    usage: Measurements,
    *changes: tuple[Bucket, Change],
    exempt: frozenset[str] = frozenset(),
    **prices: Any,
) -> IdleCapacity | MissingMetrics:
    """Returns the idle capacity of a job with these findings, or why there is none."""
    priced_market = market(**prices) if prices else MARKET
    detections = [
        Detection(Confidence.MEASURED, bucket, "", {}, change=one) for bucket, one in changes
    ]
    rule_detections = [(RuleInfo(f"SA{n}", f"r{n}"), result) for n, result in enumerate(detections)]
    exemptions = {name: Exemption("ana", None, "accepted") for name in exempt}
    billed = bill(job, priced_market)
    savings = allocate_savings(
        job, billed, rule_detections, priced_market, Severities(), exemptions
    )
    return idle_capacity(job, usage, billed, priced_market, savings)


def idle_of(*args: Any, **kwargs: Any) -> IdleCapacity:
    """Returns the idle capacity, which must be known."""
    figure = figure_of(*args, **kwargs)
    assert isinstance(figure, IdleCapacity)
    return figure


AVOIDABLE = Bucket.AVOIDABLE
LOST = Bucket.LOST
HALF_THE_DOWNLOAD = (AVOIDABLE, CutPhase("Downloading", Decimal(1800)))
CHEAPER = (AVOIDABLE, SetType("ml.g4dn.xlarge"))


def with_pool() -> Job:
    """Returns a job of ten hours on four vCPUs, with a warm pool."""
    return ran(36000, "ml.m5.xlarge", warm_pool=WarmPool("Terminated", 3600, Decimal(3600)))


PLAN = Purchase.TRAINING_PLAN
SPOT = Purchase.SPOT
POOL = (AVOIDABLE, ShortenPool(Decimal(0)))
VOLUME = (AVOIDABLE, SetVolume(1))


def figures_of(
    job: Job, *findings: tuple[Bucket, Change], exempt: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Returns paid hours, idle hours, their dollars and the counted ones; GPUs at 40%, CPUs at
    50%.
    """
    on_gpus = job.groups[0].instance_type == GPUS
    minutes = int(job.elapsed_s or 0) // 60
    usage = at_forty(job) if on_gpus else flat(job, minutes, cpu=50)
    figure = idle_of(job, usage, *findings, exempt=exempt)
    assert figure.unit == ("gpu_hours" if on_gpus else "vcpu_hours")
    assert figure.worked == figure.paid - figure.idle
    values = (figure.paid, figure.idle, figure.list_usd, figure.counted_usd)
    return tuple("unknown" if value is None else f"{value:.4f}" for value in values)


@pytest.mark.parametrize(
    ("findings", "exempt", "counted_usd"),
    [
        pytest.param((), (), "0.0000", id="without a finding nothing is counted"),
        pytest.param((HALF_THE_DOWNLOAD,), (), "2.4000", id="half the download is counted"),
        pytest.param(
            (HALF_THE_DOWNLOAD, CHEAPER),
            (),
            "30.7200",
            id="half the download and a cheaper type are counted up to the idle capacity",
        ),
        pytest.param(
            ((LOST, DropRun()),),
            (),
            "30.7200",
            id="a lost run is counted up to the idle capacity",
        ),
        pytest.param(
            ((Bucket.POSSIBLE, HALF_THE_DOWNLOAD[1]),),
            (),
            "0.0000",
            id="possible dollars are not counted",
        ),
        pytest.param((HALF_THE_DOWNLOAD,), ("r0",), "0.0000", id="exempt dollars are not counted"),
        pytest.param(
            ((AVOIDABLE, SetPurchase(Decimal("0.6"))),),
            (),
            "12.2880",
            id="another purchase at 60% takes only the idle share, 0.4 x $30.72",
        ),
    ],
)
def test_of_40_gpu_hours_25_6_are_idle_and_worth_30_72_dollars(
    findings: tuple[tuple[Bucket, Change], ...], exempt: tuple[str, ...], counted_usd: str
) -> None:
    """The example of the docstring: 40 GPU-hours of $48 paid, 14.4 worked, 25.6 x $1.20 idle."""
    figures = figures_of(ten_hours(), *findings, exempt=frozenset(exempt))
    assert figures == ("40.0000", "25.6000", "30.7200", counted_usd)


def test_spot_pays_its_billable_seconds_a_third_of_the_hours_at_the_same_rate() -> None:
    a_third = ten_hours(purchase=SPOT, billable_s=Decimal(12000))
    assert figures_of(a_third) == ("13.3333", "8.5333", "10.2400", "0.0000")
    unknown = ten_hours(purchase=SPOT, billable_s=None)
    assert figures_of(unknown) == ("40.0000", "25.6000", "30.7200", "0.0000")


def test_prepaid_capacity_has_its_on_demand_value_and_is_not_counted() -> None:
    figures = figures_of(ten_hours(purchase=PLAN), HALF_THE_DOWNLOAD)
    assert figures == ("40.0000", "25.6000", "30.7200", "0.0000")


def test_storage_and_warm_pools_are_not_device_hours() -> None:
    # 10 h x 4 vCPUs, half of them idle: $0.23 x 10 / 2.
    assert figures_of(with_pool(), POOL, VOLUME) == ("40.0000", "20.0000", "1.1500", "0.0000")


def test_an_unpriced_type_has_idle_hours_and_unknown_dollars() -> None:
    figures = figures_of(ran(3600, "ml.unpriced.xlarge"))
    assert figures == ("4.0000", "2.0000", "unknown", "unknown")


def test_eight_hosts_at_a_quarter_of_their_gpus_have_three_quarters_of_the_bill_idle() -> None:
    """$691.20 of $921.60 are idle, even if no finding counts anything."""
    job = ran(86400, GPUS, 8)
    figure = idle_of(job, flat(job, 1440, hosts=8, gpu=25))
    assert (figure.paid, figure.idle, figure.list_usd) == (768, 576, Decimal("691.20"))
    assert (figure.counted_usd, figure.likely_causes) == (0, ("communication", "profile"))


def test_what_is_not_priced_or_not_paid_for() -> None:
    """If groups have two rates, either may be idle. A job that never started paid 0."""
    groups = (InstanceGroup("ml.g4dn.xlarge", 1), InstanceGroup("ml.g4dn.2xlarge", 1))
    figure = idle_of(ran(3600, groups=groups), flat(ran(3600, "ml.g4dn.xlarge"), 60, 1, gpu=50))
    assert figure.list_usd is None
    of = job(GPUS, status="Failed", started_at=None, training_s=None, billable_s=None, phases=())
    figure = idle_of(of, usage(of))
    assert (figure.paid, figure.idle, figure.list_usd, figure.likely_causes) == (0, 0, 0, ())


def _trainium(job: Job) -> Measurements:
    return replace(
        usage(job, series(Metric.CPU, [50] * 600)),
        gpus=None,
        missing={
            Metric.GPU: MissingMetrics("accelerator_unseen", "CloudWatch records no use of it")
        },
    )


@pytest.mark.parametrize(
    ("job", "usage", "expected_reason"),
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
def test_a_missing_figure_has_a_reason(job: Job, usage: Any, expected_reason: str) -> None:
    """An unknown figure is never 0."""
    missing = figure_of(job, usage(job))
    assert isinstance(missing, MissingMetrics)
    assert missing.reason == expected_reason
