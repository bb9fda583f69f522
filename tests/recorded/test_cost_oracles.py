"""Compares bills with published costs of real jobs."""

import json
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.bill import Bill, bill
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import Component, JobKind
from sageaudit.domain.job.parts import WarmPool
from tests.fakes.jobs import ran
from tests.fakes.packaged_prices import packaged_market
from tests.fakes.recorded import DATA

CASES: dict[str, dict[str, Any]] = {
    case["id"]: case
    for case in json.loads(
        (DATA / "cost-oracles.json").read_text(encoding="utf-8"), parse_float=Decimal
    )["cases"]
}
MARKET = packaged_market()
DECEMBER = datetime(2023, 12, 1, tzinfo=UTC)
HOUR_S = 3600


def published(kind: str) -> list[str]:
    """Returns the ids of the cases of a kind."""
    return [name for name, case in CASES.items() if case["kind"].startswith(kind)]


def published_job(case: dict[str, Any]) -> Job:
    """Returns the published job; in us-east-1 if its author names no region."""
    seconds = case["billable_seconds"]
    return ran(
        seconds,
        case["instance_type"],
        case["instance_count"],
        region=case["region"] or "us-east-1",
        volume_gb=case["volume_gb"] or 30,
    )


def in_ireland(hours: Decimal, instance: str, **changes: Any) -> Job:
    """A job of the bill: eu-west-1 in December 2023, 30 GB per instance."""
    seconds = int(hours * HOUR_S)
    return ran(seconds, instance, at=DECEMBER, region="eu-west-1", volume_gb=30, **changes)


def usd(billed: Bill, item: str) -> Decimal | None:
    """Returns the dollars of one kind of bill line, rounded half up to cents."""
    [line] = [line for line in billed.lines if line.item == item]
    return None if line.usd is None else line.usd.quantize(Decimal("0.01"), ROUND_HALF_UP)


def quantity(billed: Bill, item: str) -> Decimal:
    """Returns the GB-months of one kind of bill line."""
    return sum(
        (line.quantity or Decimal(0) for line in billed.lines if line.item == item), Decimal(0)
    )


@pytest.mark.parametrize("name", [n for n in published("published") if not n.endswith("WRONG")])
def test_a_published_cost_agrees_within_its_authors_rounding(name: str) -> None:
    """A published cost agrees within 10%, since authors round hours before they multiply."""
    case = CASES[name]
    compute = bill(published_job(case), MARKET).compute_usd
    assert compute is not None
    assert abs(compute - Decimal(case["published_usd"])) <= Decimal(case["published_usd"]) / 10


@pytest.mark.parametrize("name", ["hf-bloomz", "hf-falcon40b", "hf-lighteval"])
def test_300_gb_on_a_type_with_nvme_cost_nothing(name: str) -> None:
    """g5 has local disks, so VolumeSizeInGB costs nothing."""
    billed = bill(published_job(CASES[name]), MARKET)
    assert [line.item for line in billed.lines] == ["compute"]
    assert billed.complete


def test_an_exact_published_cost_agrees_exactly() -> None:
    """999 s of ml.g5.4xlarge cost $0.56."""
    assert usd(bill(published_job(CASES["hf-lighteval"]), MARKET), "compute") == Decimal("0.56")


def test_a_wrong_published_cost_disagrees() -> None:
    """It prints about $5 for 645 s of ml.g5.xlarge, which cost $0.25."""
    case = CASES["phil-bge-WRONG"]
    compute = bill(published_job(case), MARKET).compute_usd
    assert compute is not None
    assert abs(compute - Decimal(case["published_usd"])) > Decimal(case["published_usd"]) / 10
    assert round(compute, 2) == Decimal("0.25")


@pytest.mark.parametrize("name", [n for n in published("published") if CASES[n]["region"] is None])
def test_the_rate_behind_a_published_cost_is_ours(name: str) -> None:
    """Our rate equals the author's rate exactly."""
    case = CASES[name]
    rate = MARKET.prices.hourly_rate("us-east-1", Component.TRAINING, case["instance_type"])
    assert rate is not None
    assert rate.usd == case["usd_per_hour"]


@pytest.mark.parametrize("name", ["bill-train-m5x", "bill-train-g4dn", "bill-train-g5"])
def test_a_training_line_of_the_bill_is_right_to_the_cent(name: str) -> None:
    """Training lines use the Training rate: g4dn.xlarge $0.822 an hour, not Hosting's $0.821."""
    case = CASES[name]
    billed = bill(in_ireland(case["quantity"], case["instance_type"]), MARKET)
    assert usd(billed, "compute") == case["published_usd"]
    [line] = [line for line in billed.lines if line.item == "compute"]
    assert line.rate is not None
    assert line.rate.usd == case["usd_per_unit"]
    assert line.usage_type == f"EU-Train:{case['instance_type']}"


def test_the_warm_pool_line_of_the_bill_is_right_to_the_cent() -> None:
    """167.301 h retained cost $43.00, and 6.746 GB-months of their volumes $1.04."""
    hours = CASES["bill-warm-m5x"]["quantity"]
    pool = WarmPool("Terminated", 3600, hours * HOUR_S)
    billed = bill(in_ireland(Decimal(1), "ml.m5.xlarge", warm_pool=pool), MARKET)
    assert usd(billed, "warm_pool") == Decimal("43.00")
    assert round(quantity(billed, "warm_pool_storage"), 3) == Decimal("6.746")
    assert usd(billed, "warm_pool_storage") == Decimal("1.04")


def test_the_training_storage_line_of_the_bill_is_right_to_the_digit() -> None:
    """Hours of m5 and p3 count, those of g4dn and g5 do not: 1.942 GB-months, $0.30."""
    bills = [
        bill(in_ireland(Decimal(hours), instance), MARKET)
        for hours, instance in (
            ("44.015", "ml.m5.xlarge"),
            ("4.139", "ml.p3.2xlarge"),
            ("14.801", "ml.g4dn.xlarge"),
            ("2.887", "ml.g5.xlarge"),
        )
    ]
    whole = sum((quantity(billed, "storage") for billed in bills), Decimal(0))
    assert round(whole, 3) == CASES["bill-vol-train"]["quantity"] == Decimal("1.942")
    cost = whole * CASES["bill-vol-train"]["usd_per_unit"]
    assert cost.quantize(Decimal("0.01"), ROUND_HALF_UP) == Decimal("0.30")
    [line] = [line for line in bills[0].lines if line.item == "storage"]
    assert line.rate is not None
    assert line.rate.usd == Decimal("0.154")


def test_the_processing_storage_line_of_the_bill_is_right_to_the_digit() -> None:
    """2.382 h of 30 GB are 0.096 GB-months at the EBS price: $0.01."""
    job = in_ireland(Decimal("2.382"), "ml.m5.xlarge", kind=JobKind.PROCESSING, billable_s=None)
    billed = bill(job, MARKET)
    assert round(quantity(billed, "storage"), 3) == CASES["bill-vol-proc"]["quantity"]
    assert usd(billed, "storage") == Decimal("0.01")
    [line] = [line for line in billed.lines if line.item == "storage"]
    assert line.rate is not None
    assert line.rate.usd == CASES["bill-vol-proc"]["usd_per_unit"]


def test_the_debugger_line_of_the_bill_is_free() -> None:
    """A built-in Debugger rule's instance costs $0."""
    hours = CASES["bill-debug-free"]["quantity"]
    rule = in_ireland(hours, "ml.m5.xlarge", kind=JobKind.PROCESSING, free="built-in Debugger rule")
    assert bill(rule, MARKET).total_usd == 0


@pytest.mark.parametrize("name", ["bill-host-m5x", "bill-host-g4dn4"])
def test_the_hosting_rates_of_the_bill_are_those_of_the_table(name: str) -> None:
    """Hosting's rates are used for other components, here for batch transform."""
    case = CASES[name]
    seconds = int(case["quantity"] * HOUR_S)
    job = ran(
        seconds,
        case["instance_type"],
        at=DECEMBER,
        region="eu-west-1",
        kind=JobKind.TRANSFORM,
        billable_s=None,
    )
    assert usd(bill(job, MARKET), "compute") == case["published_usd"]


def test_processing_keeps_the_hosting_rate_if_training_has_its_own() -> None:
    """In eu-west-1 ml.g4dn.xlarge costs $0.821 for Processing and $0.822 for Training."""
    prices = MARKET.prices
    training = prices.hourly_rate("eu-west-1", Component.TRAINING, "ml.g4dn.xlarge")
    processing = prices.hourly_rate("eu-west-1", Component.PROCESSING, "ml.g4dn.xlarge")
    assert training is not None
    assert processing is not None
    assert (training.usd, processing.usd) == (Decimal("0.822"), Decimal("0.821"))
    assert training.note is not None


@pytest.mark.parametrize("name", ["spot-hf", "aws-doc-spot"])
def test_spot_saves_what_the_sdk_prints(name: str) -> None:
    """The Spot saving is (1 - billable / training) x 100, at the on-demand rate."""
    case = CASES[name]
    instance = case.get("instance_type", "ml.p3.2xlarge")
    full = ran(case["training_seconds"], instance)
    spot = ran(
        case["training_seconds"],
        instance,
        purchase=Purchase.SPOT,
        billable_s=Decimal(case["billable_seconds"]),
    )
    full_usd, spot_usd = bill(full, MARKET).compute_usd, bill(spot, MARKET).compute_usd
    assert full_usd is not None
    assert spot_usd is not None
    assert round(100 * (1 - spot_usd / full_usd), 1) == case["published_savings_pct"]


def test_every_case_is_used() -> None:
    """All cases are used except notebook hours, which are no job, and repeated quantities."""
    unused = {"bill-nb-t3", "vol-train", "vol-proc"}
    assert {c for c in CASES if c.startswith(("vol-", "bill-nb"))} == unused
    assert CASES["vol-train"]["published_gb_month"] == CASES["bill-vol-train"]["quantity"]
    assert CASES["vol-proc"]["published_gb_month"] == CASES["bill-vol-proc"]["quantity"]
