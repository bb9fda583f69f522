"""Downloads, image pulls and uploads around the work."""

from __future__ import annotations

from dataclasses import replace

from tests.labelled.machine import (
    Plot,
    alike,
    channel,
)
from tests.labelled.story import (
    BUSY_A10G,
    story,
)

STORIES = (
    story(
        "copies-an-hour-of-files-first",
        Plot(
            "ml.g5.xlarge",
            alike(1, BUSY_A10G),
            downloading_s=3600,
            channels=(channel(mode="File"),),
        ),
        "download-dominates",
    ),
    story(
        "four-hosts-copy-all-of-it",
        Plot(
            "ml.g5.xlarge",
            alike(4, BUSY_A10G),
            downloading_s=3600,
            channels=(channel(mode="File"),),
        ),
        "replicated-input",
        either=("download-dominates",),
    ),
    story(
        "an-image-of-thirty-gigabytes",
        Plot("ml.g5.xlarge", alike(1, replace(BUSY_A10G, minutes=60)), downloading_s=1500),
        "image-pull-heavy",
    ),
    story(
        "writes-every-checkpoint-into-the-model",
        Plot("ml.g5.xlarge", alike(1, replace(BUSY_A10G, minutes=60)), uploading_s=2700),
        "upload-dominates",
    ),
)
