"""A volume size is set on a type with local storage, where it does nothing.

## What it checks
A training job whose instances all have local NVMe storage, with a VolumeSizeInGB other than the 30
that SDK and console fill in.

## Why it costs
Nothing: SageMaker provisions no volume, and bills none. But somebody counted on that size: the room
is that of the local disks, fixed by the type.

## Saving
None.

## When it is wrong
The same configuration also runs on types with EBS volumes, where the size is needed.

## What to do
Remove the parameter, and check that the type's own storage holds the data. A warm pool is reused
only by jobs with the same VolumeSizeInGB: change it in all of them. Processing jobs must give a
size, and are not judged.

## Sources
botocore, ResourceConfig.VolumeSizeInGB: "When using an ML instance with NVMe SSD volumes, SageMaker
doesn't provision Amazon EBS General Purpose SSD (gp2) storage".
"""

from __future__ import annotations

from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.request_paths import VOLUME_PATHS
from sageaudit.rules.card import JobCase, Threshold, rule
from sageaudit.rules.storage.volume_oversized import on_ebs

DEFAULT = Threshold(
    "default_gb", 30, "GB an instance", "filled in by default: no choice", "SageMaker Python SDK"
)


def _excuse(case: JobCase) -> str | None:
    if case.job.never_started:
        return "it never started"
    if case.job.purchase is Purchase.SERVERLESS:
        return "it is serverless"
    if not case.job.volume_gb:
        return "no VolumeSizeInGB is recorded"
    return "its instances get a volume" if on_ebs(case) else None


@rule(
    id="SA502",
    scope=JobCase,
    kinds={JobKind.TRAINING},
    thresholds=(DEFAULT,),
    excuse=_excuse,
)
def check(case: JobCase) -> Outcome:
    """Looks at the request and the catalogue; needs no metrics."""
    job = case.job
    if on_ebs(case) is None:
        return Unknown("storage_unknown", "whether each instance gets a volume is not known")
    if job.volume_gb == case.limit(DEFAULT):
        return Clear()
    return Found(
        confidence=Confidence.DERIVED,
        bucket=Bucket.NONE,
        summary=(
            f"VolumeSizeInGB is {job.volume_gb} and has no effect on {job.instances}: the storage "
            "is local NVMe."
        ),
        evidence={"volume_gb": job.volume_gb, "instances": job.instances},
        fix=(Parameter(VOLUME_PATHS[job.kind], job.volume_gb, None),),
        caution=(
            "No figure: no volume is provisioned or billed. The room is that of the local disks; "
            "a warm pool is reused only by jobs with the same size."
        ),
    )
