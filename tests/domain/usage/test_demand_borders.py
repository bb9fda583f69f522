"""Values at both sides of the thresholds for what a run needs, and for its hosts before GPU
work.
"""

from decimal import Decimal

import pytest

from sageaudit.domain.usage.demand import BusyCores, demand
from sageaudit.domain.usage.edges import quiet_cores
from sageaudit.domain.usage.measurements import Metric
from sageaudit.domain.usage.series import Series
from sageaudit.rules.utilisation.idle_start import count_wait_periods
from tests.fakes.jobs import TYPES, Points, ran, series, usage


@pytest.mark.parametrize(("busy_minutes", "cores"), [(4, 1), (6, 4)])
def test_five_minutes_of_a_thousand_are_no_peak(busy_minutes: int, cores: int) -> None:
    """As in Compute Optimizer, which uses the value that 99.5% of the minutes stay below."""
    cpu = [100.0] * (1000 - busy_minutes) + [400.0] * busy_minutes
    run = usage(ran(60_000), series(Metric.CPU, cpu))
    assert demand(run, TYPES["ml.m5.xlarge"], Decimal(0)).vcpu.needed == cores


@pytest.mark.parametrize(("period_s", "is_known"), [(300, True), (360, False)])
def test_points_of_more_than_five_minutes_hide_peaks(period_s: int, is_known: bool) -> None:
    """CloudWatch keeps points of five minutes for 63 days."""
    cpu = series(Metric.CPU, [100.0] * 20, period_s=period_s)
    result = demand(usage(ran(20 * period_s), cpu), TYPES["ml.m5.xlarge"], Decimal(0))
    assert (result.vcpu.needed is not None) is is_known


@pytest.mark.parametrize(("percent", "is_at_limit"), [(45.0, True), (44.9, False)])
def test_vcpus_are_at_their_limit_from_90_percent(percent: float, is_at_limit: bool) -> None:
    """1.8 of 2, on a host that has 4."""
    assert BusyCores(Series((percent,) * 10), 4).is_at_limit(2) is is_at_limit


@pytest.mark.parametrize(
    ("vcpu", "cores"), [(4, 0.2), (20, 0.2), (48, 0.48), (96, 0.96), (100, 1), (192, 1)]
)
def test_a_quiet_host_uses_a_hundredth_of_its_vcpus(vcpu: int, cores: float) -> None:
    """A fifth of a core on a small host, and never a whole core."""
    assert quiet_cores(vcpu) == cores


@pytest.mark.parametrize(
    ("memory", "is_calm"),
    [
        # 0.3 points in two minutes, before and after it
        ([10.0, 10.0, 10.0, 10.0, 10.31, 10.31, 10.62, 10.62], False),
        ([10.0, 10.0, 10.0, 10.0, 10.29, 10.29, 10.58, 10.58], True),
        # one step is not loading, and neither is a slower rise
        ([10.0, 10.0, 10.0, 15.0, 20.0, 20.0, 20.0, 20.0], True),
        ([10.0 + 0.12 * minute for minute in range(8)], True),
        ([10.0 + 0.16 * minute for minute in range(8)], False),
    ],
)
def test_a_memory_that_fills_up_twice_in_a_row_loads(memory: Points, is_calm: bool) -> None:
    """On a host that keeps one core busy before its GPU works."""
    run = usage(
        ran(600, "ml.g4dn.xlarge"),
        series(Metric.CPU, [100.0] * 10),
        series(Metric.GPU, [0.0] * 8 + [90.0] * 2),
        series(Metric.MEMORY, [*memory, 20.0, 20.0]),
        series(Metric.GPU_MEMORY, [0.0] * 8 + [50.0] * 2),
    )
    assert count_wait_periods(run, range(4, 5), calm_cores=1.2).one_core_busy == is_calm
