"""Values at both sides of each threshold for a standstill."""

import pytest

from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.domain.usage.test_activity import busy_gpu, hosts_usage
from tests.fakes.jobs import ran, series, usage

FOUND = (range(20, 80),)


def at_period(period_s: int, busy_at: int | None = None) -> Measurements:
    """Returns a GPU that works, stands still for 40 points and works again; the CPU works in one
    point.
    """
    gpu = [90.0] * 10 + [0.0] * 40 + [90.0] * 10
    cpu = [500.0 if at == busy_at else 100.0 for at in range(60)]
    return usage(
        ran(60 * period_s, "ml.g4dn.2xlarge"),
        series(Metric.GPU, gpu, period_s=period_s),
        series(Metric.CPU, cpu, period_s=period_s),
    )


@pytest.mark.parametrize(("period_s", "result"), [(300, (range(10, 50),)), (360, ())])
def test_points_of_five_minutes_show_a_standstill(period_s: int, result: tuple[range, ...]) -> None:
    """Points of six minutes may hide work."""
    assert at_period(period_s).standstills() == result


@pytest.mark.parametrize(
    ("period_s", "result"), [(60, (range(10, 50),)), (120, (range(10, 30), range(31, 50)))]
)
def test_one_busy_minute_is_not_work_but_two_are(period_s: int, result: tuple[range, ...]) -> None:
    """A scheduled task of the host takes a minute; a longer point has more than one."""
    assert at_period(period_s, busy_at=30).standstills() == result


@pytest.mark.parametrize(("before", "result"), [(10, FOUND), (9, (range(30, 80),))])
def test_a_busy_minute_has_ten_still_ones_on_each_side(
    before: int, result: tuple[range, ...]
) -> None:
    """With nine before it, it may be the end of the work."""
    busy = 20 + before
    gpu = busy_gpu(20) + [0.0] * 60 + busy_gpu(20)
    cores: list[float | None] = [5.0 if at == busy else 1.0 for at in range(100)]
    assert hosts_usage(gpu, cores).standstills() == result
