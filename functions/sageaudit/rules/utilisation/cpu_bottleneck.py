"""The CPU is at its limit, and the GPU waits for it.

What it checks: One of these is true, over the minutes with points of both CPU and GPU. If no GPU
    works for half an hour or more at the start or end, idle-start and idle-tail judge these
    minutes.
    - In at least half of all hosts' active minutes, the host's CPU is at 90% or more and its GPU at
      50% or less.
    - Mean CPU is over 60% and mean GPU under 10%.
Why it costs: The GPU is most of the price, and is billed while the CPU prepares its next batch.
Saving: None: only a trial shows how much shorter the run is if the GPU does not wait. Types with
    more vCPUs cost more per hour.
When it is wrong: Code that computes on the CPU by design looks the same: it may need a CPU type.
    One-minute means may hide that the data loader sometimes waits for the GPU too. In the fix,
    `num_workers` stands for your own parameter, because names and values of hyperparameters are not
    stored.
What to do: Try these in this order:
    - Tune the data loader: one worker for each vCPU, OMP_NUM_THREADS=1 in each worker, and
      prefetch.
    - Decode and augment the data once in a processing job, or on the GPU (DALI).
    - Take a size with more vCPUs per GPU.
    - Use a heterogeneous cluster whose CPU instances load the data, at additional cost.
Sources: SageMaker Debugger, CPUBottleneck: threshold 50%, cpu_threshold 90 (its gpu_threshold of 10
    misses a GPU at a third of its capacity); Dataloader: workers between 70% and 200% of the cores.
    Jobstats: a mean GPU use of 50% is the target. cloud-finops-skills: CPU over 60% with GPU under
    10% is a near-certain bottleneck. ICSE 2024 (10.1145/3597503.3639232): 46% of the causes
    of low GPU use are in operations on data.
"""

from __future__ import annotations

from sageaudit.domain.usage.edges import trim_to_gpu_work
from sageaudit.domain.usage.measurements import MIN_ACTIVE_MINUTES
from sageaudit.rules import api
from sageaudit.rules.types.another_type import next_size_by_vcpu
from sageaudit.rules.utilisation.gpus import CPU_LIMIT, cpu_limited_percent, loader_fix

_DEBUGGER, _FINOPS = "Debugger CPUBottleneck", "cloud-finops-skills"
MIN_SHARE = api.Threshold("min_share_percent", 50, "percent of active minutes", "half", _DEBUGGER)
MAX_GPU = api.Threshold(
    "max_gpu_percent", 50, "percent of all GPUs", "it waits half of the time", "Jobstats"
)
MIN_CPU_MEAN = api.Threshold(
    "min_cpu_mean_percent", 60, "percent of all vCPUs", "the milder case", _FINOPS
)
GPU_MEAN_BELOW = api.Threshold(
    "max_gpu_mean_percent", 10, "percent of all GPUs", "the milder case", _FINOPS
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
    """Judges the minutes of all hosts together. Each minute has the CPU and GPU of its own host."""
    # minutes of several runs have no order, so they have no start and no end
    usage = case.active_usage if case.is_pooled else trim_to_gpu_work(case.active_usage)
    if usage.minutes < MIN_ACTIVE_MINUTES and not case.is_pooled:
        return api.Clear()
    cpus, gpus = (usage.series.get(metric, {}) for metric in (api.Metric.CPU, api.Metric.GPU))
    cpu_points, gpu_points = api.pairs(cpus, gpus)
    if not cpu_points:
        return api.Unknown("points_apart", "no host has CPU and GPU points of the same minutes")
    share = cpu_limited_percent(usage, case.threshold(CPU_LIMIT), case.threshold(MAX_GPU))
    cpu, gpu = api.mean(cpu_points), api.mean(gpu_points)
    is_mild = cpu > case.threshold(MIN_CPU_MEAN) and gpu < case.threshold(GPU_MEAN_BELOW)
    is_strict = share >= case.threshold(MIN_SHARE)
    if not is_strict and not is_mild:
        return api.Clear()
    # only for a CPU at its limit: else the next run would get the opposite recommendation
    larger_type = next_size_by_vcpu(case) if is_strict else None
    minutes_text = f"{case.minutes_text(usage.minutes)} on {case.job.instances}"
    return api.recommendation(
        (
            f"In {share:.0f}% of {minutes_text} the CPU was at {case.threshold(CPU_LIMIT):g}% or "
            f"more while the GPU was at {case.threshold(MAX_GPU):g}% or less. The GPU averaged "
            f"{gpu:.0f}%."
            if is_strict
            else f"The CPU averaged {cpu:.0f}% and the GPU {gpu:.0f}% over {minutes_text}."
        ),
        {
            # in the milder case the CPU is below its limit, so no minute counts as waiting
            **({"waiting_percent": round(share, 1)} if is_strict else {}),
            "cpu_mean_percent": round(cpu, 1),
            "gpu_mean_percent": round(gpu, 1),
            "vcpu": case.active_usage.vcpu,
            "gpus": case.active_usage.gpus,
            "loader_workers": case.job.hints.loader_workers,
            "active_minutes": round(usage.minutes),
        },
        fix=loader_fix(case),
        alternatives=(api.type_fix(case.job, larger_type.name),) if larger_type else (),
        caution=(
            "Only a test run can show how much shorter it gets. Start with the data loader: "
            "more vCPUs per GPU cost more per hour, and a heterogeneous cluster adds instances."
        ),
    )
