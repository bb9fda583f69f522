"""The GPU works little.

## What it checks
Over the active minutes the mean GPU utilisation is under 25%, or it is under 50% and even the
busiest host's P95 stays under 70%. Idle head and tail are cut first.

## Why it costs
A GPU-hour is billed the same busy or waiting.

## Saving
Derived, never (1 - utilisation) x cost. A GPU that never worked: the same seconds on the cheapest
CPU type with at least the same vCPUs and memory. Several GPUs: the same seconds on a smaller type
of the same GPU that holds P99.5 plus 20% of vCPU, memory, GPU and GPU memory. Otherwise none.

## When it is wrong
"Utilisation" counts any kernel as busy: low means waste, high does not mean efficient. One-minute
means hide peaks, and CloudWatch has neither I/O wait nor single GPUs.

## What to do
Feed it faster (data-loader workers, prefetch, FastFile), raise the batch size, or take less.

## Sources
SageMaker Debugger, LowGPUUtilization: threshold_p95 70. Jobstats: job mean amber under 25%, target
50%. ICSE 2024 (10.1145/3597503.3639232): of 400 jobs at 50% or less, 46% wait for data.
"""

from __future__ import annotations

from dataclasses import dataclass

from sageaudit.domain.change import SetType
from sageaudit.domain.finding import Bucket, Clear, Confidence, Found, Outcome, Parameter
from sageaudit.domain.market import InstanceType
from sageaudit.domain.measurements import Metric
from sageaudit.domain.replay import same_gpu, without_gpu
from sageaudit.domain.series import mean, percentile
from sageaudit.rules.card import JobCase, Threshold, rule
from sageaudit.rules.cpu_underused import TYPE_PATHS

MEAN_BELOW = Threshold("mean_below", 25, "percent of one GPU", "amber", "Jobstats config.py")
P95_BELOW = Threshold("p95_below", 70, "percent of one GPU", "low", "Debugger LowGPUUtilization")
TARGET = Threshold("target", 50, "percent of one GPU", "busy enough", "Jobstats, target")
_NEVER_WORKED_PERCENT = 1.0


@dataclass(frozen=True, slots=True)
class _Advice:
    """A type to move to with why it holds, or only why there is none."""

    to: InstanceType | None
    caution: str


@rule(
    id="SA202",
    kinds=set(TYPE_PATHS),
    thresholds=(MEAN_BELOW, P95_BELOW, TARGET),
    needs=(Metric.GPU, Metric.CPU),
)
def check(case: JobCase) -> Outcome:
    """Pools all hosts for the mean, and takes the busiest host for the P95."""
    hosts = [series.present for series in case.seen.series[Metric.GPU].values()]
    points = [value for host in hosts for value in host]
    average, p95 = mean(points), max(percentile(host, 95) for host in hosts)
    low = average < case.limit(MEAN_BELOW)
    flat = p95 < case.limit(P95_BELOW) and average < case.limit(TARGET)
    if not low and not flat:
        return Clear()
    advice = _advice(case, max(points))
    group = case.job.groups[0]
    cores = mean([v for s in case.seen.series[Metric.CPU].values() for v in s.present])
    fix = (
        (Parameter(TYPE_PATHS[case.job.kind], group.instance_type, advice.to.name),)
        if advice.to
        else ()
    )
    return Found(
        confidence=Confidence.DERIVED if advice.to else Confidence.HEURISTIC,
        bucket=Bucket.AVOIDABLE if advice.to else Bucket.NONE,
        summary=_summary(case, average, p95, max(points)),
        evidence={
            "gpu_mean_percent": round(average, 1),
            "gpu_p95_percent": round(p95, 1),
            "gpu_max_percent": round(max(points), 1),
            "cpu_mean_cores": round(cores * (case.seen.vcpu or 0) / 100, 2),
            "vcpu": case.seen.vcpu,
            "active_minutes": round(case.seen.minutes),
            "period_s": case.seen.period_s,
        },
        fix=fix,
        change=SetType(advice.to.name) if advice.to else None,
        caution=advice.caution,
    )


def _summary(case: JobCase, average: float, p95: float, peak: float) -> str:
    minutes, what = f"{case.seen.minutes:.0f} active minutes", case.job.instances
    if peak <= _NEVER_WORKED_PERCENT:
        return f"The GPU did nothing in {minutes} on {what}."
    return f"The GPU averaged {average:.0f}% (P95 {p95:.0f}%) over {minutes} on {what}."


def _advice(case: JobCase, peak: float) -> _Advice:
    if len(case.job.groups) > 1:
        return _Advice(None, "No figure: hosts of a mixed cluster have no map to their types.")
    current = case.market.types[case.job.groups[0].instance_type]
    if peak <= _NEVER_WORKED_PERCENT:
        candidate = without_gpu(case.job, current, case.market)
        if candidate is not None:
            return _Advice(
                candidate.type,
                f"Assumes that the run takes as long: {candidate.type.vcpu} vCPU and "
                f"{candidate.type.memory_gib:g} GiB are no less than it had, and no GPU was used. "
                "If the code was meant to use the GPU, mend that instead.",
            )
        return _Advice(None, "No figure: no cheaper CPU type with as much is priced here.")
    candidates = same_gpu(case.job, current, case.seen, case.market)
    for candidate in candidates:
        if candidate.refused is None:
            return _Advice(
                candidate.type,
                "Assumes that the run takes as long: the smaller type holds its peaks plus 20%. "
                "Minute means hide peaks: try it once.",
            )
    advice = "First feed the GPU faster or raise the batch size."
    if not candidates:
        return _Advice(
            None, f"No figure: this is the smallest type with a {current.gpu_model}. {advice}"
        )
    nearest = candidates[-1]
    return _Advice(None, f"No figure: {nearest.type.name} is refused ({nearest.refused}). {advice}")
