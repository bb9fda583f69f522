"""A transform job sends record by record to instances that have little to do.

## What it checks
BatchStrategy is SingleRecord, the mean CPU over the active minutes is under 40% of all vCPUs, and
no GPU is busy.

## Why it costs
Each record is a request of its own: the instance is billed while requests are made and answered,
not only while the model computes.

## Saving
Possible, without a figure: how much faster batches are depends on records and container, and only a
run shows it.

## When it is wrong
The container takes one record a request, or its answer to a batch has another form. Padding of
RecordIO and TFRecord is removed only for single records.

## What to do
BatchStrategy MultiRecord with SplitType Line, RecordIO or TFRecord, and AssembleWith Line for
answers by line; MaxPayloadInMB sets the size of a batch.

## Sources
botocore, CreateTransformJob.BatchStrategy and TransformInput.SplitType. Flexera: under-used below
40%.
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
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.edges import unseen
from sageaudit.domain.usage.measurements import Metric
from sageaudit.rules.card import JobCase, rule
from sageaudit.rules.processing.transform_serial import CPU_BELOW, cpu_mean

_SINGLE = "SingleRecord"


def _excuse(case: JobCase) -> str | None:
    batch = case.job.batch
    if batch is not None and batch.strategy != _SINGLE:
        return "BatchStrategy is not SingleRecord"
    return None


@rule(
    id="SA802",
    scope=JobCase,
    kinds={JobKind.TRANSFORM},
    thresholds=(CPU_BELOW,),
    needs=(Metric.CPU,),
    about_cpu=True,
    excuse=_excuse,
)
def check(case: JobCase) -> Outcome:
    """Needs the CPU and how the job feeds its container."""
    job = case.job
    if job.batch is None:
        return Unknown("batch_unknown", "how the job feeds its container is not recorded")
    if missing := unseen(case.usage):
        return Unknown(missing.code, missing.reason)
    average = cpu_mean(case)
    if average >= case.limit(CPU_BELOW):
        return Clear()
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=(
            f"BatchStrategy is SingleRecord, and CPU averaged {average:.0f}% over "
            f"{case.usage.minutes:.0f} active minutes on {job.instances}."
        ),
        evidence={
            "batch_strategy": job.batch.strategy,
            "cpu_mean_percent": round(average, 1),
            "vcpu": case.usage.vcpu,
            "active_minutes": round(case.usage.minutes),
        },
        fix=(Parameter("BatchStrategy", job.batch.strategy, "MultiRecord"),),
        caution=(
            "No figure: how much faster batches are, only a run shows. The container must take "
            "several records a request; without SplitType the strategy has no effect."
        ),
    )
