"""The GPU works little.

What it checks: Over the active minutes the mean GPU utilisation is under 25%, or it is under 50%
    and even the busiest host's P95 stays under 70%, or the P95 of GPU, GPU memory and CPU are all
    under 70%. Idle head and tail are cut first. A GPU that did nothing at all is left to gpu-idle.
Why it costs: A GPU-hour is billed the same busy or waiting.
Saving: Derived, never (1 - utilisation) x cost, from the cheaper types that hold P99.5 plus 20% of
    all that was used: the same seconds on a smaller type of the same GPU; else, where the
    throughput of both GPUs has a source, at most so many times as long on another GPU: the slow end
    is counted, the range shown. Otherwise none.
When it is wrong: "Utilisation" counts any kernel as busy: low means waste, high does not mean
    efficient. One-minute means hide peaks, and CloudWatch has neither I/O wait nor single GPUs.
What to do: Feed it faster (data-loader workers, prefetch, FastFile), or take less. A larger batch
    only where GPU memory is known to be free: the finding says so then.
Sources: SageMaker Debugger, LowGPUUtilization: threshold_p95 70; BatchSize: cpu_threshold_p95,
    gpu_threshold_p95 and gpu_memory_threshold_p95 70. Jobstats: job mean red at 15% or less, amber
    under 25%, target 50%. ICSE 2024 (10.1145/3597503.3639232): of 400 jobs at 50% or less, 46% wait
    for data.
"""

from __future__ import annotations

from dataclasses import dataclass

from sageaudit.domain.bill.candidate import Candidate
from sageaudit.rules import api
from sageaudit.rules.types.another_type import (
    PEAKS_HIDDEN,
    cannot_move,
    cheaper,
    move,
    resized,
    why_none,
)
from sageaudit.rules.utilisation.idle_gpu import LEFT_TO_GPU_IDLE, never_worked

_JOBSTATS, _BATCH_SIZE = "Jobstats config.py", "Debugger BatchSize"
MEAN_BELOW = api.Threshold("mean_below", 25, "percent of one GPU", "amber", _JOBSTATS)
RED_TO = api.Threshold("red_to", 15, "percent of one GPU", "red: said as such", _JOBSTATS)
TARGET = api.Threshold("target", 50, "percent of one GPU", "busy enough", "Jobstats, target")
P95_BELOW = api.Threshold(
    "p95_below", 70, "percent of one GPU", "low", "Debugger LowGPUUtilization"
)
CPU_P95_BELOW = api.Threshold(
    "cpu_p95_below", 70, "percent of all vCPUs", "may feed a larger batch", _BATCH_SIZE
)
MEMORY_P95_BELOW = api.Threshold(
    "gpu_memory_p95_below", 70, "percent of GPU memory", "holds a larger one", _BATCH_SIZE
)


@dataclass(frozen=True, slots=True)
class _Use:
    """Of the GPUs: the mean over all hosts. The busiest host's P95; None where not recorded."""

    mean: float
    p95: float
    most: float
    cpu_p95: float
    memory_p95: float | None


@api.rule(
    id="SA202",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(
        MEAN_BELOW,
        RED_TO,
        TARGET,
        P95_BELOW,
        CPU_P95_BELOW,
        MEMORY_P95_BELOW,
        api.HEADROOM,
    ),
    needs=(api.Metric.GPU, api.Metric.CPU),
    subsumes={"trainium-candidate"},
)
def check(case: api.JobCase) -> api.Outcome:
    """Pools all hosts for the mean, and takes the busiest host for the P95."""
    if never_worked(case.whole):
        return LEFT_TO_GPU_IDLE
    use = _use(case.usage)
    low = use.mean < case.limit(MEAN_BELOW)
    flat = use.p95 < case.limit(P95_BELOW) and use.mean < case.limit(TARGET)
    larger_batch = _holds_larger_batch(case, use)
    if not low and not flat and not larger_batch:
        return api.Clear()
    cheaper_type, why = _cheaper_type(case)
    feed = "" if cheaper_type else " First feed the GPU faster."
    if larger_batch:
        feed = f" Or raise the batch size: the P95 of GPU memory was {use.memory_p95:.0f}%."
    return api.derived(
        f"The GPU averaged {use.mean:.0f}% (P95 {use.p95:.0f}%) over "
        f"{case.usage.minutes:.0f} active minutes on {case.job.instances}.",
        _evidence(case, use),
        **move(case, cheaper_type, f"{why}{feed}"),
    )


def _use(usage: api.Measurements) -> _Use:
    p95 = {
        metric: max(api.percentile(line.present, 95) for line in lines.values())
        for metric, lines in usage.series.items()
    }
    points = [value for line in usage.series[api.Metric.GPU].values() for value in line.present]
    return _Use(
        mean=api.mean(points),
        p95=p95[api.Metric.GPU],
        most=max(points),
        cpu_p95=p95[api.Metric.CPU],
        memory_p95=p95.get(api.Metric.GPU_MEMORY),
    )


def _holds_larger_batch(case: api.JobCase, use: _Use) -> bool:
    """Is a larger batch known to fit, and could the CPUs feed it?"""
    return (
        use.p95 < case.limit(P95_BELOW)
        and use.cpu_p95 < case.limit(CPU_P95_BELOW)
        and use.memory_p95 is not None
        and use.memory_p95 < case.limit(MEMORY_P95_BELOW)
    )


def _evidence(case: api.JobCase, use: _Use) -> dict[str, api.Evidence]:
    usage, red = case.usage, use.mean <= case.limit(RED_TO)
    cores = api.mean_of_hosts(usage.series[api.Metric.CPU].values())
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


def _cheaper_type(case: api.JobCase) -> tuple[Candidate | None, str]:
    """With the same GPU if there is one, else with another GPU whose throughput is known."""
    if reason := cannot_move(case):
        return None, f"No figure: {reason}."
    run = resized(case)
    usable = list(cheaper(run))
    same_gpu = [candidate for candidate in usable if candidate.best is None and candidate.type.gpus]
    for candidate in same_gpu or [candidate for candidate in usable if candidate.best is not None]:
        return candidate, f"{candidate.because} {PEAKS_HIDDEN}"
    model = run.today.gpu_model
    smallest = f"this is the smallest type with a {model}"
    return None, f"No figure: {why_none(run, smallest, gpu_model=model)}."
