"""The GPU did nothing, or almost nothing.

What it checks: One of these is true:
    - The GPU did nothing: GPUUtilization is never above 1% of one GPU on any host. At least 15
      minutes must be recorded, including an idle start and end.
    - The GPU did almost nothing: the GPUs of each host together average under 5% of one GPU, with a
      P95 of at most 10%. This needs at least 15 active minutes. If the CPUs were at their limit
      meanwhile, cpu-bottleneck reports that instead.
Why it costs: The GPU is most of the instance's price.
Saving: Derived, in both cases:
    - If the GPU did nothing: the same run time on the cheapest type with room for the P99.5 of
      vCPUs and host memory plus 20%. This type usually has no GPU. If one of the two was not
      recorded, the type has at least as much of it.
    - If the GPU did almost nothing: the run on a GPU type that it certainly fits, at its longest
      run time. Without such a type there is no figure.
When it is wrong: One-minute means may round a short burst to 0, or points may be missing during it.
    If the code should use the GPU and fell back to the CPU, correct the code instead.
What to do: Take a CPU type if the code needs no GPU (scikit-learn, gradient boosting on the CPU,
    pandas). Otherwise look for the cause: a CPU-only build of the framework, a driver or CUDA
    version that does not match the container, or a missing `.to("cuda")`.
Sources: Jobstats and Job Defense Shield, cancel-zero-gpu: all samples 0; it acts after 120 minutes.
    The first GPU points come 3 to 6 minutes late in recorded jobs. AWS publishes no such metric for
    Trainium, so the answer is Unknown there.
"""

from __future__ import annotations

from sageaudit.domain.usage.demand import is_gpu_idle
from sageaudit.rules import api
from sageaudit.rules.types.another_type import best_type
from sageaudit.rules.utilisation.gpus import (
    HARDLY_USED_MEAN,
    HARDLY_USED_P95,
    MIN_ACTIVE,
    is_gpu_hardly_used,
)


@api.rule(
    id="SA201",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MIN_ACTIVE, HARDLY_USED_MEAN, HARDLY_USED_P95, api.HEADROOM),
    required_metrics=(api.Metric.GPU,),
    can_pool_runs=True,
    finds_waste=True,
    uses_whole_run=True,
    subsumes={
        "cheaper-type",
        "cpu-bottleneck",
        "gpu-too-big",
        "gpu-underused",
        "old-generation",
        "trainium-candidate",
    },
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the whole run if the GPU did nothing, else the active minutes."""
    is_idle = is_gpu_idle(case.whole_run)
    usage = case.whole_run if is_idle else case.active_usage
    if usage.minutes < case.threshold(MIN_ACTIVE) or not (is_idle or is_gpu_hardly_used(case)):
        return api.Clear()
    gpus, gpus_per_host = usage.series[api.Metric.GPU].values(), usage.gpus or 1
    cpus = case.active_usage.series.get(api.Metric.CPU, {}).values()
    cpu_points = [value for line in cpus for value in line.present]
    vcpu = case.active_usage.vcpu
    mean = max(api.mean(line.present) for line in gpus) * gpus_per_host
    hint = "If the code should use the GPU, correct the code instead."
    return api.derived_saving(
        f"The GPU did nothing for {case.minutes_text(usage.minutes)} on {case.job.instances}."
        if is_idle
        else (
            f"{_small_percent_text(gpus_per_host, mean)} over {case.minutes_text(usage.minutes)} "
            f"on {case.job.instances}: almost nothing."
        ),
        {
            "gpu_max_percent": round(case.active_usage.busiest_percentile(api.Metric.GPU, 100), 1),
            "gpu_mean_percent_of_one": round(mean, 2),
            "minutes": round(usage.minutes),
            "cpu_mean_cores": round(api.mean(cpu_points) * vcpu / 100, 2)
            if cpu_points and vcpu
            else None,
            "vcpu": usage.vcpu,
            "period_s": usage.period_s,
        },
        **best_type(case).details(case, hint if is_idle else f"{hint} If not, try a CPU type."),
    )


def _small_percent_text(gpus: int, mean: float) -> str:
    percent = f"{mean:.0f}%" if mean >= 1 else "under 1%"
    if gpus == 1:
        return f"The GPU averaged {percent}"
    return f"The {gpus} GPUs of a host together averaged {percent} of one GPU"
