"""Cores and memory of CPU types."""

from tests.labelled.machine import SKLEARN, Doing, Plot, alike
from tests.labelled.story import BUSY_CPU, story

STORIES = (
    story("all-cores-and-most-memory", Plot("ml.m5.4xlarge", alike(1, BUSY_CPU), image=SKLEARN)),
    story("one-thread-of-sixteen",
        Plot("ml.m5.4xlarge", alike(1, Doing(100, cores=0.98, gib=9, jitter=0.01)), image=SKLEARN),
        "serial-code", either=("cpu-underused", "memory-oversized")),
    story("three-cores-of-sixteen",
        Plot("ml.m5.4xlarge", alike(1, Doing(100, cores=3.1, gib=6, jitter=0.25)), image=SKLEARN),
        "cpu-underused", either=("memory-oversized",)),
    story("three-cores-of-sixteen-at-an-estimated-rate",
        Plot("ml.m8i.4xlarge", alike(1, Doing(100, cores=3.1, gib=6, jitter=0.25)), image=SKLEARN),
        "cpu-underused", either=("memory-oversized",)),
    story("all-cores-at-an-estimated-rate",
        Plot("ml.m6i.4xlarge", alike(1, BUSY_CPU), image=SKLEARN)),
    story("much-memory-for-little-data",
        Plot("ml.r5.2xlarge", alike(1, Doing(100, cores=7.1, gib=6)), image=SKLEARN),
        "memory-oversized"),
    story("memory-that-is-needed",
        Plot("ml.r5.2xlarge", alike(1, Doing(100, cores=7.1, gib=51)), image=SKLEARN)),
)  # fmt: skip
