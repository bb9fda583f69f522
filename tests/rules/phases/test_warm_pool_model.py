from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.job.job import Phase
from sageaudit.rules.phases.warm_pool_model import (
    PoolUse,
    RunTimes,
    best_keep_alive,
    model_warm_pool,
    times_of,
    times_of_earlier,
)
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, job

HOUR = Decimal(3600)


def runs(*gaps_s: int) -> list[RunTimes]:
    """Runs of ten minutes, newest first, with these gaps between them."""
    made, requested_at = [], START
    for gap_s in (*gaps_s, 0):
        made.append(
            RunTimes(requested_at, requested_at + timedelta(minutes=10), Decimal(60), Decimal(540))
        )
        requested_at -= timedelta(minutes=10, seconds=gap_s)
    return made


def test_a_pool_waits_as_long_as_the_gaps() -> None:
    """Gaps of 100 and 200 s: 150 s retained a run; a keep-alive of 4 minutes covers both."""
    assert model_warm_pool(runs(100, 200), HOUR) == PoolUse(240, Decimal(150), Decimal(100))


def test_a_gap_that_it_does_not_serve_costs_the_whole_keep_alive() -> None:
    """(100 + 120) / 2 s; half of the runs are served."""
    assert model_warm_pool(runs(100, 90_000), HOUR) == PoolUse(120, Decimal(110), Decimal(50))


def test_the_keep_alive_is_never_above_the_longest() -> None:
    """A gap of exactly an hour."""
    assert model_warm_pool(runs(3600), HOUR) == PoolUse(3600, HOUR, Decimal(100))


@pytest.mark.parametrize("gaps_s", [(), (90_000,), (-30,)])
def test_without_a_gap_in_reach_there_is_no_pool(gaps_s: tuple[int, ...]) -> None:
    """A single run, one that came too late, and one that was requested too early."""
    assert model_warm_pool(runs(*gaps_s), HOUR) is None


def test_an_earlier_run_is_counted_back_from_its_end() -> None:
    """An hour of work after two minutes of Starting."""
    run = earlier_run(1)
    times = times_of_earlier(run)
    assert times == RunTimes(
        run.ended_at - timedelta(seconds=3720), run.ended_at, Decimal(120), HOUR
    )
    assert times_of_earlier(earlier_run(1, phase_s={"Training": HOUR})) is None
    assert times_of_earlier(earlier_run(1, elapsed_s=Decimal(0))) is None


def test_a_job_says_when_it_was_requested() -> None:
    """Unknown when a phase has no end, or the run no times."""
    run = job()
    assert times_of(run) == RunTimes(
        START - timedelta(minutes=2), START + timedelta(hours=3), Decimal(120), Decimal(10800)
    )
    assert times_of(job(phases=(Phase("Starting", START, None, billed=False),))) is None
    assert times_of(job(training_s=None, ended_at=None)) is None


def test_the_best_keep_alive_serves_the_gaps_that_cost_less_than_a_start() -> None:
    """Four minutes between runs, one night: the fifth minute ends the pool."""
    gaps = [Decimal(240), Decimal(240), Decimal(240), Decimal(43_200), None]
    assert best_keep_alive(gaps, Decimal(600)) == 300


def test_no_keep_alive_is_best_where_each_gap_costs_more_than_a_start() -> None:
    """An hour between runs; and where nobody ever came back."""
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
