"""Runs for which a trial of Trainium, Spot or a smaller type may be worthwhile."""

from sageaudit.structs import replace
from tests.labelled.machine import Doing, identical_hosts, one_host
from tests.labelled.made_up_job import SKLEARN, Plot, channel
from tests.labelled.story import BUSY_A10G, BUSY_CPU, FOUR_BUSY_A10G, story

EIGHT_BUSY_A100 = Doing(minutes=300, cores=40, gpus=(0.92,) * 8, gib=400, gpu_gib=(33.0,) * 8)
EIGHT_A100_AT_A_THIRD = Doing(minutes=300, cores=20, gpus=(0.3,) * 8, gib=300, gpu_gib=(33.0,) * 8)
HOUR_S = 3600

STORIES = (
    story(
        "days-of-fp32-on-eight-gpus",
        Plot(instance="ml.p4d.24xlarge", hosts=one_host(EIGHT_BUSY_A100)),
        must_find=("trainium-candidate",),
    ),
    story(
        "an-hour-is-no-reason-to-port",
        Plot(instance="ml.g5.xlarge", hosts=one_host(replace(BUSY_A10G, minutes=60))),
        must_not_find=("trainium-candidate",),
    ),
    story(
        "boosted-trees-are-no-network",
        Plot(
            instance="ml.m5.4xlarge",
            hosts=one_host(replace(BUSY_CPU, minutes=400)),
            image=SKLEARN,
        ),
        must_not_find=("trainium-candidate",),
    ),
    story(
        "a-limit-near-the-run",
        Plot(
            instance="ml.g5.12xlarge",
            hosts=one_host(FOUR_BUSY_A10G),
            describe={"StoppingCondition": {"MaxRuntimeInSeconds": 4 * HOUR_S}},
        ),
        must_not_find=("max-runtime-loose",),
    ),
    story(
        "eight-dear-gpus-half-asleep",
        Plot(
            instance="ml.p4d.24xlarge",
            hosts=one_host(EIGHT_A100_AT_A_THIRD),
        ),
        may_find=("gpu-underused", "some-gpus-unused"),
    ),
    story(
        "a-cheap-run-half-asleep",
        Plot(
            instance="ml.g4dn.xlarge",
            hosts=one_host(Doing(minutes=90, cores=1.5, gpus=(0.3,), gib=8, gpu_gib=(9.0,))),
        ),
        may_find=("gpu-underused",),
    ),
    story(
        "four-hosts-for-the-work-of-one",
        Plot(
            instance="ml.m5.4xlarge",
            hosts=identical_hosts(4, Doing(minutes=100, cores=3.2, gib=20, jitter=0.15)),
            image=SKLEARN,
            channels=(channel(distribution="ShardedByS3Key"),),
        ),
        must_find=("cpu-underused",),
        may_find=("poor-scaling", "memory-oversized"),
    ),
)
