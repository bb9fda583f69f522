"""A File-mode download takes a large share of the billed time.

## What it checks
Downloading is at least 20% of the billed phases and over 5 minutes, and a channel reads S3 in File
mode, which copies the data to every instance before the code starts.

## Why it costs
Downloading is billed like Training: all instances wait for the copy.

## Saving
Between 0 and the whole Downloading phase: FastFile and Pipe move the reads into Training, which may
grow. The low end, 0, is counted; it is measured by the next run.

## When it is wrong
Since 2024 the image pull is inside Downloading too, and SageMaker does not tell the two apart. Code
that opens many small files, or reads them in random order, may be slower on FastFile.

## What to do
FastFile mode, or Pipe for RecordIO. A file system (FSx for Lustre, EFS) adds its own cost.

## Sources
AWS blog "Analyze Amazon SageMaker spend", part 4: charged phases, File, FastFile and Pipe mode.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.change import CutPhase
from sageaudit.domain.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job import Channel, Job, Purchase, Source
from sageaudit.domain.ref import JobKind
from sageaudit.rules.card import JobCase, Threshold, rule

SHARE_FROM = Threshold(
    "share_from_percent", 20, "percent of billed seconds", "a fifth of the bill", "our choice"
)
OVER = Threshold(
    "over_s", 300, "seconds", "under 5 minutes the image pull alone explains it", "recorded jobs"
)
_IMAGE_PULL_INSIDE_SINCE = 2024
"""18 of 18 recorded jobs from 2024 on say "Downloading the training image" there."""


def _copied(job: Job) -> list[Channel]:
    return [c for c in job.channels if c.source is Source.S3 and c.mode == "File"]


def _excuse(case: JobCase) -> str | None:
    if case.job.purchase is Purchase.SERVERLESS:
        return "it is serverless"
    return None if _copied(case.job) else "no channel reads S3 in File mode"


@rule(
    id="SA101",
    scope=JobCase,
    kinds={JobKind.TRAINING},
    thresholds=(SHARE_FROM, OVER),
    excuse=_excuse,
)
def check(case: JobCase) -> Outcome:
    """Judges the phases only; needs no metrics."""
    billed = [phase for phase in case.job.phases if phase.billed]
    if not billed or any(phase.name == "Running" or phase.seconds is None for phase in billed):
        if case.job.never_started:
            return Clear()
        return Unknown("phases_missing", "the answer does not split the run into phases")
    whole_s = sum((phase.seconds or Decimal(0) for phase in billed), Decimal(0))
    download_s = sum(
        (phase.seconds or Decimal(0) for phase in billed if phase.name == "Downloading"),
        Decimal(0),
    )
    percent = 100 * download_s / whole_s if whole_s else Decimal(0)
    if download_s <= case.limit(OVER) or percent < case.limit(SHARE_FROM):
        return Clear()
    begun = case.job.started_at
    both = begun is not None and begun.year >= _IMAGE_PULL_INSIDE_SINCE
    cause = "data copy and image pull together" if both else "the data copy"
    channels = _copied(case.job)
    return Found(
        confidence=Confidence.DERIVED,
        bucket=Bucket.AVOIDABLE,
        summary=(
            f"Downloading took {download_s / 60:.1f} of {whole_s / 60:.1f} billed minutes "
            f"({percent:.0f}%): {cause}, before the code starts."
        ),
        evidence={
            "downloading_s": download_s,
            "billed_s": whole_s,
            "downloading_percent": round(percent, 1),
            "file_mode_channels": len(channels),
        },
        fix=tuple(
            Parameter(f"InputDataConfig[{channel.name}].InputMode", "File", "FastFile")
            for channel in channels
        ),
        alternatives=(
            tuple(
                Parameter(f"InputDataConfig[{channel.name}].InputMode", "File", "Pipe")
                for channel in channels
            ),
        ),
        change=CutPhase("Downloading", Decimal(0)),
        best=CutPhase("Downloading", download_s),
        caution=(
            "The reads move into Training, so the saving is between nothing and the whole phase; "
            "nothing is counted until a run shows it. FSx or EFS adds its own cost."
        ),
    )
