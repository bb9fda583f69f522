"""The CPU is at its limit, and the GPU waits for it.

What it checks: In at least 50% of the active minutes of all hosts a host's CPU is at 90% or more
    while its GPU is at 50% or less. Or, milder: mean CPU over 60% and mean GPU under 10%. Only
    minutes with points of both count. If no GPU works for half an hour or more at the start or at
    the end, these minutes do not count here: idle-start and idle-tail judge them.
Why it costs: The GPU is most of the price, and is billed while the CPU prepares its next batch.
Saving: None is counted: only a trial shows how much shorter the run is when the GPU no longer
    waits, and types with more vCPUs cost more an hour.
When it is wrong: Code that computes on the CPU by design, with a little GPU work between, looks the
    same: it may need a CPU type. One-minute means may hide that the loader, too, waits for the GPU
    at times. `num_workers` is a placeholder: names and values of hyperparameters are not stored.
What to do: First the data loader: one worker for each vCPU, OMP_NUM_THREADS=1 within each,
    prefetch, decode and augment once in a processing job, or on the GPU (DALI). Then a size with
    more vCPUs a GPU. Last a heterogeneous cluster with CPU instances that load data, at their cost.
Sources: SageMaker Debugger, CPUBottleneck: threshold 50%, cpu_threshold 90 (its gpu_threshold 10
    misses a GPU that does a third of what it could); Dataloader: workers between 70% and 200% of
    the cores. Jobstats: a mean GPU use of 50% is the target. cloud-finops-skills: CPU over 60% with
    GPU under 10% is a near-certain bottleneck. ICSE 2024 (10.1145/3597503.3639232): 46% of badly
    used GPUs wait for data.
"""

from __future__ import annotations

from sageaudit.domain.usage.edges import trim_to_gpu_work
from sageaudit.domain.usage.measurements import MIN_ACTIVE_MINUTES
from sageaudit.rules import api
from sageaudit.rules.types.another_type import more_vcpu
from sageaudit.rules.utilisation.gpus import CPU_LIMIT, cpu_limited_percent, loader_fix

_DEBUGGER, _FINOPS = "Debugger CPUBottleneck", "cloud-finops-skills"
MIN_SHARE = api.Threshold("min_share_percent", 50, "percent of active minutes", "half", _DEBUGGER)
MAX_GPU = api.Threshold(
    "max_gpu_percent", 50, "percent of all GPUs", "waits half the time", "Jobstats"
)
MIN_CPU_MEAN = api.Threshold(
    "min_cpu_mean_percent", 60, "percent of all vCPUs", "milder tier", _FINOPS
)
GPU_MEAN_BELOW = api.Threshold(
    "max_gpu_mean_percent", 10, "percent of all GPUs", "milder tier", _FINOPS
)


@api.rule(
    id="SA203",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MIN_SHARE, CPU_LIMIT, MAX_GPU, MIN_CPU_MEAN, GPU_MEAN_BELOW),
    required_metrics=(api.Metric.CPU, api.Metric.GPU),
    can_pool_runs=True,
    max_period_s=300,
)
def check(case: api.JobCase) -> api.Outcome:
    """Pools the minutes of all hosts, each with its own CPU and GPU."""
    # The minutes of several runs have no order: no half hour of them is a start or an end.
    usage = case.active_usage if case.is_pooled else trim_to_gpu_work(case.active_usage)
    if usage.minutes < MIN_ACTIVE_MINUTES and not case.is_pooled:
        return api.Clear()
    cpus, gpus = (usage.series.get(metric, {}) for metric in (api.Metric.CPU, api.Metric.GPU))
    cpu_points, gpu_points = api.pairs(cpus, gpus)
    if not cpu_points:
        return api.Unknown("points_apart", "no host has CPU and GPU points of the same minutes")
    share = cpu_limited_percent(usage, case.threshold(CPU_LIMIT), case.threshold(MAX_GPU))
    cpu, gpu = api.mean(cpu_points), api.mean(gpu_points)
    mild = cpu > case.threshold(MIN_CPU_MEAN) and gpu < case.threshold(GPU_MEAN_BELOW)
    strict = share >= case.threshold(MIN_SHARE)
    if not strict and not mild:
        return api.Clear()
    # more vCPUs only for a CPU at its limit: else the next run's advice would turn it back
    larger = more_vcpu(case) if strict else None
    over = f"{case.minutes_text(usage.minutes)} on {case.job.instances}"
    return api.recommendation(
        (
            f"In {share:.0f}% of {over} the CPU was at {case.threshold(CPU_LIMIT):g}% or more"
            " while the "
            f"GPU was at {case.threshold(MAX_GPU):g}% or less. The GPU averaged {gpu:.0f}%."
            if strict
            else f"The CPU averaged {cpu:.0f}% and the GPU {gpu:.0f}% over {over}."
        ),
        {
            # the milder tier has CPUs below their limit: no minute counts as waiting
            **({"waiting_percent": round(share, 1)} if strict else {}),
            "cpu_mean_percent": round(cpu, 1),
            "gpu_mean_percent": round(gpu, 1),
            "vcpu": case.active_usage.vcpu,
            "gpus": case.active_usage.gpus,
            "loader_workers": case.job.hints.loader_workers,
            "active_minutes": round(usage.minutes),
        },
        fix=loader_fix(case),
        alternatives=(api.type_fix(case.job, larger.name),) if larger else (),
        caution=(
            "Only a run shows how much shorter it gets. Start with the data loader: "
            "more vCPUs a GPU cost more by the hour, and a heterogeneous cluster adds instances."
        ),
    )
