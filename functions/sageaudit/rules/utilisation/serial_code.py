"""The code works on one core of many.

## What it checks
On a CPU type with at least 4 vCPUs, the mean use of each host is 0.85 to 1.2 cores, and stays under
1.5 cores for 95% of the active minutes.

## Why it costs
All vCPUs are billed, and the other ones wait for the one that works.

## Saving
The same seconds on the cheapest CPU type with fewer vCPUs that holds P99.5 of vCPU and memory plus
20%, derived. Where memory was not recorded, or needs today's type: no figure.

## When it is wrong
One core may be all that an algorithm can use. A mean of one core can hide several that work by
turns; one-minute means hide bursts.

## What to do
Either use the cores (n_jobs, num_workers, OMP_NUM_THREADS, a process pool, vectorised code): the
run is then shorter on the same type. Or take fewer: the code runs as fast.

## Sources
Jobstats and Job Defense Shield, serial code: utilisation / (100 / cores) between 0.85 and 1.01.
They count the job alone; CloudWatch counts the host, whose system takes up to 0.19 cores.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.candidate import Candidate
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome, Parameter
from sageaudit.domain.bill.resize import resize
from sageaudit.domain.job.request_paths import TYPE_PATHS
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.measurements import Metric
from sageaudit.domain.usage.series import mean, percentile
from sageaudit.rules.card import HEADROOM, JobCase, Threshold, rule
from sageaudit.rules.utilisation.cpu_underused import not_cpu_only

CORES_FROM = Threshold("cores_from", 0.85, "cores", "one core, with pauses", "Jobstats")
CORES_TO = Threshold(
    "cores_to", 1.2, "cores", "one core (1.01) and the host's system (0.19)", "Jobstats, recordings"
)
P95_BELOW = Threshold("p95_below_cores", 1.5, "cores", "steadily one, not by turns", "our choice")
VCPU_FROM = Threshold("vcpu_from", 4, "vCPUs", "2 are the smallest types", "SageMaker's types")


@rule(
    id="SA207",
    scope=JobCase,
    kinds=set(TYPE_PATHS),
    thresholds=(CORES_FROM, CORES_TO, P95_BELOW, VCPU_FROM, HEADROOM),
    needs=(Metric.CPU,),
    not_applicable=(not_cpu_only,),
    subsumes={"cpu-underused", "memory-oversized", "poor-scaling"},
)
def check(case: JobCase) -> Outcome:
    """Every host must sit at one core."""
    today = case.market.types[case.job.groups[0].instance_type]
    hosts = [
        [value * today.vcpu / 100 for value in line.present]
        for line in case.usage.series[Metric.CPU].values()
    ]
    if today.vcpu < case.limit(VCPU_FROM) or not all(_serial(case, one) for one in hosts):
        return Clear()
    cores, p95 = max(map(mean, hosts)), max(percentile(one, 95) for one in hosts)
    to = _fewer_cores(case, today)
    each = " on each host" if len(hosts) > 1 else ""
    return Found(
        confidence=Confidence.DERIVED if to else Confidence.HEURISTIC,
        bucket=Bucket.AVOIDABLE if to else Bucket.NONE,
        summary=(
            f"The code used {cores:.1f} of {today.vcpu} vCPUs{each} over "
            f"{case.usage.minutes:.0f} active minutes on {case.job.instances}."
        ),
        evidence={
            "cpu_mean_cores": round(cores, 2),
            "cpu_p95_cores": round(p95, 2),
            "vcpu": today.vcpu,
            "active_minutes": round(case.usage.minutes),
        },
        fix=(Parameter(TYPE_PATHS[case.job.kind], today.name, to.type.name),) if to else (),
        change=to.change if to else None,
        caution=_caution(case, to),
    )


def _serial(case: JobCase, cores: list[float]) -> bool:
    low, high = case.limit(CORES_FROM), case.limit(CORES_TO)
    return low <= mean(cores) <= high and percentile(cores, 95) < case.limit(P95_BELOW)


def _fewer_cores(case: JobCase, today: InstanceType) -> Candidate | None:
    """Of any family that is no older and has the same kind of storage."""
    resized = resize(
        case.job,
        case.usage,
        case.market,
        headroom_percent=Decimal(str(case.limit(HEADROOM))),
        only=lambda kind: (
            kind.accelerator is None
            and kind.vcpu < today.vcpu
            and kind.ebs_billed == today.ebs_billed
            and (today.legacy or not kind.legacy)
        ),
    )
    return next(resized.worthwhile, None)


def _caution(case: JobCase, to: Candidate | None) -> str:
    use_them = "Or use the cores: threads and workers shorten the run on the same type."
    if to is not None and to.takes is not None:
        return f"{to.takes.because} {use_them}"
    if missing := case.usage.missing.get(Metric.MEMORY):
        return f"No figure: the memory it needs is not recorded ({missing.reason}). {use_them}"
    return f"No figure: no cheaper type with fewer vCPUs is known to hold it. {use_them}"
