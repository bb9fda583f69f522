from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.usage.demand import BusyCores
from sageaudit.domain.usage.series import Series


@given(cores=st.lists(st.floats(0, 16), min_size=1, max_size=90), fewer=st.sampled_from((2, 4, 8)))
def test_more_work_or_fewer_vcpus_never_take_less_time(cores: list[float], fewer: int) -> None:
    """And all that time is what the cores did: no more than all of it one after the other."""
    host = BusyCores.of(Series(tuple(100 * one / 16 for one in cores)), 16)
    busier = BusyCores.of(Series(tuple(100 * min(one + 1, 16) / 16 for one in cores)), 16)
    times = host.times_as_long(fewer)
    assert 1 <= times <= max(*cores, fewer) / fewer + 1e-9
    assert times <= busier.times_as_long(fewer) + 1e-9
    assert times <= host.times_as_long(fewer / 2) + 1e-9
