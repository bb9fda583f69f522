"""The rules of SageMaker Debugger that minute data can express, on their published defaults.

Defaults: smdebug-rulesconfig 1.0.1, profiler_rules/rules.py; where the developer guide (2023-03)
differs, its value is named. What cannot be expressed stands in docs/evidence/debugger.md.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from sageaudit.domain.bill.finding import Clear, Found
from sageaudit.domain.job.job import Hints, Job
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import flat, ran, series, usage
from tests.fakes.judging import card, found, outcome

ONE = ran(3600, "ml.g4dn.xlarge")
TWO = ran(3600, "ml.g4dn.xlarge", 2)
SAMPLE_S = 0.5
"""Debugger's own sampling interval."""


def minutes(gpu: list[float], cpu: list[float], run: Job = ONE) -> Measurements:
    """GPU and CPU of one host, minute by minute, 0..100 of all."""
    return usage(
        run, series(Metric.GPU, gpu), series(Metric.CPU, [4 * percent for percent in cpu])
    )  # fmt: skip


def default(rule: str, key: str) -> float:
    """A threshold as it is without a policy."""
    [threshold] = [one for one in card(rule).thresholds if one.key == key]
    return threshold.value


@pytest.mark.parametrize(
    ("rule", "key", "published"),
    [
        ("gpu-underused", "p95_below", 70),
        ("gpu-starved", "p95_over", 70),
        ("gpu-starved", "p5_below", 10),
        ("gpu-underused", "cpu_p95_below", 70),
        ("gpu-underused", "gpu_memory_p95_below", 70),
        ("cpu-bottleneck", "share_from", 50),
        ("cpu-bottleneck", "cpu_from", 90),
        ("gpu-memory-growth", "increase_over", 5),
        ("uneven-hosts", "distance_over", 0.5),
    ],
)
def test_the_numbers_are_debuggers(rule: str, key: str, published: float) -> None:
    """LowGPUUtilization, BatchSize, CPUBottleneck, GPUMemoryIncrease, LoadBalancing."""
    assert default(rule, key) == published


@pytest.mark.parametrize(
    ("rule", "key", "samples"),
    [("gpu-memory-growth", "patience_minutes", 1000), ("gpu-memory-growth", "window_minutes", 500)],
)
def test_samples_are_restated_in_minutes(rule: str, key: str, samples: int) -> None:
    """Patience 1000 and window 500 of 500 ms, to the whole minute."""
    assert default(rule, key) == round(samples * SAMPLE_S / 60)


def test_patience_lies_within_the_minimum_of_time() -> None:
    """Nobody is judged before Debugger would have judged."""
    patience_min = 1000 * SAMPLE_S / 60
    for rule in ("gpu-underused", "gpu-starved", "cpu-bottleneck", "uneven-hosts"):
        assert card(rule).min_active_minutes >= patience_min


@pytest.mark.parametrize(("p95", "low"), [(69.9, True), (70, False)])
def test_low_gpu_utilization(p95: float, low: bool) -> None:
    """P95 under 70; the mean, here 35 or so, is under Jobstats' target."""
    of = minutes(([p95] * 15 + [0.5] * 15) * 2, [30] * 60)
    assert isinstance(outcome("gpu-underused", ONE, of), Found) is low


def test_low_gpu_utilization_stops_at_the_target() -> None:
    """Ours alone: a mean of 50% is busy enough, whatever the P95."""
    assert outcome("gpu-underused", ONE, minutes([50] * 60, [30] * 60)) == Clear()
    assert isinstance(outcome("gpu-underused", ONE, minutes([49.9] * 60, [30] * 60)), Found)


@pytest.mark.parametrize(
    ("p95", "p5", "swings"), [(70.1, 9.9, True), (70, 9.9, False), (70.1, 10, False)]
)
def test_low_gpu_utilization_by_fluctuation(p95: float, p5: float, swings: bool) -> None:
    """P95 over 70 and P5 under 10, over and over."""
    of = minutes([*[p95] * 8, *[p5] * 4] * 5, [30] * 60)
    assert isinstance(outcome("gpu-starved", ONE, of), Found) is swings


@pytest.mark.parametrize(
    ("gpu", "gpu_memory", "cpu", "larger"),
    [
        (49.9, 69.9, 69.9, True),
        (49.9, 70, 69.9, False),
        (49.9, 69.9, 70, False),
    ],
)
def test_batch_size(gpu: float, gpu_memory: float, cpu: float, larger: bool) -> None:
    """All three P95 under 70, and a mean under Jobstats' target: from there on use is healthy."""
    of = flat(ONE, 60, gpu=gpu, gpu_memory=gpu_memory, cpu=cpu)
    answer = found("gpu-underused", ONE, of)
    assert ("A larger batch may help" in (answer.caution or "")) is larger
    assert outcome("gpu-underused", ONE, flat(ONE, 60, gpu=50, gpu_memory=10, cpu=10)) == Clear()


def test_batch_size_needs_gpu_memory() -> None:
    """A GPU whose memory is not known gets no advice of a larger batch."""
    answer = found("gpu-underused", ONE, flat(ONE, 60, gpu=30, cpu=30))
    assert "larger batch" not in (answer.caution or "")


@pytest.mark.parametrize(
    ("waiting", "cpu", "gpu", "bound"),
    [(30, 90, 10, True), (29, 90, 10, False), (30, 89.9, 10, False), (30, 90, 50.1, False)],
)
def test_cpu_bottleneck(waiting: int, cpu: float, gpu: float, bound: bool) -> None:
    """CPU at 90 while the GPU waits, in half of the time; up to 50 is ours, Debugger says 10."""
    rest = 60 - waiting
    of = minutes([*[gpu] * waiting, *[80.0] * rest], [*[cpu] * waiting, *[40.0] * rest])
    assert isinstance(outcome("cpu-bottleneck", ONE, of), Found) is bound


@pytest.mark.parametrize(("rise", "grows"), [(5.01, True), (4.99, False)])
def test_gpu_memory_increase(rise: float, grows: bool) -> None:
    """By more than 5 points from the first window of 4 minutes to the last, 28 minutes later."""
    run = ran(2400, "ml.g4dn.xlarge")
    memory = [90 + rise / 28 * minute for minute in range(40)]
    of = usage(run, series(Metric.GPU_MEMORY, memory))
    assert isinstance(outcome("gpu-memory-growth", run, of), Found) is grows


def test_gpu_memory_increase_wants_more_than_one_rise() -> None:
    """Ours alone: Debugger fires at a single step up, as each start has one."""
    of = usage(ONE, series(Metric.GPU_MEMORY, [20] * 30 + [80] * 30))
    assert outcome("gpu-memory-growth", ONE, of) == Clear()


@pytest.mark.parametrize(("apart", "uneven"), [(31, True), (30, False)])
def test_load_balancing_between_hosts(apart: int, uneven: bool) -> None:
    """Histograms of 60 minutes each: a distance of 30 minutes is 0.5, of 31 it is more."""
    other = [*[15.0] * apart, *[85.0] * (60 - apart)]
    raw = [series(Metric.CPU, [100] * 60, host=f"train/algo-{n}") for n in (1, 2)]
    raw += [series(Metric.GPU, [85] * 60), series(Metric.GPU, other, host="train/algo-2")]
    assert isinstance(outcome("uneven-hosts", TWO, usage(TWO, *raw)), Found) is uneven


@pytest.mark.parametrize(
    ("workers", "named"), [(6, False), (5, True), (16, False), (17, True)]
)  # fmt: skip
def test_dataloader_where_the_workers_are_known(workers: int, named: bool) -> None:
    """Under 70% or over 200% of 8 cores; only a finding that waits for data names it."""
    run = replace(ran(3600, "ml.g4dn.2xlarge"), hints=Hints(loader_workers=workers))
    answer = found("cpu-bottleneck", run, flat(run, 60, cpu=98, gpu=4))
    assert bool(answer.fix) is named


def test_max_initialization_time_in_part() -> None:
    """20 minutes without GPU work; steps are not seen."""
    of = minutes([*[0.0] * 20, *[90.0] * 40], [*[20.0] * 20, *[40.0] * 40])
    assert isinstance(outcome("idle-start", ONE, of), Found)
    of = minutes([*[0.0] * 5, *[90.0] * 55], [*[20.0] * 5, *[40.0] * 55])
    assert outcome("idle-start", ONE, of) == Clear()
