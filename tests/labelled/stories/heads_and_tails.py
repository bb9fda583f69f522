"""Instances that wait before the work, after it, or for each other."""

from sageaudit.structs import replace
from tests.labelled.machine import SKLEARN, Doing, Plot, alike, channel, idle
from tests.labelled.story import BUSY_A10G, BUSY_CPU, BUSY_T4, story

STORIES = (
    story("a-distributed-exit-that-hangs", Plot("ml.g5.xlarge", alike(2, BUSY_A10G, idle(55))),
        "idle-tail"),
    story("a-metric-server-that-never-answers",
        Plot("ml.m5.4xlarge", alike(1, BUSY_CPU, idle(50)), image=SKLEARN), "idle-tail"),
    story("half-an-hour-for-a-licence-server", Plot("ml.g5.xlarge", alike(1, idle(35), BUSY_A10G)),
        "idle-start"),
    story("a-copy-by-hand-before-the-work",
        Plot("ml.g5.xlarge", alike(1, Doing(45, cores=0.7, gpus=(0.0,), gib=4), BUSY_A10G),
            channels=()), "idle-start", either=("image-pull-heavy",)),
    story("one-of-two-hosts-done-at-half-time",
        Plot("ml.g4dn.xlarge", ((replace(BUSY_T4, minutes=70), idle(80)), (BUSY_T4,))), "idle-tail",
        either=("uneven-hosts",)),
    story("one-host-with-a-tenth-of-the-data",
        Plot("ml.m5.4xlarge", ((BUSY_CPU,), (BUSY_CPU,), (replace(BUSY_CPU, cores=1.9, gib=9),)),
            image=SKLEARN, channels=(channel(distribution="ShardedByS3Key"),)), "uneven-hosts"),
)  # fmt: skip
