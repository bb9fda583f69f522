"""A File-mode download takes a large share of the billed time.

## What it checks
Downloading is at least 20% of the billed phases and over 5 minutes, and a data channel reads S3 in
File mode, which copies the data to every instance before the code starts. Channels `code` and
`sm_drivers` are the SDK's own and hold no data.

## Why it costs
Downloading is billed like Training: all instances wait for the copy.

## Saving
Between 0 and the whole Downloading phase: FastFile and Pipe move the reads into Training, which may
grow. The low end, 0, is counted; it is measured by the next run.

## When it is wrong
Since 2024 the image pull is inside Downloading too, and SageMaker does not tell the two apart. Code
that opens many small files, or reads them in random order, may be slower on FastFile, and FastFile
takes no augmented manifest. A `model` channel of incremental training stays in File mode: it is not
in the fix.

## What to do
FastFile mode, or Pipe for RecordIO. A file system (FSx for Lustre, EFS) adds its own cost. Where
the image is large, a smaller one.

## Sources
AWS blog "Analyze Amazon SageMaker spend", part 4: charged phases, File, FastFile and Pipe mode.
botocore, AlgorithmSpecification.TrainingInputMode and Channel.InputMode.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.change import CutPhase
from sageaudit.domain.bill.finding import Bucket, Confidence, Found, Outcome, Parameter
from sageaudit.domain.job.job import DataSource, InputChannel, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import JobCase, Threshold, rule
from sageaudit.rules.phases.phase_share import PhaseShare, large_share

SHARE_FROM = Threshold(
    "share_from_percent", 20, "percent of billed seconds", "a fifth of the bill", "our choice"
)
OVER = Threshold(
    "over_s", 300, "seconds", "under 5 minutes the image pull alone explains it", "recorded jobs"
)
_IMAGE_PULL_INSIDE_SINCE = 2024
"""18 of 18 recorded jobs from 2024 on say "Downloading the training image" there."""
_SDK_CHANNELS = frozenset({"code", "sm_drivers"})
"""ModelTrainer of the SageMaker Python SDK sends its script and its drivers as channels."""

_MODEL_CHANNEL = "model"
"""Of incremental training: the model must lie there as files."""


def copied(job: Job) -> list[InputChannel]:
    """The data channels that SageMaker copies from S3 before the code starts."""
    return [
        channel
        for channel in job.channels
        if channel.source is DataSource.S3
        and channel.mode == "File"
        and channel.name not in _SDK_CHANNELS
    ]


def pulls_image(job: Job) -> bool:
    """Is the image pull inside its Downloading phase, by its own message or by its year?"""
    begun = job.started_at
    recent = begun is not None and begun.year >= _IMAGE_PULL_INSIDE_SINCE
    return bool(job.image_pull_in_download) or recent


def _excuse(case: JobCase) -> str | None:
    if case.job.purchase is Purchase.SERVERLESS:
        return "it is serverless"
    return None if copied(case.job) else "no data channel reads S3 in File mode"


@rule(
    id="SA101",
    scope=JobCase,
    kinds={JobKind.TRAINING},
    thresholds=(SHARE_FROM, OVER),
    excuse=_excuse,
)
def check(case: JobCase) -> Outcome:
    """Judges the phases only; needs no metrics."""
    share = large_share(
        case.job, "Downloading", over_s=case.limit(OVER), from_percent=case.limit(SHARE_FROM)
    )
    if not isinstance(share, PhaseShare):
        return share
    cause = "data copy and image pull together" if pulls_image(case.job) else "the data copy"
    channels = copied(case.job)
    fast, pipe = (
        tuple(
            Parameter(f"InputDataConfig[{channel.name}].InputMode", "File", mode)
            for channel in channels
            if channel.name != _MODEL_CHANNEL
        )
        for mode in ("FastFile", "Pipe")
    )
    return Found(
        confidence=Confidence.DERIVED,
        bucket=Bucket.AVOIDABLE,
        summary=(
            f"Downloading took {share.seconds / 60:.1f} of {share.billed_s / 60:.1f} billed "
            f"minutes ({share.percent:.0f}%): {cause}, before the code starts."
        ),
        evidence={
            "downloading_s": share.seconds,
            "billed_s": share.billed_s,
            "downloading_percent": round(share.percent, 1),
            "file_mode_channels": len(channels),
        },
        fix=fast,
        alternatives=(pipe,) if pipe else (),
        change=CutPhase("Downloading", Decimal(0)),
        best=CutPhase("Downloading", share.seconds),
        caution=(
            "The reads move into Training, so the saving is between nothing and the whole phase; "
            "nothing is counted until a run shows it. FSx or EFS adds its own cost."
        ),
    )
