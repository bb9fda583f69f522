"""CPU and memory stay low on a CPU job: a smaller instance would do.

## What it checks
P95 of CPU and of memory over the active minutes are under 40% of the instance, on a type without
GPU, and a smaller type of the same family holds the run.

## Why it costs
A vCPU-hour is billed the same used or not.

## Saving
The same seconds on the smaller type, derived: its vCPUs and memory hold P99.5 of what the busiest
host used plus 20%. Never (1 - utilisation) x cost.

## When it is wrong
One-minute means hide short peaks; reading data through the page cache gains from memory that no
metric shows as used.

## What to do
Take the smaller type. Of several hosts that each do little, fewer may do instead: not both at once,
since either one leaves less room for the other.

## Sources
Flexera: under-used below 40%. Compute Optimizer: P99.5 with 20% headroom.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome, Parameter
from sageaudit.domain.bill.resize import resize
from sageaudit.domain.job.request_paths import TYPE_PATHS
from sageaudit.domain.usage.measurements import Metric
from sageaudit.domain.usage.series import percentile
from sageaudit.rules.card import HEADROOM, JobCase, Threshold, rule

CPU_BELOW = Threshold("cpu_p95_below", 40, "percent of all vCPUs", "under-used", "Flexera")
MEMORY_BELOW = Threshold("memory_p95_below", 40, "percent of memory", "under-used", "Flexera")


def not_cpu_only(case: JobCase) -> str | None:
    """Why a job is none on CPU instances of one type, or None."""
    types = [case.market.types.get(group.instance_type) for group in case.job.groups]
    if any(kind is not None and kind.accelerator for kind in types):
        return "a GPU or Trainium job: its CPUs are there to feed the accelerator"
    return "its instances are of several types" if len(case.job.groups) > 1 else None


@rule(
    id="SA205",
    scope=JobCase,
    kinds=set(TYPE_PATHS),
    thresholds=(CPU_BELOW, MEMORY_BELOW, HEADROOM),
    needs=(Metric.CPU, Metric.MEMORY),
    not_applicable=(not_cpu_only,),
)
def check(case: JobCase) -> Outcome:
    """Looks at the busiest host: every host must fit."""
    cpu, memory = (
        max(percentile(series.present, 95) for series in case.usage.series[metric].values())
        for metric in (Metric.CPU, Metric.MEMORY)
    )
    if cpu >= case.limit(CPU_BELOW) or memory >= case.limit(MEMORY_BELOW):
        return Clear()
    group = case.job.groups[0]
    current = case.market.types[group.instance_type]
    resized = resize(
        case.job,
        case.usage,
        case.market,
        headroom_percent=Decimal(str(case.limit(HEADROOM))),
        only=lambda kind: kind.family == current.family,
    )
    fits = next(resized.worthwhile, None)
    if fits is None or fits.takes is None:
        return Clear()
    return Found(
        confidence=Confidence.DERIVED,
        bucket=Bucket.AVOIDABLE,
        summary=(
            f"CPU stayed under {cpu:.0f}% and memory under {memory:.0f}% for 95% of "
            f"{case.usage.minutes:.0f} active minutes on {case.job.instances}."
        ),
        evidence={
            "cpu_p95_percent": round(cpu, 1),
            "memory_p95_percent": round(memory, 1),
            "active_minutes": round(case.usage.minutes),
            "vcpu": current.vcpu,
            "memory_gib": current.memory_gib,
        },
        fix=(Parameter(TYPE_PATHS[case.job.kind], group.instance_type, fits.type.name),),
        change=fits.change,
        caution=fits.takes.because,
    )
