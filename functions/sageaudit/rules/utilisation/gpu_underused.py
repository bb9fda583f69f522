"""The GPU works little.

What it checks: Over the active minutes the mean GPU utilisation is under 25%, or it is under 50%
    and even the busiest host's P95 stays under 70%. From a mean of 50% on the use is healthy. Idle
    head, tail and standstills are cut first. A GPU that did almost nothing is left to gpu-idle.
Why it costs: A GPU-hour is billed the same, busy or waiting.
Saving: Derived, never (1 - utilisation) x cost: the run on the type that certainly saves most. It
    has the same GPU, fewer GPUs, or a GPU whose throughput was measured and published, and holds
    P99.5 of vCPU and memory plus 20%. The longest run time is counted; the range is shown. Without
    such a type there is no figure.
When it is wrong: "Utilisation" counts any kernel as busy: low means waste, high does not mean
    efficient. One-minute means hide peaks, and CloudWatch has neither I/O wait nor single GPUs.
What to do: Feed it faster (data-loader workers, prefetch, FastFile), or take a smaller type. The
    finding advises a larger batch only if GPU memory is known to be free.
Sources: SageMaker Debugger, LowGPUUtilization: threshold_p95 70; BatchSize: 70 for CPU, GPU and GPU
    memory (cpu_threshold_p95, gpu_threshold_p95, gpu_memory_threshold_p95). Jobstats: job mean red
    at 15% or less, amber under 25%, target 50%. ICSE 2024 (10.1145/3597503.3639232): of 400 jobs at
    50% or less, 46% wait for data.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.types.another_type import best_type
from sageaudit.rules.utilisation.gpus import GpuUse, gpu_use, outcome_if_gpu_idle

_ONE_GPU, _JOBSTATS, _BATCH_SIZE = "percent of one GPU", "Jobstats config.py", "Debugger BatchSize"
MEAN_BELOW = api.Threshold("max_mean_percent", 25, _ONE_GPU, "amber", _JOBSTATS)
RED_MAX = api.Threshold("max_red_mean_percent", 15, _ONE_GPU, "red: said as such", _JOBSTATS)
TARGET = api.Threshold("target_percent", 50, _ONE_GPU, "busy enough", "Jobstats, target")
P95_BELOW = api.Threshold("max_p95_percent", 70, _ONE_GPU, "low", "Debugger LowGPUUtilization")
CPU_BELOW = api.Threshold(
    "max_cpu_p95_percent", 70, "percent of all vCPUs", "may feed a larger batch", _BATCH_SIZE
)
MEMORY_BELOW = api.Threshold(
    "max_gpu_memory_p95_percent", 70, "percent of GPU memory", "holds a larger one", _BATCH_SIZE
)


@api.rule(
    id="SA202",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MEAN_BELOW, RED_MAX, TARGET, P95_BELOW, CPU_BELOW, MEMORY_BELOW, api.HEADROOM),
    required_metrics=(api.Metric.GPU, api.Metric.CPU),
    can_pool_runs=True,
    finds_waste=True,
    subsumes={"cheaper-type", "trainium-candidate"},
)
def check(case: api.JobCase) -> api.Outcome:
    """Pools all hosts for the mean, and takes the busiest host for the P95."""
    if left := outcome_if_gpu_idle(case):
        return left
    usage, use = case.active_usage, gpu_use(case.active_usage)
    low = use.mean < case.threshold(MEAN_BELOW)
    flat = use.p95 < case.threshold(P95_BELOW) and use.mean < case.threshold(TARGET)
    if not low and not flat:
        return api.Clear()
    best = best_type(case)
    feed = "" if best.first else "First feed the GPU faster."
    if _can_take_larger_batch(case, use):
        feed = f"A larger batch may help: the P95 of GPU memory was {use.memory_p95:.0f}%."
    amber = "amber" if low else "below target"
    return api.derived_saving(
        f"The GPU averaged {use.mean:.0f}% (P95 {use.p95:.0f}%) over "
        f"{case.minutes_text(usage.minutes)} on {case.job.instances}.",
        {
            "gpu_mean_percent": round(use.mean, 1),
            "gpu_p95_percent": round(use.p95, 1),
            "gpu_max_percent": round(use.max, 1),
            "jobstats": "red" if use.mean <= case.threshold(RED_MAX) else amber,
            "gpu_memory_p95_percent": None if use.memory_p95 is None else round(use.memory_p95, 1),
            "cpu_p95_percent": round(use.cpu_p95, 1),
            "cpu_mean_cores": round(use.mean_cpu_cores, 2),
            "vcpu": usage.vcpu,
            "active_minutes": round(usage.minutes),
            "period_s": usage.period_s,
        },
        **best.details(case, feed),
    )


def _can_take_larger_batch(case: api.JobCase, use: GpuUse) -> bool:
    """Is a larger batch known to fit, and could the CPUs feed it?"""
    return (
        use.p95 < case.threshold(P95_BELOW)
        and use.cpu_p95 < case.threshold(CPU_BELOW)
        and use.memory_p95 is not None
        and use.memory_p95 < case.threshold(MEMORY_BELOW)
    )
