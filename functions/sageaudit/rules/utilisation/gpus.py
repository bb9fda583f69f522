"""How much a run used its GPUs and the CPUs that feed them, and when gpu-idle covers a run instead
of other GPU rules.
"""

from __future__ import annotations

from msgspec import Struct

from sageaudit.domain.usage.demand import is_gpu_idle
from sageaudit.rules import api

CPU_LIMIT = api.Threshold(
    "min_cpu_percent", 90, "percent of all vCPUs", "at its limit", "Debugger CPUBottleneck"
)
_MIN_WORKERS_PER_CORE = 0.7
"""Fewer data-loader workers per vCPU are too few. Source: min_threshold (70%) of Debugger's
Dataloader rule."""
_MAX_WORKERS_PER_CORE = 2.0
"""More data-loader workers per vCPU are too many. Source: max_threshold (200%) of Debugger's
Dataloader rule."""
_GPU_IDLE = "gpu-idle"
_CPU_BOTTLENECK_PERCENT = 50
"""From this percent of minutes with the CPU at its limit, cpu-bottleneck has a finding."""
MIN_ACTIVE = api.Threshold(
    "min_active_minutes", 15, "minutes", "by then the start-up is over and points have arrived"
)
HARDLY_USED_MEAN = api.Threshold(
    "hardly_used_mean_percent", 5, "percent of one GPU, mean", "a third of Jobstats' red"
)
HARDLY_USED_P95 = api.Threshold(
    "hardly_used_p95_percent", 10, "percent of one GPU, P95", "hardly a minute of real work"
)
COVERED_BY_GPU_IDLE = api.NotApplicable("the GPU did nothing: see gpu-idle")
"""The outcome of other GPU rules if the GPU never worked."""
_HARDLY_WORKED = api.NotApplicable("the GPU did almost nothing: see gpu-idle")


def outcome_if_gpu_idle(case: api.JobCase) -> api.NotApplicable | None:
    """Returns the outcome of other GPU rules if gpu-idle covers this run, else None."""
    if is_gpu_idle(case.whole_run):
        return COVERED_BY_GPU_IDLE
    return _HARDLY_WORKED if is_gpu_hardly_used(case) else None


def is_gpu_hardly_used(case: api.JobCase) -> bool:
    """Returns True if the GPUs of each host together hardly worked in the active minutes.

    The thresholds are those of gpu-idle. Returns False if the GPUs wait for CPUs at their limit.
    """
    usage = case.active_usage
    hosts = usage.series.get(api.Metric.GPU, {}).values()
    is_short = usage.minutes < _gpu_idle_threshold(case, MIN_ACTIVE) and not case.is_pooled
    if not hosts or not usage.gpus or is_short:
        return False
    if max(line.mean for line in hosts) * usage.gpus >= _gpu_idle_threshold(case, HARDLY_USED_MEAN):
        return False
    p95 = usage.busiest_percentile(api.Metric.GPU, 95) * usage.gpus
    has_low_peaks = p95 <= _gpu_idle_threshold(case, HARDLY_USED_P95)
    return has_low_peaks and cpu_limited_percent(usage, CPU_LIMIT.value) < _CPU_BOTTLENECK_PERCENT


def _gpu_idle_threshold(case: api.JobCase, threshold: api.Threshold) -> float:
    """Returns the policy's value of a threshold of gpu-idle, also while another rule is judged."""
    return case.policy.thresholds.get(_GPU_IDLE, {}).get(threshold.key, threshold.value)


class GpuUse(Struct, frozen=True):
    """GPU and CPU use in percent. `mean` is over all hosts; percentiles and `max` are of the
    busiest host.

    `memory_p95`: GPU memory; None if it was not recorded.
    """

    mean: float
    p95: float
    max: float
    cpu_p95: float
    mean_cpu_cores: float
    memory_p95: float | None


def gpu_use(usage: api.Measurements) -> GpuUse:
    """Returns the use in the active minutes. GPU and CPU must be recorded."""
    has_memory = api.Metric.GPU_MEMORY in usage.series
    return GpuUse(
        mean=usage.mean(api.Metric.GPU),
        p95=usage.busiest_percentile(api.Metric.GPU, 95),
        max=usage.busiest_percentile(api.Metric.GPU, 100),
        cpu_p95=usage.busiest_percentile(api.Metric.CPU, 95),
        mean_cpu_cores=usage.mean(api.Metric.CPU) * (usage.vcpu or 0) / 100,
        memory_p95=usage.busiest_percentile(api.Metric.GPU_MEMORY, 95) if has_memory else None,
    )


def cpu_limited_percent(usage: api.Measurements, cpu_from: float, gpu_to: float = 100) -> float:
    """Returns the percent of minutes with busy CPUs and waiting GPUs.

    The CPU is at `cpu_from` percent or more, the GPU at `gpu_to` percent or less. 0 if no minute
    has points of both.
    """
    cpus, gpus = (usage.series.get(metric, {}) for metric in (api.Metric.CPU, api.Metric.GPU))
    if all(line.highest < cpu_from for line in cpus.values()):
        return 0.0
    points = api.pairs(cpus, gpus)
    is_waiting = [cpu >= cpu_from and gpu <= gpu_to for cpu, gpu in zip(*points, strict=True)]
    return 100 * sum(is_waiting) / len(is_waiting) if is_waiting else 0.0


def loader_fix(case: api.JobCase) -> tuple[api.Parameter, ...]:
    """Returns the parameters for one data-loader worker per vCPU.

    Empty if the job's number of workers is unknown or already near that.
    """
    workers, job = case.job.hints.loader_workers, case.job
    if workers is None or not case.active_usage.vcpu or job.kind is not api.JobKind.TRAINING:
        return ()
    # a distributed run has one process, with workers of its own, for each GPU
    processes = max(case.active_usage.gpus or 1, 1) if job.hints.distribution else 1
    share = workers * processes / case.active_usage.vcpu
    if _MIN_WORKERS_PER_CORE <= share <= _MAX_WORKERS_PER_CORE:
        return ()
    new_workers = max(case.active_usage.vcpu // processes, 1)
    workers_each = api.Parameter("HyperParameters.num_workers", str(workers), str(new_workers))
    if share < _MIN_WORKERS_PER_CORE:
        return (workers_each,)
    return (workers_each, api.Parameter("Environment.OMP_NUM_THREADS", None, "1"))
