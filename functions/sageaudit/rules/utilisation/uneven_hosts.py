"""Some hosts do far less than others.

What it checks: While all hosts still work (up to the last busy minute of the one that ends first,
    and for at least 15 minutes), the hosts with the highest and the lowest mean utilisation (GPU
    where there is one, else CPU) are 20 points and 30% of the higher one apart, and the distance
    between their histograms is over 0.5. Or a host takes no part at all: idle after its first 6
    minutes, while another keeps a core, or 5% of its GPUs, busy.
Why it costs: All hosts are billed for as long as the busiest one works.
Saving: Between 0 and the run shortened as if the load were balanced; 0 is counted. Hosts that took
    no part are counted as left out, derived: the others did all the work in the same time.
When it is wrong: A leader that also evaluates or writes checkpoints works more than the rest.
    Parameter servers and hosts that only hold data in memory are meant to compute little.
What to do: Spread the data: S3DataDistributionType ShardedByS3Key with more objects than hosts, all
    of a size; a distributed sampler; tasks handed out one by one. Hosts that take no part: fewer
    instances.
Sources: SageMaker Debugger, LoadBalancing: distance between utilisation histograms over 0.5, here
    between hosts on one-minute means, in tenths.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.job.kinds import COUNT_PATHS
from sageaudit.domain.usage.edges import at_work, work_metric, work_phase
from sageaudit.rules import api
from sageaudit.rules.utilisation.host_load import HostLoad, host_load

DISTANCE_OVER = api.Threshold(
    "distance_over", 0.5, "share of minutes (0..1)", "far apart", "Debugger LoadBalancing"
)
GAP_FROM = api.Threshold("gap_from", 20, "points of utilisation", "two tenths", "our choice")
SHORT_FROM = api.Threshold(
    "short_from",
    30,
    "percent of the busiest host's mean",
    "more than a leader's work",
    "our choice",
)
_WORKS_CORES, _WORKS_GPU_PERCENT = 1.0, 5.0
_SHARDED = {
    api.JobKind.TRAINING: "InputDataConfig[{}].DataSource.S3DataSource.S3DataDistributionType",
    api.JobKind.PROCESSING: "ProcessingInputs[{}].S3Input.S3DataDistributionType",
}


@api.rule(
    id="SA209",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(DISTANCE_OVER, GAP_FROM, SHORT_FROM),
    needs=(api.Metric.CPU,),
    coarsest_period_s=300,
    per_host=True,
    not_applicable=(api.one_instance,),
)
def check(case: api.JobCase) -> api.Outcome:
    """Compares hosts on the minutes in which all of them have a point."""
    job, metric = case.job, work_metric(case.whole)
    if isinstance(metric, api.Missing):
        return api.unknown(metric)
    load = host_load(case.whole, metric, job.instance_count or 0)
    if isinstance(load, api.Missing):
        return api.unknown(load)
    if load is None or not (_idle_hosts(case, load) or _far_apart(case, load)):
        return api.Clear()
    left_out, shard = len(_idle_hosts(case, load)), _shard(job)
    summary, evidence = _summary(case, load, left_out), _evidence(case, load, left_out)
    if not left_out:
        spare_s = Decimal(round(load.seconds * load.spare))
        return api.derived(
            summary,
            evidence,
            fix=shard,
            change=api.CutPhase(work_phase(job), Decimal(0)),
            best=api.CutPhase(work_phase(job), spare_s),
            caution="An even load saves at most this; nothing is counted until a run shows it.",
        )
    count = (job.instance_count or 0) - left_out
    return api.derived(
        summary,
        evidence,
        fix=(api.Parameter(COUNT_PATHS[job.kind], job.groups[0].count, count),),
        alternatives=(shard,) if shard else (),
        change=api.SetCount(count, Decimal(1), refills=False),
        caution="Assumes that the other hosts need nothing from it, such as data in its memory.",
    )


def _idle_hosts(case: api.JobCase, load: HostLoad) -> tuple[str, ...]:
    """Hosts that take no part, while another host does real work."""
    least = _WORKS_GPU_PERCENT
    if load.metric is api.Metric.CPU:
        least = 100 * _WORKS_CORES / (case.whole.vcpu or 1)
    return load.no_part if load.busiest[1] >= least else ()


def _far_apart(case: api.JobCase, load: HostLoad) -> bool:
    gap = load.busiest[1] - load.laziest[1]
    return (
        gap >= case.limit(GAP_FROM)
        and 100 * gap >= case.limit(SHORT_FROM) * load.busiest[1]
        and load.distance > case.limit(DISTANCE_OVER)
    )


def _shard(job: api.Job) -> tuple[api.Parameter, ...]:
    """For channels that give all data to every host, unless a sampler splits them."""
    path = _SHARDED.get(job.kind)
    if path is None or job.hints.distributed_sampler:
        return ()
    return tuple(
        api.Parameter(path.format(channel.name), channel.distribution, "ShardedByS3Key")
        for channel in job.channels
        if channel.source is api.DataSource.S3 and channel.distribution == "FullyReplicated"
    )


def _summary(case: api.JobCase, load: HostLoad, left_out: int) -> str:
    what = "GPU" if load.metric is api.Metric.GPU else "CPU"
    (busiest, most), (laziest, least) = load.busiest, load.laziest
    over = f"over {load.seconds / 60:.0f} minutes on {case.job.instances}"
    if left_out:
        hosts = f"{left_out} of {len(load.used)} hosts took no part"
        return f"{hosts}, while {_short(busiest)} averaged {most:.0f}% {what} {over}."
    low = f"{_short(laziest)} {least:.0f}%"
    return f"While all hosts worked, {_short(busiest)} averaged {most:.0f}% {what}, {low}, {over}."


def _short(host: str) -> str:
    return host.rpartition("/")[2]


def _evidence(case: api.JobCase, load: HostLoad, left_out: int) -> dict[str, api.Evidence]:
    lazy = load.short_of_busiest(case.limit(SHORT_FROM))
    states = [busy for host, works in at_work(case.usage).items() if host in lazy for busy in works]
    idle = sum(busy is False for busy in states)
    return {
        "busiest_mean_percent": round(load.busiest[1], 1),
        "laziest_mean_percent": round(load.laziest[1], 1),
        "histogram_distance": round(load.distance, 2),
        "minutes": round(load.seconds / 60),
        "hosts": len(load.used),
        "lazy_hosts": len(lazy),
        "lazy_hosts_idle_percent": round(100 * idle / len(states), 1) if states else None,
        "hosts_without_part": left_out,
    }
