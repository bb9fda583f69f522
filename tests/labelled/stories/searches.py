"""Tuning jobs with their trials."""

from tests.labelled.story import tuning


def _improving(trials: int) -> list[float | None]:
    return [0.70 + 0.012 * number for number in range(trials)]


EIGHTEEN_WORSE = tuple(0.85 + 0.002 * (number % 7) for number in range(18))

STORIES = (
    tuning(
        "a-search-that-goes-on-finding", _improving(trials=12), must_not_find=("tuning-strategy",)
    ),
    tuning(
        "the-best-was-the-second-of-twenty",
        [0.80, 0.91, *EIGHTEEN_WORSE],
        must_find=("tuning-plateau",),
    ),
    tuning(
        "half-of-the-trials-crash",
        [value if number % 2 else None for number, value in enumerate(_improving(trials=12))],
        must_find=("tuning-failed-trials",),
        may_find=("failed-spend", "tuning-plateau"),
    ),
    tuning(
        "no-trial-is-ever-cut-short",
        _improving(trials=12),
        must_find=("tuning-no-early-stop",),
        TrainingJobEarlyStoppingType="Off",
    ),
    tuning(
        "hyperband-stops-by-itself",
        _improving(trials=12),
        must_not_find=("tuning-no-early-stop",),
        TrainingJobEarlyStoppingType="Off",
        Strategy="Hyperband",
    ),
    tuning(
        "thirty-points-at-random",
        _improving(trials=30),
        must_find=("tuning-strategy",),
        Strategy="Random",
    ),
)
