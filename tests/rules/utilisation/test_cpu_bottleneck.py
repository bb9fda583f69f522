from functools import partial

from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.structs import replace
from tests.fakes.jobs import flat, phases, ran, series, usage
from tests.fakes.judging import answer
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    cannot_judge,
    even_use,
    finds,
    given_job,
    hosts,
    measured,
)

RULE = "cpu-bottleneck"
ONE = ran(3600, "ml.g4dn.xlarge")
FOUR = ran(3600, "ml.g4dn.12xlarge")


@given_job
def minutes(run: Job, *spells: tuple[int, float, float]) -> Measurements:
    """So many minutes of CPU and GPU, in percent of one GPU and 4 vCPUs."""
    cpu = [4 * percent for count, percent, _ in spells for _ in range(count)]
    gpu = [percent for count, _, percent in spells for _ in range(count)]
    return usage(run, series(Metric.CPU, cpu), series(Metric.GPU, gpu))


def workers(count: int | None, run: Job = ONE, **hints: str) -> Job:
    """A run that sets so many data-loader workers."""
    return replace(run, hints=Hints(loader_workers=count, **hints))  # type: ignore[arg-type]


verdict = partial(answer, RULE)


def test_a_cpu_at_its_limit_before_a_waiting_gpu_is_found() -> None:
    # 40 of 60 minutes: the sentence says it with its numbers; no dollars.
    assert verdict(ONE, minutes((40, 98, 4), (20, 60, 50))) == finds(
        "In 67% of 1 h on 1 x ml.g4dn.xlarge the CPU was at 90% or more while the "
        "GPU was at 50% or less. The GPU averaged 19%.",
        usd=None,
        builder="advice",
        caution="…Only a run shows…",
        severity="info",
    )


def test_exactly_half_of_the_time_is_found() -> None:
    # 30 of 60 minutes; 29 are not, while the means stay on the fine side of the milder tier.
    assert verdict(ONE, minutes((30, 95, 5), (30, 50, 60))) == FOUND
    assert verdict(ONE, minutes((29, 95, 5), (31, 50, 60))) == CLEAR


def test_the_limits_themselves_count() -> None:
    """CPU at 90% or more, GPU at 50% or less, in the same minute."""
    assert verdict(ONE, minutes((60, 90, 50))) == FOUND
    assert verdict(ONE, minutes((60, 89.9, 50))) == CLEAR
    assert verdict(ONE, minutes((60, 90, 50.1))) == CLEAR
    assert verdict(ONE, minutes((60, 90, 10))) == FOUND


def test_the_milder_tier_looks_at_the_means() -> None:
    """CPU over 60% and GPU under 10% on average."""
    assert verdict(ONE, minutes((60, 60.1, 9.9))) == FOUND
    assert verdict(ONE, minutes((60, 60, 9.9))) == CLEAR
    assert verdict(ONE, minutes((60, 60.1, 10))) == CLEAR


def test_cpu_and_gpu_are_compared_in_the_same_minute() -> None:
    # Half the minutes CPU at its limit with the GPU busy, half the other way round.
    assert verdict(ONE, minutes((30, 95, 60), (30, 20, 5))) == CLEAR


def test_points_of_different_minutes_say_nothing() -> None:
    """CPU of one host, GPU of the other."""
    result = verdict(
        ONE,
        hosts({"cores": [4.0] * 60}, {"gpu": [0] * 30 + [1] * 30}),
    )
    assert result == cannot_judge("points_apart")


def test_every_host_counts_alike() -> None:
    """One of two hosts waits all the time: half of all minutes."""
    result = verdict(
        ran(3600, "ml.g4dn.xlarge", 2),
        measured(
            *[series(Metric.CPU, [380] * 60), series(Metric.GPU, [3] * 60)],
            *[
                series(Metric.CPU, [100] * 60, host="train/algo-2"),
                series(Metric.GPU, [5.0] * 60, host="train/algo-2"),
            ],
        ),
    )
    assert result == FOUND
    result = verdict(
        ran(3600, "ml.g4dn.xlarge", 2),
        measured(
            *[series(Metric.CPU, [380] * 60), series(Metric.GPU, [3] * 60)],
            *[
                series(Metric.CPU, [100] * 60, host="train/algo-2"),
                series(Metric.GPU, [80.0] * 60, host="train/algo-2"),
            ],
        ),
    )
    assert result == FOUND
    result = verdict(
        replace(ran(3600, "ml.g4dn.xlarge", 2), groups=(InstanceGroup("ml.g4dn.xlarge", 3),)),
        measured(
            *[series(Metric.CPU, [380] * 60), series(Metric.GPU, [3] * 60)],
            *[
                series(metric, [value] * 60, host=f"train/algo-{n}")
                for n in (2, 3)
                for metric, value in ((Metric.CPU, 100), (Metric.GPU, 80))
            ],
        ),
    )
    assert result == CLEAR


def test_the_next_size_with_more_vcpus_for_its_gpu_is_the_other_way() -> None:
    # 4 vCPUs for one T4 today, 8 in the next size; it costs more, so no dollars.
    assert verdict(ONE, minutes((60, 98, 4))) == finds(
        caution="…heterogeneous cluster adds instances…",
        ways=[[("ResourceConfig.InstanceType", "ml.g4dn.xlarge", "ml.g4dn.2xlarge")]],
    )


def test_the_largest_size_has_no_larger_one() -> None:
    # Of a T4 alone: 16 vCPUs; a training plan is prepaid for its type.
    assert verdict(ran(3600, "ml.g4dn.4xlarge"), even_use(minutes=60, cpu=98, gpu=4)) == finds(
        ways=[]
    )
    result = verdict(
        replace(ONE, purchase=Purchase.TRAINING_PLAN), even_use(minutes=60, cpu=98, gpu=4)
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
    assert verdict(workers(1), minutes((60, 98, 4))(ONE)) == finds(
        fix=[("HyperParameters.num_workers", "1", "4")]
    )
    assert verdict(workers(9), minutes((60, 98, 4))(ONE)) == finds(
        fix=[("HyperParameters.num_workers", "9", "4"), ("Environment.OMP_NUM_THREADS", None, "1")]
    )


def test_a_fitting_count_of_workers_is_left_alone() -> None:
    """Between 70% and 200% of 4 vCPUs, or not known."""
    assert verdict(workers(None), minutes((60, 98, 4))(ONE)) == finds(fix=[])
    assert verdict(workers(3), minutes((60, 98, 4))(ONE)) == finds(fix=[])
    assert verdict(workers(4), minutes((60, 98, 4))(ONE)) == finds(fix=[])
    assert verdict(workers(8), minutes((60, 98, 4))(ONE)) == finds(fix=[])


def test_each_process_of_a_distributed_run_has_workers_of_its_own() -> None:
    # 4 workers for each of 4 GPUs are a third of 48 vCPUs: 12 each.
    result = verdict(workers(4, FOUR, distribution="ddp"), even_use(minutes=60, cpu=98, gpu=4))
    assert result == finds(fix=[("…", "4", "12")])
    result = verdict(workers(12, FOUR, distribution="ddp"), flat(FOUR, 60, cpu=98, gpu=4))
    assert result == finds(fix=[])


def test_cpu_work_before_the_training_is_no_bottleneck() -> None:
    # Half an hour and more without GPU work at either end is told by idle-start and idle-tail.
    assert verdict(ONE, minutes((40, 98, 0), (20, 50, 90))) == CLEAR
    assert answer("idle-start", ONE, minutes((40, 98, 0), (20, 50, 90))) == FOUND
    assert verdict(ONE, minutes((20, 50, 90), (40, 98, 0))) == CLEAR
    assert answer("idle-tail", ONE, minutes((20, 50, 90), (40, 98, 0))) == FOUND
    result = verdict(ONE, minutes((31, 98, 0), (1, 98, 30), (28, 98, 30)))
    assert result == finds(evidence={"gpu_mean_percent": 30.0})


def test_a_gpu_at_a_third_behind_busy_cores_is_found() -> None:
    # The cores are the limit, although the GPU does far more than nothing.
    assert verdict(ONE, minutes((60, 97, 33))) == FOUND
    assert verdict(ONE, minutes((60, 97, 65))) == CLEAR


def test_the_milder_tier_says_what_it_saw() -> None:
    """Means, not minutes; and no larger size."""
    assert verdict(ONE, minutes((60, 70, 5))) == finds(
        "The CPU averaged 70% and the GPU 5% over 1 h on 1 x ml.g4dn.xlarge.",
        ways=[],
        lacks="waiting_percent",
    )


def test_a_processing_job_has_no_hyperparameters() -> None:
    """It is told all the same."""
    result = verdict(
        replace(
            workers(1),
            kind=JobKind.PROCESSING,
            phases=phases(("Processing", 3600)),
            billable_s=None,
        ),
        minutes((60, 98, 4)),
    )
    assert result == finds(
        fix=[], ways=[[("ProcessingResources.ClusterConfig.InstanceType", "ml.g4dn.2xlarge")]]
    )


def test_fewer_workers_than_70_percent_of_8_vcpus_are_few() -> None:
    """Fewer workers than 70% of 8 vCPUs are few, more than 200% are many."""
    result = verdict(
        replace(ran(3600, "ml.g4dn.2xlarge"), hints=Hints(loader_workers=5)),
        even_use(minutes=60, cpu=98, gpu=4),
    )
    assert result == finds(fix=["8"])
    result = verdict(
        replace(ran(3600, "ml.g4dn.2xlarge"), hints=Hints(loader_workers=6)),
        even_use(minutes=60, cpu=98, gpu=4),
    )
    assert result == finds(fix=[])
    result = verdict(
        replace(ran(3600, "ml.g4dn.2xlarge"), hints=Hints(loader_workers=16)),
        even_use(minutes=60, cpu=98, gpu=4),
    )
    assert result == finds(fix=[])
    result = verdict(
        replace(ran(3600, "ml.g4dn.2xlarge"), hints=Hints(loader_workers=17)),
        even_use(minutes=60, cpu=98, gpu=4),
    )
    assert result == finds(fix=["8", "1"])
