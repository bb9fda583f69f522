from __future__ import annotations

from dataclasses import replace

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Hints, Job
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import ran, series, usage
from tests.fakes.judging import found, outcome, priced

RULE = "gpu-starved"
ONE = ran(3600, "ml.g4dn.xlarge")
SWINGS = [*[90.0] * 9, *[2.0] * 6] * 4


def gpu(percent: list[float], cpu: float = 30, run: Job = ONE) -> Measurements:
    """One GPU minute by minute, beside an even use of 4 vCPUs."""
    return usage(
        run, series(Metric.GPU, percent), series(Metric.CPU, [4 * cpu] * len(percent))
    )  # fmt: skip


def test_a_gpu_that_waits_between_bursts_is_found() -> None:
    """6 of 15 minutes, four times, the last one up to the end: no dollars."""
    finding = priced(RULE, ONE, gpu(SWINGS))
    assert finding.found.summary == (
        "The GPU fell under 10% 3 times and waited there for 40% of 1 h on "
        "1 x ml.g4dn.xlarge; its P95 is 90%."
    )
    assert (finding.saving_usd, finding.found.bucket) == (None, Bucket.NONE)
    assert finding.found.confidence is Confidence.HEURISTIC
    assert "only a run shows" in (finding.found.caution or "")


def test_a_steady_gpu_is_clear() -> None:
    """Busy or little used, it does not swing."""
    for percent in (90.0, 5.0):
        assert outcome(RULE, ONE, gpu([percent] * 60)) == Clear()


@pytest.mark.parametrize(
    ("high", "low", "says"), [(70.1, 9.9, True), (70, 9.9, False), (70.1, 10, False)]
)
def test_the_limits_of_debugger_decide(high: float, low: float, says: bool) -> None:
    """P95 over 70 and P5 under 10."""
    of = gpu([*[high] * 9, *[low] * 6] * 4)
    assert isinstance(outcome(RULE, ONE, of), Found) is says


def test_exactly_a_tenth_of_the_time_is_found() -> None:
    """6 of 60 minutes in three waits; 5 are not."""
    six = [*[90.0] * 18, *[0.0] * 2] * 3
    five = [90.0, *six[1:-1], 90.0]
    assert isinstance(outcome(RULE, ONE, gpu([*six[10:], *six[:10]])), Found)
    assert outcome(RULE, ONE, gpu([*five[10:], *five[:10]])) == Clear()


def test_three_falls_are_needed() -> None:
    """A start and an evaluation are two waits: once low is no swing, and back it must come."""
    twice = [*[90.0] * 15, *[0.0] * 5] * 2 + [90.0] * 20
    assert outcome(RULE, ONE, gpu(twice)) == Clear()
    thrice = [*[90.0] * 15, *[0.0] * 4] * 3 + [90.0] * 3
    assert isinstance(outcome(RULE, ONE, gpu(thrice)), Found)


def test_a_long_start_and_a_long_end_are_other_stories() -> None:
    """The CPU prepares for 20 minutes and writes for 20."""
    assert outcome(RULE, ONE, gpu([*[0.0] * 20, *[95.0] * 20, *[0.0] * 20])) == Clear()


def test_a_gpu_that_waits_for_its_cpu_is_another_story() -> None:
    """CPU at 90% while it waits; at 89.9% it is not at its limit."""
    assert outcome(RULE, ONE, gpu(SWINGS, cpu=90)) == Clear()
    assert isinstance(outcome(RULE, ONE, gpu(SWINGS, cpu=89.9)), Found)


def test_only_the_cpu_of_the_waiting_minutes_counts() -> None:
    """At its limit while the GPU works, and nearly idle while it waits."""
    cpu = [4 * (99.0 if percent > 10 else 10.0) for percent in SWINGS]
    of = usage(ONE, series(Metric.GPU, SWINGS), series(Metric.CPU, cpu))
    assert found(RULE, ONE, of).evidence["cpu_while_waiting_percent"] == 10.0


def test_a_host_without_cpu_points_in_those_minutes_is_not_blamed() -> None:
    """It may wait for its CPU."""
    cpu = [None if percent < 10 else 100.0 for percent in [*[90.0] * 11, *[2.0] * 4] * 4]
    of = usage(ONE, series(Metric.GPU, [*[90.0] * 11, *[2.0] * 4] * 4), series(Metric.CPU, cpu))
    assert outcome(RULE, ONE, of) == Clear()


def test_the_host_that_waits_longest_speaks() -> None:
    """One of two hosts waits."""
    run = ran(3600, "ml.g4dn.xlarge", 2)
    raw = [series(Metric.CPU, [100] * 60, host=f"train/algo-{n}") for n in (1, 2)]
    raw += [series(Metric.GPU, [90] * 60), series(Metric.GPU, SWINGS, host="train/algo-2")]
    assert found(RULE, run, usage(run, *raw)).evidence["hosts_that_wait"] == 1


def test_few_loader_workers_are_named_where_the_job_sets_them() -> None:
    """One for 4 vCPUs."""
    run = replace(ONE, hints=Hints(loader_workers=1))
    assert [(fix.path, fix.new) for fix in found(RULE, run, gpu(SWINGS)).fix] == [
        ("HyperParameters.num_workers", "4")
    ]
    assert found(RULE, ONE, gpu(SWINGS)).fix == ()


def test_the_policy_may_set_its_limits() -> None:
    """More falls, or a larger share, than this run has."""
    assert outcome(RULE, ONE, gpu(SWINGS), limits={"times_from": 4}) == Clear()
    assert outcome(RULE, ONE, gpu(SWINGS), limits={"share_from": 41}) == Clear()
    assert outcome(RULE, ONE, gpu(SWINGS), limits={"cpu_from": 30}) == Clear()
