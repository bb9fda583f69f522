"""A transform job sends one request at a time to instances that have nothing else to do.

## What it checks
MaxConcurrentTransforms is 1 or not set, the mean CPU over the active minutes is under 40% of at
least 2 vCPUs, and no GPU is busy.

## Why it costs
The instance is billed while it waits for the next request to be read, sent and stored.

## Saving
Possible, without a figure: how much faster several requests at a time are depends on the container,
and only a run shows it.

## When it is wrong
Not set means that the container's execution-parameters decide, and 1 only where it has none. One
input file without SplitType is one request: then several do not exist. A model that fills the
memory serves one request at a time.

## What to do
MaxConcurrentTransforms up to the number of vCPUs; times MaxPayloadInMB (6 by default) it may not
exceed 100 MB. The other way is a smaller type that is busy with one request: one of the two.

## Sources
botocore, CreateTransformJob: MaxConcurrentTransforms, MaxPayloadInMB. Flexera: under-used below
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
from sageaudit.domain.usage.series import mean_of_hosts
from sageaudit.rules.card import JobCase, Threshold, rule

CPU_BELOW = Threshold("cpu_mean_below", 40, "percent of all vCPUs", "under-used", "Flexera")
VCPU_FROM = Threshold(
    "vcpu_from", 2, "vCPUs an instance", "one core serves one request", "our choice"
)
_ALL_PAYLOADS_MB = 100
_DEFAULT_PAYLOAD_MB = 6


def cpu_mean(case: JobCase) -> float:
    """Over the active minutes of all hosts, 0..100 of all vCPUs."""
    return mean_of_hosts(case.usage.series[Metric.CPU].values())


def _excuse(case: JobCase) -> str | None:
    batch = case.job.batch
    if batch is not None and (batch.max_concurrent or 1) > 1:
        return f"it sends {batch.max_concurrent} requests at a time"
    return None


@rule(
    id="SA801",
    scope=JobCase,
    kinds={JobKind.TRANSFORM},
    thresholds=(CPU_BELOW, VCPU_FROM),
    needs=(Metric.CPU,),
    about_cpu=True,
    excuse=_excuse,
)
def check(case: JobCase) -> Outcome:
    """Needs the CPU and how the job feeds its container."""
    job, batch, vcpu = case.job, case.job.batch, case.usage.vcpu
    if batch is None or vcpu is None:
        return Unknown("batch_unknown", "how the job feeds its container is not recorded")
    if missing := unseen(case.usage):
        return Unknown(missing.code, missing.reason)
    average = cpu_mean(case)
    several = min(vcpu, _room_for(batch.max_payload_mb))
    if average >= case.limit(CPU_BELOW) or vcpu < case.limit(VCPU_FROM) or several <= 1:
        return Clear()
    unset = not batch.max_concurrent
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=(
            f"MaxConcurrentTransforms is {'not set' if unset else '1'}, and CPU averaged "
            f"{average:.0f}% of {vcpu} vCPUs over {case.usage.minutes:.0f} active minutes on "
            f"{job.instances}."
        ),
        evidence={
            "max_concurrent_transforms": batch.max_concurrent,
            "max_payload_mb": batch.max_payload_mb,
            "cpu_mean_percent": round(average, 1),
            "vcpu": vcpu,
            "active_minutes": round(case.usage.minutes),
        },
        fix=(Parameter("MaxConcurrentTransforms", batch.max_concurrent, several),),
        caution=(
            "No figure: how much faster several requests at a time are, only a run shows. "
            "A smaller type is the other way: one of the two."
        ),
    )


def _room_for(payload_mb: int | None) -> int:
    """How many requests at a time the limit on all payloads allows; chunked ones have no size."""
    size_mb = _DEFAULT_PAYLOAD_MB if payload_mb is None else payload_mb
    return _ALL_PAYLOADS_MB // max(size_mb, 1)
