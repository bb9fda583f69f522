"""Spot runs that are interrupted several times."""

from tests.labelled.machine import idle, one_host
from tests.labelled.made_up_job import Phase, Plot
from tests.labelled.story import story


def starting(minutes: int) -> Phase:
    """Returns the wait for Spot capacity."""
    return Phase("Starting", 60 * minutes)


def downloading(minutes: int) -> Phase:
    """Returns the download of image and data."""
    return Phase("Downloading", 60 * minutes)


def training(minutes: int) -> Phase:
    """Returns the work."""
    return Phase("Training", 60 * minutes)


def interrupted(minutes: int) -> Phase:
    """Returns the time until the instance is replaced."""
    return Phase("Interrupted", 60 * minutes)


def spot_run(*phases: Phase, billed_min: int) -> Plot:
    """Returns a Spot run of several attempts, without metrics."""
    return Plot(
        instance="ml.g4dn.xlarge",
        hosts=one_host(idle(minutes=1)),
        phases=phases,
        billable=60 * billed_min,
        describe={"EnableManagedSpotTraining": True},
        has_metrics=False,
    )


STORIES = (
    # Spot capacity is taken away three times in an afternoon; each time the work begins again.
    story(
        "taken-again-and-again",
        spot_run(
            starting(minutes=2),
            downloading(minutes=1),
            training(minutes=57),
            interrupted(minutes=35),
            starting(minutes=1),
            training(minutes=64),
            interrupted(minutes=40),
            starting(minutes=1),
            training(minutes=59),
            interrupted(minutes=40),
            downloading(minutes=1),
            training(minutes=329),
            billed_min=610,
        ),
        must_find=("spot-without-checkpoint",),
        may_find=("idle-start",),
    ),
    # A run of 14 minutes is interrupted three times: on demand pays off, a checkpoint does not.
    story(
        "taken-from-a-short-run",
        spot_run(
            starting(minutes=2),
            downloading(minutes=1),
            training(minutes=8),
            interrupted(minutes=1),
            starting(minutes=1),
            training(minutes=9),
            interrupted(minutes=2),
            starting(minutes=1),
            training(minutes=10),
            interrupted(minutes=2),
            downloading(minutes=1),
            training(minutes=14),
            billed_min=44,
        ),
        must_find=("spot-interrupted-much",),
        may_find=("idle-start",),
    ),
)
