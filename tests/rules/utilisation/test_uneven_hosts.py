from functools import partial

from sageaudit.domain.job.job import Hints
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.structs import replace
from tests.fakes.jobs import Points, batch_job, ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    Measured,
    cannot_judge,
    does_not_apply,
    finds,
    hosts,
)

RULE = "uneven-hosts"
TWO_HOSTS = ran(7200, "ml.m5.4xlarge", 2)
"""Two hours on two hosts of 16 vCPUs at $0.92 an hour."""
FOUR_PROCESSING = batch_job(JobKind.PROCESSING, 7200, "ml.m5.4xlarge", 4)
SPARK = replace(
    FOUR_PROCESSING,
    groups=TWO_HOSTS.groups,
    image="173754725891.dkr.ecr.us-east-1.amazonaws.com/sagemaker-spark-processing:3.3",
)
TWO_T4 = ran(7200, "ml.g4dn.2xlarge", 2)


def cpu(*host_points: Points) -> Measured:
    """CPU of each host in percent of its 16 vCPUs, minute by minute."""
    return hosts(*({"cores": _percent(of_host, 16)} for of_host in host_points))


def gpu(*host_points: Points, cpu: float = 10) -> Measured:
    """GPU of each host in percent, minute by minute, beside an even CPU in percent of 8 vCPUs."""
    cores = _percent([cpu] * 120, 8)
    return hosts(*({"gpu": of_host, "cores": cores} for of_host in host_points))


def _percent(percent: Points, vcpus: int) -> Points:
    return [None if value is None else value * vcpus / 100 for value in percent]


verdict = partial(answer, RULE)


def test_a_lazy_host_is_a_range_from_nothing() -> None:
    # 80% and 20%: evenly 50%, so the run could be 3/8 shorter; nothing of it is counted.
    # 3/8 of 2 x (2 h x $0.92 + 30 GB x $0.14 x 2 h / 744 h)
    assert verdict(TWO_HOSTS, cpu([80] * 120, [20] * 120)) == finds(
        "While all hosts worked, the CPU of algo-1 averaged 80% and that of algo-2 20%, "
        "over 2 h on 2 x ml.m5.4xlarge.",
        builder="derived",
        usd="0.000000",
        span=("0.000000", "1.388468"),
        evidence={"histogram_distance": 1, "lazy_hosts": 1, "lazy_hosts_idle_percent": 0.0},
    )


def test_a_replicated_channel_is_sharded() -> None:
    # The exact parameter; not where a sampler splits the data, nor where it is sharded.
    assert verdict(TWO_HOSTS, cpu([80] * 120, [20] * 120)) == finds(
        fix=[
            (
                "InputDataConfig[train].DataSource.S3DataSource.S3DataDistributionType",
                "FullyReplicated",
                "ShardedByS3Key",
            )
        ]
    )
    result = verdict(
        replace(TWO_HOSTS, hints=Hints(distributed_sampler=True)), cpu([80] * 120, [20] * 120)
    )
    assert result == finds(fix=[])
    result = verdict(
        replace(
            TWO_HOSTS, channels=(InputChannel("train", DataSource.S3, "File", "ShardedByS3Key"),)
        ),
        cpu([80] * 120, [20] * 120),
    )
    assert result == finds(fix=[])


def test_a_processing_job_shards_its_own_input_and_a_transform_job_has_no_such_parameter() -> None:
    uneven = cpu([80] * 120, [20] * 120)
    result = verdict(batch_job(JobKind.PROCESSING, 7200, "ml.m5.4xlarge", 2), uneven)
    assert result == finds(paths=["ProcessingInputs[train].S3Input.S3DataDistributionType"])
    result = verdict(batch_job(JobKind.TRANSFORM, 7200, "ml.m5.4xlarge", 2), uneven)
    assert result == finds(fix=[])


def test_a_driver_is_not_compared_with_its_workers() -> None:
    """The first host of a processing job, as Spark has."""
    assert verdict(FOUR_PROCESSING, cpu([10] * 120, *[[80] * 120] * 3)) == CLEAR
    assert verdict(FOUR_PROCESSING, cpu([0] * 120, *[[80] * 120] * 3)) == CLEAR
    assert verdict(FOUR_PROCESSING, cpu([95] * 120, *[[50] * 120] * 3)) == CLEAR
    assert verdict(FOUR_PROCESSING, cpu(*[[80] * 120] * 3, [10] * 120)) == FOUND
    result = verdict(
        replace(FOUR_PROCESSING, kind=JobKind.TRAINING), cpu([10] * 120, *[[80] * 120] * 3)
    )
    assert result == FOUND
    assert verdict(SPARK, cpu([10] * 120, [80] * 120)) == CLEAR


def test_workers_that_do_nothing_are_found_beside_a_driver_that_works() -> None:
    result = verdict(FOUR_PROCESSING, cpu([80] * 120, *[[0] * 120] * 3))
    assert result == finds("3 of 4 hosts did no work…", evidence={"hosts_without_part": 3})
    assert verdict(SPARK, cpu([80] * 120, [0] * 120)) == finds("1 of 2 hosts did no work…")


def test_means_20_points_and_30_percent_apart_are_far_and_less_is_not() -> None:
    # 45 - 25 = 20 points; 95 - 66.5 are 30% of 95. A leader that evaluates works a little more.
    assert verdict(TWO_HOSTS, cpu([45] * 120, [25] * 120)) == FOUND
    assert verdict(TWO_HOSTS, cpu([45] * 120, [25.1] * 120)) == CLEAR
    assert verdict(TWO_HOSTS, cpu([95] * 120, [66.5] * 120)) == FOUND
    assert verdict(TWO_HOSTS, cpu([95] * 120, [66.6] * 120)) == CLEAR
    assert verdict(TWO_HOSTS, cpu([80] * 120, [72] * 120)) == CLEAR


def test_60_of_120_minutes_apart_are_not_far_apart_and_61_are() -> None:
    """Debugger's distance must be over 0.5."""
    assert verdict(TWO_HOSTS, cpu([95] * 120, [15] * 60 + [95] * (120 - 60))) == CLEAR
    assert verdict(TWO_HOSTS, cpu([95] * 120, [15] * 61 + [95] * (120 - 61))) == FOUND


def test_6_busy_minutes_at_the_start_are_imports_and_7_are_work() -> None:
    # A host that works for 7 ended early, which idle-tail tells.
    result = verdict(TWO_HOSTS, cpu([50] * 120, [10] * 6 + [0.2] * 114))
    assert result == finds(evidence={"hosts_without_part": 1})
    assert verdict(TWO_HOSTS, cpu([50] * 120, [10] * 7 + [0.2] * 113)) == cannot_judge(
        "hosts_apart"
    )


def test_one_core_of_16_or_5_percent_of_the_gpu_is_work_beside_an_idle_host_and_less_is_not() -> (
    None
):
    # One core of 16 is 6.25%.
    assert verdict(TWO_HOSTS, cpu([6.25] * 120, [0] * 120)) == FOUND
    assert verdict(TWO_HOSTS, cpu([6.2] * 120, [0] * 120)) == CLEAR
    assert verdict(TWO_T4, gpu([5] * 120, [0] * 120, cpu=0)) == FOUND
    assert verdict(TWO_T4, gpu([4.9] * 120, [0] * 120, cpu=0)) == CLEAR


def test_only_minutes_in_which_all_still_work_count() -> None:
    # Even until one ends: the other's rest is no lazy host.
    assert verdict(TWO_HOSTS, cpu([80] * 120, [80] * 30 + [0] * 90)) == CLEAR


def test_an_idle_head_is_no_lazy_host() -> None:
    """Its length does not count, neither in the range."""
    result = verdict(TWO_HOSTS, cpu([0] * 60 + [80] * 60, [0] * 60 + [20] * 60))
    assert result == finds(evidence={"minutes": 60})


def test_a_host_that_joins_late_is_compared_from_then_on() -> None:
    # Two minutes together are no comparison; an hour is, and imports at the start are no work.
    result = verdict(TWO_HOSTS, cpu([87] * 120, [0] * 118 + [80] * 2))
    assert result == cannot_judge("hosts_apart: all hosts worked together for 2 minutes, and 15…")
    result = verdict(TWO_HOSTS, cpu([87] * 120, [50] * 3 + [0] * 115 + [80] * 2))
    assert result == cannot_judge("hosts_apart: all hosts worked together for 2 minutes, and 15…")
    result = verdict(TWO_HOSTS, cpu([80] * 120, [50] * 3 + [0] * 57 + [20] * 60))
    assert result == finds(
        "While all hosts worked, the CPU of algo-1 averaged 80% and that of algo-2 20%, over "
        "1 h on 2 x ml.m5.4xlarge."
    )


def test_15_shared_minutes_are_enough_and_14_are_too_few() -> None:
    assert verdict(TWO_HOSTS, cpu([80] * 120, [20] * 15 + [0] * 105)) == FOUND
    assert verdict(TWO_HOSTS, cpu([80] * 120, [20] * 14 + [0] * 106)) == cannot_judge("hosts_apart")


def test_gaps_are_left_out_of_the_comparison() -> None:
    """Only minutes in which every host has a point."""
    assert verdict(TWO_HOSTS, cpu([80] * 120, [None] * 30 + [20] * 90)) == finds(
        evidence={"minutes": 90}
    )


def test_one_instance_is_not_compared() -> None:
    """It has no other host."""
    result = verdict(ran(7200, "ml.m5.4xlarge"), cpu([80] * 120))
    assert result == does_not_apply("it ran on one instance")


def test_without_the_gpu_of_a_gpu_job_or_a_host_it_does_not_know() -> None:
    # Its card asks for CPU alone, which CPU jobs have too.
    result = verdict(TWO_T4, hosts(*[{"cores": [6.4] * 120}] * 2))
    assert result == cannot_judge("metric_missing")
    result = verdict(ran(7200, "ml.m5.4xlarge", 4), cpu(*([80] * 120,) * 3))
    assert result == cannot_judge("hosts_missing")


def test_hosts_that_all_do_nothing_are_even() -> None:
    """Other rules report an idle run."""
    assert verdict(TWO_HOSTS, cpu([0] * 120, [0] * 120)) == CLEAR


def test_the_run_without_the_idle_host_gets_no_advice_back() -> None:
    """One instance has no other to compare with."""
    assert verdict(ran(7200, "ml.m5.4xlarge"), cpu([50] * 120)) == does_not_apply("…one instance…")


def test_a_host_that_took_no_part_is_left_out() -> None:
    """One instance does the same in the same time."""
    # 2 h x $0.92 + 30 GB x $0.14 x 2 h / 744 h
    assert verdict(TWO_HOSTS, cpu([50] * 120, [0.2] * 120)) == finds(
        "1 of 2 hosts did no work, while the CPU of algo-1 averaged 50% over 2 h on 2 x "
        "ml.m5.4xlarge.",
        fix=[("ResourceConfig.InstanceCount", 2, 1)],
        ways=[["ShardedByS3Key"]],
        usd="1.851290",
        evidence={"lazy_hosts_idle_percent": 100.0, "hosts_without_part": 1},
    )


def test_on_gpu_jobs_the_gpus_are_compared_whatever_the_cpus_do() -> None:
    assert verdict(TWO_T4, gpu([90] * 120, [30] * 120)) == finds(
        "…the GPU of algo-1 averaged 90% and that of algo-2 30%…"
    )
    busy, lazy = (
        {"gpu": [90] * 120, "cores": [6.4] * 120},
        {"gpu": [90] * 120, "cores": [1.6] * 120},
    )
    result = verdict(TWO_T4, hosts(busy, lazy))
    assert result == CLEAR
