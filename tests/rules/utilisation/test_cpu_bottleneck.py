from functools import partial

import pytest

from sageaudit.domain.job.job import Hints, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.structs import replace
from tests.fakes.jobs import flat, phases, ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    Measured,
    cannot_judge,
    even_use,
    finds,
    hosts,
    one_host,
)

RULE = "cpu-bottleneck"
ONE_T4 = ran(3600, "ml.g4dn.xlarge")
"""An hour on one T4 and 4 vCPUs."""
FOUR_T4 = ran(3600, "ml.g4dn.12xlarge")


def stretches(minutes: list[int], cpu: list[float], gpu: list[float]) -> Measured:
    """Stretches of this many minutes, with CPU in percent of 4 vCPUs, and GPU in percent."""
    parts = list(zip(minutes, cpu, gpu, strict=True))
    return one_host(
        cores=[4 * cpu / 100 for minutes, cpu, _ in parts for _ in range(minutes)],
        gpu=[gpu for minutes, _, gpu in parts for _ in range(minutes)],
    )


def with_workers(count: int | None, instance: str = "ml.g4dn.xlarge", **hints: str) -> Job:
    """An hour with this many data-loader workers."""
    return ran(3600, instance, hints=Hints(loader_workers=count, **hints))  # type: ignore[arg-type]


verdict = partial(answer, RULE)


def test_a_cpu_at_its_limit_before_a_waiting_gpu_is_found() -> None:
    # 40 of 60 minutes: the sentence says it with its numbers; no dollars.
    assert verdict(ONE_T4, stretches(minutes=[40, 20], cpu=[98, 60], gpu=[4, 50])) == finds(
        "In 67% of 1 h on 1 x ml.g4dn.xlarge the CPU was at 90% or more while the "
        "GPU was at 50% or less. The GPU averaged 19%.",
        usd=None,
        builder="advice",
        caution="…Only a test run can show…",
        severity="info",
    )


def test_30_of_60_minutes_of_waiting_are_found_and_29_are_not() -> None:
    # The means stay on the fine side of the milder tier.
    assert verdict(ONE_T4, stretches(minutes=[30, 30], cpu=[95, 50], gpu=[5, 60])) == FOUND
    assert verdict(ONE_T4, stretches(minutes=[29, 31], cpu=[95, 50], gpu=[5, 60])) == CLEAR


def test_a_minute_waits_with_cpu_at_90_percent_or_more_and_gpu_at_50_percent_or_less() -> None:
    assert verdict(ONE_T4, stretches(minutes=[60], cpu=[90], gpu=[50])) == FOUND
    assert verdict(ONE_T4, stretches(minutes=[60], cpu=[89.9], gpu=[50])) == CLEAR
    assert verdict(ONE_T4, stretches(minutes=[60], cpu=[90], gpu=[50.1])) == CLEAR
    assert verdict(ONE_T4, stretches(minutes=[60], cpu=[90], gpu=[10])) == FOUND


def test_the_milder_tier_is_a_mean_cpu_over_60_percent_and_a_mean_gpu_under_10_percent() -> None:
    assert verdict(ONE_T4, stretches(minutes=[60], cpu=[60.1], gpu=[9.9])) == FOUND
    assert verdict(ONE_T4, stretches(minutes=[60], cpu=[60], gpu=[9.9])) == CLEAR
    assert verdict(ONE_T4, stretches(minutes=[60], cpu=[60.1], gpu=[10])) == CLEAR


def test_cpu_and_gpu_are_compared_in_the_same_minute() -> None:
    # Half the minutes CPU at its limit with the GPU busy, half the other way round.
    assert verdict(ONE_T4, stretches(minutes=[30, 30], cpu=[95, 20], gpu=[60, 5])) == CLEAR


def test_points_of_different_minutes_say_nothing() -> None:
    """CPU of one host, GPU of the other."""
    result = verdict(
        ONE_T4,
        hosts({"cores": [4.0] * 60}, {"gpu": [0] * 30 + [1] * 30}),
    )
    assert result == cannot_judge("points_apart")


def test_a_host_that_waits_all_the_time_is_half_of_two_hosts_and_a_third_of_three() -> None:
    waits = {"cores": [3.8] * 60, "gpu": [3] * 60}
    two, three = ran(3600, "ml.g4dn.xlarge", 2), ran(3600, "ml.g4dn.xlarge", 3)
    assert verdict(two, hosts(waits, {"cores": [1.0] * 60, "gpu": [5.0] * 60})) == FOUND
    works = {"cores": [1.0] * 60, "gpu": [80.0] * 60}
    assert verdict(two, hosts(waits, works)) == FOUND
    assert verdict(three, hosts(waits, works, works)) == CLEAR


def test_the_next_size_with_more_vcpus_for_its_gpu_is_the_other_way() -> None:
    # 4 vCPUs for one T4 today, 8 in the next size; it costs more, so no dollars.
    assert verdict(ONE_T4, stretches(minutes=[60], cpu=[98], gpu=[4])) == finds(
        caution="…heterogeneous cluster adds instances…",
        ways=[[("ResourceConfig.InstanceType", "ml.g4dn.xlarge", "ml.g4dn.2xlarge")]],
    )


def test_the_largest_size_has_no_larger_one() -> None:
    # Of a T4 alone: 16 vCPUs; a training plan is prepaid for its type.
    assert verdict(ran(3600, "ml.g4dn.4xlarge"), even_use(minutes=60, cpu=98, gpu=4)) == finds(
        ways=[]
    )
    result = verdict(
        replace(ONE_T4, purchase=Purchase.TRAINING_PLAN), even_use(minutes=60, cpu=98, gpu=4)
    )
    assert result == finds(ways=[])


def test_the_larger_size_is_not_turned_back() -> None:
    # The same 3.9 cores on 8 vCPUs: none of the rules names the smaller size.
    result = answer(
        "gpu-underused",
        ran(3600, "ml.g4dn.2xlarge"),
        even_use(minutes=60, cpu=49, memory=20, gpu=30, gpu_memory=80),
    )
    assert result == finds(fix=[])


def test_a_worker_for_each_vcpu_where_the_job_says_how_many() -> None:
    # 1 worker for 4 vCPUs is few; 9 are too many, and each thinks it has all cores.
    assert verdict(with_workers(1), stretches(minutes=[60], cpu=[98], gpu=[4])) == finds(
        fix=[("HyperParameters.num_workers", "1", "4")]
    )
    assert verdict(with_workers(9), stretches(minutes=[60], cpu=[98], gpu=[4])) == finds(
        fix=[("HyperParameters.num_workers", "9", "4"), ("Environment.OMP_NUM_THREADS", None, "1")]
    )


def test_3_to_8_workers_for_4_vcpus_or_an_unknown_number_are_left_alone() -> None:
    """Between 70% and 200%."""
    assert verdict(with_workers(None), stretches(minutes=[60], cpu=[98], gpu=[4])) == finds(fix=[])
    assert verdict(with_workers(3), stretches(minutes=[60], cpu=[98], gpu=[4])) == finds(fix=[])
    assert verdict(with_workers(4), stretches(minutes=[60], cpu=[98], gpu=[4])) == finds(fix=[])
    assert verdict(with_workers(8), stretches(minutes=[60], cpu=[98], gpu=[4])) == finds(fix=[])


def test_each_process_of_a_distributed_run_has_workers_of_its_own() -> None:
    # 4 workers for each of 4 GPUs are a third of 48 vCPUs: 12 each.
    result = verdict(
        with_workers(4, "ml.g4dn.12xlarge", distribution="ddp"), even_use(minutes=60, cpu=98, gpu=4)
    )
    assert result == finds(fix=[("…", "4", "12")])
    result = verdict(
        with_workers(12, "ml.g4dn.12xlarge", distribution="ddp"), flat(FOUR_T4, 60, cpu=98, gpu=4)
    )
    assert result == finds(fix=[])


def test_cpu_work_before_the_training_is_no_bottleneck() -> None:
    # Half an hour and more without GPU work at either end is told by idle-start and idle-tail.
    assert verdict(ONE_T4, stretches(minutes=[40, 20], cpu=[98, 50], gpu=[0, 90])) == CLEAR
    assert (
        answer("idle-start", ONE_T4, stretches(minutes=[40, 20], cpu=[98, 50], gpu=[0, 90]))
        == FOUND
    )
    assert verdict(ONE_T4, stretches(minutes=[20, 40], cpu=[50, 98], gpu=[90, 0])) == CLEAR
    assert (
        answer("idle-tail", ONE_T4, stretches(minutes=[20, 40], cpu=[50, 98], gpu=[90, 0])) == FOUND
    )
    result = verdict(ONE_T4, stretches(minutes=[31, 1, 28], cpu=[98, 98, 98], gpu=[0, 30, 30]))
    assert result == finds(evidence={"gpu_mean_percent": 30.0})


def test_a_gpu_at_33_percent_behind_busy_cores_is_found_and_at_65_percent_it_is_not() -> None:
    # The cores are the limit, although the GPU does far more than nothing.
    assert verdict(ONE_T4, stretches(minutes=[60], cpu=[97], gpu=[33])) == FOUND
    assert verdict(ONE_T4, stretches(minutes=[60], cpu=[97], gpu=[65])) == CLEAR


def test_the_milder_tier_says_what_it_saw() -> None:
    """Means, not minutes; and no larger size."""
    assert verdict(ONE_T4, stretches(minutes=[60], cpu=[70], gpu=[5])) == finds(
        "The CPU averaged 70% and the GPU 5% over 1 h on 1 x ml.g4dn.xlarge.",
        ways=[],
        lacks="waiting_percent",
    )


def test_a_processing_job_has_no_hyperparameters() -> None:
    """It has a finding all the same."""
    result = verdict(
        replace(
            with_workers(1),
            kind=JobKind.PROCESSING,
            phases=phases(("Processing", 3600)),
            billable_s=None,
        ),
        stretches(minutes=[60], cpu=[98], gpu=[4]),
    )
    assert result == finds(
        fix=[], ways=[[("ProcessingResources.ClusterConfig.InstanceType", "ml.g4dn.2xlarge")]]
    )


@pytest.mark.parametrize(
    ("workers", "fix"),
    [(5, ["8"]), (6, []), (16, []), (17, ["8", "1"])],
    ids=["5 are few", "6 are over 70%", "16 are 200%", "17 are many"],
)
def test_workers_between_70_and_200_percent_of_8_vcpus_are_left_alone(
    workers: int, fix: list[str]
) -> None:
    job = with_workers(workers, "ml.g4dn.2xlarge")
    assert verdict(job, even_use(minutes=60, cpu=98, gpu=4)) == finds(fix=fix)
