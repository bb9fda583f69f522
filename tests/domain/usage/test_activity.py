"""Standstills: at least half an hour without GPU work, and the active minutes without them."""

import pytest

from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import Points, ran, series, usage

GPU = ran(7200, "ml.g4dn.2xlarge")


def hosts_usage(gpu: Points, cores: Points, *others: tuple[Points, Points]) -> Measurements:
    """Returns the use of one or several hosts by minute: GPU in percent and busy cores."""
    raw = []
    for number, (work, busy) in enumerate(((gpu, cores), *others), start=1):
        host = f"train/algo-{number}"
        percent = [None if c is None else 100 * c for c in busy]
        raw += [series(Metric.GPU, work, host=host), series(Metric.CPU, percent, host=host)]
    return usage(ran(60 * len(gpu), "ml.g4dn.2xlarge", 1 + len(others)), *raw)


def busy_gpu(minutes: int) -> list[float | None]:
    """Returns this many minutes of a busy GPU."""
    return [90.0] * minutes


STILL = busy_gpu(20) + [0.0] * 60 + busy_gpu(20)

Q20 = [2.0] * 20
"""Two cores at work for 20 minutes."""


@pytest.mark.parametrize(
    ("hosts", "still"),
    [
        # half an hour on one core or none; a minute less is an ordinary pause
        *(
            (
                [(busy_gpu(20) + [0.0] * minutes + busy_gpu(20), Q20 + [cores] * minutes + Q20)],
                still,
            )
            for cores in (0.05, 1.0, 1.2)
            for minutes, still in ((29, ()), (30, (range(20, 50),)), (200, (range(20, 220),)))
        ),
        # 1.21 cores on one of two hosts, or one percent of a GPU and a bit, are work
        pytest.param(
            [(STILL, [1.0] * 100), (STILL, [1.0] * 100)],
            (range(20, 80),),
            id="one core on each of two hosts is still",
        ),
        pytest.param(
            [(STILL, [1.0] * 100), (STILL, [1.21] * 100)],
            (),
            id="1.21 cores on one of two hosts are work",
        ),
        pytest.param(
            [(busy_gpu(20) + [1.1] * 60 + busy_gpu(20), [1.0] * 100)],
            (),
            id="a bit more than one percent of a GPU is work",
        ),
        pytest.param(
            [(busy_gpu(20) + [1.0] * 60 + busy_gpu(20), [1.0] * 100)],
            (range(20, 80),),
            id="one percent of a GPU is still",
        ),
        # what comes before the first GPU work may prepare it; one that never works is gpu-idle's
        pytest.param(
            [([*[0.0] * 60, *busy_gpu(60)], [1.0] * 120)],
            (),
            id="what comes before the first GPU work may prepare it",
        ),
        pytest.param([([0.0] * 120, [1.0] * 120)], (), id="a GPU that never works is gpu-idle's"),
        # the hosts must stand still together: 35 of 40 minutes are common, or 20
        pytest.param(
            [(busy_gpu(n) + [0.0] * 40 + busy_gpu(60 - n), [1.0] * 100) for n in (20, 25)],
            (range(25, 60),),
            id="35 of 40 still minutes are common to both hosts",
        ),
        pytest.param(
            [(busy_gpu(n) + [0.0] * 40 + busy_gpu(60 - n), [1.0] * 100) for n in (20, 40)],
            (),
            id="20 of 40 still minutes are common to both hosts",
        ),
        # three lost points between still ones are still; four may have been work
        pytest.param(
            [(busy_gpu(20) + [0.0] * 20 + [None] * 3 + [0.0] * 37 + busy_gpu(20), [1.0] * 100)],
            (range(20, 80),),
            id="three lost points between still ones are still",
        ),
        pytest.param(
            [(busy_gpu(20) + [0.0] * 20 + [None] * 4 + [0.0] * 36 + busy_gpu(20), [1.0] * 100)],
            (range(44, 80),),
            id="four lost points may have been work of the GPU",
        ),
        pytest.param(
            [(STILL, [1.0] * 40 + [None] * 4 + [1.0] * 56)],
            (range(44, 80),),
            id="four lost points may have been work of the CPU",
        ),
        # one busy minute of the CPU between ten still ones is a scheduled task, and no work
        pytest.param(
            [(STILL[:80], [1.0] * 35 + [5.0] + [1.0] * 44)],
            (range(20, 80),),
            id="one busy minute of the CPU between ten still ones is a scheduled task",
        ),
        pytest.param(
            [(STILL[:60] + busy_gpu(20), [1.0] * 35 + [5.0] * 2 + [1.0] * 43)],
            (),
            id="two busy minutes of the CPU are work",
        ),
        pytest.param(
            [(STILL[:60] + busy_gpu(20), [1.0] * 28 + [5.0] + [1.0] * 51)],
            (range(29, 60),),
            id="a busy minute of the CPU after fewer than ten still ones is work",
        ),
        pytest.param(
            [([*STILL[:35], 40.0, *STILL[20:44], *busy_gpu(20)], [1.0] * 80)],
            (),
            id="a minute of the GPU is work",
        ),
    ],
)
def test_a_standstill_is_half_an_hour_without_gpu_work_and_with_one_core_at_most(
    hosts: list[tuple[Points, Points]], still: tuple[range, ...]
) -> None:
    """GPU in percent and busy cores of each host, by minute."""
    assert hosts_usage(*hosts[0], *hosts[1:]).standstills() == still


def test_a_host_without_points_may_have_worked() -> None:
    """A standstill of one host is not one of two hosts if the other one is unknown."""
    gpu, host = busy_gpu(20) + [0.0] * 80 + busy_gpu(20), "train/algo-1"
    known = (series(Metric.GPU, gpu, host=host), series(Metric.CPU, [100] * 120, host=host))
    one_host, two_hosts = (ran(7200, "ml.g4dn.2xlarge", hosts) for hosts in (1, 2))
    assert usage(one_host, *known).standstills() == (range(20, 100),)
    assert usage(two_hosts, *known).standstills() == ()


def test_one_busy_core_of_a_cpu_job_may_be_its_work() -> None:
    on_cpu = series(Metric.CPU, [900] * 20 + [100] * 80 + [900] * 20)  # 100 is one core
    assert usage(ran(7200), on_cpu).standstills() == ()


@pytest.mark.parametrize(("period_s", "result"), [(300, True), (3600, False)])
def test_long_periods_hide_work(period_s: int, result: bool) -> None:
    """Periods of five minutes are fine enough, an hour is not."""
    run = ran(24 * period_s, "ml.g4dn.2xlarge")
    gpu, cpu = [90] * 4 + [0] * 16 + [90] * 4, [200] * 4 + [100] * 16 + [200] * 4
    measurements = usage(
        run, series(Metric.GPU, gpu, period_s=period_s), series(Metric.CPU, cpu, period_s=period_s)
    )
    assert bool(measurements.standstills()) is result


def test_active_minutes_are_without_standstills() -> None:
    """In the middle and at the end. The minutes around a standstill become neighbours."""
    gpu = busy_gpu(20) + [0.0] * 40 + busy_gpu(30) + [0.0] * 35
    measurements = hosts_usage(gpu, [2.0] * 20 + [1.0] * 40 + [2.0] * 30 + [1.0] * 35)
    active = measurements.active_part()
    assert (active.points, active.begins_at) == (50, measurements.begins_at)
    assert set(active.series[Metric.GPU]["train/algo-1"].values) == {90.0}
