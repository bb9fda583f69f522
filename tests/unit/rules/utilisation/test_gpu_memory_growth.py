from __future__ import annotations

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Job
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import flat, ran, series, usage
from tests.fakes.judging import found, outcome, priced, unknown

RULE = "gpu-memory-growth"
RUN = ran(7200, "ml.g4dn.xlarge")


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
    """0.6 points a minute for two hours: windows of 11 minutes rise by 6.6."""
    finding = priced(RULE, RUN, memory(leak(0.6)))
    what = finding.found
    assert what.summary == (
        "GPU memory grew from 18% to 78% over 2 h on 1 x ml.g4dn.xlarge, in 9 "
        "rises: it looks like a leak."
    )
    assert (what.confidence, what.bucket, what.fix) == (Confidence.HEURISTIC, Bucket.NONE, ())
    assert finding.saving_usd is None
    assert "A leak costs nothing until" in (what.caution or "")
    assert what.evidence["points_per_hour"] == 36.0


def test_even_memory_is_clear() -> None:
    """80% from start to end."""
    assert outcome(RULE, RUN, flat(RUN, 120, gpu_memory=80)) == Clear()


def test_a_rise_of_exactly_five_points_is_none() -> None:
    """40 minutes: windows of 4 minutes rise by 4 times the rate."""
    run = ran(2400, "ml.g4dn.xlarge")
    assert outcome(RULE, run, memory(leak(1.25, 40), run)) == Clear()
    assert isinstance(outcome(RULE, run, memory(leak(1.26, 40), run)), Found)


def test_three_rises_are_needed() -> None:
    """A model, an evaluation: two steps up are no leak; the third, late in the run, is."""
    two = steps((50, 20), (50, 40), (20, 60))
    assert outcome(RULE, RUN, memory(two)) == Clear()
    three = steps((30, 20), (30, 40), (30, 60), (30, 80))
    assert found(RULE, RUN, memory(three)).evidence["rises"] == 3


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
    """A tenth of a point a minute: windows of a tenth of 12 hours rise by 7 points."""
    run = ran(12 * 3600, "ml.g4dn.xlarge")
    assert isinstance(outcome(RULE, run, memory(leak(0.1, 720), run)), Found)


def test_the_host_that_grows_speaks_for_all() -> None:
    """One of two hosts leaks."""
    run = ran(7200, "ml.g4dn.xlarge", 2)
    of = usage(
        run,
        series(Metric.GPU_MEMORY, [50] * 120),
        series(Metric.GPU_MEMORY, leak(0.6), host="train/algo-2"),
    )
    evidence = found(RULE, run, of).evidence
    assert (evidence["hosts"], evidence["hosts_that_grew"]) == (2, 1)


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
    """10 points, as Debugger's guide has it, and any number of rises."""
    of = memory(leak(0.6))
    assert outcome(RULE, RUN, of, limits={"increase_over": 10}) == Clear()
    assert outcome(RULE, RUN, of, limits={"rises_from": 10}) == Clear()
    assert isinstance(outcome(RULE, RUN, of, limits={"rises_from": 9}), Found)
    assert isinstance(outcome(RULE, RUN, of, limits={"patience_minutes": 0}), Found)
