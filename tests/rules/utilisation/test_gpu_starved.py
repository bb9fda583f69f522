from functools import partial

from sageaudit.domain.job.job import Hints, Job
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.structs import replace
from tests.fakes.jobs import ran, series, usage
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, finds, measured

RULE = "gpu-starved"
ONE = ran(3600, "ml.g4dn.xlarge")
SWINGS = [*[90.0] * 9, *[2.0] * 6] * 4


def gpu(percent: list[float], cpu: float = 30, run: Job = ONE) -> Measurements:
    """One GPU minute by minute, beside an even use of 4 vCPUs."""
    return usage(run, series(Metric.GPU, percent), series(Metric.CPU, [4 * cpu] * len(percent)))


verdict = partial(answer, RULE)


def test_a_gpu_that_waits_between_bursts_is_found() -> None:
    # 6 of 15 minutes, four times, the last one up to the end: no dollars.
    assert verdict(ONE, gpu(SWINGS)) == finds(
        "The GPU fell under 10% 3 times and waited there for 40% of 1 h on "
        "1 x ml.g4dn.xlarge; its P95 is 90%.",
        usd=None,
        builder="advice",
        caution="…only a run shows…",
    )


def test_a_steady_gpu_is_clear() -> None:
    """Busy or little used, it does not swing."""
    assert verdict(ONE, gpu([90.0] * 60)) == CLEAR
    assert verdict(ONE, gpu([5.0] * 60)) == CLEAR


def test_the_limits_of_debugger_decide() -> None:
    """P95 over 70 and P5 under 10."""
    assert verdict(ONE, gpu([*[70.1] * 9, *[9.9] * 6] * 4)) == FOUND
    assert verdict(ONE, gpu([*[70] * 9, *[9.9] * 6] * 4)) == CLEAR
    assert verdict(ONE, gpu([*[70.1] * 9, *[10] * 6] * 4)) == CLEAR


def test_exactly_a_tenth_of_the_time_is_found() -> None:
    """6 of 60 minutes in three waits; 5 are not."""
    result = verdict(
        ONE, gpu([*([*[90.0] * 18, *[0.0] * 2] * 3)[10:], *([*[90.0] * 18, *[0.0] * 2] * 3)[:10]])
    )
    assert result == FOUND
    result = verdict(
        ONE,
        gpu(
            [
                *[90.0, *([*[90.0] * 18, *[0.0] * 2] * 3)[1:-1], 90.0][10:],
                *[90.0, *([*[90.0] * 18, *[0.0] * 2] * 3)[1:-1], 90.0][:10],
            ]
        ),
    )
    assert result == CLEAR


def test_three_falls_are_needed() -> None:
    """Three falls are needed."""
    # A start and an evaluation are two waits: once low is no swing, and back it must come.
    assert verdict(ONE, gpu([*[90.0] * 15, *[0.0] * 5] * 2 + [90.0] * 20)) == CLEAR
    assert verdict(ONE, gpu([*[90.0] * 15, *[0.0] * 4] * 3 + [90.0] * 3)) == FOUND


def test_a_long_start_and_a_long_end_are_other_stories() -> None:
    # The CPU prepares for 20 minutes and writes for 20.
    assert verdict(ONE, gpu([*[0.0] * 20, *[95.0] * 20, *[0.0] * 20])) == CLEAR


def test_a_gpu_that_waits_for_its_cpu_is_another_story() -> None:
    # CPU at 90% while it waits; at 89.9% it is not at its limit.
    assert verdict(ONE, gpu(SWINGS, cpu=90)) == CLEAR
    assert verdict(ONE, gpu(SWINGS, cpu=89.9)) == FOUND


def test_only_the_cpu_of_the_waiting_minutes_counts() -> None:
    # At its limit while the GPU works, and nearly idle while it waits.
    result = verdict(
        ONE,
        measured(
            series(Metric.GPU, SWINGS),
            series(Metric.CPU, [4 * (99.0 if percent > 10 else 10.0) for percent in SWINGS]),
        ),
    )
    assert result == finds(evidence={"cpu_while_waiting_percent": 10.0})


def test_a_host_without_cpu_points_in_those_minutes_is_not_blamed() -> None:
    """It may wait for its CPU."""
    result = verdict(
        ONE,
        measured(
            series(Metric.GPU, [*[90.0] * 11, *[2.0] * 4] * 4),
            series(
                Metric.CPU,
                [None if percent < 10 else 100.0 for percent in [*[90.0] * 11, *[2.0] * 4] * 4],
            ),
        ),
    )
    assert result == CLEAR


def test_few_loader_workers_are_named_where_the_job_sets_them() -> None:
    """One for 4 vCPUs."""
    result = verdict(replace(ONE, hints=Hints(loader_workers=1)), gpu(SWINGS))
    assert result == finds(fix=[("HyperParameters.num_workers", "4")])
    assert verdict(ONE, gpu(SWINGS)) == finds(fix=[])


def test_the_policy_may_set_its_limits() -> None:
    """More falls, or a larger share, than this run has."""
    assert verdict(ONE, gpu(SWINGS), limits={"times_from": 4}) == CLEAR
    assert verdict(ONE, gpu(SWINGS), limits={"share_from": 41}) == CLEAR
    assert verdict(ONE, gpu(SWINGS), limits={"cpu_from": 30}) == CLEAR


def test_the_host_that_waits_longest_speaks() -> None:
    """One of two hosts waits."""
    result = verdict(
        ran(3600, "ml.g4dn.xlarge", 2),
        measured(
            *[series(Metric.CPU, [100] * 60, host=f"train/algo-{n}") for n in (1, 2)],
            series(Metric.GPU, [90] * 60),
            series(Metric.GPU, SWINGS, host="train/algo-2"),
        ),
    )
    assert result == finds(evidence={"hosts_that_wait": 1})
