"""A spot run that is interrupted again and again."""

from tests.labelled.machine import Phase, Plot, alike, idle
from tests.labelled.story import story


def taken(*spans: tuple[str, int], billed_min: int) -> Plot:
    """The statuses of several attempts with their minutes; of its metrics nothing was recorded."""
    phases = tuple(Phase(status, 60 * minutes) for status, minutes in spans)
    return Plot(
        "ml.g4dn.xlarge",
        alike(1, idle(1)),
        phases=phases,
        billable=60 * billed_min,
        describe={"EnableManagedSpotTraining": True},
        has_metrics=False,
    )


STORIES = (
    # Spot capacity is taken three times in an afternoon; each time the work begins again.
    story(
        "taken-again-and-again",
        taken(*(("Starting", 2), ("Downloading", 1), ("Training", 57), ("Interrupted", 35)),
            *(("Starting", 1), ("Training", 64), ("Interrupted", 40)),
            *(("Starting", 1), ("Training", 59), ("Interrupted", 40)),
            *(("Downloading", 1), ("Training", 329)), billed_min=610),
        "spot-without-checkpoint", either=("idle-start",),
    ),
    # A run of 14 minutes is taken three times: no checkpoint is worth it, on demand is.
    story(
        "taken-from-a-short-run",
        taken(*(("Starting", 2), ("Downloading", 1), ("Training", 8), ("Interrupted", 1)),
            *(("Starting", 1), ("Training", 9), ("Interrupted", 2)),
            *(("Starting", 1), ("Training", 10), ("Interrupted", 2)),
            *(("Downloading", 1), ("Training", 14)), billed_min=44),
        "spot-interrupted-much", either=("idle-start",),
    ),
)  # fmt: skip
