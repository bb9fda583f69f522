from __future__ import annotations

from dataclasses import replace
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
from tests.fakes.jobs import HOURLY_USD, TYPES, flat, job, market, phases, ran, series, usage

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
    founds = [
        (
            RuleName(f"SA{n}", f"r{n}"),
            Found(Confidence.MEASURED, bucket, "because", {}, change=change),
        )
        for n, (bucket, change) in enumerate(changes)
    ]
    excused = {name: Exemption("ana", None, "accepted") for name in exempt}
    billed = bill(of, at)
    savings = allocate(of, billed, founds, at, Severities(), excused)
    return idle_capacity(of, measured, billed, at, savings)


def known(*args: Any, **kwargs: Any) -> IdleCapacity:
    """The same where it must be known."""
    figure = figure_of(*args, **kwargs)
    assert isinstance(figure, IdleCapacity)
    return figure


AVOIDABLE, LOST = Bucket.AVOIDABLE, Bucket.LOST
HALF_THE_DOWNLOAD = (AVOIDABLE, CutPhase("Downloading", Decimal(1800)))
CHEAPER = (AVOIDABLE, SetType("ml.g4dn.xlarge"))


@pytest.mark.parametrize(
    ("findings", "counted"),
    [
        ((), "0"),
        ((HALF_THE_DOWNLOAD,), "2.40"),
        ((HALF_THE_DOWNLOAD, CHEAPER), "30.72"),
        (((LOST, DropRun()),), "30.72"),
    ],
)
def test_the_docstrings_example_holds(
    findings: tuple[tuple[Bucket, Change], ...], counted: str
) -> None:
    """40 GPU-hours paid, 14.4 worked, 25.6 idle: $30.72 of $48, by hand."""
    of = ten_hours()
    figure = known(of, at_forty(of), *findings)
    assert (figure.unit, figure.paid, figure.worked) == ("gpu_hours", 40, Decimal("14.4"))
    assert (figure.idle, figure.list_usd) == (Decimal("25.6"), Decimal("30.72"))
    assert figure.counted_usd == Decimal(counted)


def test_eight_hosts_at_a_quarter_of_their_gpus_have_three_quarters_of_the_bill_idle() -> None:
    """Also where no finding counts anything: $691.20 of $921.60."""
    of = ran(86400, GPUS, 8)
    figure = known(of, flat(of, 1440, hosts=8, gpu=25))
    assert (figure.paid, figure.idle) == (768, 576)
    assert figure.list_usd == Decimal("691.20")
    assert figure.counted_usd == 0
    assert figure.look_at == ("communication", "profile")


def test_storage_and_warm_pools_are_no_device_hours() -> None:
    """Their savings are in other lines of the bill."""
    of = ran(36000, "ml.m5.xlarge", warm_pool=WarmPool("Terminated", 3600, Decimal(3600)))
    pool, volume = (AVOIDABLE, ShortenPool(Decimal(0))), (AVOIDABLE, SetVolume(1))
    figure = known(of, flat(of, 600, cpu=50), pool, volume)
    assert (figure.unit, figure.paid, figure.counted_usd) == ("vcpu_hours", 40, 0)


def test_possible_and_exempt_dollars_are_not_counted() -> None:
    """They are in neither sum."""
    of = ten_hours()
    possible = (Bucket.POSSIBLE, HALF_THE_DOWNLOAD[1])
    assert known(of, at_forty(of), possible).counted_usd == 0
    exempt = known(of, at_forty(of), HALF_THE_DOWNLOAD, exempt=frozenset({"r0"}))
    assert exempt.counted_usd == 0


def test_another_purchase_takes_only_the_idle_share() -> None:
    """40% fewer seconds are 40% less of what worked, too: 0.4 x $30.72."""
    of = ten_hours()
    figure = known(of, at_forty(of), (AVOIDABLE, SetPurchase(Decimal("0.6"))))
    assert figure.counted_usd == Decimal("12.288")


def test_spot_pays_its_billable_seconds() -> None:
    """A third of the training seconds: a third of the hours, at the same rate."""
    of = ten_hours(purchase=Purchase.SPOT, billable_s=Decimal(12000))
    figure = known(of, at_forty(of))
    assert figure.paid == Decimal(4) * 12000 / 3600
    assert figure.list_usd == pytest.approx(Decimal("10.24"))


def test_spot_without_billable_seconds_is_an_upper_bound() -> None:
    """As its bill: all training seconds."""
    of = ten_hours(purchase=Purchase.SPOT, billable_s=None)
    assert known(of, at_forty(of)).paid == 40


def test_prepaid_capacity_is_worth_its_on_demand_price() -> None:
    """Its bill is 0, so nothing is counted; its idle GPUs could have done other work."""
    of = ten_hours(purchase=Purchase.TRAINING_PLAN)
    figure = known(of, at_forty(of), HALF_THE_DOWNLOAD)
    assert (figure.list_usd, figure.counted_usd) == (Decimal("30.72"), 0)


def test_an_unpriced_type_has_hours_without_dollars() -> None:
    """Unknown is not 0."""
    of = ran(3600, "ml.unpriced.xlarge")
    figure = known(of, flat(of, 60, cpu=25))
    assert (figure.paid, figure.idle) == (4, 3)
    assert (figure.list_usd, figure.counted_usd) == (None, None)


def test_groups_of_one_size_at_two_rates_have_hours_without_dollars() -> None:
    """The idle hours may be those of either."""
    groups = (InstanceGroup("ml.g4dn.xlarge", 1), InstanceGroup("ml.g4dn.2xlarge", 1))
    figure = known(ran(3600, groups=groups), flat(ran(3600, "ml.g4dn.xlarge"), 60, 1, gpu=50))
    assert figure.list_usd is None


def test_a_job_that_never_started_paid_for_nothing() -> None:
    """0 is known here."""
    of = job(GPUS, status="Failed", started_at=None, training_s=None, billable_s=None, phases=())
    figure = known(of, usage(of))
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


def test_every_type_of_these_tests_is_in_the_catalogue() -> None:
    """Else the tests above would pass for the wrong reason."""
    assert {GPUS, "ml.unpriced.xlarge", "ml.m5.xlarge"} <= set(TYPES)
