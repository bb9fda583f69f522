"""The GPU works little.

## What it checks
Over the active minutes the mean GPU utilisation is under 25%, or it is under 50% and even the
busiest host's P95 stays under 70%, or the P95 of GPU, GPU memory and CPU are all under 70%. Idle
head and tail are cut first. A GPU that did nothing at all is left to gpu-idle.

## Why it costs
A GPU-hour is billed the same busy or waiting.

## Saving
Derived, never (1 - utilisation) x cost: the run is replayed on cheaper types that hold P99.5 plus
20% of all it used: the same seconds on a smaller type of the same GPU, or, where the throughput of
both GPUs has a source, at most so many times as long on another GPU: the slow end is counted, the
range shown. Otherwise none.

## When it is wrong
"Utilisation" counts any kernel as busy: low means waste, high does not mean efficient. One-minute
means hide peaks, and CloudWatch has neither I/O wait nor single GPUs.

## What to do
Feed it faster (data-loader workers, prefetch, FastFile), or take less. A larger batch only where
GPU memory is known to be free: the finding says so then.

## Sources
SageMaker Debugger, LowGPUUtilization: threshold_p95 70; BatchSize: cpu_threshold_p95,
gpu_threshold_p95 and gpu_memory_threshold_p95 70. Jobstats: job mean red at 15% or less, amber
under 25%, target 50%. ICSE 2024 (10.1145/3597503.3639232): of 400 jobs at 50% or less, 46% wait
for data.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.bill.candidate import Candidate
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    NotApplicable,
    Outcome,
    Parameter,
)
from sageaudit.domain.bill.resize import Resize, impossible, resize
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.request_paths import TYPE_PATHS
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.domain.usage.series import mean, mean_of_hosts, percentile
from sageaudit.rules.card import HEADROOM, JobCase, Threshold, rule

MEAN_BELOW = Threshold("mean_below", 25, "percent of one GPU", "amber", "Jobstats config.py")
RED_TO = Threshold("red_to", 15, "percent of one GPU", "red: said as such", "Jobstats config.py")
TARGET = Threshold("target", 50, "percent of one GPU", "busy enough", "Jobstats, target")
P95_BELOW = Threshold("p95_below", 70, "percent of one GPU", "low", "Debugger LowGPUUtilization")
CPU_P95_BELOW = Threshold(
    "cpu_p95_below", 70, "percent of all vCPUs", "may feed a larger batch", "Debugger BatchSize"
)
MEMORY_P95_BELOW = Threshold(
    "gpu_memory_p95_below", 70, "percent of GPU memory", "holds a larger one", "Debugger BatchSize"
)


@dataclass(frozen=True, slots=True)
class Advice:
    """A type to move to with why it holds, or only why there is none."""

    to: Candidate | None
    caution: str


@dataclass(frozen=True, slots=True)
class _Use:
    """Of the GPUs: the mean over all hosts. The busiest host's P95; None where not recorded."""

    mean: float
    p95: float
    most: float
    cpu_p95: float
    memory_p95: float | None

    def roomy(self, case: JobCase) -> bool:
        """Is a larger batch known to fit, and could the CPUs feed it?"""
        return (
            self.p95 < case.limit(P95_BELOW)
            and self.cpu_p95 < case.limit(CPU_P95_BELOW)
            and self.memory_p95 is not None
            and self.memory_p95 < case.limit(MEMORY_P95_BELOW)
        )


@rule(
    id="SA202",
    scope=JobCase,
    kinds=set(TYPE_PATHS),
    thresholds=(
        MEAN_BELOW,
        RED_TO,
        TARGET,
        P95_BELOW,
        CPU_P95_BELOW,
        MEMORY_P95_BELOW,
        HEADROOM,
    ),
    needs=(Metric.GPU, Metric.CPU),
    subsumes={"trainium-candidate"},
)
def check(case: JobCase) -> Outcome:
    """Pools all hosts for the mean, and takes the busiest host for the P95."""
    if never_worked(case.whole):
        return NotApplicable("the GPU did nothing: gpu-idle speaks of it")
    use = _use(case.usage)
    low = use.mean < case.limit(MEAN_BELOW)
    flat = use.p95 < case.limit(P95_BELOW) and use.mean < case.limit(TARGET)
    roomy = use.roomy(case)
    if not low and not flat and not roomy:
        return Clear()
    advice = _advice(case)
    group = case.job.groups[0]
    fix = (
        (Parameter(TYPE_PATHS[case.job.kind], group.instance_type, advice.to.type.name),)
        if advice.to
        else ()
    )
    feed = "" if advice.to else " First feed the GPU faster."
    if roomy:
        feed = f" Or raise the batch size: the P95 of GPU memory was {use.memory_p95:.0f}%."
    return Found(
        confidence=Confidence.DERIVED if advice.to else Confidence.HEURISTIC,
        bucket=Bucket.AVOIDABLE if advice.to else Bucket.NONE,
        summary=(
            f"The GPU averaged {use.mean:.0f}% (P95 {use.p95:.0f}%) over "
            f"{case.usage.minutes:.0f} active minutes on {case.job.instances}."
        ),
        evidence=_evidence(case, use),
        fix=fix,
        change=advice.to.change if advice.to else None,
        best=advice.to.best if advice.to else None,
        caution=f"{advice.caution}{feed}",
    )


def never_worked(whole: Measurements) -> bool:
    """Is every GPU point of a whole run exactly 0?"""
    lines = whole.series.get(Metric.GPU, {}).values()
    return bool(lines) and not any(value for line in lines for value in line.present)


def unmovable(case: JobCase) -> str | None:
    """Why no other type can be named for a run, or None."""
    if case.job.purchase is Purchase.TRAINING_PLAN:
        return "its training plan is prepaid, for this type"
    return impossible(case.job, case.market)


def _use(usage: Measurements) -> _Use:
    p95 = {
        metric: max(percentile(line.present, 95) for line in lines.values())
        for metric, lines in usage.series.items()
    }
    points = [value for line in usage.series[Metric.GPU].values() for value in line.present]
    return _Use(
        mean=mean(points),
        p95=p95[Metric.GPU],
        most=max(points),
        cpu_p95=p95[Metric.CPU],
        memory_p95=p95.get(Metric.GPU_MEMORY),
    )


def _evidence(case: JobCase, use: _Use) -> dict[str, str | float | int | None]:
    usage, red = case.usage, use.mean <= case.limit(RED_TO)
    cores = mean_of_hosts(usage.series[Metric.CPU].values())
    amber = "amber" if use.mean < case.limit(MEAN_BELOW) else "below target"
    return {
        "gpu_mean_percent": round(use.mean, 1),
        "gpu_p95_percent": round(use.p95, 1),
        "gpu_max_percent": round(use.most, 1),
        "jobstats": "red" if red else amber,
        "gpu_memory_p95_percent": None if use.memory_p95 is None else round(use.memory_p95, 1),
        "cpu_p95_percent": round(use.cpu_p95, 1),
        "cpu_mean_cores": round(cores * (usage.vcpu or 0) / 100, 2),
        "vcpu": usage.vcpu,
        "active_minutes": round(usage.minutes),
        "period_s": usage.period_s,
    }


def _advice(case: JobCase) -> Advice:
    if why := unmovable(case):
        return Advice(None, f"No figure: {why}.")
    resized = resize(
        case.job, case.usage, case.market, headroom_percent=Decimal(str(case.limit(HEADROOM)))
    )
    today = resized.today
    usable = [one for one in resized.worthwhile if not one.type.legacy or today.legacy]
    same = [one for one in usable if one.best is None and one.type.gpus]
    for one in same or [one for one in usable if one.best is not None]:
        return Advice(one, f"{one.because} Minute means hide peaks: try it once.")
    return Advice(None, f"No figure: {_why_none(resized)}.")


def _why_none(resized: Resize) -> str:
    """The dearest cheaper type of the same GPU says what binds."""
    today = resized.today
    same = [
        one
        for one in resized.candidates
        if one.refused and one.type.gpu_model == today.gpu_model and resized.cheaper(one)
    ]
    if not same:
        return f"this is the smallest type with a {today.gpu_model}"
    nearest = same[-1]
    return f"{nearest.type.name} is refused ({nearest.refused.reason if nearest.refused else ''})"
