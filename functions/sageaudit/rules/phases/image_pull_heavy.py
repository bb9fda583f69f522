"""Pulling the container image takes a large share of the billed time.

## What it checks
Downloading is at least 20% of the billed phases and over 5 minutes, no data channel is copied in
File mode (download-dominates judges those jobs), and the image pull is inside Downloading: its
message says so, or the job is of 2024 or later.

## Why it costs
The image pull is billed like Training, on every instance.

## Saving
Between 0 and the whole Downloading phase: any image must be pulled. The low end, 0, is counted; it
is measured by the next run.

## When it is wrong
File systems are mounted, and some data prepared, in the same phase; SageMaker gives no split.

## What to do
A smaller image (multi-stage build, no compilers, no caches, the CPU variant for CPU types), from a
registry in the job's own region. A warm pool keeps the image too, and is billed while it waits.

## Sources
AWS blog "Analyze Amazon SageMaker spend", part 4: charged phases. Recorded jobs whose message says
"Downloading the training image": 96 to 314 s, 13 of 14 under 300 s.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.bill_facts import image_region
from sageaudit.domain.bill.change import CutPhase
from sageaudit.domain.bill.finding import Bucket, Confidence, Found, Outcome, Parameter, Unknown
from sageaudit.domain.job.job import DataSource, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import JobCase, Threshold, rule
from sageaudit.rules.phases.download_dominates import SHARE_FROM, copied, pulls_image
from sageaudit.rules.phases.phase_share import PhaseShare, large_share

OVER = Threshold("over_s", 300, "seconds", "13 of 14 recorded pulls take less", "recorded jobs")
_IMAGE = "AlgorithmSpecification.TrainingImage"


def _excuse(case: JobCase) -> str | None:
    job = case.job
    if job.purchase is Purchase.SERVERLESS:
        return "it is serverless"
    if copied(job):
        return "a channel copies data in the same phase: download-dominates judges it"
    return None if pulls_image(job) else "before 2024 the image was pulled inside Training"


@rule(
    id="SA105",
    scope=JobCase,
    kinds={JobKind.TRAINING},
    thresholds=(SHARE_FROM, OVER),
    excuse=_excuse,
)
def check(case: JobCase) -> Outcome:
    """Judges phases, channels and the image's registry; needs no metrics."""
    job = case.job
    if any(channel.source is DataSource.S3 and channel.mode is None for channel in job.channels):
        return Unknown("input_mode_unknown", "whether a channel copies its data is not recorded")
    share = large_share(
        job,
        "Downloading",
        "DownloadingTrainingImage",
        over_s=case.limit(OVER),
        from_percent=case.limit(SHARE_FROM),
    )
    if not isinstance(share, PhaseShare):
        return share
    region = image_region(job.image)
    away = region if region != job.region else None
    return Found(
        confidence=Confidence.DERIVED,
        bucket=Bucket.AVOIDABLE,
        summary=(
            f"Downloading took {share.seconds / 60:.1f} of {share.billed_s / 60:.1f} billed "
            f"minutes ({share.percent:.0f}%) and no channel copies data: the image pull"
            f"{f', from {away}' if away else ''}."
        ),
        evidence={
            "downloading_s": share.seconds,
            "billed_s": share.billed_s,
            "downloading_percent": round(share.percent, 1),
            "image_region": region,
            "message_says_image": job.image_pull_in_download,
        },
        fix=_fix(job, region),
        change=CutPhase("Downloading", Decimal(0)),
        best=CutPhase("Downloading", share.seconds),
        caution=(
            "Any image must be pulled, so the saving is between nothing and the whole phase; "
            "nothing is counted until a run shows it."
        ),
    )


def _fix(job: Job, region: str | None) -> tuple[Parameter, ...]:
    """The same image in the job's region, else a smaller one; none where it is not in ECR."""
    if job.image is None or region is None:
        return ()
    nearer = job.image.replace(f".{region}.", f".{job.region}.", 1) if job.region else job.image
    smaller = "<a smaller image>"
    return (Parameter(_IMAGE, job.image, smaller if nearer == job.image else nearer),)
