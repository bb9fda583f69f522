"""Most of the memory of an m or r type stays unused: a type with less memory a vCPU would do.

## What it checks
P95 of memory over the active minutes is under 35% of the instance, on a general-purpose or
memory-optimized type, and the cheapest type that holds the run, with those of today's family among
them, is one with less memory a vCPU: a c type, or, from an r type, an m type.

## Why it costs
A vCPU with 4 or 8 GiB costs more than one with 2.

## Saving
The same seconds on that type, derived: its vCPUs and memory hold P99.5 of what the busiest host
used plus 20%.

## When it is wrong
One-minute means hide short peaks, above all of memory at the end of an epoch or of a join; reading
data through the page cache gains from memory that no metric shows as used. A vCPU of one family is
taken for one of the other.

## What to do
Take the c type. Where the CPU is little used too, a smaller type of the same family may be cheaper
still: then cpu-underused says so, and this rule says nothing.

## Sources
Job Defense Shield: alert at 35% of the memory used. Compute Optimizer: P99.5 with 20% headroom.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome, Parameter
from sageaudit.domain.bill.resize import resize
from sageaudit.domain.job.request_paths import TYPE_PATHS
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.measurements import Metric
from sageaudit.domain.usage.series import percentile
from sageaudit.rules.card import HEADROOM, JobCase, Threshold, rule
from sageaudit.rules.utilisation.cpu_underused import not_cpu_only

MEMORY_BELOW = Threshold(
    "memory_p95_below", 35, "percent of memory", "far above need", "Job Defense Shield, ratio 0.35"
)
_ROOMY = frozenset({"general", "memory"})
_LEANER = frozenset({"general", "compute"})


def _not_applicable(case: JobCase) -> str | None:
    if why := not_cpu_only(case):
        return why
    types = [case.market.types.get(group.instance_type) for group in case.job.groups]
    roomy = all(kind is None or kind.category in _ROOMY for kind in types)
    return None if roomy else "it is no general-purpose or memory-optimized type"


def _leaner(kind: InstanceType, today: InstanceType) -> bool:
    """Less memory a vCPU, no older a family, and the same kind of storage."""
    if kind.legacy and not today.legacy:
        return False
    less = kind.memory_gib * today.vcpu < today.memory_gib * kind.vcpu
    return less and kind.category in _LEANER and kind.ebs_billed == today.ebs_billed


@rule(
    id="SA206",
    scope=JobCase,
    kinds=set(TYPE_PATHS),
    thresholds=(MEMORY_BELOW, HEADROOM),
    needs=(Metric.MEMORY, Metric.CPU),
    not_applicable=(_not_applicable,),
)
def check(case: JobCase) -> Outcome:
    """Looks at the busiest host: every host must fit."""
    hosts = case.usage.series[Metric.MEMORY].values()
    memory = max(percentile(line.present, 95) for line in hosts)
    if memory >= case.limit(MEMORY_BELOW):
        return Clear()
    group = case.job.groups[0]
    today = case.market.types[group.instance_type]
    resized = resize(
        case.job,
        case.usage,
        case.market,
        headroom_percent=Decimal(str(case.limit(HEADROOM))),
        only=lambda kind: kind.family == today.family or _leaner(kind, today),
    )
    fits = next(resized.worthwhile, None)
    if fits is None or fits.takes is None or not _leaner(fits.type, today):
        return Clear()
    needed = resized.need.memory_gib.needed
    return Found(
        confidence=Confidence.DERIVED,
        bucket=Bucket.AVOIDABLE,
        summary=(
            f"Memory stayed under {memory:.0f}% of {today.memory_gib:g} GiB for 95% of "
            f"{case.usage.minutes:.0f} active minutes on {case.job.instances}."
        ),
        evidence={
            "memory_p95_percent": round(memory, 1),
            "memory_needed_gib": None if needed is None else round(needed, 1),
            "memory_gib": today.memory_gib,
            "memory_gib_there": fits.type.memory_gib,
            "active_minutes": round(case.usage.minutes),
            "vcpu": today.vcpu,
        },
        fix=(Parameter(TYPE_PATHS[case.job.kind], group.instance_type, fits.type.name),),
        change=fits.change,
        caution=fits.takes.because,
    )
