"""A spot run that is interrupted again and again."""

from __future__ import annotations

from datetime import timedelta

from tests.labelled.machine import (
    BEGIN,
    Plot,
    alike,
    iso,
    phase,
)
from tests.labelled.story import (
    LONG_T4,
    Story,
    story,
)


def interrupted(seed: int) -> dict[str, object]:
    """Spot capacity is taken three times in an afternoon; each time the work begins again."""
    return _taken(seed, (0, 2, 3, 60, 95, 96, 160, 200, 201, 260, 300), last=330, billed=610)


def taken_from_a_short_run(seed: int) -> dict[str, object]:
    """A run of 14 minutes is taken three times: no checkpoint is worth it, on demand is."""
    return _taken(seed, (0, 2, 3, 11, 12, 13, 22, 24, 25, 35, 37), last=15, billed=44)


def _taken(seed: int, at: tuple[int, ...], *, last: int, billed: int) -> dict[str, object]:
    """Three attempts at these minutes, and one that ran to its end."""
    plot = Plot("ml.g4dn.xlarge", alike(1, LONG_T4), spot_billed_share=0.98, name="taken-again")
    told = story("taken-again-and-again", plot).tell(seed)
    answer = told["describe"]
    moments = [BEGIN + timedelta(minutes=n) for n in at]
    names = ["Starting", "Downloading", "Training", "Interrupted", "Starting", "Training"]
    names += ["Interrupted", "Starting", "Training", "Interrupted"]
    spans = zip(names, moments, moments[1:], strict=False)
    transitions = [phase(name, start, end) for name, start, end in spans]
    closing = answer["SecondaryStatusTransitions"][-1]
    first = moments[-1]
    end = first + timedelta(minutes=last)
    transitions += [
        phase("Downloading", first, first + timedelta(minutes=1)),
        phase("Training", first + timedelta(minutes=1), end),
        closing | {"StartTime": iso(end), "EndTime": iso(end)},
    ]
    answer |= {
        "TrainingStartTime": iso(BEGIN + timedelta(minutes=2)),
        "TrainingEndTime": iso(end),
        "SecondaryStatusTransitions": transitions,
        "TrainingTimeInSeconds": (at[-1] + last - 2) * 60,
        "BillableTimeInSeconds": billed * 60,
    }
    return {**told, "metrics": {"period_s": 60, "series": []}}


STORIES = (
    Story(
        "taken-again-and-again",
        interrupted,
        frozenset({"spot-without-checkpoint"}),
        frozenset({"idle-start"}),
    ),
    Story(
        "taken-from-a-short-run",
        taken_from_a_short_run,
        frozenset({"spot-interrupted-much"}),
        frozenset({"idle-start"}),
    ),
)
