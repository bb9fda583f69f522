"""The GPU did nothing at all.

What it checks: No point of GPUUtilization, of all hosts, is above 1% of one GPU over at least
    15 minutes of the job's own code. Idle head and tail count too: a GPU that works earlier or
    later is not idle.
Why it costs: The GPU is most of the instance's price.
Saving: Derived: the same run time on the cheapest type, mostly without GPU, that holds P99.5 of
    vCPU and host memory plus 20%; where one of them was not recorded, that type has no less of it.
    No such type: no figure.
When it is wrong: A short burst may be rounded to 0 in one-minute means, or lie where points are
    missing. Code that should use the GPU and fell back to the CPU must be corrected instead.
What to do: Code that has no use for a GPU (scikit-learn, gradient boosting on the CPU, pandas): a
    CPU type. Else look for a CPU-only build of the framework, a driver or CUDA version that does
    not match the container, or a missing `.to("cuda")`.
Sources: Jobstats and Job Defense Shield, cancel-zero-gpu: all samples 0, acted on after 120
    minutes. The first GPU points come 3 to 6 minutes late in recorded jobs. AWS publishes no such
    metric for Trainium: Unknown there.
"""

from __future__ import annotations

from sageaudit.domain.usage.demand import gpu_idle
from sageaudit.rules import api
from sageaudit.rules.types.another_type import best_type

FROM = api.Threshold(
    "from_minutes", 15, "minutes", "late points and start-up are behind it", "our choice"
)


@api.rule(
    id="SA201",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(FROM, api.HEADROOM),
    needs=(api.Metric.GPU,),
    pools=True,
    finds_waste=True,
    whole_run=True,
    subsumes={
        "cheaper-type",
        "cpu-bottleneck",
        "old-generation",
        "profile-me",
        "trainium-candidate",
    },
)
def check(case: api.JobCase) -> api.Outcome:
    """Looks at the whole run, and sizes the CPU type by its active minutes."""
    whole = case.whole
    if not gpu_idle(whole) or whole.minutes < case.limit(FROM):
        return api.Clear()
    gpus = whole.series[api.Metric.GPU].values()
    cpus = case.usage.series.get(api.Metric.CPU, {}).values()
    points = [value for line in cpus for value in line.present]
    vcpu = case.usage.vcpu
    return api.derived(
        f"The GPU did nothing for {case.span(whole.minutes)} on {case.job.instances}.",
        {
            "gpu_max_percent": round(api.percentile_of_busiest(gpus, 100), 1),
            "minutes": round(whole.minutes),
            "cpu_mean_cores": round(api.mean(points) * vcpu / 100, 2) if points and vcpu else None,
            "vcpu": whole.vcpu,
            "period_s": whole.period_s,
        },
        **best_type(case).details(case, "If the code should use the GPU, correct that instead."),
    )
