"""Just inside and just outside of what is said of a run that failed for lack of memory."""

from collections.abc import Iterable

from tests.fakes.rule_cases import cases, even, finds, row
from tests.rules.limits.test_failed_spend import LEAK, STEADY, grew, out_of_memory


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

test_memory = cases(
    "failed-spend",
    "A step is no growth. Three quarters of the rise within two fifths are not one yet.",
    # From 38% to 98%: 45 of these 60 points.
    row(finds(STEADY), *grew(fifths(38, 45, 83, 90, 98))),
    row(finds(without="rose"), *grew(fifths(38, 45, 84, 90, 98))),
    "A fall by half of the rise is a sawtooth.",
    row(finds(STEADY), *grew(falls(EVEN, 69))),
    row(finds(without="rose"), *grew(falls(EVEN, 68))),
    "The last three points are those in which the process dies.",
    row(finds(STEADY), *grew([*LEAK, 60, 3])),
    row(finds(without="rose"), *grew([*LEAK, 60, 3, 3])),
    "Host memory below 80% does not show that it ran out.",
    row(finds("…host memory was last recorded at 80%)…"), KILLED,
        even(120, cpu=50, memory=80, gpu=90)),
    row(finds("…host memory was last recorded at 79%, which does not show that it ran out…"),
        KILLED, even(120, cpu=50, memory=79, gpu=90)),
)  # fmt: skip
