"""Spot, warm pools, old types and volumes."""

from sageaudit.structs import replace
from tests.labelled.machine import SKLEARN, Doing, Plot, alike
from tests.labelled.story import BUSY_A10G, BUSY_CPU, LONG_T4, story

CHECKPOINTS = {"CheckpointConfig": {"S3Uri": "s3://bucket/checkpoints"}}

STORIES = (
    story("an-overnight-run-with-checkpoints-on-demand",
        Plot("ml.g4dn.xlarge", alike(1, replace(LONG_T4, minutes=480)), describe=CHECKPOINTS),
        "spot-not-used"),
    story("spot-with-checkpoints",
        Plot("ml.g4dn.xlarge", alike(1, LONG_T4), describe=CHECKPOINTS, spot_billed_share=0.35),
        fine=("spot-not-used",)),
    story("five-hours-of-spot-without-a-checkpoint",
        Plot("ml.g4dn.xlarge", alike(1, LONG_T4), spot_billed_share=0.35),
        "spot-without-checkpoint", fine=("spot-not-used",)),
    story("a-release-with-a-deadline",
        Plot("ml.g4dn.xlarge", alike(1, LONG_T4), describe=CHECKPOINTS,
            tags={"sageaudit:deadline": "2026-05-02"}), fine=("spot-not-used",)),
    story("a-pool-kept-for-nobody",
        Plot("ml.g5.xlarge", alike(1, BUSY_A10G), resources={"KeepAlivePeriodInSeconds": 3600},
            describe={
                "WarmPoolStatus": {"Status": "Terminated",
                    "ResourceRetainedBillableTimeInSeconds": 3600}}), "warm-pool-idle",
        fine=("spot-not-used",)),
    story("a-pool-that-the-next-run-took",
        Plot("ml.g5.xlarge", alike(1, BUSY_A10G), resources={"KeepAlivePeriodInSeconds": 1800},
            describe={
                "WarmPoolStatus": {"Status": "Reused", "ResourceRetainedBillableTimeInSeconds": 140,
                    "ReusedByJob": "the-next"}})),
    story("last-decades-gpu",
        Plot("ml.p3.2xlarge",
            alike(1, Doing(150, cores=4.5, gpus=(0.93,), gib=30, gpu_gib=(13.5,)))),
        "old-generation"),
    story("last-decades-cpu", Plot("ml.m4.4xlarge", alike(1, BUSY_CPU), image=SKLEARN),
        "old-generation"),
    story("half-a-terabyte-for-a-few-files",
        Plot("ml.m5.4xlarge", alike(1, replace(BUSY_CPU, disk=1.2)), image=SKLEARN, volume_gb=500),
        "volume-oversized"),
    story("a-volume-beside-the-local-disk",
        Plot("ml.g5.xlarge", alike(1, BUSY_A10G), volume_gb=400)),
)  # fmt: skip
