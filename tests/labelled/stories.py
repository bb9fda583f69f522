"""Physical stories with their truth: what happened in the job, and what a person would say of it.

`wasteful` names what is true of the story by the way it is built; `either` what could be said with
as much right as not. All else would be a false alarm.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.labelled.machine import (
    SKLEARN,
    Doing,
    Plot,
    alike,
    channel,
    idle,
    machine,
    training,
)

TRIALS = frozenset(
    {
        "spot-not-used",
        "trainium-candidate",
        "mixed-precision-candidate",
        "max-runtime-loose",
        "profile-me",
        "network-isolation-off",
    }
)
"""Worth saying of nearly any long on-demand run: labelled only where a story is about them."""


@dataclass(frozen=True)
class Story:
    """One story, told once for each seed. `tell` makes the recording."""

    name: str
    tell: Callable[[int], dict[str, Any]]
    wasteful: frozenset[str] = frozenset()
    either: frozenset[str] = frozenset()
    fine: frozenset[str] = field(default_factory=frozenset)
    """Trials that this story is about, and that must not be advised."""

    def truth(self, rule: str) -> bool | None:
        """True, False, or None where both would be right."""
        if rule in self.wasteful:
            return True
        if rule in self.either or (rule in TRIALS and rule not in self.fine):
            return None
        return False


def story(
    name: str,
    plot: Plot,
    *wasteful: str,
    either: tuple[str, ...] = (),
    fine: tuple[str, ...] = (),
) -> Story:
    """A training job's story."""
    named = replace(plot, name=name)
    return Story(
        name,
        lambda seed: training(_varied(named, seed), seed),
        frozenset(wasteful),
        frozenset(either),
        frozenset(fine),
    )


def _varied(plot: Plot, seed: int) -> Plot:
    """The same story on another day: longer or shorter, a little more or less of everything.

    What waits and what works grow alike; what is used is used a tenth more or less, as far as the
    machine goes; every fiftieth point of CloudWatch is missing.
    """
    dice = random.Random(f"{plot.name} on day {seed}")
    factor, much = dice.uniform(0.85, 1.25), dice.uniform(0.92, 1.06)
    hosts = tuple(
        tuple(more_or_less(doing, factor, much, plot.instance) for doing in host)
        for host in plot.hosts
    )
    downloading_s, uploading_s = (
        round(seconds * factor) for seconds in (plot.downloading_s, plot.uploading_s)
    )
    return replace(
        plot, hosts=hosts, downloading_s=downloading_s, uploading_s=uploading_s, missing_share=0.02
    )


def more_or_less(doing: Doing, factor: float, much: float, instance: str) -> Doing:
    """A doing of another length and strength, within what the machine has."""
    on = machine(instance)
    return replace(
        doing,
        minutes=max(round(doing.minutes * factor), 1),
        cores=min(doing.cores * much, 0.985 * on.vcpu) if doing.cores > 1 else doing.cores,
        gpus=tuple(min(share * much, 0.98) for share in doing.gpus),
    )


def swinging(times: int, *doings: Doing) -> tuple[Doing, ...]:
    """The same minutes over and over."""
    return doings * times


BUSY_V100 = Doing(150, cores=4.5, gpus=(0.93,), gib=30, gpu_gib=(13.5,))
BUSY_A10G = Doing(150, cores=2.6, gpus=(0.92,), gib=9, gpu_gib=(20.0,))
BUSY_T4 = Doing(150, cores=2.2, gpus=(0.9,), gib=9, gpu_gib=(13.0,))
BUSY_CPU = Doing(120, cores=14.2, gib=42)

GPU_USE = (
    story("a-well-fed-gpu", Plot("ml.g5.xlarge", alike(1, BUSY_A10G))),
    story("a-well-fed-t4", Plot("ml.g4dn.xlarge", alike(1, BUSY_T4))),
    story(
        "a-pair-of-well-fed-gpus",
        Plot("ml.g5.xlarge", alike(2, BUSY_A10G), hyperparameters={"fp16": "true"}),
        fine=("mixed-precision-candidate",),
    ),
    story(
        "gradient-boosting-on-a-gpu-box",
        Plot("ml.g4dn.2xlarge", alike(1, Doing(90, cores=6.1, gpus=(0.0,), gib=12))),
        "gpu-idle",
    ),
    story(
        "the-driver-was-not-found",
        Plot("ml.p3.2xlarge", alike(1, Doing(80, cores=7.4, gpus=(0.0,), gib=20))),
        "gpu-idle",
        either=("old-generation",),
    ),
    story(
        "a-small-network-in-small-batches",
        Plot("ml.g5.4xlarge", alike(1, Doing(120, cores=1.4, gpus=(0.11,), gib=6, gpu_gib=(2.2,)))),
        "gpu-underused",
        either=("cpu-underused",),
    ),
    story(
        "a-small-network-on-a-v100",
        Plot(
            "ml.p3.2xlarge",
            alike(1, Doing(120, cores=1.5, gpus=(0.12,), gib=7, gpu_gib=(2.5,))),
        ),
        "gpu-too-big",
        either=("gpu-underused", "old-generation"),
    ),
    story(
        "one-slow-decoder-before-the-gpu",
        Plot(
            "ml.g4dn.xlarge", alike(1, Doing(100, cores=3.92, gpus=(0.06,), gib=9, gpu_gib=(9.0,)))
        ),
        "cpu-bottleneck",
        either=("gpu-underused", "gpu-starved"),
    ),
    story(
        "augmentation-on-all-cores",
        Plot(
            "ml.g5.xlarge", alike(1, Doing(140, cores=3.9, gpus=(0.07,), gib=10, gpu_gib=(14.0,)))
        ),
        "cpu-bottleneck",
        either=("gpu-underused", "gpu-starved"),
    ),
    story(
        "each-epoch-waits-for-the-store",
        Plot(
            "ml.g5.xlarge",
            alike(
                1,
                *swinging(
                    14,
                    Doing(5, cores=2.4, gpus=(0.93,), gib=9, gpu_gib=(19.0,)),
                    Doing(6, cores=0.4, gpus=(0.01,), gib=9, gpu_gib=(19.0,)),
                ),
            ),
        ),
        "gpu-starved",
        either=("gpu-underused",),
    ),
    story(
        "one-process-on-four-gpus",
        Plot(
            "ml.g4dn.12xlarge",
            alike(
                1,
                Doing(120, cores=3.1, gpus=(0.9, 0, 0, 0), gib=14, gpu_gib=(12.0, 0.4, 0.4, 0.4)),
            ),
        ),
        "some-gpus-unused",
        either=("gpu-underused",),
    ),
    story(
        "all-four-gpus-at-work",
        Plot(
            "ml.g4dn.12xlarge",
            alike(1, Doing(120, cores=14, gpus=(0.9,) * 4, gib=60, gpu_gib=(13.0,) * 4)),
        ),
    ),
    story(
        "tensors-kept-alive",
        Plot(
            "ml.g5.xlarge",
            alike(
                1,
                *(
                    Doing(12, cores=2.5, gpus=(0.9,), gib=9, gpu_gib=(4.0 + 1.6 * step,))
                    for step in range(11)
                ),
            ),
        ),
        "gpu-memory-growth",
    ),
)

HEADS_AND_TAILS = (
    story(
        "a-distributed-exit-that-hangs",
        Plot("ml.g5.xlarge", alike(2, BUSY_A10G, idle(55))),
        "idle-tail",
    ),
    story(
        "a-metric-server-that-never-answers",
        Plot("ml.m5.4xlarge", alike(1, BUSY_CPU, idle(50)), image=SKLEARN),
        "idle-tail",
    ),
    story(
        "half-an-hour-for-a-licence-server",
        Plot("ml.g5.xlarge", alike(1, idle(35), BUSY_A10G)),
        "idle-start",
    ),
    story(
        "a-copy-by-hand-before-the-work",
        Plot(
            "ml.g5.xlarge",
            alike(1, Doing(45, cores=0.7, gpus=(0.0,), gib=4), BUSY_A10G),
            channels=(),
        ),
        "idle-start",
        either=("image-pull-heavy",),
    ),
    story(
        "one-of-two-hosts-done-at-half-time",
        Plot(
            "ml.g4dn.xlarge",
            ((replace(BUSY_T4, minutes=70), idle(80)), (BUSY_T4,)),
        ),
        "idle-tail",
        either=("uneven-hosts",),
    ),
    story(
        "one-host-with-a-tenth-of-the-data",
        Plot(
            "ml.m5.4xlarge",
            (
                (BUSY_CPU,),
                (BUSY_CPU,),
                (replace(BUSY_CPU, cores=1.9, gib=9),),
            ),
            image=SKLEARN,
            channels=(channel(distribution="ShardedByS3Key"),),
        ),
        "uneven-hosts",
    ),
)

CPU_USE = (
    story("all-cores-and-most-memory", Plot("ml.m5.4xlarge", alike(1, BUSY_CPU), image=SKLEARN)),
    story(
        "one-thread-of-sixteen",
        Plot("ml.m5.4xlarge", alike(1, Doing(100, cores=0.98, gib=9, jitter=0.01)), image=SKLEARN),
        "serial-code",
        either=("cpu-underused", "memory-oversized"),
    ),
    story(
        "three-cores-of-sixteen",
        Plot("ml.m5.4xlarge", alike(1, Doing(100, cores=3.1, gib=6, jitter=0.25)), image=SKLEARN),
        "cpu-underused",
        either=("memory-oversized",),
    ),
    story(
        "much-memory-for-little-data",
        Plot("ml.r5.2xlarge", alike(1, Doing(100, cores=7.1, gib=6)), image=SKLEARN),
        "memory-oversized",
    ),
    story(
        "memory-that-is-needed",
        Plot("ml.r5.2xlarge", alike(1, Doing(100, cores=7.1, gib=51)), image=SKLEARN),
    ),
)

PHASES = (
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

ALL: tuple[Story, ...] = (*GPU_USE, *HEADS_AND_TAILS, *CPU_USE, *PHASES)
