"""Uploading the results takes a large share of the billed time.

## What it checks
Uploading is at least 10% of the billed phases and over 2 minutes.

## Why it costs
Uploading is billed like Training: all instances wait while /opt/ml/model and /opt/ml/output/data
are packed into model.tar.gz and output.tar.gz and sent to S3.

## Saving
Between 0 and the whole Uploading phase: what is written during training need not be sent after it,
but the final model must be. The low end, 0, is counted; it is measured by the next run.

## When it is wrong
A large model that is needed as it is has to be sent once.

## What to do
Write checkpoints to /opt/ml/checkpoints, which SageMaker sends to S3 while training goes on, not to
/opt/ml/model; keep only the files that somebody reads. CompressionType NONE saves the packing of a
large model, and changes what is read later: many objects in place of one model.tar.gz, for the
model registry, for endpoints and for every job that takes the artifact.

## Sources
botocore, OutputDataConfig.CompressionType: "Select None to output an uncompressed model,
recommended for large model outputs". 79 of 82 recorded uploads take 75 s or less, the others 149,
293 and 907 s.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.change import CutPhase
from sageaudit.domain.bill.finding import Bucket, Confidence, Found, Outcome, Parameter
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import JobCase, Threshold, rule
from sageaudit.rules.phases.phase_share import PhaseShare, large_share

SHARE_FROM = Threshold(
    "share_from_percent", 10, "percent of billed seconds", "a tenth of the bill", "our choice"
)
OVER = Threshold("over_s", 120, "seconds", "ordinary uploads take up to 75 s", "recorded jobs")
_PACKED = "GZIP"
_NOT_PACKED = "NONE"
_RANGE = (
    "The final model must be sent in any case, so the saving is between nothing and the whole "
    "phase; nothing is counted until a run shows it."
)
_READERS = (
    " CompressionType NONE leaves objects in place of one model.tar.gz: change what the model "
    "registry, endpoints and later jobs read."
)


def _excuse(case: JobCase) -> str | None:
    return "it is serverless" if case.job.purchase is Purchase.SERVERLESS else None


@rule(
    id="SA103",
    scope=JobCase,
    kinds={JobKind.TRAINING},
    thresholds=(SHARE_FROM, OVER),
    excuse=_excuse,
)
def check(case: JobCase) -> Outcome:
    """Judges the phases only; needs no metrics."""
    job = case.job
    share = large_share(
        job, "Uploading", over_s=case.limit(OVER), from_percent=case.limit(SHARE_FROM)
    )
    if not isinstance(share, PhaseShare):
        return share
    packed = job.output_compression != _NOT_PACKED
    unpack = Parameter("OutputDataConfig.CompressionType", job.output_compression, _NOT_PACKED)
    checkpoint = Parameter("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>")
    return Found(
        confidence=Confidence.DERIVED,
        bucket=Bucket.AVOIDABLE,
        summary=(
            f"Uploading took {share.seconds / 60:.1f} of {share.billed_s / 60:.1f} billed minutes "
            f"({share.percent:.0f}%), after the code had ended."
        ),
        evidence={
            "uploading_s": share.seconds,
            "billed_s": share.billed_s,
            "uploading_percent": round(share.percent, 1),
            "compression": job.output_compression or f"{_PACKED} (the default)",
            "checkpointed": job.checkpointed,
        },
        fix=() if job.checkpointed else (checkpoint,),
        alternatives=((unpack,),) if packed else (),
        change=CutPhase("Uploading", Decimal(0)),
        best=CutPhase("Uploading", share.seconds),
        caution=f"{_RANGE}{_READERS if packed else ''}",
    )
