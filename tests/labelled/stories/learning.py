"""Learning curves: training that goes on after the model has stopped learning."""

import math

from sageaudit.structs import replace
from tests.labelled.machine import Plot, alike
from tests.labelled.story import BUSY_A10G, falling, story

STORIES = (
    story("learnt-all-in-the-first-third",
        Plot("ml.g5.xlarge", alike(1, replace(BUSY_A10G, minutes=200)),
            curves={"validation:loss": falling(200, 140)}), "metric-plateau"),
    story("still-learning-at-the-end",
        Plot("ml.g5.xlarge", alike(1, replace(BUSY_A10G, minutes=200)),
            curves={"validation:loss": [2.2 - 0.009 * step for step in range(180)]})),
    story("a-cosine-schedule-that-gains-late",
        Plot("ml.g5.xlarge", alike(1, replace(BUSY_A10G, minutes=200)),
            curves={
                "validation:accuracy": [
                    0.6 + 0.15 * (1 - math.cos(math.pi * step / 180)) for step in range(180)]},
            hyperparameters={"lr_scheduler_type": '"cosine"'})),
)  # fmt: skip
