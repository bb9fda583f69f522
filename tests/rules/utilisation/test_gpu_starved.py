from functools import partial

from sageaudit.domain.job.job import Hints
from sageaudit.structs import replace
from tests.fakes.jobs import ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, Measured, finds, hosts, one_host

RULE = "gpu-starved"
ONE_T4 = ran(3600, "ml.g4dn.xlarge")
"""An hour on one T4 and 4 vCPUs."""
SWINGS = [*[90.0] * 9, *[2.0] * 6] * 4
"""Percent of the GPU in 60 minutes: four waits of 6, the last one up to the end."""


def gpu(percent: list[float], cpu: float = 30) -> Measured:
    """One GPU minute by minute, beside an even use of 4 vCPUs in percent."""
    return one_host(gpu=percent, cores=[4 * cpu / 100] * len(percent))


verdict = partial(answer, RULE)


def test_a_gpu_that_waits_between_bursts_is_found() -> None:
    # 6 of 15 minutes, four times, the last one up to the end: no dollars.
    assert verdict(ONE_T4, gpu(SWINGS)) == finds(
        "The GPU fell under 10% 3 times and waited there for 40% of 1 h on "
        "1 x ml.g4dn.xlarge; its P95 is 90%.",
        usd=None,
        builder="advice",
        caution="…only a run shows…",
    )


def test_a_steady_gpu_is_clear() -> None:
    """Busy or little used, it does not swing."""
    assert verdict(ONE_T4, gpu([90.0] * 60)) == CLEAR
    assert verdict(ONE_T4, gpu([5.0] * 60)) == CLEAR


def test_a_gpu_swings_with_a_p95_over_70_percent_and_a_p5_under_10_percent() -> None:
    """The limits of Debugger."""
    assert verdict(ONE_T4, gpu([*[70.1] * 9, *[9.9] * 6] * 4)) == FOUND
    assert verdict(ONE_T4, gpu([*[70] * 9, *[9.9] * 6] * 4)) == CLEAR
    assert verdict(ONE_T4, gpu([*[70.1] * 9, *[10] * 6] * 4)) == CLEAR


def test_waits_of_6_of_60_minutes_are_found_and_of_5_they_are_not() -> None:
    three_waits = [*[90.0] * 8, *[0.0] * 2, *[90.0] * 18, *[0.0] * 2, *[90.0] * 18, *[0.0] * 2]
    assert verdict(ONE_T4, gpu([*three_waits, *[90.0] * 10])) == FOUND
    assert verdict(ONE_T4, gpu([*three_waits[:-1], *[90.0] * 11])) == CLEAR


def test_3_falls_are_found_and_2_are_not() -> None:
    # A start and an evaluation are two waits: once low is no swing, and back it must come.
    assert verdict(ONE_T4, gpu([*[90.0] * 15, *[0.0] * 5] * 2 + [90.0] * 20)) == CLEAR
    assert verdict(ONE_T4, gpu([*[90.0] * 15, *[0.0] * 4] * 3 + [90.0] * 3)) == FOUND


def test_a_long_start_and_a_long_end_are_other_stories() -> None:
    # The CPU prepares for 20 minutes and writes for 20.
    assert verdict(ONE_T4, gpu([*[0.0] * 20, *[95.0] * 20, *[0.0] * 20])) == CLEAR


def test_a_gpu_that_waits_for_a_cpu_at_90_percent_is_another_story_and_at_89_9_it_is_not() -> None:
    assert verdict(ONE_T4, gpu(SWINGS, cpu=90)) == CLEAR
    assert verdict(ONE_T4, gpu(SWINGS, cpu=89.9)) == FOUND


def test_only_the_cpu_of_the_waiting_minutes_counts() -> None:
    # At its limit while the GPU works, and nearly idle while it waits.
    cores = [0.04 * (99 if percent > 10 else 10) for percent in SWINGS]
    result = verdict(ONE_T4, one_host(gpu=SWINGS, cores=cores))
    assert result == finds(evidence={"cpu_while_waiting_percent": 10.0})


def test_a_host_without_cpu_points_in_those_minutes_is_not_blamed() -> None:
    """It may wait for its CPU."""
    waits = [*[90.0] * 11, *[2.0] * 4] * 4
    cores = [None if percent < 10 else 1.0 for percent in waits]
    result = verdict(ONE_T4, one_host(gpu=waits, cores=cores))
    assert result == CLEAR


def test_few_loader_workers_are_named_where_the_job_sets_them() -> None:
    """One for 4 vCPUs."""
    result = verdict(replace(ONE_T4, hints=Hints(loader_workers=1)), gpu(SWINGS))
    assert result == finds(fix=[("HyperParameters.num_workers", "4")])
    assert verdict(ONE_T4, gpu(SWINGS)) == finds(fix=[])


def test_the_policy_may_set_its_limits() -> None:
    """It falls 3 times, waits for 40% of the hour, and its CPU is at 30%."""
    assert verdict(ONE_T4, gpu(SWINGS), limits={"min_waits": 4}) == CLEAR
    assert verdict(ONE_T4, gpu(SWINGS), limits={"min_share_percent": 41}) == CLEAR
    assert verdict(ONE_T4, gpu(SWINGS), limits={"min_cpu_percent": 30}) == CLEAR


def test_the_host_that_waits_longest_speaks() -> None:
    """One of two hosts waits."""
    works, waits = ({"cores": [1.0] * 60, "gpu": gpu} for gpu in ([90] * 60, SWINGS))
    result = verdict(ran(3600, "ml.g4dn.xlarge", 2), hosts(works, waits))
    assert result == finds(evidence={"hosts_that_wait": 1})
