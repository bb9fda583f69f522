from __future__ import annotations

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Job
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import flat, ran, series, usage
from tests.fakes.judging import found, outcome, priced, unknown

RULE = "gpu-memory-growth"
RUN = ran(7200, "ml.g4dn.xlarge")
OOM = "AlgorithmError: CUDA out of memory"


def memory(percent: list[float | None], run: Job = RUN) -> Measurements:
    """GPU memory, minute by minute."""
    return usage(run, series(Metric.GPU_MEMORY, percent))


def leak(rate: float, minutes: int = 120, start: float = 10) -> list[float | None]:
    """So many points a minute, from `start`."""
    return [start + rate * minute for minute in range(minutes)]


def steps(*spells: tuple[int, float]) -> list[float | None]:
    """So many minutes at so many percent."""
    return [percent for minutes, percent in spells for _ in range(minutes)]


def test_memory_that_grows_all_the_time_is_found() -> None:
    """0.6 points a minute: 36 an hour, and 21 points are left, so another half an hour."""
    finding = priced(RULE, RUN, memory(leak(0.6)))
    what = finding.found
    assert what.summary == (
        "GPU memory grew steadily from 17% to 79% over 2 h on 1 x ml.g4dn.xlarge, about 36 points "
        "an hour; at this pace it is full after another 40 min. It looks like a leak."
    )
    assert (what.confidence, what.bucket, what.fix) == (Confidence.HEURISTIC, Bucket.NONE, ())
    assert finding.saving_usd is None
    assert "A leak costs nothing until" in (what.caution or "")
    assert what.evidence["points_per_hour"] == 36.0
    assert what.evidence["hours_until_full"] == 0.6


def test_even_memory_is_clear() -> None:
    """80% from start to end."""
    assert outcome(RULE, RUN, flat(RUN, 120, gpu_memory=80)) == Clear()


def test_a_rise_of_five_points_over_the_run_is_none() -> None:
    """What noise and a cache do; a little more is judged by its slope."""
    assert outcome(RULE, RUN, memory(leak(0.045, start=90))) == Clear()
    assert isinstance(outcome(RULE, RUN, memory(leak(0.055, start=90))), Found)


def test_what_is_full_only_long_after_the_run_is_no_leak() -> None:
    """The same slope: four hours from the limit are twice the run, five are more."""
    assert isinstance(outcome(RULE, RUN, memory(leak(0.2, start=30))), Found)
    assert outcome(RULE, RUN, memory(leak(0.2, start=15))) == Clear()
    assert isinstance(
        outcome(RULE, RUN, memory(leak(0.2, start=15)), limits={"full_within_runs": 3}), Found
    )


def test_what_the_limit_ends_before_it_is_full_is_no_leak() -> None:
    """Full after another 40 minutes: MaxRuntime leaves half an hour, or an hour."""
    for minutes, answer in ((150, Clear), (180, Found)):
        run = ran(7200, "ml.g4dn.xlarge", max_runtime_s=minutes * 60)
        assert isinstance(outcome(RULE, run, memory(leak(0.6), run)), answer)
    unknown_limit = ran(7200, "ml.g4dn.xlarge", max_runtime_s=None)
    assert isinstance(outcome(RULE, unknown_limit, memory(leak(0.6), unknown_limit)), Found)


def test_a_leak_that_ended_the_run_is_told_whatever_was_left() -> None:
    """It was full for the last ten minutes; the mean of several GPUs may end lower."""
    for line in (leak(0.8, 110) + [97.0] * 10, leak(0.2)):
        failed = ran(7200, "ml.g4dn.xlarge", status="Failed", failure=OOM)
        what = found(RULE, failed, memory(line, failed))
        assert "then the run failed for lack of it" in what.summary
        assert "hours_until_full" not in what.evidence


def test_a_plateau_near_full_is_no_leak() -> None:
    """An allocator keeps what it freed: a run that completed had enough."""
    assert outcome(RULE, RUN, memory(leak(1.0, 80) + [91.0] * 40)) == Clear()


def test_a_few_steps_are_a_plan() -> None:
    """Longer sequences by plan; many even steps are a leak of each epoch."""
    assert outcome(RULE, RUN, memory(steps((50, 20), (50, 40), (20, 60)))) == Clear()
    assert outcome(RULE, RUN, memory(steps((30, 20), (30, 40), (30, 60), (30, 80)))) == Clear()
    epochs = steps(*((10, 20 + 6 * epoch) for epoch in range(12)))
    assert isinstance(outcome(RULE, RUN, memory(epochs)), Found)


def test_a_cache_that_is_full_is_no_leak() -> None:
    """Three steps in the first hour and none in the second."""
    assert outcome(RULE, RUN, memory(steps((15, 20), (15, 40), (15, 60), (75, 80)))) == Clear()


def test_what_is_given_back_is_no_leak() -> None:
    """Up and down with each epoch."""
    epochs = steps(*[(15, 20), (15, 60)] * 3, (30, 20))
    assert outcome(RULE, RUN, memory(epochs)) == Clear()


def test_the_start_is_left_out() -> None:
    """A model that is loaded in steps during the first 8 minutes."""
    loading = [1.0, 12.0, 25.0, 40.0, 55.0, 70.0, 80.0, 85.0]
    assert outcome(RULE, RUN, memory([*loading, *[90.0] * 112])) == Clear()


def test_a_slow_leak_shows_over_hours() -> None:
    """A tenth of a point a minute: 72 points in 12 hours."""
    run = ran(12 * 3600, "ml.g4dn.xlarge")
    assert isinstance(outcome(RULE, run, memory(leak(0.1, 720), run)), Found)


def test_the_host_that_is_full_first_speaks_for_all() -> None:
    """One of two hosts leaks."""
    run = ran(7200, "ml.g4dn.xlarge", 2)
    of = usage(
        run,
        series(Metric.GPU_MEMORY, [50] * 120),
        series(Metric.GPU_MEMORY, leak(0.6), host="train/algo-2"),
    )
    what = found(RULE, run, of)
    assert "GPU memory of algo-2 grew" in what.summary
    assert (what.evidence["hosts"], what.evidence["hosts_that_grew"]) == (2, 1)


def test_gaps_do_not_hide_it() -> None:
    """Every fourth point is missing; where half a window is, it says nothing."""
    holes = [None if minute % 4 == 0 else value for minute, value in enumerate(leak(0.6))]
    assert isinstance(outcome(RULE, RUN, memory(holes)), Found)
    gone = [
        value if minute not in range(40, 76) else None for minute, value in enumerate(leak(0.6))
    ]
    assert isinstance(outcome(RULE, RUN, memory(gone)), Found)


@pytest.mark.parametrize(("period_s", "points"), [(300, 24), (120, 60)])
def test_coarser_points_are_judged_up_to_five_minutes(period_s: int, points: int) -> None:
    """The windows stay as long."""
    line = series(Metric.GPU_MEMORY, leak(0.6 * period_s / 60, points), period_s=period_s)
    assert isinstance(outcome(RULE, RUN, usage(RUN, line)), Found)


def test_less_than_four_windows_are_too_few() -> None:
    """23 minutes; 24 are judged."""
    short, just = ran(23 * 60, "ml.g4dn.xlarge"), ran(24 * 60, "ml.g4dn.xlarge")
    assert unknown(RULE, short, memory(leak(2, 23), short)) == "too_short"
    assert isinstance(outcome(RULE, just, memory(leak(2, 24), just)), Found)


def test_the_policy_may_ask_for_more() -> None:
    """More points of rise, and none of the patience."""
    of = memory(leak(0.6))
    assert outcome(RULE, RUN, of, limits={"increase_over": 70}) == Clear()
    assert isinstance(outcome(RULE, RUN, of, limits={"patience_minutes": 0}), Found)
