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
    """Spot capacity is taken five times in an afternoon; each time hours of work are done again."""
    plot = Plot("ml.g4dn.xlarge", alike(1, LONG_T4), spot_billed_share=0.98, name="taken-again")
    told = story("taken-again-and-again", plot).tell(seed)
    answer = told["describe"]
    moments = [BEGIN + timedelta(minutes=n) for n in (0, 2, 3, 60, 95, 96, 160, 200, 201, 260, 300)]
    names = ["Starting", "Downloading", "Training", "Interrupted", "Starting", "Training"]
    names += ["Interrupted", "Starting", "Training", "Interrupted"]
    spans = zip(names, moments, moments[1:], strict=False)
    transitions = [phase(name, start, end) for name, start, end in spans]
    last = answer["SecondaryStatusTransitions"][-1]
    first = BEGIN + timedelta(minutes=300)
    end = first + timedelta(minutes=330)
    transitions += [
        phase("Downloading", first, first + timedelta(minutes=1)),
        phase("Training", first + timedelta(minutes=1), end),
        last | {"StartTime": iso(end), "EndTime": iso(end)},
    ]
    answer |= {
        "TrainingStartTime": iso(BEGIN + timedelta(minutes=2)),
        "TrainingEndTime": iso(end),
        "SecondaryStatusTransitions": transitions,
        "TrainingTimeInSeconds": 628 * 60,
        "BillableTimeInSeconds": 610 * 60,
    }
    return {**told, "metrics": {"period_s": 60, "series": []}}


STORIES = (
    Story(
        "taken-again-and-again",
        interrupted,
        frozenset({"spot-interrupted-much", "spot-without-checkpoint"}),
        frozenset({"idle-start"}),
    ),
)
