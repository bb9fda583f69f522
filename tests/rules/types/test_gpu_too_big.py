from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.counterfactual import Severities, allocate
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, NotApplicable, Unknown
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from tests.fakes.jobs import FixedPrices, ran, series
from tests.fakes.judging import card, found, not_applicable, outcome, priced, usd

RULE = "gpu-too-big"
USD = {
    "ml.p3.2xlarge": "3.825",
    "ml.p3.8xlarge": "14.688",
    "ml.p5.4xlarge": "7.91",
    "ml.g4dn.2xlarge": "0.94",
    "ml.g5.2xlarge": "1.515",
    "ml.g5.4xlarge": "2.03",
    "ml.g5.12xlarge": "7.09",
}
QUIET = {"gpu": 10, "gpu_memory": 30, "cpu": 30, "memory": 20}


def on(*without: str) -> Market:
    """The catalogue at the rates above, less some types."""
    rates = {name: rate for name, rate in USD.items() if name not in without}
    return Market(packaged.types(), FixedPrices(hourly_usd=rates))


def hours(instance: str = "ml.p3.2xlarge", instances: int = 1, **changes: Any) -> Job:
    """Two hours on it without a volume."""
    return ran(7200, instance, instances, volume_gb=0, **changes)


def used(run: Job, minutes: int = 120, **percent: float) -> Measurements:
    """Even use over so many minutes, in percent of all there is."""
    kind = packaged.types()[run.groups[0].instance_type]
    times = {"cpu": kind.vcpu, "memory": 1, "gpu": kind.gpus, "gpu_memory": kind.gpus}
    raw = [
        series(Metric[word.upper()], [value * times[word]] * minutes, host=f"train/algo-{n}")
        for word, value in (QUIET | percent).items()
        for n in range(1, run.groups[0].count + 1)
        if value >= 0
    ]
    absent = Missing("metric_missing", "no points")
    return measure(run, raw, packaged.types(), absent=absent)


def test_a_small_run_on_a_v100_fits_an_a10g() -> None:
    """1.6 times as long at most: at 10% busy 1.06 times."""
    run = hours()
    market = on("ml.g4dn.2xlarge")
    finding = priced(RULE, run, used(run), on=market)
    assert finding.found.summary == (
        "2 h on 1 x ml.p3.2xlarge used 10% of the GPU and 4.8 GiB of its memory: "
        "ml.g5.2xlarge has enough."
    )
    # 2 h x 3.825 - 2 h x 1.515 x 1.06, and 2 h x (3.825 - 1.515)
    assert usd(finding.saving_usd) == "4.438200"
    assert finding.range_usd is not None
    assert [usd(end) for end in finding.range_usd] == ["4.438200", "4.620000"]
    [fix] = finding.found.fix
    assert (fix.path, fix.old, fix.new) == (
        "ResourceConfig.InstanceType", "ml.p3.2xlarge", "ml.g5.2xlarge",
    )  # fmt: skip
    assert (finding.found.confidence, finding.found.bucket) == (
        Confidence.DERIVED,
        Bucket.AVOIDABLE,
    )
    assert "Means of a minute hide short peaks" in (finding.found.caution or "")


def test_twenty_percent_is_little_and_more_is_not() -> None:
    """Of all GPUs, on average."""
    run = hours()
    assert isinstance(outcome(RULE, run, used(run, gpu=20), on=on()), Found)
    assert outcome(RULE, run, used(run, gpu=20.1), on=on()) == Clear()


def test_ten_gib_of_gpu_memory_are_little_and_more_is_not() -> None:
    """62.5% of 16 GiB are 10."""
    run = hours()
    assert isinstance(outcome(RULE, run, used(run, gpu_memory=62.5), on=on()), Found)
    assert outcome(RULE, run, used(run, gpu_memory=62.6), on=on()) == Clear()


def test_twelve_cores_a_gpu_are_few_and_more_is_not() -> None:
    """75% and 76% of the 16 vCPUs of a p5.4xlarge; 12 with headroom fit on g5.4xlarge."""
    run = hours("ml.p5.4xlarge")
    assert isinstance(
        outcome(RULE, run, used(run, gpu=5, cpu=75, gpu_memory=10, memory=10), on=on()), Found
    )
    more = used(run, gpu=5, cpu=76, gpu_memory=10, memory=10)
    assert outcome(RULE, run, more, on=on()) == Clear()


def test_a_g_type_on_which_it_may_take_more_than_twice_as_long_is_none() -> None:
    """An A10G took up to 7.74 times as long as an H100: at 15% 2.01 times, at 14% 1.94."""
    run = hours("ml.p5.4xlarge")
    assert isinstance(outcome(RULE, run, used(run, gpu=14, gpu_memory=10), on=on()), Found)
    assert outcome(RULE, run, used(run, gpu=15, gpu_memory=10), on=on()) == Clear()


def test_bf16_and_flash_attention_stay_off_old_gpus() -> None:
    """From an H100 the T4 would be cheapest, were it as strong; with a sign of either it is not."""
    run = hours("ml.p5.4xlarge")
    little: dict[str, Any] = {"gpu": 1.5, "gpu_memory": 2, "cpu": 10, "memory": 3}
    kinds = dict(packaged.types())
    strong = tuple(
        replace(row, slow="T4") for row in kinds["ml.p5.4xlarge"].gpu_ratios if row.slow == "A10G"
    )
    kinds["ml.p5.4xlarge"] = replace(
        kinds["ml.p5.4xlarge"], gpu_ratios=(*kinds["ml.p5.4xlarge"].gpu_ratios, *strong)
    )
    market = Market(
        kinds,
        FixedPrices(
            hourly_usd={"ml.p5.4xlarge": "7.91", "ml.g4dn.4xlarge": "0.5", "ml.g5.4xlarge": "2"}
        ),
    )
    plain = found(RULE, run, used(run, **little), on=market)
    assert [fix.new for fix in plain.fix] == ["ml.g4dn.4xlarge"]
    for hints in (Hints(flash_attention=True), Hints(mixed_precision=True)):
        signed = hours("ml.p5.4xlarge", hints=hints)
        what = found(RULE, signed, used(signed, **little), on=market)
        assert [fix.new for fix in what.fix] == ["ml.g5.4xlarge"]


def test_several_gpus_on_nvlink_are_not_moved_to_pcie() -> None:
    """Nor several instances to another GPU."""
    four, two = hours("ml.p3.8xlarge"), hours("ml.p3.2xlarge", 2)
    assert outcome(RULE, four, used(four), on=on("ml.p3.2xlarge")) == Clear()
    assert outcome(RULE, two, used(two), on=on()) == Clear()


def test_a_smaller_type_with_the_same_gpu_is_left_to_another_rule() -> None:
    """4 x 5% fit one V100, in a p3.2xlarge at $2: cheaper than any g type here."""
    run = hours("ml.p3.8xlarge")
    rates = {"ml.p3.8xlarge": "14.688", "ml.p3.2xlarge": "2", "ml.g5.8xlarge": "3.06"}
    market = Market(packaged.types(), FixedPrices(hourly_usd=rates))
    of = used(run, gpu=5, gpu_memory=5, cpu=5, memory=5)
    assert outcome(RULE, run, of, on=market) == Clear()
    assert [fix.new for fix in found("gpu-underused", run, of, on=market).fix] == ["ml.p3.2xlarge"]


def test_it_tells_the_story_of_gpu_underused() -> None:
    """Both are found; only this one has dollars."""
    run, market = hours(), on()
    of = used(run)
    pairs = [(card(name).name, found(name, run, of, on=market)) for name in (RULE, "gpu-underused")]
    savings = allocate(run, bill(run, market), pairs, market, Severities(), {})
    by_name = {finding.rule.name: finding for finding in savings.findings}
    assert by_name["gpu-underused"].subsumed_by == RULE
    assert savings.avoidable_usd == by_name[RULE].saving_usd


def test_the_advised_type_gets_no_advice_back() -> None:
    """It is no p type."""
    run = hours()
    [fix] = found(RULE, run, used(run), on=on()).fix
    there = hours(str(fix.new))
    assert "p types" in not_applicable(RULE, there, used(there))


def test_an_idle_gpu_is_another_story() -> None:
    """It needs no GPU at all."""
    run = hours()
    answer = outcome(RULE, run, used(run, gpu=0, gpu_memory=0), on=on())
    assert answer == NotApplicable("the GPU did nothing: see gpu-idle")


def test_points_that_hide_peaks_make_it_unknown() -> None:
    """An hour each, as after 63 days: 61 GiB of memory may all be needed, and not only 32."""
    run = ran(36_000, "ml.p3.2xlarge", volume_gb=0)
    raw = [
        series(metric, [value] * 10, period_s=3600)
        for metric, value in (
            (Metric.CPU, 240), (Metric.MEMORY, 20), (Metric.GPU, 10), (Metric.GPU_MEMORY, 30),
        )
    ]  # fmt: skip
    of = measure(run, raw, packaged.types(), absent=Missing("metric_missing", "no points"))
    answer = outcome(RULE, run, of, on=on("ml.g5.4xlarge"))
    assert isinstance(answer, Unknown)
    assert answer.code == "not_recorded"
    assert [fix.new for fix in found(RULE, run, of, on=on()).fix] == ["ml.g5.4xlarge"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"groups": (InstanceGroup("ml.g5.2xlarge", 1),)}, "p types"),
        (
            {"groups": (InstanceGroup("ml.p3.2xlarge", 1), InstanceGroup("ml.p3.8xlarge", 1))},
            "several types",
        ),
        ({"purchase": Purchase.TRAINING_PLAN}, "prepaid"),
    ],
)
def test_where_no_g_type_can_be_advised_it_says_nothing(changes: dict[str, Any], why: str) -> None:
    """And why."""
    assert why in not_applicable(RULE, hours(**changes))


def test_without_a_region_nothing_is_replayed() -> None:
    """No price, no other type."""
    run = hours(region=None)
    answer = outcome(RULE, run, used(run), on=on())
    assert answer == Unknown("not_replayable", "the region is not known, and so is no price")
