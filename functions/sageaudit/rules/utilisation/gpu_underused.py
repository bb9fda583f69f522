"""The GPU works little.

What it checks: Over the active minutes the mean GPU utilisation is under 25%. Or it is under 50%,
    and even the busiest host's P95 is under 70%. gpu-idle judges a GPU that did almost nothing.
Why it costs: A GPU-hour costs the same whether the GPU is busy or waits.
Saving: Derived: the run on the type that certainly saves most. The longest run time is counted, and
    the range is shown. Without such a type there is no figure.
    - The type has the same GPU, fewer GPUs, or a GPU with published throughput measurements.
    - It has room for the P99.5 of vCPU and memory use plus 20%.
When it is wrong: "Utilisation" counts any kernel as busy: low use is waste, but high use is not
    always efficient. One-minute means hide peaks, and CloudWatch shows neither I/O waits nor single
    GPUs.
What to do: Feed the GPU faster (data-loader workers, prefetch, FastFile), or take a smaller type.
    The finding recommends a larger batch only if GPU memory is known to be free.
Sources: SageMaker Debugger, LowGPUUtilization: threshold_p95 70; BatchSize: 70 for CPU, GPU and GPU
    memory (cpu_threshold_p95, gpu_threshold_p95, gpu_memory_threshold_p95). Jobstats: a job's mean
    is red at 15% or less and amber under 25%; the target is 50%. ICSE 2024
    (10.1145/3597503.3639232): in 400 jobs at 50% or less, 46% of the causes are in
    operations on data.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.types.another_type import best_type
from sageaudit.rules.utilisation.gpus import GpuUse, gpu_use, outcome_if_gpu_idle

_ONE_GPU, _JOBSTATS, _BATCH_SIZE = "percent of one GPU", "Jobstats config.py", "Debugger BatchSize"
MEAN_BELOW = api.Threshold("max_mean_percent", 25, _ONE_GPU, "amber", _JOBSTATS)
RED_MAX = api.Threshold("max_red_mean_percent", 15, _ONE_GPU, "red", _JOBSTATS)
TARGET = api.Threshold("target_percent", 50, _ONE_GPU, "busy enough", "Jobstats, target")
P95_BELOW = api.Threshold("max_p95_percent", 70, _ONE_GPU, "low", "Debugger LowGPUUtilization")
CPU_BELOW = api.Threshold(
    "max_cpu_p95_percent", 70, "percent of all vCPUs", "could feed a larger batch", _BATCH_SIZE
)
MEMORY_BELOW = api.Threshold(
    "max_gpu_memory_p95_percent",
    70,
    "percent of GPU memory",
    "has room for a larger batch",
    _BATCH_SIZE,
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
    """Judges the mean of all hosts, and the P95 of the busiest host."""
    if idle_outcome := outcome_if_gpu_idle(case):
        return idle_outcome
    usage, use = case.active_usage, gpu_use(case.active_usage)
    has_low_mean = use.mean < case.threshold(MEAN_BELOW)
    has_low_peaks = use.p95 < case.threshold(P95_BELOW) and use.mean < case.threshold(TARGET)
    if not has_low_mean and not has_low_peaks:
        return api.Clear()
    recommendation = best_type(case)
    hint = "" if recommendation.first else "First feed the GPU faster."
    if _can_take_larger_batch(case, use):
        hint = f"A larger batch may help: the P95 of GPU memory was {use.memory_p95:.0f}%."
    level_text = "amber" if has_low_mean else "below target"
    return api.derived_saving(
        f"The GPU averaged {use.mean:.0f}% (P95 {use.p95:.0f}%) over "
        f"{case.minutes_text(usage.minutes)} on {case.job.instances}.",
        {
            "gpu_mean_percent": round(use.mean, 1),
            "gpu_p95_percent": round(use.p95, 1),
            "gpu_max_percent": round(use.max, 1),
            "jobstats": "red" if use.mean <= case.threshold(RED_MAX) else level_text,
            "gpu_memory_p95_percent": None if use.memory_p95 is None else round(use.memory_p95, 1),
            "cpu_p95_percent": round(use.cpu_p95, 1),
            "cpu_mean_cores": round(use.mean_cpu_cores, 2),
            "vcpu": usage.vcpu,
            "active_minutes": round(usage.minutes),
            "period_s": usage.period_s,
        },
        **recommendation.details(case, hint),
    )


def _can_take_larger_batch(case: api.JobCase, use: GpuUse) -> bool:
    """True if a larger batch fits the GPU memory and the CPUs could feed it."""
    return (
        use.p95 < case.threshold(P95_BELOW)
        and use.cpu_p95 < case.threshold(CPU_BELOW)
        and use.memory_p95 is not None
        and use.memory_p95 < case.threshold(MEMORY_BELOW)
    )
