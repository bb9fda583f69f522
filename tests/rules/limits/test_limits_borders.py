"""Just inside and just outside of what is said of a run that failed for lack of memory."""

from collections.abc import Iterable
from functools import partial

from tests.fakes.judging import answer
from tests.fakes.rule_cases import even_use, finds
from tests.rules.limits.test_failed_spend import LEAK, STEADY, filled_gpu, out_of_memory

verdict = partial(answer, "failed-spend")
ROSE = finds(STEADY)
DID_NOT_RISE = finds(without="rose")


def fifths(*percents: float) -> list[float]:
    """Five minutes at each."""
    return [percent for percent in percents for _ in range(5)]


def falls(points: Iterable[float], to: float) -> list[float]:
    """The same with one point of the last fifth lower."""
    whole = list(points)
    whole[22] = to
    return whole


EVEN = fifths(38, 53, 68, 83, 98)
KILLED = out_of_memory("AlgorithmError: , exit code: 137")


def test_memory_that_rose_by_more_than_three_quarters_within_two_fifths_is_a_step() -> None:
    """From 38% to 98% are 60 points, of which 45 are three quarters."""
    assert verdict(*filled_gpu(fifths(38, 45, 83, 90, 98))) == ROSE
    assert verdict(*filled_gpu(fifths(38, 45, 84, 90, 98))) == DID_NOT_RISE


def test_memory_that_falls_by_half_of_its_rise_is_a_sawtooth() -> None:
    assert verdict(*filled_gpu(falls(EVEN, 69))) == ROSE
    assert verdict(*filled_gpu(falls(EVEN, 68))) == DID_NOT_RISE


def test_the_last_three_points_are_those_in_which_the_process_dies() -> None:
    assert verdict(*filled_gpu([*LEAK, 60, 3])) == ROSE
    assert verdict(*filled_gpu([*LEAK, 60, 3, 3])) == DID_NOT_RISE


def test_host_memory_below_80_percent_does_not_show_that_it_ran_out() -> None:
    at_80 = even_use(minutes=120, cpu=50, memory=80, gpu=90)
    at_79 = even_use(minutes=120, cpu=50, memory=79, gpu=90)
    assert verdict(KILLED, at_80) == finds("…host memory was last recorded at 80%)…")
    assert verdict(KILLED, at_79) == finds(
        "…host memory was last recorded at 79%, which does not show that it ran out…"
    )
