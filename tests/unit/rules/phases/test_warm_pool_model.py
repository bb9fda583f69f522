from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from sageaudit.domain.job.job import Phase
from sageaudit.rules.phases.warm_pool_model import (
    PoolUse,
    RunTimes,
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
