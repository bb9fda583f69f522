"""How the GPUs of one instance are used, and what keeps them waiting."""

from tests.labelled.machine import Doing, identical_hosts, one_host
from tests.labelled.made_up_job import Plot
from tests.labelled.story import BUSY_A10G, BUSY_T4, repeated, story

STORIES = (
    story("a-well-fed-gpu", Plot(instance="ml.g5.xlarge", hosts=one_host(BUSY_A10G))),
    story("a-well-fed-t4", Plot(instance="ml.g4dn.xlarge", hosts=one_host(BUSY_T4))),
    story(
        "a-pair-of-well-fed-gpus",
        Plot(
            instance="ml.g5.xlarge",
            hosts=identical_hosts(2, BUSY_A10G),
            hyperparameters={"fp16": "true"},
        ),
    ),
    story(
        "one-well-fed-gpu-on-a-host-for-many-loaders",
        Plot(instance="ml.g5.8xlarge", hosts=one_host(BUSY_A10G)),
        must_find=("cheaper-type",),
    ),
    story(
        "several-well-fed-t4-with-room-for-a-database",
        Plot(
            instance="ml.g4dn.16xlarge",
            hosts=identical_hosts(
                2, Doing(minutes=150, cores=3.1, gpus=(0.9,), gib=11, gpu_gib=(13,))
            ),
        ),
        must_find=("cheaper-type",),
    ),
    story(
        "gradient-boosting-on-a-gpu-box",
        Plot(
            instance="ml.g4dn.2xlarge",
            hosts=one_host(Doing(minutes=90, cores=6.1, gpus=(0.0,), gib=12)),
        ),
        must_find=("gpu-idle",),
    ),
    story(
        "the-driver-was-not-found",
        Plot(
            instance="ml.p3.2xlarge",
            hosts=one_host(Doing(minutes=80, cores=7.4, gpus=(0.0,), gib=20)),
        ),
        must_find=("gpu-idle",),
        may_find=("old-generation",),
    ),
    story(
        "a-small-network-in-small-batches",
        Plot(
            instance="ml.g5.4xlarge",
            hosts=one_host(Doing(minutes=120, cores=1.4, gpus=(0.11,), gib=6, gpu_gib=(2.2,))),
        ),
        must_find=("gpu-underused",),
        may_find=("cpu-underused",),
    ),
    story(
        "a-small-network-on-a-v100",
        Plot(
            instance="ml.p3.2xlarge",
            hosts=one_host(Doing(minutes=120, cores=1.5, gpus=(0.12,), gib=7, gpu_gib=(2.5,))),
        ),
        must_find=("gpu-too-big",),
        may_find=("gpu-underused", "old-generation"),
    ),
    story(
        "one-slow-decoder-before-the-gpu",
        Plot(
            instance="ml.g4dn.xlarge",
            hosts=one_host(Doing(minutes=100, cores=3.92, gpus=(0.06,), gib=9, gpu_gib=(9.0,))),
        ),
        must_find=("cpu-bottleneck",),
        may_find=("gpu-underused", "gpu-starved"),
    ),
    story(
        "augmentation-on-all-cores",
        Plot(
            instance="ml.g5.xlarge",
            hosts=one_host(Doing(minutes=140, cores=3.9, gpus=(0.07,), gib=10, gpu_gib=(14.0,))),
        ),
        must_find=("cpu-bottleneck",),
        may_find=("gpu-underused", "gpu-starved"),
    ),
    story(
        "each-epoch-waits-for-the-store",
        Plot(
            instance="ml.g5.xlarge",
            hosts=one_host(
                *repeated(
                    14,
                    Doing(minutes=5, cores=2.4, gpus=(0.93,), gib=9, gpu_gib=(19.0,)),
                    Doing(minutes=6, cores=0.4, gpus=(0.01,), gib=9, gpu_gib=(19.0,)),
                ),
            ),
        ),
        must_find=("gpu-starved",),
        may_find=("gpu-underused",),
    ),
    story(
        "one-process-on-four-gpus",
        Plot(
            instance="ml.g4dn.12xlarge",
            hosts=one_host(
                Doing(
                    minutes=120,
                    cores=3.1,
                    gpus=(0.9, 0, 0, 0),
                    gib=14,
                    gpu_gib=(12.0, 0.4, 0.4, 0.4),
                ),
            ),
        ),
        must_find=("some-gpus-unused",),
        may_find=("gpu-underused",),
    ),
    story(
        "all-four-gpus-at-work",
        Plot(
            instance="ml.g4dn.12xlarge",
            hosts=one_host(
                Doing(minutes=120, cores=14, gpus=(0.9,) * 4, gib=60, gpu_gib=(13.0,) * 4)
            ),
        ),
    ),
)
