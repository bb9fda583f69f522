"""Some hosts do far less than others.

What it checks: Only the minutes count in which all hosts have begun their work and none has ended
    it, at least 15. The mean utilisation (GPU, else CPU) of the highest and the lowest host differs
    by 20 points and by 30% of the higher one, and the distance between their histograms is over
    0.5. Or a host takes no part: after its first 6 minutes it is idle, or has idle GPUs and at most
    one core busy, while another keeps a core or 5% of its GPUs busy. In a processing job the first
    host may be a driver, as in Spark; then it is not compared.
Why it costs: All hosts are billed for as long as the busiest one works.
Saving: Between 0 and the time that a balanced load would save; 0 is counted. Hosts that took no
    part are counted (derived): the others did all the work in the same time.
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

from sageaudit.domain.job.addresses import cluster_framework
from sageaudit.domain.job.course import work_phase
from sageaudit.domain.usage.edges import work_metric
from sageaudit.rules import api
from sageaudit.rules.utilisation.hosts import NEED_NOTHING, HostLoad, host_load, idle_percent

DISTANCE_OVER = api.Threshold(
    "distance_over", 0.5, "share of minutes (0..1)", "far apart", "Debugger LoadBalancing"
)
GAP_FROM = api.Threshold("gap_from", 20, "points of utilisation", "two tenths")
SHORT_FROM = api.Threshold(
    "short_from", 30, "percent of the busiest host's mean", "more than a leader's work"
)
_PAIR = 2


@api.rule(
    id="SA209",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(DISTANCE_OVER, GAP_FROM, SHORT_FROM),
    needs=(api.Metric.CPU,),
    sees_gaps=True,
    finds_waste=True,
    coarsest_period_s=300,
    per_host=True,
    not_applicable=(api.one_instance,),
)
def check(case: api.JobCase) -> api.Outcome:
    """Compares hosts on the minutes in which all of them have a point."""
    metric = work_metric(case.whole)
    if isinstance(metric, api.Missing):
        return api.unknown(metric)
    load = host_load(case.whole, metric)
    if isinstance(load, api.Missing):
        return api.unknown(load)
    if load is None:
        return api.Clear()
    driver = _driver(case.job, load)
    left_out = len({*load.without_part(case.whole.vcpu)} - {driver})
    if not left_out:
        load = load.without(driver)
        if not _far_apart(case, load):
            return api.Clear()
    lazy = load.short_of_busiest(case.limit(SHORT_FROM))
    idle = idle_percent(case.usage, lazy)
    return api.derived(
        _summary(case, load, left_out),
        {
            "busiest_mean_percent": round(load.busiest[1], 1),
            "laziest_mean_percent": round(load.laziest[1], 1),
            "histogram_distance": round(load.distance, 2),
            "minutes": round(load.seconds / 60),
            "hosts": len(load.used),
            "lazy_hosts": len(lazy),
            "lazy_hosts_idle_percent": None if idle is None else round(idle, 1),
            "hosts_without_part": left_out,
        },
        **(_fewer(case.job, left_out) if left_out else _balanced(case.job, load)),
    )


def _driver(job: api.Job, load: HostLoad) -> str | None:
    """The first host of a processing job by what splits work itself, or beside two and more."""
    framework = cluster_framework(job.image, job.entry_point)
    if job.kind is not api.JobKind.PROCESSING or not (framework or len(load.used) > _PAIR):
        return None
    return next((host for host in load.used if host.endswith("/algo-1")), None)


def _far_apart(case: api.JobCase, load: HostLoad) -> bool:
    gap = load.busiest[1] - load.laziest[1]
    return (
        gap >= case.limit(GAP_FROM)
        and 100 * gap >= case.limit(SHORT_FROM) * load.busiest[1]
        and load.distance > case.limit(DISTANCE_OVER)
    )


def _summary(case: api.JobCase, load: HostLoad, left_out: int) -> str:
    (busiest, most), (laziest, least) = load.busiest, load.laziest
    busy = f"the {load.metric.name} of {busiest.rpartition('/')[2]} averaged {most:.0f}%"
    over = f"over {api.duration_min(load.seconds / 60)} on {case.job.instances}"
    if left_out:
        return f"{left_out} of {len(load.used)} hosts did no work, while {busy} {over}."
    low = f"that of {laziest.rpartition('/')[2]} {least:.0f}%"
    return f"While all hosts worked, {busy} and {low}, {over}."


def _fewer(job: api.Job, left_out: int) -> api.FoundDetails:
    count, even = (job.instance_count or 0) - left_out, api.shard(job)
    return {
        "fix": (api.Parameter(api.COUNT_PATHS[job.kind], job.groups[0].count, count),),
        "alternatives": (even,) if even else (),
        "change": api.SetCount(count, Decimal(1), refills=False),
        "caution": NEED_NOTHING,
    }


def _balanced(job: api.Job, load: HostLoad) -> api.FoundDetails:
    phase, spare_s = work_phase(job), Decimal(round(load.seconds * load.spare))
    return {
        "fix": api.shard(job),
        "change": api.CutPhase(phase, Decimal(0)),
        "best": api.CutPhase(phase, spare_s),
        "caution": "An even load saves at most this, and perhaps nothing: nothing is counted.",
    }
