"""Spot, warm pools, old types and volumes."""

from sageaudit.structs import replace
from tests.labelled.machine import Doing, one_host
from tests.labelled.made_up_job import SKLEARN, Plot
from tests.labelled.story import BUSY_A10G, BUSY_CPU, LONG_T4, story

CHECKPOINTS = {"CheckpointConfig": {"S3Uri": "s3://bucket/checkpoints"}}

STORIES = (
    story(
        "an-overnight-run-with-checkpoints-on-demand",
        Plot(
            instance="ml.g4dn.xlarge",
            hosts=one_host(replace(LONG_T4, minutes=480)),
            describe=CHECKPOINTS,
        ),
        must_find=("spot-not-used",),
    ),
    story(
        "spot-with-checkpoints",
        Plot(
            instance="ml.g4dn.xlarge",
            hosts=one_host(LONG_T4),
            describe=CHECKPOINTS,
            spot_billed_share=0.35,
        ),
        must_not_find=("spot-not-used",),
    ),
    story(
        "five-hours-of-spot-without-a-checkpoint",
        Plot(instance="ml.g4dn.xlarge", hosts=one_host(LONG_T4), spot_billed_share=0.35),
        must_find=("spot-without-checkpoint",),
        must_not_find=("spot-not-used",),
    ),
    story(
        "a-release-with-a-deadline",
        Plot(
            instance="ml.g4dn.xlarge",
            hosts=one_host(LONG_T4),
            describe=CHECKPOINTS,
            tags={"sageaudit:deadline": "2026-05-02"},
        ),
        must_not_find=("spot-not-used",),
    ),
    story(
        "a-pool-kept-for-nobody",
        Plot(
            instance="ml.g5.xlarge",
            hosts=one_host(BUSY_A10G),
            resources={"KeepAlivePeriodInSeconds": 3600},
            describe={
                "WarmPoolStatus": {
                    "Status": "Terminated",
                    "ResourceRetainedBillableTimeInSeconds": 3600,
                }
            },
        ),
        must_find=("warm-pool-idle",),
        must_not_find=("spot-not-used",),
    ),
    story(
        "a-pool-that-the-next-run-took",
        Plot(
            instance="ml.g5.xlarge",
            hosts=one_host(BUSY_A10G),
            resources={"KeepAlivePeriodInSeconds": 1800},
            describe={
                "WarmPoolStatus": {
                    "Status": "Reused",
                    "ResourceRetainedBillableTimeInSeconds": 140,
                    "ReusedByJob": "the-next",
                }
            },
        ),
    ),
    story(
        "last-decades-gpu",
        Plot(
            instance="ml.p3.2xlarge",
            hosts=one_host(Doing(minutes=150, cores=4.5, gpus=(0.93,), gib=30, gpu_gib=(13.5,))),
        ),
        must_find=("old-generation",),
    ),
    story(
        "last-decades-cpu",
        Plot(instance="ml.m4.4xlarge", hosts=one_host(BUSY_CPU), image=SKLEARN),
        must_find=("old-generation",),
    ),
    story(
        "half-a-terabyte-for-a-few-files",
        Plot(
            instance="ml.m5.4xlarge",
            hosts=one_host(replace(BUSY_CPU, disk=1.2)),
            image=SKLEARN,
            volume_gb=500,
        ),
        must_find=("volume-oversized",),
    ),
    story(
        "a-volume-beside-the-local-disk",
        Plot(instance="ml.g5.xlarge", hosts=one_host(BUSY_A10G), volume_gb=400),
    ),
)
