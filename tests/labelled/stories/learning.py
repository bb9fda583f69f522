"""Learning curves: training that goes on after the model has stopped learning."""

import math

from sageaudit.structs import replace
from tests.labelled.machine import one_host
from tests.labelled.made_up_job import Plot
from tests.labelled.story import BUSY_A10G, falling_loss, story

HOSTS = one_host(replace(BUSY_A10G, minutes=200))
FALLING_TO_THE_END: list[float | None] = [2.2 - 0.009 * step for step in range(180)]
RISING_LATE: list[float | None] = [
    0.6 + 0.15 * (1 - math.cos(math.pi * step / 180)) for step in range(180)
]

STORIES = (
    story(
        "learnt-all-in-the-first-third",
        Plot(
            instance="ml.g5.xlarge",
            hosts=HOSTS,
            curves={"validation:loss": falling_loss(points=200, still=140)},
        ),
        must_find=("metric-plateau",),
    ),
    story(
        "still-learning-at-the-end",
        Plot(
            instance="ml.g5.xlarge",
            hosts=HOSTS,
            curves={"validation:loss": FALLING_TO_THE_END},
        ),
    ),
    story(
        "a-cosine-schedule-that-gains-late",
        Plot(
            instance="ml.g5.xlarge",
            hosts=HOSTS,
            curves={"validation:accuracy": RISING_LATE},
            hyperparameters={"lr_scheduler_type": '"cosine"'},
        ),
    ),
)
