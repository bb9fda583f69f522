"""How the GPUs of one instance are used, and what keeps them waiting."""

from __future__ import annotations

from tests.labelled.machine import Doing, Plot, alike
from tests.labelled.story import BUSY_A10G, BUSY_T4, story, swinging

STORIES = (
    story("a-well-fed-gpu", Plot("ml.g5.xlarge", alike(1, BUSY_A10G))),
    story("a-well-fed-t4", Plot("ml.g4dn.xlarge", alike(1, BUSY_T4))),
    story("a-pair-of-well-fed-gpus",
        Plot("ml.g5.xlarge", alike(2, BUSY_A10G), hyperparameters={"fp16": "true"}),
        fine=("mixed-precision-candidate",)),
    story("one-well-fed-gpu-on-a-host-for-many-loaders", Plot("ml.g5.8xlarge", alike(1, BUSY_A10G)),
        "cheaper-type"),
    story("several-well-fed-t4-with-room-for-a-database",
        Plot("ml.g4dn.16xlarge",
            alike(2, Doing(150, cores=3.1, gpus=(0.9,), gib=11, gpu_gib=(13,)))), "cheaper-type"),
    story("gradient-boosting-on-a-gpu-box",
        Plot("ml.g4dn.2xlarge", alike(1, Doing(90, cores=6.1, gpus=(0.0,), gib=12))), "gpu-idle"),
    story("the-driver-was-not-found",
        Plot("ml.p3.2xlarge", alike(1, Doing(80, cores=7.4, gpus=(0.0,), gib=20))), "gpu-idle",
        either=("old-generation",)),
    story("a-small-network-in-small-batches",
        Plot("ml.g5.4xlarge", alike(1, Doing(120, cores=1.4, gpus=(0.11,), gib=6, gpu_gib=(2.2,)))),
        "gpu-underused", either=("cpu-underused",)),
    story("a-small-network-on-a-v100",
        Plot("ml.p3.2xlarge", alike(1, Doing(120, cores=1.5, gpus=(0.12,), gib=7, gpu_gib=(2.5,)))),
        "gpu-too-big", either=("gpu-underused", "old-generation")),
    story("one-slow-decoder-before-the-gpu",
        Plot("ml.g4dn.xlarge",
            alike(1, Doing(100, cores=3.92, gpus=(0.06,), gib=9, gpu_gib=(9.0,)))),
        "cpu-bottleneck", either=("gpu-underused", "gpu-starved")),
    story("augmentation-on-all-cores",
        Plot("ml.g5.xlarge",
            alike(1, Doing(140, cores=3.9, gpus=(0.07,), gib=10, gpu_gib=(14.0,)))),
        "cpu-bottleneck", either=("gpu-underused", "gpu-starved")),
    story("each-epoch-waits-for-the-store",
        Plot("ml.g5.xlarge",
            alike(1,
                *swinging(14, Doing(5, cores=2.4, gpus=(0.93,), gib=9, gpu_gib=(19.0,)),
                    Doing(6, cores=0.4, gpus=(0.01,), gib=9, gpu_gib=(19.0,))))), "gpu-starved",
        either=("gpu-underused",)),
    story("one-process-on-four-gpus",
        Plot("ml.g4dn.12xlarge",
            alike(1,
                Doing(120, cores=3.1, gpus=(0.9, 0, 0, 0), gib=14, gpu_gib=(12.0, 0.4, 0.4, 0.4)))),
        "some-gpus-unused", either=("gpu-underused",)),
    story("all-four-gpus-at-work",
        Plot("ml.g4dn.12xlarge",
            alike(1, Doing(120, cores=14, gpus=(0.9,) * 4, gib=60, gpu_gib=(13.0,) * 4)))),
    story("tensors-kept-alive",
        Plot("ml.g5.xlarge",
            alike(1,
                *(
                    Doing(12, cores=2.5, gpus=(0.9,), gib=9, gpu_gib=(4.0 + 1.6 * step,))
                        for step in range(11)))), "gpu-memory-growth"),
)  # fmt: skip
