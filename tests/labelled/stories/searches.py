"""Tuning jobs with their trials."""

from tests.labelled.story import tuning


def _improving(trials: int) -> list[float | None]:
    return [0.70 + 0.012 * number for number in range(trials)]


STORIES = (
    tuning("a-search-that-goes-on-finding", _improving(12), fine=("tuning-strategy",)),
    tuning("the-best-was-the-second-of-twenty",
        [0.80, 0.91, *(0.85 + 0.002 * (n % 7) for n in range(18))], "tuning-plateau"),
    tuning("half-of-the-trials-crash",
        [value if n % 2 else None for n, value in enumerate(_improving(12))],
        "tuning-failed-trials", either=("failed-spend", "tuning-plateau")),
    tuning("no-trial-is-ever-cut-short", _improving(12), "tuning-no-early-stop",
        TrainingJobEarlyStoppingType="Off"),
    tuning("hyperband-stops-by-itself", _improving(12), fine=("tuning-no-early-stop",),
        TrainingJobEarlyStoppingType="Off", Strategy="Hyperband"),
    tuning("thirty-points-at-random", _improving(30), "tuning-strategy", Strategy="Random"),
)  # fmt: skip
