from functools import partial
from typing import Any

from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.structs import replace
from tests.fakes.jobs import FixedPrices, by_point, even, ran
from tests.fakes.judging import answer, savings_of
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    cannot_judge,
    does_not_apply,
    finds,
    given_job,
    one_host,
)

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
LITTLE = {"gpu": 10, "gpu_memory": 30, "cpu": 30, "memory": 20}
"""Percent of all that there is, unless a test says otherwise."""


def market_without(*names: str) -> Market:
    """The catalogue at the rates above, less some types."""
    rates = {name: rate for name, rate in USD.items() if name not in names}
    return Market(packaged.instance_types(), FixedPrices(hourly_usd=rates))


def hours(instance: str = "ml.p3.2xlarge", instances: int = 1, **changes: Any) -> Job:
    """Two hours on it without a volume."""
    return ran(7200, instance, instances, volume_gb=0, **changes)


@given_job
def even_use(run: Job, minutes: int = 120, **percent: float) -> Measurements:
    """Even use over this many minutes, in percent of all there is."""
    hosts = run.instance_count or 1
    return by_point(run, hosts, even(minutes, LITTLE | percent), types=packaged.instance_types())


verdict = partial(answer, RULE, market=market_without())


def test_a_v100_at_10_percent_fits_an_a10g_that_takes_1_06_times_as_long_at_most() -> None:
    # 1.6 times as long if busy: 2 h x $3.825 - 2 h x $1.515 x 1.06, and 2 h x ($3.825 - $1.515).
    assert verdict(hours(), even_use(), market=market_without("ml.g4dn.2xlarge")) == finds(
        "In 2 h on 1 x ml.p3.2xlarge, the job used 10% of the GPU and 4.8 GiB of its memory: "
        "ml.g5.2xlarge is enough.",
        usd="4.438200",
        span=("4.438200", "4.620000"),
        builder="derived",
        caution="…Averages over a minute hide short peaks…",
        fix=[("ResourceConfig.InstanceType", "ml.p3.2xlarge", "ml.g5.2xlarge")],
    )


def test_of_several_gpus_the_memory_is_that_of_all_of_them_together() -> None:
    # 20% of 4 x 16 GiB are 12.8 GiB, which may lie on one GPU: never the mean of 3.2 for each.
    result = verdict(hours("ml.p3.8xlarge"), even_use(gpu=4, gpu_memory=20, cpu=5, memory=5))
    assert result == finds(
        "In 2 h on 1 x ml.p3.8xlarge, the job used 4% of its 4 GPUs and 12.8 GiB of their memory "
        "together: …is enough.",
        evidence={"gpu_memory_peak_gib": 12.8, "gpus": 4},
    )


def test_a_mean_of_20_percent_of_all_gpus_is_little_and_of_20_1_percent_is_not() -> None:
    assert verdict(hours(), even_use(gpu=20)) == FOUND
    assert verdict(hours(), even_use(gpu=20.1)) == CLEAR


def test_62_5_percent_of_16_gib_of_gpu_memory_are_10_and_little_and_more_is_not() -> None:
    assert verdict(hours(), even_use(gpu_memory=62.5)) == FOUND
    assert verdict(hours(), even_use(gpu_memory=62.6)) == CLEAR


def test_12_busy_cores_a_gpu_are_few_and_12_2_are_not() -> None:
    # 75% and 76% of the 16 vCPUs of a p5.4xlarge; 12 with headroom fit on g5.4xlarge.
    assert (
        verdict(hours("ml.p5.4xlarge"), even_use(gpu=5, cpu=75, gpu_memory=10, memory=10)) == FOUND
    )
    assert (
        verdict(hours("ml.p5.4xlarge"), even_use(gpu=5, cpu=76, gpu_memory=10, memory=10)) == CLEAR
    )


def test_a_g_type_on_which_it_may_take_more_than_twice_as_long_is_none() -> None:
    # An A10G took up to 7.74 times as long as an H100: at 15% 2.01 times, at 14% 1.94.
    assert verdict(hours("ml.p5.4xlarge"), even_use(gpu=14, gpu_memory=10)) == FOUND
    assert verdict(hours("ml.p5.4xlarge"), even_use(gpu=15, gpu_memory=10)) == CLEAR


def test_several_gpus_on_nvlink_are_not_moved_to_pcie() -> None:
    """Nor several instances to another GPU."""
    assert (
        verdict(hours("ml.p3.8xlarge"), even_use(), market=market_without("ml.p3.2xlarge")) == CLEAR
    )
    assert verdict(hours("ml.p3.2xlarge", 2), even_use()) == CLEAR


def test_a_smaller_type_with_the_same_gpu_is_left_to_another_rule() -> None:
    # 4 x 5% fit one V100, in a p3.2xlarge at $2: cheaper than any g type here.
    rates = {"ml.p3.8xlarge": "14.688", "ml.p3.2xlarge": "2", "ml.g5.8xlarge": "3.06"}
    market = Market(packaged.instance_types(), FixedPrices(hourly_usd=rates))
    use = even_use(gpu=5, gpu_memory=5, cpu=5, memory=5)
    assert verdict(hours("ml.p3.8xlarge"), use, market=market) == CLEAR
    result = answer("gpu-underused", hours("ml.p3.8xlarge"), use, market=market)
    assert result == finds(fix=["ml.p3.2xlarge"])


def test_an_idle_gpu_is_another_story() -> None:
    """It needs no GPU at all."""
    assert verdict(hours(), even_use(gpu=0, gpu_memory=0)) == does_not_apply(
        "the GPU did nothing: see gpu-idle"
    )


def test_where_no_g_type_can_be_advised_it_says_nothing() -> None:
    result = verdict(hours(groups=(InstanceGroup("ml.g5.2xlarge", 1),)))
    assert result == does_not_apply("…p types…")
    result = verdict(
        hours(groups=(InstanceGroup("ml.p3.2xlarge", 1), InstanceGroup("ml.p3.8xlarge", 1)))
    )
    assert result == does_not_apply("…several types…")
    assert verdict(hours(purchase=Purchase.TRAINING_PLAN)) == does_not_apply("…prepaid…")


def test_without_a_region_nothing_is_replayed() -> None:
    """No price, no other type."""
    assert verdict(hours(region=None), even_use()) == cannot_judge(
        "not_replayable: the region is not known, and so is no price"
    )


def test_points_that_hide_peaks_make_it_unknown() -> None:
    # An hour each, as after 63 days: 61 GiB of memory may all be needed, and not only 32.
    hourly = one_host(
        cores=[2.4] * 10,
        memory=[20] * 10,
        gpu=[10] * 10,
        gpu_memory=[30] * 10,
        period_s=3600,
        types=packaged.instance_types(),
    )
    ten_hours = ran(36_000, "ml.p3.2xlarge", volume_gb=0)
    assert verdict(ten_hours, hourly, market=market_without("ml.g5.4xlarge")) == cannot_judge(
        "not_recorded"
    )
    assert verdict(ten_hours, hourly) == finds(fix=["ml.g5.4xlarge"])


def test_the_advised_type_gets_no_advice_back() -> None:
    """It is no p type."""
    assert verdict(hours(), even_use()) == finds(fix=["ml.g4dn.2xlarge"])
    assert verdict(hours("ml.g4dn.2xlarge"), even_use()) == does_not_apply("…p types…")


def test_bf16_and_flash_attention_stay_off_old_gpus() -> None:
    """From an H100 the T4 would be cheapest, were it as strong; with a sign of either it is not."""
    run = hours("ml.p5.4xlarge")
    little: dict[str, Any] = {"gpu": 1.5, "gpu_memory": 2, "cpu": 10, "memory": 3}
    kinds = dict(packaged.instance_types())
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
    assert verdict(run, even_use(**little), market=market) == finds(fix=["ml.g4dn.4xlarge"])
    for hints in (Hints(flash_attention=True), Hints(mixed_precision=True)):
        signed = hours("ml.p5.4xlarge", hints=hints)
        assert verdict(signed, even_use(**little), market=market) == finds(fix=["ml.g5.4xlarge"])


def test_it_includes_the_finding_of_gpu_underused() -> None:
    """Both are found; only this one has dollars."""
    savings = savings_of((RULE, "gpu-underused"), hours(), even_use(), market=market_without())
    by_name = {finding.rule.name: finding for finding in savings.findings}
    assert by_name["gpu-underused"].subsumed_by == RULE
    assert savings.avoidable_usd == by_name[RULE].saving_usd
