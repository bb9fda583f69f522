"""A long run on managed spot keeps no checkpoints.

## What it checks
A training job on managed spot took more than an hour without CheckpointConfig, and nothing in its
hyperparameters, environment or command speaks of checkpoints of its own.

## Why it costs
An interruption ends the containers. Without checkpoints the run starts from nothing again, and what
was billed before is paid for nothing.

## Saving
None is counted: how often this run will be interrupted is not known, and AWS does not state how the
seconds of an interrupted run are billed.

## When it is wrong
Code that writes checkpoints to S3 itself, without a name that says so.

## What to do
Set CheckpointConfig.S3Uri, write to its LocalPath (default /opt/ml/checkpoints) and load from there
at the start: SageMaker copies both ways.

## Sources
SageMaker guide, managed spot training: use checkpoints; without them MaxWait is limited to 3,600 s
for built-in and marketplace algorithms.
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
from sageaudit.rules.card import JobCase, Threshold, rule

OVER = Threshold(
    "over_s", 3600, "seconds", "the longest wait without checkpoints", "SageMaker spot guide"
)


def _excuse(case: JobCase) -> str | None:
    if case.job.purchase is not Purchase.SPOT:
        return "it did not run on managed spot"
    return "it never started" if case.job.never_started else None


@rule(id="SA402", scope=JobCase, kinds={JobKind.TRAINING}, thresholds=(OVER,), excuse=_excuse)
def check(case: JobCase) -> Outcome:
    """A sign of checkpoints clears it, as CheckpointConfig does."""
    job = case.job
    if job.checkpointed or job.hints.own_checkpoints:
        return Clear()
    if job.elapsed_s is None:
        return Unknown("times_missing", "how long the run took is not known")
    if job.elapsed_s <= case.limit(OVER):
        return Clear()
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.NONE,
        summary=(
            f"{job.elapsed_s / 3600:.1f} h on managed spot without checkpoints: each interruption "
            f"starts the run again ({job.interruptions or 'none'} so far)."
        ),
        evidence={"elapsed_s": job.elapsed_s, "interruptions": job.interruptions},
        fix=(Parameter("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>"),),
        caution="No figure: how often it will be interrupted is not known.",
    )
