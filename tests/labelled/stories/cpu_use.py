"""Cores and memory of CPU types."""

from tests.labelled.machine import Doing, one_host
from tests.labelled.made_up_job import SKLEARN, Plot
from tests.labelled.story import BUSY_CPU, story

STORIES = (
    story(
        "all-cores-and-most-memory",
        Plot(instance="ml.m5.4xlarge", hosts=one_host(BUSY_CPU), image=SKLEARN),
    ),
    story(
        "one-thread-of-sixteen",
        Plot(
            instance="ml.m5.4xlarge",
            hosts=one_host(Doing(minutes=100, cores=0.98, gib=9, jitter=0.01)),
            image=SKLEARN,
        ),
        must_find=("serial-code",),
        may_find=("cpu-underused", "memory-oversized"),
    ),
    story(
        "three-cores-of-sixteen",
        Plot(
            instance="ml.m5.4xlarge",
            hosts=one_host(Doing(minutes=100, cores=3.1, gib=6, jitter=0.25)),
            image=SKLEARN,
        ),
        must_find=("cpu-underused",),
        may_find=("memory-oversized",),
    ),
    story(
        "three-cores-of-sixteen-at-an-estimated-rate",
        Plot(
            instance="ml.m8i.4xlarge",
            hosts=one_host(Doing(minutes=100, cores=3.1, gib=6, jitter=0.25)),
            image=SKLEARN,
        ),
        must_find=("cpu-underused",),
        may_find=("memory-oversized",),
    ),
    story(
        "all-cores-at-an-estimated-rate",
        Plot(instance="ml.m6i.4xlarge", hosts=one_host(BUSY_CPU), image=SKLEARN),
    ),
    story(
        "much-memory-for-little-data",
        Plot(
            instance="ml.r5.2xlarge",
            hosts=one_host(Doing(minutes=100, cores=7.1, gib=6)),
            image=SKLEARN,
        ),
        must_find=("memory-oversized",),
    ),
    story(
        "memory-that-is-needed",
        Plot(
            instance="ml.r5.2xlarge",
            hosts=one_host(Doing(minutes=100, cores=7.1, gib=51)),
            image=SKLEARN,
        ),
    ),
)
