from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.job.job import Phase
from sageaudit.rules.purchase.warm_pool_model import (
    RunTimes,
    best_keep_alive,
    run_times,
    run_times_from_summary,
)
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, job

HOUR = Decimal(3600)


def test_an_earlier_run_is_counted_back_from_its_end() -> None:
    """An hour of work after two minutes of Starting."""
    run = earlier_run(1)
    times = run_times_from_summary(run)
    assert times == RunTimes(run.ended_at - timedelta(seconds=3720), run.ended_at, Decimal(120))
    assert run_times_from_summary(earlier_run(1, phase_s={"Training": HOUR})) is None
    assert run_times_from_summary(earlier_run(1, elapsed_s=Decimal(0))) is None


def test_a_job_says_when_it_was_requested() -> None:
    """Unknown when a phase has no end, or the run no times."""
    run = job()
    assert run_times(run) == RunTimes(
        START - timedelta(minutes=2), START + timedelta(hours=3), Decimal(120)
    )
    assert run_times(job(phases=(Phase("Starting", START, None, billed=False),))) is None
    assert run_times(job(training_s=None, ended_at=None)) is None


def test_the_best_keep_alive_serves_the_gaps_that_cost_less_than_a_start() -> None:
    """Four minutes between runs, one night: the fifth minute ends the pool."""
    gaps = [Decimal(240), Decimal(240), Decimal(240), Decimal(43_200), None]
    assert best_keep_alive(gaps, Decimal(600)) == 300


def test_no_keep_alive_is_best_if_each_gap_costs_more_than_a_start() -> None:
    """An hour between runs; or no run ever came back."""
    assert best_keep_alive([Decimal(3600)] * 9, Decimal(600)) == 0
    assert best_keep_alive([None, None], Decimal(600)) == 0
    assert best_keep_alive([], Decimal(600)) == 0


def test_no_keep_alive_is_longer_than_an_hour() -> None:
    """SageMaker takes no more: starts of two hours are not saved by a pool of 90 minutes."""
    assert best_keep_alive([Decimal(5400)] * 9, Decimal(7200)) == 0
    assert best_keep_alive([Decimal(3540)] * 9, Decimal(7200)) == 3600


@given(
    st.lists(st.none() | st.integers(0, 90_000).map(Decimal), max_size=12),
    st.integers(0, 3_000).map(Decimal),
)
def test_no_other_keep_alive_costs_less(gaps: list[Decimal | None], start_s: Decimal) -> None:
    """Every whole minute of a day tried: none is cheaper than the one that is named."""

    def net_s(minutes: int) -> Decimal:
        keep_s = Decimal(60 * minutes)
        waited = [keep_s if gap is None else min(gap, keep_s) for gap in gaps]
        served = [gap for gap in gaps if gap is not None and gap < keep_s]
        return sum(waited, Decimal(0)) - len(served) * start_s

    best_s = best_keep_alive(gaps, start_s)
    assert net_s(best_s // 60) <= min(net_s(minutes) for minutes in range(0, 1440, 7))
    assert best_s % 60 == 0


@pytest.mark.parametrize(("gap_s", "keep_alive_s"), [(3_599, 3_600), (3_600, 0)])
def test_a_pool_is_kept_for_an_hour_at_most(gap_s: int, keep_alive_s: int) -> None:
    """SageMaker keeps none longer, so a run that comes later finds none."""
    assert best_keep_alive([Decimal(gap_s)] * 3, start_s=Decimal(4_000)) == keep_alive_s
