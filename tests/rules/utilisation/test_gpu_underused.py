from decimal import Decimal
from functools import partial

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.bill.change import SetType
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.structs import replace
from tests.fakes.jobs import TYPES, batch_job, market, ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    Measured,
    does_not_apply,
    even_use,
    finds,
    hosts,
    one_host,
)

RULE = "gpu-underused"
FOUR_T4 = ran(3600, "ml.g4dn.12xlarge")
"""An hour on 4 T4, 48 vCPUs and 192 GiB at $4.89."""
ONE_T4 = ran(3600, "ml.g4dn.xlarge")
"""An hour on one T4, 4 vCPUs and 16 GiB at $0.736."""
FITS_ONE_T4 = even_use(minutes=60, gpu=20, gpu_memory=5, cpu=5, memory=5)
"""Of 4 T4 together 80% of one."""


def spiky(*gpu: float) -> Measured:
    """A GPU in percent, minute by minute, while one core is busy."""
    return one_host(gpu=gpu, cores=[1.0] * len(gpu))


def with_ratios(a10g_memory_gib: int = 16) -> Market:
    """The same types with the packaged ratios of T4 and A10G."""
    ratios = {kind.gpu_model: kind.gpu_ratios for kind in packaged.instance_types().values()}
    types = {name: replace(kind, gpu_ratios=ratios[kind.gpu_model]) for name, kind in TYPES.items()}
    a10g = types["ml.g5.2xlarge"]
    types[a10g.name] = replace(a10g, gpu_memory_gib=Decimal(a10g_memory_gib))
    return replace(market(), types=types)


verdict = partial(answer, RULE)


def test_a_gpu_at_10_percent_for_an_hour_is_found_and_the_sentence_has_its_numbers() -> None:
    assert verdict(ONE_T4, even_use(minutes=60, gpu=10, cpu=50)) == finds(
        "The GPU averaged 10% (P95 10%) over 1 h on 1 x ml.g4dn.xlarge.",
        evidence={"gpu_mean_percent": 10.0, "cpu_mean_cores": 2.0, "active_minutes": 60},
    )


def test_a_gpu_at_80_percent_is_clear() -> None:
    assert verdict(ONE_T4, even_use(minutes=60, gpu=80, cpu=50)) == CLEAR


def test_a_mean_of_25_percent_is_clear_and_of_less_is_low() -> None:
    # Bursts at 100% for a quarter of the time: P95 is high, only the mean decides.
    assert verdict(ONE_T4, spiky(*[100] * 7, *([0] * 22), *[100] * 8, *([0] * 22), 0)) == CLEAR
    assert verdict(ONE_T4, spiky(*[100] * 7, *([0] * 22), *[100] * 7, 99, *([0] * 22), 0)) == FOUND


def test_a_p95_of_70_percent_is_clear_and_of_69_9_is_low() -> None:
    # Half at 20%, half at 70%: the mean of 45% is under the target, the P95 is not under 70.
    assert verdict(ONE_T4, spiky(*[20] * 30, *[70] * 30)) == CLEAR
    assert verdict(ONE_T4, spiky(*[20] * 30, *[69.9] * 30)) == FOUND


def test_an_even_50_percent_is_the_target_and_clear_and_49_percent_is_found() -> None:
    assert verdict(ONE_T4, even_use(minutes=60, gpu=50, cpu=50)) == CLEAR
    assert verdict(ONE_T4, even_use(minutes=60, gpu=49, cpu=50)) == FOUND


def test_the_busiest_host_speaks_for_the_p95() -> None:
    # One of two hosts at 80%, the other at 10%: 45% on average, and no flat run.
    result = verdict(
        ran(3600, "ml.g4dn.xlarge", 2),
        hosts({"gpu": [10] * 60, "cores": [1.0] * 60}, {"gpu": [80] * 60, "cores": [1.0] * 60}),
    )
    assert result == CLEAR


def test_idle_head_and_tail_are_not_held_against_it() -> None:
    # Ten idle minutes at each end of 40 at 60%: judged on the 40.
    result = verdict(
        ONE_T4,
        one_host(gpu=[0] * 10 + [60] * 40 + [0] * 10, cores=[0.0] * 10 + [1.0] * 40 + [0.0] * 10),
    )
    assert result == CLEAR


def test_a_gpu_that_never_worked_is_left_to_gpu_idle() -> None:
    # So is one below 5% on average; a GPU at 5% is told here.
    assert verdict(ONE_T4, even_use(minutes=60, gpu=0, cpu=50)) == does_not_apply("…gpu-idle…")
    assert verdict(ONE_T4, spiky(*[0] * 59, 1)) == does_not_apply("…gpu-idle…")
    assert verdict(ONE_T4, even_use(minutes=60, gpu=4.9, cpu=50)) == does_not_apply("…gpu-idle…")
    assert verdict(ONE_T4, even_use(minutes=60, gpu=5, cpu=50)) == FOUND


def test_jobstats_calls_15_percent_red_and_less_than_25_percent_amber() -> None:
    assert verdict(ONE_T4, even_use(minutes=60, gpu=15, cpu=50)) == finds(
        evidence={"jobstats": "red"}
    )
    assert verdict(ONE_T4, even_use(minutes=60, gpu=15.1, cpu=50)) == finds(
        evidence={"jobstats": "amber"}
    )
    assert verdict(ONE_T4, even_use(minutes=60, gpu=24.9, cpu=50)) == finds(
        evidence={"jobstats": "amber"}
    )
    assert verdict(ONE_T4, even_use(minutes=60, gpu=25, cpu=50)) == finds(
        evidence={"jobstats": "below target"}
    )


def test_a_gpu_at_50_to_70_percent_is_clear() -> None:
    # 50 to 70% on average, in a saw-tooth or even, whatever a larger batch might add.
    assert verdict(ONE_T4, even_use(minutes=60, gpu=50, gpu_memory=20, cpu=50)) == CLEAR
    assert verdict(ONE_T4, even_use(minutes=60, gpu=60, gpu_memory=20, cpu=50)) == CLEAR
    assert verdict(ONE_T4, even_use(minutes=60, gpu=70, gpu_memory=20, cpu=50)) == CLEAR
    assert verdict(ONE_T4, spiky(*([90, 85, 30, 15] * 15))) == CLEAR


def test_one_gpu_of_four_is_enough() -> None:
    # 20% of 4 T4 and 5% of the rest fit one: 4.89 less 1 + 0.2 x 3 times 0.736, for an hour.
    result = verdict(FOUR_T4, FITS_ONE_T4)
    assert result == finds(
        fix=["ml.g4dn.xlarge"],
        usd="3.712400",
        alone="3.712400",
        best=SetType("ml.g4dn.xlarge", Decimal(1)),
    )


def test_one_gpu_of_four_that_is_busy_all_the_time_takes_no_longer_alone() -> None:
    # The sum sits at 95% of one and never goes above it: 4.89 - 0.736.
    result = verdict(FOUR_T4, even_use(minutes=60, gpu=95 / 4, gpu_memory=5, cpu=5, memory=5))
    assert result == finds(usd="4.154000")


def test_the_cheapest_type_that_holds_everything_is_advised() -> None:
    # P99.5 with 20% headroom of vCPU and memory must fit.
    # vCPU: 5% of 48 x 1.2 = 2.9, 10% = 5.8, 20% = 11.5
    # host memory: 10% of 192 x 1.2 = 23 GiB
    result = verdict(FOUR_T4, FITS_ONE_T4)
    assert result == finds(fix=["ml.g4dn.xlarge"])
    result = verdict(FOUR_T4, even_use(minutes=60, gpu=20, gpu_memory=5, cpu=10, memory=5))
    assert result == finds(fix=["ml.g4dn.2xlarge"])
    result = verdict(FOUR_T4, even_use(minutes=60, gpu=20, gpu_memory=5, cpu=20, memory=5))
    assert result == finds(fix=["ml.g4dn.4xlarge"])
    result = verdict(FOUR_T4, even_use(minutes=60, gpu=20, gpu_memory=5, cpu=5, memory=10))
    assert result == finds(fix=["ml.g4dn.2xlarge"])


def test_a_type_is_refused_with_the_constraint_that_binds() -> None:
    # No figure then, and no fix: an advice whose reason is shown.
    result = verdict(FOUR_T4, even_use(minutes=60, gpu=28, gpu_memory=5, cpu=5, memory=5))
    assert result == finds(
        change=None, fix=[], builder="advice", caution="…1.1 busy on average, 1…"
    )
    result = verdict(FOUR_T4, even_use(minutes=60, gpu=20, gpu_memory=26, cpu=5, memory=5))
    assert result == finds(
        change=None, fix=[], builder="advice", caution="…GPU memory: 18.3 GiB needed…"
    )
    result = verdict(FOUR_T4, even_use(minutes=60, gpu=20, gpu_memory=5, cpu=30, memory=5))
    assert result == finds(change=None, fix=[], builder="advice", caution="…vCPU: 17.3 needed…")
    result = verdict(FOUR_T4, even_use(minutes=60, gpu=20, gpu_memory=5, cpu=5, memory=30))
    assert result == finds(
        change=None, fix=[], builder="advice", caution="…host memory: 69.1 GiB needed…"
    )
    assert verdict(FOUR_T4, even_use(minutes=60, gpu=20, cpu=5, memory=5)) == finds(
        change=None, fix=[], builder="advice", caution="…the GPU memory used is not known…"
    )
    result = verdict(FOUR_T4, even_use(minutes=60, gpu=20, gpu_memory=5, cpu=5))
    assert result == finds(
        change=None, fix=[], builder="advice", caution="…the host memory used is not known…"
    )


def test_the_smallest_type_has_no_figure() -> None:
    # (1 - utilisation) x cost is never a saving: no cheaper GPU can be bought.
    assert verdict(ONE_T4, even_use(minutes=60, gpu=10, cpu=50)) == finds(
        usd=None,
        bucket="none",
        caution="…no GPU type with a known price costs less per hour…",
        severity="info",
    )


def test_another_gpu_model_without_a_sourced_throughput_is_not_advised() -> None:
    # A T4 is cheaper than an A10G, and nobody says how much slower.
    result = verdict(
        ran(3600, "ml.g5.2xlarge"), even_use(minutes=60, gpu=10, gpu_memory=5, cpu=10, memory=5)
    )
    assert result == finds(fix=[])


def test_another_gpu_model_is_not_advised_at_a_loss_or_in_the_dark() -> None:
    # Over twice as long at 23% busy; dearer at 14% on 8 vCPUs; GPU memory that nobody recorded.
    for use in (
        even_use(minutes=60, gpu=23, gpu_memory=5, cpu=10, memory=5),
        even_use(minutes=60, gpu=14, gpu_memory=5, cpu=60, memory=5),
        even_use(minutes=60, gpu=5, cpu=10, memory=5),
    ):
        market = with_ratios(a10g_memory_gib=24)
        assert verdict(ran(3600, "ml.g5.2xlarge"), use, market=market) == finds(fix=[])


def test_what_was_not_recorded_must_not_shrink() -> None:
    # Host memory is unknown: 32 GiB hold it, 16 may not, however much cheaper.
    result = verdict(
        ran(3600, "ml.g5.2xlarge"),
        even_use(minutes=60, gpu=5, gpu_memory=5, cpu=10),
        market=with_ratios(),
    )
    assert result == finds(fix=["ml.g4dn.2xlarge"], ways=[])


def test_the_policys_headroom_decides_what_holds() -> None:
    # 6.8% of 48 vCPUs need 3.9 of four with 20% and 5.2, 1.31 times as many, with 60%.
    result = verdict(FOUR_T4, even_use(minutes=60, gpu=20, gpu_memory=5, cpu=6.8, memory=5))
    assert result == finds(fix=["ml.g4dn.xlarge"])
    result = verdict(
        FOUR_T4,
        even_use(minutes=60, gpu=20, gpu_memory=5, cpu=6.8, memory=5),
        limits={"headroom_percent": 60},
    )
    assert result == finds(fix=["ml.g4dn.2xlarge"])


def test_a_training_plan_gets_no_other_type() -> None:
    """It is prepaid for this one."""
    result = verdict(
        ran(3600, "ml.g4dn.12xlarge", purchase=Purchase.TRAINING_PLAN),
        FITS_ONE_T4,
    )
    assert result == finds(fix=[], bucket="none", caution="…prepaid…")


def test_coarse_points_refuse_every_smaller_type() -> None:
    # Hourly means hide every peak: no size is derived from them.
    hourly = one_host(
        gpu=[80] * 4, gpu_memory=[20] * 4, cores=[2.4] * 4, memory=[5] * 4, period_s=3600
    )
    assert verdict(ran(4 * 3600, "ml.g4dn.12xlarge"), hourly) == finds(fix=[])


def test_a_larger_batch_is_named_where_gpu_memory_is_known_to_be_free() -> None:
    # 20% is; 70% is not, and not recorded is not known; nor where no CPU could feed it.
    result = verdict(ONE_T4, even_use(minutes=60, gpu=30, gpu_memory=20, cpu=50))
    assert result == finds(caution="…A larger batch may help: the P95 of GPU memory was 20%…")
    result = verdict(ONE_T4, even_use(minutes=60, gpu=30, cpu=50, gpu_memory=70))
    assert result == finds(caution="…feed the GPU faster…", without="larger batch")
    assert verdict(ONE_T4, even_use(minutes=60, gpu=30, cpu=50)) == finds(
        caution="…feed the GPU faster…", without="larger batch"
    )
    assert verdict(ONE_T4, even_use(minutes=60, gpu=30, gpu_memory=20, cpu=70)) == finds(
        without="larger batch"
    )


def test_another_gpu_model_with_one_is_a_range_whose_slow_end_counts() -> None:
    """Up to 1.515 / 0.736 = 2.06."""
    # A T4 takes up to 5.53 times: busy for 5%, at most 1.23 times as long at $0.736 of $1.515.
    result = verdict(
        ran(3600, "ml.g5.2xlarge"),
        even_use(minutes=60, gpu=5, gpu_memory=5, cpu=10, memory=5),
        market=with_ratios(),
    )
    assert result == finds(
        fix=["ml.g4dn.xlarge"],
        change=SetType("ml.g4dn.xlarge", Decimal("1.2265")),
        best=SetType("ml.g4dn.xlarge", Decimal(1)),
        ways=[["ml.g4dn.2xlarge"]],
        caution="…T4 took 1.55 to 5.53 times as long as the A10G…up to 2.06 times…",
    )


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (JobKind.PROCESSING, "ProcessingResources.ClusterConfig.InstanceType"),
        (JobKind.TRANSFORM, "TransformResources.InstanceType"),
    ],
)
def test_each_kind_of_job_is_advised_by_its_own_parameter(kind: JobKind, path: str) -> None:
    job = batch_job(kind, 3600, "ml.g4dn.12xlarge")
    assert verdict(job, FITS_ONE_T4) == finds(paths=[path])


def test_a_larger_batch_is_named_while_gpu_memory_and_cpu_are_under_70_percent() -> None:
    result = verdict(ONE_T4, even_use(minutes=60, gpu=49.9, gpu_memory=69.9, cpu=69.9))
    assert result == finds(caution="…A larger batch may help…")
    assert verdict(ONE_T4, even_use(minutes=60, gpu=50, gpu_memory=10, cpu=10)) == CLEAR
