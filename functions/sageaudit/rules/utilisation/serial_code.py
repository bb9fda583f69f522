"""The code works on one core of many.

What it checks: On a CPU type with at least 4 vCPUs, each host uses 0.85 to 1.2 cores on average and
    under 1.5 cores for 95% of the active minutes.
Why it costs: All vCPUs are billed, and the others wait for the one that works.
Saving: Derived: the run on the type that saves most and holds P99.5 of memory plus 20%. Minutes
    with more busy cores are counted as longer. If memory was not recorded, that type has no less of
    it. Without such a type there is no figure.
When it is wrong: One core may be all that an algorithm can use. A mean of one core can hide several
    that take turns; one-minute means hide bursts.
What to do: Use the cores (n_jobs, num_workers, OMP_NUM_THREADS, a process pool, vectorised code):
    the run is shorter on the same type. Or take fewer: the code runs as fast.
Sources: Jobstats and Job Defense Shield, serial code: utilisation / (100 / cores) between 0.85 and
    1.01. They count the job alone; CloudWatch counts the host, whose system takes up to 0.19 cores.
"""

from __future__ import annotations

from sageaudit.domain.usage.activity import ONE_PROCESS_TO_CORES
from sageaudit.rules import api
from sageaudit.rules.types.another_type import best_type

CORES_FROM = api.Threshold("cores_from", 0.85, "cores", "one core, with pauses", "Jobstats")
CORES_TO = api.Threshold(
    "cores_to",
    ONE_PROCESS_TO_CORES,
    "cores",
    "one core (1.01) and the host's system (0.19)",
    "Jobstats, recordings",
)
P95_BELOW = api.Threshold("p95_below_cores", 1.5, "cores", "steadily one core")
USE_THE_CORES = "Or use the cores: threads and workers shorten the run on the same type."
VCPU_FROM = api.Threshold("vcpu_from", 4, "vCPUs", "2 are the smallest types", "SageMaker's types")


@api.rule(
    id="SA207",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(CORES_FROM, CORES_TO, P95_BELOW, VCPU_FROM, api.HEADROOM),
    needs=(api.Metric.CPU,),
    pools=True,
    finds_waste=True,
    not_applicable=(api.accelerated, api.mixed_types),
    subsumes={"cheaper-type", "cpu-underused", "memory-oversized", "poor-scaling"},
)
def check(case: api.JobCase) -> api.Outcome:
    """Every host must sit at one core."""
    today = case.today
    hosts = [
        [value * today.vcpu / 100 for value in line.present]
        for line in case.usage.series[api.Metric.CPU].values()
    ]
    serial = all(_serial(case, cores) for cores in hosts)
    if not serial or today.vcpu < case.limit(VCPU_FROM):
        return api.Clear()
    mean, p95 = max(map(api.mean, hosts)), max(api.percentile(cores, 95) for cores in hosts)
    each = " on each host" if len(hosts) > 1 else ""
    return api.derived(
        f"The code used {mean:.1f} of {today.vcpu} vCPUs{each} over "
        f"{case.span(case.usage.minutes)} on {case.job.instances}.",
        {
            "cpu_mean_cores": round(mean, 2),
            "cpu_p95_cores": round(p95, 2),
            "vcpu": today.vcpu,
            "active_minutes": round(case.usage.minutes),
        },
        **best_type(case).details(case, USE_THE_CORES),
    )


def _serial(case: api.JobCase, cores: list[float]) -> bool:
    low, high = case.limit(CORES_FROM), case.limit(CORES_TO)
    return low <= api.mean(cores) <= high and api.percentile(cores, 95) < case.limit(P95_BELOW)
