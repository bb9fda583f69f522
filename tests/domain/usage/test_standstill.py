from __future__ import annotations

import pytest

from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import Points, ran, series, usage

GPU = ran(7200, "ml.g4dn.2xlarge")


def on(gpu: Points, cores: Points, *others: tuple[Points, Points]) -> Measurements:
    """GPU in percent and busy cores, minute by minute, of one host or several."""
    raw = []
    for number, (work, busy) in enumerate(((gpu, cores), *others), start=1):
        host = f"train/algo-{number}"
        percent = [None if c is None else 100 * c for c in busy]
        raw += [series(Metric.GPU, work, host=host), series(Metric.CPU, percent, host=host)]
    return usage(ran(60 * len(gpu), "ml.g4dn.2xlarge", 1 + len(others)), *raw)


def worked(minutes: int) -> list[float]:
    """A busy GPU."""
    return [90.0] * minutes


@pytest.mark.parametrize(("minutes", "still"), [(29, False), (30, True), (200, True)])
def test_half_an_hour_is_a_standstill(minutes: int, still: bool) -> None:
    """On one core or none; a minute less is an ordinary pause."""
    for cores in (0.05, 1.0, 1.2):
        gpu = worked(20) + [0.0] * minutes + worked(20)
        of = on(gpu, [2.0] * 20 + [cores] * minutes + [2.0] * 20)
        assert of.standstills() == ((range(20, 20 + minutes),) if still else ())


def test_more_than_a_core_is_work() -> None:
    """1.21 cores on one of two hosts, or one percent of a GPU and a bit."""
    gpu = worked(20) + [0.0] * 60 + worked(20)
    quiet, busy = [2.0] * 20 + [1.0] * 60 + [2.0] * 20, [2.0] * 20 + [1.21] * 60 + [2.0] * 20
    assert on(gpu, quiet, (gpu, quiet)).standstills() == (range(20, 80),)
    assert on(gpu, quiet, (gpu, busy)).standstills() == ()
    assert on(worked(20) + [1.1] * 60 + worked(20), quiet).standstills() == ()
    assert on(worked(20) + [1.0] * 60 + worked(20), quiet).standstills() == (range(20, 80),)


def test_what_comes_before_the_first_gpu_work_may_prepare_it() -> None:
    """And a GPU that never works is gpu-idle's."""
    assert on([0.0] * 60 + worked(60), [1.0] * 120).standstills() == ()
    assert on([0.0] * 120, [1.0] * 120).standstills() == ()


def test_the_hosts_must_stand_still_together() -> None:
    """40 minutes each, of which 35 are common."""
    one = worked(20) + [0.0] * 40 + worked(40)
    two = worked(25) + [0.0] * 40 + worked(35)
    assert on(one, [1.0] * 100, (two, [1.0] * 100)).standstills() == (range(25, 60),)
    three = worked(40) + [0.0] * 40 + worked(20)
    assert on(one, [1.0] * 100, (three, [1.0] * 100)).standstills() == ()


def test_lost_points_do_not_break_it_and_long_gaps_do() -> None:
    """Three minutes between still ones are still; four may have been work."""
    calm = [1.0] * 100
    lost = worked(20) + [0.0] * 20 + [None] * 3 + [0.0] * 37 + worked(20)
    assert on(lost, calm).standstills() == (range(20, 80),)
    gone = worked(20) + [0.0] * 20 + [None] * 4 + [0.0] * 36 + worked(20)
    assert on(gone, calm).standstills() == (range(44, 80),)
    cores = [1.0] * 40 + [None] * 4 + [1.0] * 56
    assert on(worked(20) + [0.0] * 60 + worked(20), cores).standstills() == (range(44, 80),)


def test_one_busy_minute_between_ten_still_ones_is_no_work() -> None:
    """A scheduled task of the host. Two minutes are work, and so is one of the GPU."""
    gpu = worked(20) + [0.0] * 40 + worked(20)
    task = [1.0] * 35 + [5.0] + [1.0] * 44
    assert on(gpu, task).standstills() == (range(20, 60),)
    assert on(gpu, [1.0] * 35 + [5.0] * 2 + [1.0] * 43).standstills() == ()
    assert on(gpu, [1.0] * 28 + [5.0] + [1.0] * 51).standstills() == (range(29, 60),)
    blip = worked(20) + [0.0] * 15 + [40.0] + [0.0] * 24 + worked(20)
    assert on(blip, [1.0] * 80).standstills() == ()


def test_without_a_host_nothing_stands_still() -> None:
    """The one without points may have worked."""
    run = ran(7200, "ml.g4dn.2xlarge", 2)
    gpu = worked(20) + [0.0] * 80 + worked(20)
    of = usage(run, series(Metric.GPU, gpu), series(Metric.CPU, [100] * 120))
    assert of.standstills() == ()


@pytest.mark.parametrize(("period_s", "found"), [(300, True), (3600, False)])
def test_long_periods_hide_work(period_s: int, found: bool) -> None:
    """Five minutes are fine enough, an hour is not."""
    run = ran(24 * period_s, "ml.g4dn.2xlarge")
    gpu, cpu = [90] * 4 + [0] * 16 + [90] * 4, [200] * 4 + [100] * 16 + [200] * 4
    of = usage(
        run,
        series(Metric.GPU, gpu, period_s=period_s),
        series(Metric.CPU, cpu, period_s=period_s),
    )
    assert bool(of.standstills()) is found


def test_active_minutes_are_without_standstills() -> None:
    """In the middle and at the end; the minutes around one are neighbours."""
    gpu = worked(20) + [0.0] * 40 + worked(30) + [0.0] * 35
    of = on(gpu, [2.0] * 20 + [1.0] * 40 + [2.0] * 30 + [1.0] * 35)
    active = of.active()
    assert (active.points, active.begins_at) == (50, of.begins_at)
    assert set(active.series[Metric.GPU]["train/algo-1"].values) == {90.0}


def test_a_cpu_job_has_none() -> None:
    """One core of a CPU job may be its work."""
    run = ran(7200)
    assert usage(run, series(Metric.CPU, [900] * 20 + [100] * 80 + [900] * 20)).standstills() == ()
