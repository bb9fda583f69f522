"""Instances that are idle before or after the work, or wait for each other."""

from sageaudit.structs import replace
from tests.labelled.machine import Doing, identical_hosts, idle, one_host
from tests.labelled.made_up_job import SKLEARN, Plot, channel
from tests.labelled.story import BUSY_A10G, BUSY_CPU, BUSY_T4, story

STORIES = (
    story(
        "a-distributed-exit-that-hangs",
        Plot(instance="ml.g5.xlarge", hosts=identical_hosts(2, BUSY_A10G, idle(minutes=55))),
        must_find=("idle-tail",),
    ),
    story(
        "a-metric-server-that-never-answers",
        Plot(
            instance="ml.m5.4xlarge",
            hosts=one_host(BUSY_CPU, idle(minutes=50)),
            image=SKLEARN,
        ),
        must_find=("idle-tail",),
    ),
    story(
        "half-an-hour-for-a-licence-server",
        Plot(instance="ml.g5.xlarge", hosts=one_host(idle(minutes=35), BUSY_A10G)),
        must_find=("idle-start",),
    ),
    story(
        "a-copy-by-hand-before-the-work",
        Plot(
            instance="ml.g5.xlarge",
            hosts=one_host(Doing(minutes=45, cores=0.7, gpus=(0.0,), gib=4), BUSY_A10G),
            channels=(),
        ),
        must_find=("idle-start",),
        may_find=("image-pull-heavy",),
    ),
    story(
        "one-of-two-hosts-done-at-half-time",
        Plot(
            instance="ml.g4dn.xlarge",
            hosts=((replace(BUSY_T4, minutes=70), idle(minutes=80)), (BUSY_T4,)),
        ),
        must_find=("idle-tail",),
        may_find=("uneven-hosts",),
    ),
    story(
        "one-host-with-a-tenth-of-the-data",
        Plot(
            instance="ml.m5.4xlarge",
            hosts=((BUSY_CPU,), (BUSY_CPU,), (replace(BUSY_CPU, cores=1.9, gib=9),)),
            image=SKLEARN,
            channels=(channel(distribution="ShardedByS3Key"),),
        ),
        must_find=("uneven-hosts",),
    ),
)
