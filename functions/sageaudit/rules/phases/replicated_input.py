"""Every instance downloads all of the training data.

## What it checks
A training job on several instances of one type whose Downloading is at least 20% of the billed
phases and over 5 minutes, with a File-mode channel named like "train" that S3 hands out
FullyReplicated.

## Why it costs
Each of n instances copies, and is billed for copying, all data, of which data-parallel training
gives it 1/n to work on.

## Saving
Possible, never in a sum with others: between 0 and (n - 1)/n of the Downloading phase. How much of
the phase the channel, other channels and the image pull take is not recorded.

## When it is wrong
A distributed sampler (or model parallelism) expects all data on every host and picks its own part:
then leave it. Uneven shards can hang DistributedDataParallel: the host that runs out of batches
first leaves the others waiting. Fewer objects than instances leave hosts without data.

## What to do
S3DataDistributionType ShardedByS3Key, with objects of even size and more of them than instances,
and no sampler that splits again. FastFile mode is the other way: use one of the two.

## Sources
botocore, S3DataSource.S3DataDistributionType: "each instance gets approximately 1/n of the number
of S3 objects".
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.change import CutPhase
from sageaudit.domain.bill.finding import Bucket, Confidence, Found, Outcome, Parameter, Unknown
from sageaudit.domain.job.job import InputChannel, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import JobCase, Threshold, rule
from sageaudit.rules.phases.download_dominates import OVER, copied
from sageaudit.rules.phases.phase_share import PhaseShare, large_share

SHARE_FROM = Threshold(
    "share_from_percent",
    20,
    "percent of billed seconds",
    "a fifth of the bill, as for download-dominates",
    "our choice",
)


def _replicated(job: Job) -> list[InputChannel]:
    return [
        channel
        for channel in copied(job)
        if channel.distribution == "FullyReplicated" and "train" in channel.name.lower()
    ]


def _excuse(case: JobCase) -> str | None:
    job = case.job
    if job.purchase is Purchase.SERVERLESS:
        return "it is serverless"
    if job.instance_count == 1:
        return "it ran on one instance"
    if not _replicated(job):
        return "no training channel is copied to all instances"
    sampled = job.hints.distributed_sampler
    return "its distributed sampler expects all data on every host" if sampled else None


@rule(
    id="SA102",
    scope=JobCase,
    kinds={JobKind.TRAINING},
    thresholds=(SHARE_FROM, OVER),
    excuse=_excuse,
)
def check(case: JobCase) -> Outcome:
    """Judges phases and channels; needs no metrics."""
    job, count = case.job, case.job.instance_count
    if count is None:
        return Unknown("type_unknown", "the number of instances is not known")
    if len(job.groups) > 1:
        return Unknown("groups_unmapped", "which instance group reads a channel is not recorded")
    share = large_share(
        job, "Downloading", over_s=case.limit(OVER), from_percent=case.limit(SHARE_FROM)
    )
    if not isinstance(share, PhaseShare):
        return share
    channels = _replicated(job)
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=(
            f"Each of {count} instances downloaded all of "
            f"{', '.join(channel.name for channel in channels)}: {share.seconds / 60:.1f} of "
            f"{share.billed_s / 60:.1f} billed minutes ({share.percent:.0f}%)."
        ),
        evidence={
            "downloading_s": share.seconds,
            "billed_s": share.billed_s,
            "downloading_percent": round(share.percent, 1),
            "instances": count,
            "replicated_channels": len(channels),
        },
        fix=tuple(
            Parameter(
                f"InputDataConfig[{channel.name}].DataSource.S3DataSource.S3DataDistributionType",
                "FullyReplicated",
                "ShardedByS3Key",
            )
            for channel in channels
        ),
        change=CutPhase("Downloading", Decimal(0)),
        best=CutPhase("Downloading", share.seconds * (count - 1) / count),
        caution=(
            "Not with a sampler that splits the data itself, and uneven shards can hang "
            "DistributedDataParallel. Instead of FastFile, not beside it."
        ),
    )
