"""Some hosts do far less than others.

## What it checks
While all hosts still work (up to the last busy minute of the one that ends first, and for at least
15 minutes), the hosts with the highest and the lowest mean utilisation (GPU where there is one,
else CPU) are 20 points and 30% of the higher one apart, and the distance between their histograms
is over 0.5. Or a host takes no part at all: idle after its first 6 minutes, while another keeps a
core, or 5% of its GPUs, busy.

## Why it costs
All hosts are billed for as long as the busiest one works.

## Saving
Between 0 and the run shortened as if the load were balanced; 0 is counted. Hosts that took no part
are counted as left out, derived: the others did all the work in the same time.

## When it is wrong
A leader that also evaluates or writes checkpoints works more than the rest. Parameter servers and
hosts that only hold data in memory are meant to compute little.

## What to do
Spread the data: S3DataDistributionType ShardedByS3Key with objects of even size, more of them than
hosts; a distributed sampler; tasks handed out one by one. Hosts without a part: fewer instances.

## Sources
SageMaker Debugger, LoadBalancing: distance between utilisation histograms over 0.5, here between
hosts on one-minute means, in tenths.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.change import CutPhase, SetCount
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Evidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.job import DataSource, Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.request_paths import COUNT_PATHS, TYPE_PATHS
from sageaudit.domain.usage.edges import at_work, work_metric, work_phase
from sageaudit.domain.usage.measurements import Metric, Missing
from sageaudit.rules.card import JobCase, Threshold, rule
from sageaudit.rules.utilisation.host_load import HostLoad, host_load

DISTANCE_OVER = Threshold(
    "distance_over", 0.5, "share of minutes (0..1)", "far apart", "Debugger LoadBalancing"
)
GAP_FROM = Threshold("gap_from", 20, "points of utilisation", "two tenths", "our choice")
SHORT_FROM = Threshold(
    "short_from",
    30,
    "percent of the busiest host's mean",
    "more than a leader's work",
    "our choice",
)
_WORKS_CORES, _WORKS_GPU_PERCENT = 1.0, 5.0
_SHARDED = {
    JobKind.TRAINING: "InputDataConfig[{}].DataSource.S3DataSource.S3DataDistributionType",
    JobKind.PROCESSING: "ProcessingInputs[{}].S3Input.S3DataDistributionType",
}


def _not_applicable(case: JobCase) -> str | None:
    return "it ran on one instance" if case.job.instance_count == 1 else None


@rule(
    id="SA209",
    scope=JobCase,
    kinds=set(TYPE_PATHS),
    thresholds=(DISTANCE_OVER, GAP_FROM, SHORT_FROM),
    needs=(Metric.CPU,),
    coarsest_period_s=300,
    per_host=True,
    not_applicable=(_not_applicable,),
)
def check(case: JobCase) -> Outcome:
    """Compares hosts on the minutes in which all of them have a point."""
    job, metric = case.job, work_metric(case.whole)
    if isinstance(metric, Missing):
        return Unknown(metric.code, metric.reason)
    load = host_load(case.whole, metric, job.instance_count or 0)
    if isinstance(load, Missing):
        return Unknown(load.code, load.reason)
    if load is None or not (_idle_ones(case, load) or _far_apart(case, load)):
        return Clear()
    left_out, count = len(_idle_ones(case, load)), job.instance_count or 0
    group, shard = job.groups[0], _shard(job)
    fewer = (Parameter(COUNT_PATHS[job.kind], group.count, count - left_out),)
    cut_s = Decimal(round(load.seconds * load.spare))
    return Found(
        confidence=Confidence.DERIVED,
        bucket=Bucket.AVOIDABLE,
        summary=_summary(case, load, left_out),
        evidence=_evidence(case, load, left_out),
        fix=fewer if left_out else shard,
        alternatives=(shard,) if left_out and shard else (),
        change=(
            SetCount(count - left_out, Decimal(1), refills=False)
            if left_out
            else CutPhase(work_phase(job), Decimal(0))
        ),
        best=None if left_out else CutPhase(work_phase(job), cut_s),
        caution=(
            "Assumes that the others need nothing of it, such as data that it holds in memory."
            if left_out
            else "An even load would save at most this; nothing is counted until a run shows it."
        ),
    )


def _idle_ones(case: JobCase, load: HostLoad) -> tuple[str, ...]:
    """Hosts without a part, where another one does real work."""
    least = _WORKS_GPU_PERCENT
    if load.metric is Metric.CPU:
        least = 100 * _WORKS_CORES / (case.whole.vcpu or 1)
    return load.no_part if load.busiest[1] >= least else ()


def _far_apart(case: JobCase, load: HostLoad) -> bool:
    gap = load.busiest[1] - load.laziest[1]
    return (
        gap >= case.limit(GAP_FROM)
        and 100 * gap >= case.limit(SHORT_FROM) * load.busiest[1]
        and load.distance > case.limit(DISTANCE_OVER)
    )


def _shard(job: Job) -> tuple[Parameter, ...]:
    """For channels that give all data to every host, unless a sampler splits them."""
    path = _SHARDED.get(job.kind)
    if path is None or job.hints.distributed_sampler:
        return ()
    return tuple(
        Parameter(path.format(channel.name), channel.distribution, "ShardedByS3Key")
        for channel in job.channels
        if channel.source is DataSource.S3 and channel.distribution == "FullyReplicated"
    )


def _summary(case: JobCase, load: HostLoad, left_out: int) -> str:
    what = "GPU" if load.metric is Metric.GPU else "CPU"
    (busiest, most), (laziest, least) = load.busiest, load.laziest
    over = f"over {load.seconds / 60:.0f} minutes on {case.job.instances}"
    if left_out:
        hosts = f"{left_out} of {len(load.used)} hosts took no part"
        return f"{hosts}, while {_short(busiest)} averaged {most:.0f}% {what} {over}."
    low = f"{_short(laziest)} {least:.0f}%"
    return f"While all hosts worked, {_short(busiest)} averaged {most:.0f}% {what}, {low}, {over}."


def _short(host: str) -> str:
    return host.rpartition("/")[2]


def _evidence(case: JobCase, load: HostLoad, left_out: int) -> dict[str, Evidence]:
    lazy = load.short_of_busiest(case.limit(SHORT_FROM))
    points = [at for host, works in at_work(case.usage).items() if host in lazy for at in works]
    idle = sum(at is False for at in points)
    return {
        "busiest_mean_percent": round(load.busiest[1], 1),
        "laziest_mean_percent": round(load.laziest[1], 1),
        "histogram_distance": round(load.distance, 2),
        "minutes": round(load.seconds / 60),
        "hosts": len(load.used),
        "lazy_hosts": len(lazy),
        "lazy_hosts_idle_percent": round(100 * idle / len(points), 1) if points else None,
        "hosts_without_part": left_out,
    }
