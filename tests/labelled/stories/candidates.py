"""Runs that are worth a trial of something else."""

from sageaudit.structs import replace
from tests.labelled.machine import SKLEARN, Doing, Plot, alike, channel
from tests.labelled.story import BUSY_A10G, BUSY_CPU, story

EIGHT_A100 = Doing(300, cores=40, gpus=(0.92,) * 8, gib=400, gpu_gib=(33.0,) * 8)
STORIES = (
    story("days-of-fp32-on-eight-gpus", Plot("ml.p4d.24xlarge", alike(1, EIGHT_A100)),
        "trainium-candidate"),
    story("an-hour-is-no-reason-to-port",
        Plot("ml.g5.xlarge", alike(1, replace(BUSY_A10G, minutes=60))),
        fine=("trainium-candidate",)),
    story("boosted-trees-are-no-network",
        Plot("ml.m5.4xlarge", alike(1, replace(BUSY_CPU, minutes=400)), image=SKLEARN),
        fine=("trainium-candidate",)),
    story("a-limit-near-the-run",
        Plot("ml.g5.12xlarge",
            alike(1, Doing(130, cores=30, gpus=(0.9,) * 4, gib=120, gpu_gib=(20.0,) * 4)),
            describe={"StoppingCondition": {"MaxRuntimeInSeconds": 4 * 3600}}),
        fine=("max-runtime-loose",)),
    story("eight-dear-gpus-half-asleep",
        Plot("ml.p4d.24xlarge",
            alike(1, Doing(300, cores=20, gpus=(0.3,) * 8, gib=300, gpu_gib=(33.0,) * 8)),
            ),
        either=("gpu-underused", "some-gpus-unused")),
    story("a-cheap-run-half-asleep",
        Plot("ml.g4dn.xlarge", alike(1, Doing(90, cores=1.5, gpus=(0.3,), gib=8, gpu_gib=(9.0,)))),
        either=("gpu-underused",)),
    story("four-hosts-for-the-work-of-one",
        Plot("ml.m5.4xlarge", alike(4, Doing(100, cores=3.2, gib=20, jitter=0.15)), image=SKLEARN,
            channels=(channel(distribution="ShardedByS3Key"),)), "cpu-underused",
        either=("poor-scaling", "memory-oversized")),
)  # fmt: skip
