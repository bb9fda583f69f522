from __future__ import annotations

from dataclasses import replace

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import flat, phases, ran, series, usage
from tests.fakes.judging import found, outcome, priced, unknown

RULE = "cpu-bottleneck"
ONE = ran(3600, "ml.g4dn.xlarge")
FOUR = ran(3600, "ml.g4dn.12xlarge")


def minutes(run: Job, *spells: tuple[int, float, float]) -> Measurements:
    """So many minutes of CPU and GPU, in percent of one GPU and 4 vCPUs."""
    cpu = [4 * percent for count, percent, _ in spells for _ in range(count)]
    gpu = [percent for count, _, percent in spells for _ in range(count)]
    return usage(run, series(Metric.CPU, cpu), series(Metric.GPU, gpu))


def workers(count: int | None, run: Job = ONE, **hints: str) -> Job:
    """A run that sets so many data-loader workers."""
    return replace(run, hints=Hints(loader_workers=count, **hints))  # type: ignore[arg-type]


def test_a_cpu_at_its_limit_before_a_waiting_gpu_is_found() -> None:
    """40 of 60 minutes: the sentence says it with its numbers; no dollars."""
    finding = priced(RULE, ONE, minutes(ONE, (40, 98, 4), (20, 60, 50)))
    assert finding.found.summary == (
        "In 67% of 1 h on 1 x ml.g4dn.xlarge the CPU was at 90% or more while the "
        "GPU was at 50% or less. The GPU averaged 19%."
    )
    assert (finding.saving_usd, finding.found.bucket) == (None, Bucket.NONE)
    assert finding.found.confidence is Confidence.HEURISTIC
    assert "Only a run shows" in (finding.found.caution or "")
    assert finding.severity.value == "info"


def test_exactly_half_of_the_time_is_found() -> None:
    """30 of 60 minutes; 29 are not, while the means stay on the fine side of the milder tier."""
    assert isinstance(outcome(RULE, ONE, minutes(ONE, (30, 95, 5), (30, 50, 60))), Found)
    assert outcome(RULE, ONE, minutes(ONE, (29, 95, 5), (31, 50, 60))) == Clear()


@pytest.mark.parametrize(
    ("cpu", "gpu", "says"), [(90, 50, True), (89.9, 50, False), (90, 50.1, False), (90, 10, True)]
)
def test_the_limits_themselves_count(cpu: float, gpu: float, says: bool) -> None:
    """CPU at 90% or more, GPU at 50% or less, in the same minute."""
    assert isinstance(outcome(RULE, ONE, minutes(ONE, (60, cpu, gpu))), Found) is says


@pytest.mark.parametrize(
    ("cpu", "gpu", "says"), [(60.1, 9.9, True), (60, 9.9, False), (60.1, 10, False)]
)
def test_the_milder_tier_looks_at_the_means(cpu: float, gpu: float, says: bool) -> None:
    """CPU over 60% and GPU under 10% on average."""
    assert isinstance(outcome(RULE, ONE, minutes(ONE, (60, cpu, gpu))), Found) is says


def test_the_milder_tier_says_what_it_saw() -> None:
    """Means, not minutes; and no larger size, which the next run's advice would turn back."""
    what = found(RULE, ONE, minutes(ONE, (60, 70, 5)))
    assert what.summary == ("The CPU averaged 70% and the GPU 5% over 1 h on 1 x ml.g4dn.xlarge.")
    assert what.alternatives == ()
    assert "waiting_percent" not in what.evidence


def test_cpu_and_gpu_are_compared_in_the_same_minute() -> None:
    """Half the minutes CPU at its limit with the GPU busy, half the other way round."""
    assert outcome(RULE, ONE, minutes(ONE, (30, 95, 60), (30, 20, 5))) == Clear()


def test_points_of_different_minutes_say_nothing() -> None:
    """CPU of one host, GPU of the other."""
    gpu = series(Metric.GPU, [0] * 30 + [1] * 30, host="train/algo-2")
    of = usage(ONE, series(Metric.CPU, [400] * 60), gpu)
    assert unknown(RULE, ONE, of) == "points_apart"


def test_every_host_counts_alike() -> None:
    """One of two hosts waits all the time: half of all minutes."""
    run = ran(3600, "ml.g4dn.xlarge", 2)
    one = [series(Metric.CPU, [380] * 60), series(Metric.GPU, [3] * 60)]
    for busy, says in ((5.0, True), (80.0, True)):
        other = [
            series(Metric.CPU, [100] * 60, host="train/algo-2"),
            series(Metric.GPU, [busy] * 60, host="train/algo-2"),
        ]
        assert isinstance(outcome(RULE, run, usage(run, *one, *other)), Found) is says
    three = replace(run, groups=(InstanceGroup("ml.g4dn.xlarge", 3),))
    rest = [
        series(metric, [value] * 60, host=f"train/algo-{n}")
        for n in (2, 3)
        for metric, value in ((Metric.CPU, 100), (Metric.GPU, 80))
    ]
    assert outcome(RULE, three, usage(three, *one, *rest)) == Clear()


def test_the_next_size_with_more_vcpus_for_its_gpu_is_the_other_way() -> None:
    """4 vCPUs for one T4 today, 8 in the next size; it costs more, so no dollars."""
    what = found(RULE, ONE, minutes(ONE, (60, 98, 4)))
    [[size]] = what.alternatives
    assert (size.path, size.old, size.new) == (
        "ResourceConfig.InstanceType", "ml.g4dn.xlarge", "ml.g4dn.2xlarge",
    )  # fmt: skip
    assert "heterogeneous cluster adds instances" in (what.caution or "")


def test_the_largest_size_has_no_larger_one() -> None:
    """Of a T4 alone: 16 vCPUs; a training plan is prepaid for its type."""
    run = ran(3600, "ml.g4dn.4xlarge")
    assert found(RULE, run, flat(run, 60, cpu=98, gpu=4)).alternatives == ()
    plan = replace(ONE, purchase=Purchase.TRAINING_PLAN)
    assert found(RULE, plan, flat(plan, 60, cpu=98, gpu=4)).alternatives == ()


def test_the_larger_size_is_not_turned_back() -> None:
    """The same 3.9 cores on 8 vCPUs: none of the rules names the smaller size."""
    after = ran(3600, "ml.g4dn.2xlarge")
    of = flat(after, 60, cpu=49, memory=20, gpu=30, gpu_memory=80)
    answer = found("gpu-underused", after, of)
    assert answer.fix == ()


def test_a_worker_for_each_vcpu_where_the_job_says_how_many() -> None:
    """1 worker for 4 vCPUs is few; 9 are too many, and each thinks it has all cores."""
    few = found(RULE, workers(1), minutes(ONE, (60, 98, 4)))
    assert [(fix.path, fix.old, fix.new) for fix in few.fix] == [
        ("HyperParameters.num_workers", "1", "4"),
    ]
    many = found(RULE, workers(9), minutes(ONE, (60, 98, 4)))
    assert [(fix.path, fix.old, fix.new) for fix in many.fix] == [
        ("HyperParameters.num_workers", "9", "4"),
        ("Environment.OMP_NUM_THREADS", None, "1"),
    ]


@pytest.mark.parametrize("count", [None, 3, 4, 8])
def test_a_fitting_count_of_workers_is_left_alone(count: int | None) -> None:
    """Between 70% and 200% of 4 vCPUs, or not known."""
    assert found(RULE, workers(count), minutes(ONE, (60, 98, 4))).fix == ()


def test_each_process_of_a_distributed_run_has_workers_of_its_own() -> None:
    """4 workers for each of 4 GPUs are a third of 48 vCPUs: 12 each."""
    run = workers(4, FOUR, distribution="ddp")
    [fix] = found(RULE, run, flat(run, 60, cpu=98, gpu=4)).fix
    assert (fix.old, fix.new) == ("4", "12")
    fitting = workers(12, FOUR, distribution="ddp")
    assert found(RULE, fitting, flat(FOUR, 60, cpu=98, gpu=4)).fix == ()


def test_a_processing_job_has_no_hyperparameters() -> None:
    """It is told all the same."""
    run = replace(
        workers(1), kind=JobKind.PROCESSING, phases=phases(("Processing", 3600)), billable_s=None
    )
    what = found(RULE, run, minutes(run, (60, 98, 4)))
    assert what.fix == ()
    assert [way[0].path for way in what.alternatives] == [
        "ProcessingResources.ClusterConfig.InstanceType"
    ]


def test_cpu_work_before_the_training_is_no_bottleneck() -> None:
    """Half an hour and more without GPU work at either end is told by idle-start and idle-tail."""
    head = minutes(ONE, (40, 98, 0), (20, 50, 90))
    assert outcome(RULE, ONE, head) == Clear()
    assert isinstance(outcome("idle-start", ONE, head), Found)
    tail = minutes(ONE, (20, 50, 90), (40, 98, 0))
    assert outcome(RULE, ONE, tail) == Clear()
    assert isinstance(outcome("idle-tail", ONE, tail), Found)
    both = found(RULE, ONE, minutes(ONE, (31, 98, 0), (1, 98, 30), (28, 98, 30)))
    assert both.evidence["gpu_mean_percent"] == 30.0


def test_a_gpu_at_a_third_behind_busy_cores_is_found() -> None:
    """The cores are the limit, although the GPU does far more than nothing."""
    assert isinstance(outcome(RULE, ONE, minutes(ONE, (60, 97, 33))), Found)
    assert outcome(RULE, ONE, minutes(ONE, (60, 97, 65))) == Clear()
