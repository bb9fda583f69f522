from __future__ import annotations

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Unknown
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import (
    Points,
    flat,
    phases,
    ran,
    series,
    usage,
)
from tests.fakes.judging import found, outcome, priced, unknown, usd
from tests.fakes.trainium import MARKET, TRAINIUM, cpu_alone

RULE = "idle-start"
CPU_JOB = ran(7200, "ml.m5.4xlarge")
GPU_JOB = ran(7200, "ml.g4dn.2xlarge")


def on_cpu(cores: Points, run: Job = CPU_JOB) -> Measurements:
    """Busy cores, minute by minute."""
    return usage(run, series(Metric.CPU, [None if c is None else 100 * c for c in cores]))


def on_gpu(cores: Points, gpu: Points, run: Job = GPU_JOB) -> Measurements:
    """Busy cores and the GPU in percent, minute by minute."""
    cpu = series(Metric.CPU, [None if c is None else 100 * c for c in cores])
    return usage(run, cpu, series(Metric.GPU, gpu))


def test_an_idle_start_is_measured() -> None:
    """24 of 120 minutes of 2 hours at $0.92 were billed and produced nothing."""
    finding = priced(RULE, CPU_JOB, on_cpu([0.05] * 24 + [9.0] * 96))
    assert finding.found.summary == (
        "All hosts were idle for 24 min of 2 h on 1 x ml.m5.4xlarge, before work began."
    )
    assert (finding.found.confidence, finding.found.bucket) == (
        Confidence.MEASURED, Bucket.AVOIDABLE,
    )  # fmt: skip
    # a fifth of 2 h x $0.92, and of 30 GB x $0.14 x 2 h / 744 h
    assert usd(finding.saving_usd) == "0.370258"
    assert finding.range_usd is None
    assert finding.found.evidence["idle_s"] == 1440


def test_ten_minutes_are_long_and_nine_are_not() -> None:
    """Imports and late points take up to six."""
    assert isinstance(outcome(RULE, CPU_JOB, on_cpu([0] * 10 + [9.0] * 110)), Found)
    assert outcome(RULE, CPU_JOB, on_cpu([0] * 9 + [9.0] * 111)) == Clear()


def test_two_percent_of_the_run_are_much_and_less_is_not() -> None:
    """10 of 500 minutes, and of 501."""
    for minutes, told in ((500, True), (501, False)):
        run = ran(60 * minutes, "ml.m5.4xlarge")
        answer = outcome(RULE, run, on_cpu([0] * 10 + [9.0] * (minutes - 10), run))
        assert isinstance(answer, Found) is told


def test_imports_before_the_wait_do_not_hide_it() -> None:
    """Two busy minutes, then twenty idle ones, then the work."""
    what = found(RULE, CPU_JOB, on_cpu([1, 1] + [0.05] * 20 + [9.0] * 98))
    assert what.evidence["idle_s"] == 1200


def test_a_pause_after_the_first_minutes_is_no_start() -> None:
    """Eight busy minutes are work; so is one of the GPU."""
    assert outcome(RULE, CPU_JOB, on_cpu([9.0] * 8 + [0] * 20 + [9.0] * 92)) == Clear()
    gpu_first = on_gpu([2] * 2 + [0] * 20 + [2] * 98, [90] * 2 + [0] * 20 + [90] * 98)
    assert outcome(RULE, GPU_JOB, gpu_first) == Clear()


def test_late_points_are_not_idle_ones() -> None:
    """Only the known minutes count: 12 of 16 on CPU, and a gap ends them."""
    what = found(RULE, CPU_JOB, on_cpu([None] * 4 + [0] * 12 + [9.0] * 104))
    assert what.evidence["idle_s"] == 720
    gap = on_cpu([0] * 6 + [None] * 6 + [0] * 6 + [9.0] * 102)
    assert outcome(RULE, CPU_JOB, gap) == Clear()
    never_seen = on_cpu([None] * 20 + [0] * 12 + [9.0] * 88)
    assert outcome(RULE, CPU_JOB, never_seen) == Clear()


def test_an_idle_gpu_job_is_measured_although_its_gpu_points_come_late() -> None:
    """From the first GPU point to the first work: 26 minutes of 120."""
    of = on_gpu([0.05] * 30 + [2] * 90, [None] * 4 + [0] * 26 + [90] * 90)
    finding = priced(RULE, GPU_JOB, of)
    assert finding.found.confidence is Confidence.MEASURED
    # 2 h x $0.94 x 26 / 120
    assert usd(finding.saving_usd) == "0.407333"


def test_a_download_by_hand_is_a_range_from_nothing() -> None:
    """One core for 30 minutes before the GPU's first work: what it does must be done somewhere."""
    run = ran(7200, "ml.g4dn.2xlarge", channels=())
    finding = priced(RULE, run, on_gpu([1.0] * 30 + [2] * 90, [0] * 30 + [90] * 90, run))
    assert finding.found.summary == (
        "No GPU work came for the first 30 min of 2 h on 1 x ml.g4dn.2xlarge, "
        "with 1.0 of 8 cores busy on average."
    )
    assert finding.found.confidence is Confidence.DERIVED
    assert finding.saving_usd == 0
    # 2 h x $0.94 x 30 / 120
    assert [usd(end) for end in finding.range_usd or ()] == ["0.000000", "0.470000"]
    assert [(p.path, p.old, p.new) for p in finding.found.fix] == [
        ("InputDataConfig[train].DataSource.S3DataSource.S3DataType", None, "S3Prefix"),
        ("InputDataConfig[train].DataSource.S3DataSource.S3Uri", None, "s3://<bucket>/<prefix>"),
        ("InputDataConfig[train].InputMode", None, "FastFile"),
    ]


def test_a_job_with_a_channel_is_not_told_to_add_one() -> None:
    """Something else than its data came late."""
    of = on_gpu([1.0] * 30 + [2] * 90, [0] * 30 + [90] * 90)
    assert found(RULE, GPU_JOB, of).fix == ()


def test_idle_minutes_are_counted_and_the_others_are_the_range() -> None:
    """15 idle minutes, then 15 of one core."""
    of = on_gpu([0.05] * 15 + [1.0] * 15 + [2] * 90, [0] * 30 + [90] * 90)
    finding = priced(RULE, GPU_JOB, of)
    assert finding.found.summary == (
        "All hosts were idle for 15 min of 2 h on 1 x ml.g4dn.2xlarge before work began; "
        "no GPU work came for the first 30 min, with 0.5 of 8 cores busy on average."
    )
    assert usd(finding.saving_usd) == "0.235000"
    assert [usd(end) for end in finding.range_usd or ()] == ["0.235000", "0.470000"]


def test_many_busy_cores_before_the_gpu_are_work() -> None:
    """Exactly 1.25 cores are one process with a range of dollars; more have hours only."""
    for cores, ranged in ((1.25, True), (1.3, False), (6.0, False)):
        of = on_gpu([cores] * 30 + [2] * 90, [0] * 30 + [90] * 90)
        assert (found(RULE, GPU_JOB, of).best is not None) is ranged


def test_half_an_hour_of_cpu_work_before_the_gpu_is_told_without_dollars() -> None:
    """The cores prepared something: GPU-hours, and a processing job as the way out."""
    finding = priced(RULE, GPU_JOB, on_gpu([6.0] * 30 + [2] * 90, [0] * 30 + [90] * 90))
    assert finding.found.summary == (
        "No GPU work came for the first 30 min of 2 h on 1 x ml.g4dn.2xlarge "
        "(0.5 GPU-hours), while 6.0 of 8 cores worked."
    )
    assert (finding.saving_usd, finding.found.bucket) == (None, Bucket.NONE)
    assert "processing job" in (finding.found.caution or "")
    assert outcome(RULE, GPU_JOB, on_gpu([6.0] * 29 + [2] * 91, [0] * 29 + [90] * 91)) == Clear()


def test_cpu_work_after_an_idle_start_is_mentioned() -> None:
    """12 idle minutes are counted; the 40 in which six cores prepared something are not."""
    of = on_gpu([0.05] * 12 + [6.0] * 40 + [2] * 68, [0] * 52 + [90] * 68)
    finding = priced(RULE, GPU_JOB, of)
    # 2 h x $0.94 x 12 / 120
    assert usd(finding.saving_usd) == "0.188000"
    assert "No GPU worked in the first 52 min" in (finding.found.caution or "")


def test_a_gpu_that_never_works_is_another_story() -> None:
    """There is no first work to wait for."""
    assert outcome(RULE, GPU_JOB, on_gpu([1.0] * 120, [0] * 120)) == Clear()


def test_a_run_that_never_works_has_no_start() -> None:
    """All of it is an idle tail."""
    assert outcome(RULE, CPU_JOB, on_cpu([0.05] * 120)) == Clear()
    assert outcome(RULE, CPU_JOB, on_cpu([1, 1] + [0.05] * 118)) == Clear()


def test_one_busy_host_is_no_idle_start() -> None:
    """Every host must be known to be idle."""
    run = ran(7200, "ml.m5.4xlarge", 2)
    of = usage(
        run,
        series(Metric.CPU, [0] * 30 + [900] * 90),
        series(Metric.CPU, [900] * 120, host="train/algo-2"),
    )
    assert outcome(RULE, run, of) == Clear()


@pytest.mark.parametrize(
    ("kind", "phase"), [(JobKind.PROCESSING, "Processing"), (JobKind.TRANSFORM, "Transform")]
)
def test_other_kinds_lose_their_own_phase(kind: JobKind, phase: str) -> None:
    """12 of 60 minutes at $0.92, and of the volume."""
    run = ran(3600, "ml.m5.4xlarge", kind=kind, phases=phases((phase, 3600)), volume_gb=None)
    finding = priced(RULE, run, on_cpu([0] * 12 + [9.0] * 48, run))
    assert usd(finding.alone_usd) == "0.184000"


def test_without_the_gpu_of_a_gpu_job_it_does_not_know() -> None:
    """Its card asks for CPU alone, which CPU jobs have too."""
    assert unknown(RULE, GPU_JOB, flat(GPU_JOB, 120, cpu=1)) == "metric_missing"


def test_accelerators_that_nobody_measures_may_have_worked() -> None:
    """Trainium reports no such metric."""
    run = ran(7200, TRAINIUM)
    answer = outcome(RULE, run, cpu_alone(run, [0] * 30 + [200] * 90), on=MARKET)
    assert isinstance(answer, Unknown)
    assert answer.code == "accelerator_unseen"
