from bisect import bisect_right
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.usage.demand import BusyCores
from sageaudit.domain.usage.series import Series


@given(cores=st.lists(st.floats(0, 16), min_size=1, max_size=90), fewer=st.sampled_from((2, 4, 8)))
def test_more_work_or_fewer_vcpus_never_take_less_time(cores: list[float], fewer: int) -> None:
    """And the time is at most that of all work, one after the other."""
    host = BusyCores(Series(tuple(100 * core / 16 for core in cores)), 16)
    busier = BusyCores(Series(tuple(100 * min(core + 1, 16) / 16 for core in cores)), 16)
    times = host.runtime_factor(fewer)
    assert 1 <= times <= max(*cores, fewer) / fewer + 1e-9
    assert times <= busier.runtime_factor(fewer) + 1e-9
    assert times <= host.runtime_factor(fewer / 2) + 1e-9


@given(
    percents=st.lists(st.floats(0, 100), min_size=1, max_size=60),
    vcpu=st.sampled_from((2, 3, 96)),
    share=st.floats(0.01, 1),
)
def test_only_the_periods_above_a_limit_are_summed(
    percents: list[float], vcpu: int, share: float
) -> None:
    """To the last digit, the result equals the sum over all periods in their order."""
    fewer = vcpu * share
    cores = sorted(percent * vcpu / 100 for percent in percents)
    sums_from = [*accumulate(reversed(cores), initial=0.0)][::-1]
    within = bisect_right(cores, fewer)
    host = BusyCores(Series(tuple(percents)), vcpu)
    assert host.runtime_factor(fewer) == (within + sums_from[within] / fewer) / len(cores)
    assert host.is_at_limit(fewer) is (cores[len(cores) // 2] >= 0.9 * fewer)
