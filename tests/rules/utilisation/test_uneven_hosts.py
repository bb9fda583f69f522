from __future__ import annotations

from dataclasses import replace

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Hints, Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.domain.usage.measurements import Measurements, Metric, RawSeries
from tests.fakes.jobs import Points, phases, ran, series, usage
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown, usd

RULE = "uneven-hosts"
TWO = ran(7200, "ml.m5.4xlarge", 2)
GPUS = ran(7200, "ml.g4dn.2xlarge", 2)


def cpu(run: Job, *hosts: Points) -> Measurements:
    """CPU of each host in percent of all its vCPUs, minute by minute."""
    return usage(run, *(_line(Metric.CPU, of, n, 16) for n, of in enumerate(hosts, start=1)))


def gpu(run: Job, *hosts: Points, busy_cpu: float = 10) -> Measurements:
    """GPU of each host in percent, minute by minute, beside an even CPU."""
    lines = [_line(Metric.GPU, of, n, 1) for n, of in enumerate(hosts, start=1)]
    lines += [_line(Metric.CPU, [busy_cpu] * len(of), n, 8) for n, of in enumerate(hosts, start=1)]
    return usage(run, *lines)


def _line(metric: Metric, percent: Points, n: int, units: int) -> RawSeries:
    values = [None if value is None else value * units for value in percent]
    return series(metric, values, host=f"train/algo-{n}")


def test_a_lazy_host_is_a_range_from_nothing() -> None:
    """80% and 20%: evenly 50%, so the run could be 3/8 shorter; nothing of it is counted."""
    finding = priced(RULE, TWO, cpu(TWO, [80] * 120, [20] * 120))
    assert finding.found.summary == (
        "While all hosts worked, the CPU of algo-1 averaged 80% and that of algo-2 20%, over 2 h "
        "on 2 x ml.m5.4xlarge."
    )
    assert (finding.found.confidence, finding.found.bucket) == (
        Confidence.DERIVED, Bucket.AVOIDABLE,
    )  # fmt: skip
    assert finding.saving_usd == 0
    # 3/8 of 2 x (2 h x $0.92 + 30 GB x $0.14 x 2 h / 744 h)
    assert [usd(end) for end in finding.range_usd or ()] == ["0.000000", "1.388468"]
    assert finding.found.evidence["histogram_distance"] == 1
    assert finding.found.evidence["lazy_hosts"] == 1
    assert finding.found.evidence["lazy_hosts_idle_percent"] == 0.0


def test_a_replicated_channel_is_sharded() -> None:
    """The exact parameter; not where a sampler splits the data, nor where it is sharded."""
    of = cpu(TWO, [80] * 120, [20] * 120)
    assert [(fix.path, fix.old, fix.new) for fix in found(RULE, TWO, of).fix] == [
        (
            "InputDataConfig[train].DataSource.S3DataSource.S3DataDistributionType",
            "FullyReplicated",
            "ShardedByS3Key",
        )
    ]
    sampled = replace(TWO, hints=Hints(distributed_sampler=True))
    assert found(RULE, sampled, of).fix == ()
    sharded = replace(
        TWO, channels=(InputChannel("train", DataSource.S3, "File", "ShardedByS3Key"),)
    )
    assert found(RULE, sharded, of).fix == ()


def test_a_processing_job_shards_its_own_input() -> None:
    """Another path, and no path on a transform job."""
    at = phases(("Processing", 7200))
    run = replace(TWO, kind=JobKind.PROCESSING, phases=at)
    [fix] = found(RULE, run, cpu(run, [80] * 120, [20] * 120)).fix
    assert fix.path == "ProcessingInputs[train].S3Input.S3DataDistributionType"
    transform = replace(TWO, kind=JobKind.TRANSFORM, phases=phases(("Transform", 7200)))
    assert found(RULE, transform, cpu(transform, [80] * 120, [20] * 120)).fix == ()


@pytest.mark.parametrize(
    ("high", "low", "told"),
    [
        (45, 25, True),  # exactly 20 points
        (45, 25.1, False),
        (95, 66.5, True),  # exactly 30%
        (95, 66.6, False),
        (80, 72, False),
    ],
)
def test_20_points_and_30_percent_are_far(high: float, low: float, told: bool) -> None:
    """A leader that evaluates works a little more."""
    of = cpu(TWO, [high] * 120, [low] * 120)
    assert isinstance(outcome(RULE, TWO, of), Found) is told


def test_half_the_minutes_apart_are_not_far_apart() -> None:
    """Debugger's distance: exactly 0.5 is not over it."""
    for apart, told in ((60, False), (61, True)):
        of = cpu(TWO, [95] * 120, [15] * apart + [95] * (120 - apart))
        assert isinstance(outcome(RULE, TWO, of), Found) is told


def test_a_host_that_took_no_part_is_left_out() -> None:
    """One of two idle throughout: one instance does the same in the same time."""
    finding = priced(RULE, TWO, cpu(TWO, [50] * 120, [0.2] * 120))
    assert finding.found.summary == (
        "1 of 2 hosts did no work, while the CPU of algo-1 averaged 50% over 2 h on "
        "2 x ml.m5.4xlarge."
    )
    assert [(fix.path, fix.old, fix.new) for fix in finding.found.fix] == [
        ("ResourceConfig.InstanceCount", 2, 1)
    ]
    assert finding.found.alternatives[0][0].new == "ShardedByS3Key"
    # 2 h x $0.92 + 30 GB x $0.14 x 2 h / 744 h
    assert usd(finding.saving_usd) == "1.851290"
    assert finding.found.evidence["lazy_hosts_idle_percent"] == 100.0
    assert finding.found.evidence["hosts_without_part"] == 1


def test_a_busy_start_is_no_part() -> None:
    """Six minutes of imports; a host that works for seven ended early, which idle-tail tells."""
    of = cpu(TWO, [50] * 120, [10] * 6 + [0.2] * 114)
    assert found(RULE, TWO, of).evidence["hosts_without_part"] == 1
    assert unknown(RULE, TWO, cpu(TWO, [50] * 120, [10] * 7 + [0.2] * 113)) == "too_short"


def test_little_work_beside_an_idle_host_is_not_told() -> None:
    """Exactly one core of 16 is work, and so is 5% of the GPUs."""
    for use, told in ((6.25, True), (6.2, False)):
        assert isinstance(outcome(RULE, TWO, cpu(TWO, [use] * 120, [0] * 120)), Found) is told
    for use, told in ((5, True), (4.9, False)):
        of = gpu(GPUS, [use] * 120, [0] * 120, busy_cpu=0)
        assert isinstance(outcome(RULE, GPUS, of), Found) is told


def test_only_minutes_in_which_all_still_work_count() -> None:
    """Even until one ends: the other's rest is no lazy host."""
    assert outcome(RULE, TWO, cpu(TWO, [80] * 120, [80] * 30 + [0] * 90)) == Clear()


def test_an_idle_head_is_no_lazy_host() -> None:
    """Its length does not count, neither in the range."""
    of = cpu(TWO, [0] * 60 + [80] * 60, [0] * 60 + [20] * 60)
    assert found(RULE, TWO, of).evidence["minutes"] == 60


def test_on_gpu_jobs_the_gpus_are_compared() -> None:
    """Beside even CPUs; uneven CPUs beside even GPUs are clear."""
    what = found(RULE, GPUS, gpu(GPUS, [90] * 120, [30] * 120))
    assert "the GPU of algo-1 averaged 90% and that of algo-2 30%" in what.summary
    lines = [_line(Metric.CPU, [use] * 120, n, 8) for n, use in ((1, 80), (2, 20))]
    lines += [_line(Metric.GPU, [90] * 120, n, 1) for n in (1, 2)]
    assert outcome(RULE, GPUS, usage(GPUS, *lines)) == Clear()


def test_fourteen_shared_minutes_are_too_few() -> None:
    """Fifteen are enough."""
    for minutes, judged in ((15, True), (14, False)):
        of = cpu(TWO, [80] * 120, [20] * minutes + [0] * (120 - minutes))
        answer = outcome(RULE, TWO, of)
        assert isinstance(answer, Found) is judged


def test_gaps_are_left_out_of_the_comparison() -> None:
    """Only minutes in which every host has a point."""
    of = cpu(TWO, [80] * 120, [None] * 30 + [20] * 90)
    assert found(RULE, TWO, of).evidence["minutes"] == 90


def test_one_instance_is_not_compared() -> None:
    """With what?"""
    one = ran(7200, "ml.m5.4xlarge")
    assert not_applicable(RULE, one, cpu(one, [80] * 120)) == "it ran on one instance"


def test_without_the_gpu_of_a_gpu_job_or_a_host_it_does_not_know() -> None:
    """Its card asks for CPU alone, which CPU jobs have too."""
    assert unknown(RULE, GPUS, usage(GPUS, *(
        _line(Metric.CPU, [80] * 120, n, 8) for n in (1, 2)
    ))) == "metric_missing"  # fmt: skip
    four = ran(7200, "ml.m5.4xlarge", 4)
    assert unknown(RULE, four, cpu(four, *([80] * 120,) * 3)) == "hosts_missing"


def test_hosts_that_all_do_nothing_are_even() -> None:
    """An idle run is another story."""
    assert outcome(RULE, TWO, cpu(TWO, [0] * 120, [0] * 120)) == Clear()


def test_the_run_without_the_idle_host_gets_no_advice_back() -> None:
    """One instance is compared with nothing."""
    one = ran(7200, "ml.m5.4xlarge")
    assert "one instance" in not_applicable(RULE, one, cpu(one, [50] * 120))
