from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from sageaudit.domain.job.job import Phase
from sageaudit.rules.phases.warm_pool_model import (
    Pool,
    Span,
    model_warm_pool,
    span_of,
    span_of_earlier,
)
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, job

HOUR = Decimal(3600)


def spans(*gaps_s: int) -> list[Span]:
    """Runs of ten minutes, newest first, with these gaps between them."""
    made, asked_at = [], START
    for gap_s in (*gaps_s, 0):
        made.append(Span(asked_at, asked_at + timedelta(minutes=10), Decimal(60), Decimal(540)))
        asked_at -= timedelta(minutes=10, seconds=gap_s)
    return made


def test_a_pool_waits_as_long_as_the_gaps() -> None:
    """100 and 200 s are 150 s a run; four minutes keep it over both."""
    assert model_warm_pool(spans(100, 200), HOUR) == Pool(240, Decimal(150), Decimal(100))


def test_a_gap_that_it_does_not_serve_costs_the_whole_keep_alive() -> None:
    """(100 + 120) / 2 s; half of the runs are served."""
    assert model_warm_pool(spans(100, 90_000), HOUR) == Pool(120, Decimal(110), Decimal(50))


def test_the_keep_alive_is_never_above_the_longest() -> None:
    """A gap of exactly an hour."""
    assert model_warm_pool(spans(3600), HOUR) == Pool(3600, HOUR, Decimal(100))


@pytest.mark.parametrize("gaps_s", [(), (90_000,), (-30,)])
def test_no_pool_serves_nobody(gaps_s: tuple[int, ...]) -> None:
    """A single run, one that came too late, and one that was asked for too early."""
    assert model_warm_pool(spans(*gaps_s), HOUR) is None


def test_an_earlier_run_is_counted_back_from_its_end() -> None:
    """An hour of work after two minutes of Starting."""
    run = earlier_run(1)
    span = span_of_earlier(run)
    assert span == Span(run.ended_at - timedelta(seconds=3720), run.ended_at, Decimal(120), HOUR)
    assert span_of_earlier(earlier_run(1, phase_s={"Training": HOUR})) is None
    assert span_of_earlier(earlier_run(1, elapsed_s=Decimal(0))) is None


def test_a_job_says_when_it_was_asked_for() -> None:
    """A wait without end is not known."""
    run = job()
    assert span_of(run) == Span(
        START - timedelta(minutes=2), START + timedelta(hours=3), Decimal(120), Decimal(10800)
    )
    assert span_of(job(phases=(Phase("Starting", START, None, billed=False),))) is None
    assert span_of(job(training_s=None, ended_at=None)) is None
