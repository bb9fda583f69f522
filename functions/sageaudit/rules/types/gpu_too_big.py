"""The GPU of a p type is far more than the run uses.

## What it checks
On a p type, over the active minutes: the mean GPU utilisation is at most 20%, GPU memory peaks at
no more than 10 GiB a GPU, no more than 12 cores a GPU are busy, and a cheaper g type holds the run.

## Why it costs
p types are made for large models on several GPUs; a small model pays for what it leaves idle.

## Saving
Derived, by replay: the g type holds P99.5 plus 20% of all that was used, keeps the vCPUs, and takes
at most so many times as long as both makers' peaks say. The slow end is counted, the range shown.
Never (1 - utilisation) x cost. A smaller type with the same GPU is gpu-underused's to name.

## When it is wrong
One-minute means hide peaks, and CloudWatch has no split by GPU. Not advised: T4 and V100 where the
run shows signs of bf16 or FlashAttention, GPUs without NVLink for several that are joined by it,
and any other GPU for several instances.

## What to do
Try one run on the g type. The other way is more work a GPU: a larger batch, several models at once.

## Sources
Job Defense Shield, gpu-model-too-powerful, its example values: GPU utilisation at most 20%, GPU
memory at most 10 GB, at most 12 cores a GPU. Peaks: NVIDIA's data sheets.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.candidate import Candidate, Constraint
from sageaudit.domain.bill.compatibility import type_fixed
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    NotApplicable,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.bill.resize import Resize, impossible, resize
from sageaudit.domain.job.request_paths import TYPE_PATHS
from sageaudit.domain.usage.demand import PEAK_PERCENTILE
from sageaudit.domain.usage.measurements import Metric
from sageaudit.domain.usage.series import mean_of_hosts, percentile
from sageaudit.rules.card import HEADROOM, JobCase, Threshold, rule

_SHIELD = "Job Defense Shield, gpu-model-too-powerful"
MEAN_TO = Threshold("mean_at_most", 20, "percent of all GPUs", "little work", _SHIELD)
MEMORY_TO = Threshold("gpu_memory_at_most_gib", 10, "GiB a GPU", "a small model", _SHIELD)
CORES_TO = Threshold("cores_at_most", 12, "busy cores a GPU", "a g type has as many", _SHIELD)


def _not_applicable(case: JobCase) -> str | None:
    types = {group.instance_type for group in case.job.groups}
    if any(not name.startswith("ml.p") for name in types):
        return "it is for p types"
    return type_fixed(case.job) or case.job.free


@rule(
    id="SA302",
    scope=JobCase,
    kinds=set(TYPE_PATHS),
    thresholds=(MEAN_TO, MEMORY_TO, CORES_TO, HEADROOM),
    needs=(Metric.GPU, Metric.GPU_MEMORY, Metric.CPU, Metric.MEMORY),
    not_applicable=(_not_applicable,),
    subsumes={"gpu-underused"},
)
def check(case: JobCase) -> Outcome:
    """Pools all hosts for the mean; peaks are the busiest host's."""
    average = mean_of_hosts(case.usage.series[Metric.GPU].values())
    today = case.market.types[case.job.groups[0].instance_type]
    memory_gib = _peak(case, Metric.GPU_MEMORY) / 100 * float(today.gpu_memory_gib or 0)
    cores = _peak(case, Metric.CPU) / 100 * today.vcpu / max(today.gpus, 1)
    if (
        average > case.limit(MEAN_TO)
        or memory_gib > case.limit(MEMORY_TO)
        or cores > case.limit(CORES_TO)
    ):
        return Clear()
    if why := impossible(case.job, case.market):
        return Unknown("not_replayable", why)
    headroom = Decimal(str(case.limit(HEADROOM)))
    resized = resize(case.job, case.usage, case.market, headroom_percent=headroom)
    if resized.need.gpu_idle:
        return NotApplicable("the GPU did nothing: it needs none")
    to = _cheapest(resized)
    if to is None:
        return _unknown(resized) or Clear()
    return Found(
        confidence=Confidence.DERIVED,
        bucket=Bucket.AVOIDABLE,
        summary=(
            f"{case.usage.minutes:.0f} active minutes on {case.job.instances} used {average:.0f}% "
            f"of the GPU and {memory_gib:.1f} GiB of its memory: {to.type.name} holds them."
        ),
        evidence={
            "gpu_mean_percent": round(average, 1),
            "gpu_memory_peak_gib": round(memory_gib, 1),
            "cores_peak_per_gpu": round(cores, 1),
            "active_minutes": round(case.usage.minutes),
        },
        fix=(Parameter(TYPE_PATHS[case.job.kind], today.name, to.type.name),),
        change=to.change,
        best=to.best,
        caution=f"{to.because} Minute means hide peaks: try it once.",
    )


def _peak(case: JobCase, metric: Metric) -> float:
    lines = case.usage.series[metric].values()
    return max(percentile(line.present, PEAK_PERCENTILE) for line in lines)


def _cheapest(resized: Resize) -> Candidate | None:
    """The cheapest g type, unless one with the same GPU costs less: another rule names that."""
    for one in resized.worthwhile:
        if one.type.gpu_model == resized.today.gpu_model:
            return None
        if one.type.family.startswith("g") and not one.type.legacy:
            return one
    return None


def _unknown(resized: Resize) -> Unknown | None:
    """A cheaper g type that nothing but a missing record speaks against."""
    for one in resized.candidates:
        lacks = one.refused is not None and one.refused.constraint is Constraint.NOT_RECORDED
        if lacks and one.refused and one.type.family.startswith("g") and resized.cheaper(one):
            return Unknown("not_recorded", one.refused.reason)
    return None
