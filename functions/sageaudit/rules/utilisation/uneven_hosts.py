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

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.job.addresses import cluster_framework
from sageaudit.domain.job.course import work_phase_name
from sageaudit.domain.usage.edges import activity_by_host, host_activities, work_metric
from sageaudit.domain.usage.series import Series, select_points
from sageaudit.rules import api
from sageaudit.rules.utilisation.standing_still import NEED_NOTHING, hosts_without_part
from sageaudit.structs import replace

MIN_DISTANCE = api.Threshold(
    "min_distance", 0.5, "share of minutes (0..1)", "far apart", "Debugger LoadBalancing"
)
MIN_GAP = api.Threshold("min_gap_points", 20, "points of utilisation", "two tenths")
MIN_SHORTFALL = api.Threshold(
    "min_shortfall_percent", 30, "percent of the busiest host's mean", "more than a leader's work"
)
_MIN_OTHER_HOSTS = 2
_MIN_SECONDS = 900
"""Fewer minutes that all hosts share are an accident."""


@api.rule(
    id="SA209",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MIN_DISTANCE, MIN_GAP, MIN_SHORTFALL),
    required_metrics=(api.Metric.CPU,),
    tolerates_gaps=True,
    finds_waste=True,
    max_period_s=300,
    compares_hosts=True,
    not_applicable=(api.one_instance,),
)
def check(case: api.JobCase) -> api.Outcome:
    """Compares hosts on the minutes in which all of them have a point."""
    metric = work_metric(case.whole_run)
    if isinstance(metric, api.Missing):
        return api.unknown_from_missing(metric)
    load = _host_load(case.whole_run, metric)
    if isinstance(load, api.Missing):
        return api.unknown_from_missing(load)
    if load is None:
        return api.Clear()
    driver = _driver(case.job, load)
    left_out = len({*load.idle_beside_work(case.whole_run.vcpu)} - {driver})
    if not left_out:
        load = load.without_host(driver)
        if not _is_uneven(case, load):
            return api.Clear()
    lazy = load.hosts_below_busiest(case.threshold(MIN_SHORTFALL))
    idle = _idle_percent(case.active_usage, lazy)
    return api.derived_saving(
        _summary(case, load, left_out),
        {
            "busiest_mean_percent": round(load.busiest[1], 1),
            "laziest_mean_percent": round(load.least_busy[1], 1),
            "histogram_distance": round(load.histogram_distance, 2),
            "minutes": round(load.seconds / 60),
            "hosts": len(load.use_by_host),
            "lazy_hosts": len(lazy),
            "lazy_hosts_idle_percent": None if idle is None else round(idle, 1),
            "hosts_without_part": left_out,
        },
        **(_fewer_hosts_fix(case.job, left_out) if left_out else _balancing_fix(case.job, load)),
    )


def _driver(job: api.Job, load: HostLoad) -> str | None:
    """The first host of a processing job by what splits work itself, or beside two and more."""
    framework = cluster_framework(job.image, job.entry_point)
    if job.kind is not api.JobKind.PROCESSING or not (
        framework or len(load.use_by_host) > _MIN_OTHER_HOSTS
    ):
        return None
    return next((host for host in load.use_by_host if host.endswith("/algo-1")), None)


def _is_uneven(case: api.JobCase, load: HostLoad) -> bool:
    gap = load.busiest[1] - load.least_busy[1]
    return (
        gap >= case.threshold(MIN_GAP)
        and 100 * gap >= case.threshold(MIN_SHORTFALL) * load.busiest[1]
        and load.histogram_distance > case.threshold(MIN_DISTANCE)
    )


def _summary(case: api.JobCase, load: HostLoad, excluded_hosts: int) -> str:
    (busiest, most), (laziest, least) = load.busiest, load.least_busy
    busy = f"the {load.metric.name} of {busiest.rpartition('/')[2]} averaged {most:.0f}%"
    over = f"over {api.minutes_text(load.seconds / 60)} on {case.job.instances}"
    if excluded_hosts:
        return (
            f"{excluded_hosts} of {len(load.use_by_host)} hosts did no work, while {busy} {over}."
        )
    low = f"that of {laziest.rpartition('/')[2]} {least:.0f}%"
    return f"While all hosts worked, {busy} and {low}, {over}."


def _fewer_hosts_fix(job: api.Job, left_out: int) -> api.DetectionDetails:
    count, even = (job.instance_count or 0) - left_out, api.sharding_fix(job)
    return {
        "fix": (api.Parameter(api.COUNT_PATHS[job.kind], job.groups[0].count, count),),
        "alternatives": (even,) if even else (),
        "change": api.SetCount(count, Decimal(1), redistributes_work=False),
        "caution": NEED_NOTHING,
    }


def _balancing_fix(job: api.Job, load: HostLoad) -> api.DetectionDetails:
    phase, spare_s = work_phase_name(job), Decimal(round(load.seconds * load.balancing_gain_share))
    return {
        "fix": api.sharding_fix(job),
        "change": api.CutPhase(phase, Decimal(0)),
        "best": api.CutPhase(phase, spare_s),
        "caution": "An even load saves at most this, and perhaps nothing: nothing is counted.",
    }


class HostLoad(Struct, frozen=True):
    """Use of each host (0..100) in the same minutes; `no_part`: hosts idle after their start,
    or without GPU work and with no more than a waiting process.

    `busiest` and `laziest` are hosts with their means, in percent.
    """

    metric: api.Metric
    use_by_host: Mapping[str, Series]
    seconds: int
    idle_hosts: tuple[str, ...]
    busiest: tuple[str, float]
    least_busy: tuple[str, float]

    @property
    def histogram_distance(self) -> float:
        """Between the histograms of the two, in tenths: 0 the same, 1 nothing in common."""
        busy, lazy = (
            _tenths(self.use_by_host[host].present) for host, _ in (self.busiest, self.least_busy)
        )
        return sum(abs(a - b) for a, b in zip(busy, lazy, strict=True)) / 2

    @property
    def balancing_gain_share(self) -> float:
        """The share (0..1) of the time that an even load would save at most."""
        average = api.mean([line.mean for line in self.use_by_host.values()])
        return 1 - average / self.busiest[1] if self.busiest[1] else 0.0

    def without_host(self, host: str | None) -> HostLoad:
        """The same of the other hosts: one, such as a driver, is not compared with them."""
        used = {name: line for name, line in self.use_by_host.items() if name != host}
        means = _by_mean(used)
        return replace(self, use_by_host=used, busiest=means[-1], least_busy=means[0])

    def idle_beside_work(self, vcpu: int | None) -> tuple[str, ...]:
        """The hosts of `no_part`, while another one does real work: a core, or 5% of its GPUs."""
        least = 100 / (vcpu or 1) if self.metric is api.Metric.CPU else 5.0
        return self.idle_hosts if self.busiest[1] >= least else ()

    def hosts_below_busiest(self, percent: float) -> set[str]:
        """The hosts whose mean is at least this many percent under that of the busiest host."""
        limit = (1 - percent / 100) * self.busiest[1]
        return {host for host, line in self.use_by_host.items() if line.mean <= limit}


def _host_load(whole: api.Measurements, metric: api.Metric) -> HostLoad | api.Missing | None:
    """Of hosts of one type; None where none took part after its first minutes.

    From the minute in which all that took part have begun to the last busy minute of the host that
    ends first.
    """
    if missing := whole.missing_hosts(metric):
        return missing
    lines = whole.series[metric]
    ends = host_activities(whole)
    stops = [whole.points - end.idle_tail_periods for end in ends if end.has_worked]
    if not stops:
        return None
    minutes = range(max(end.first_work_period for end in ends if end.has_worked), min(stops))
    gaps = [line.values for line in lines.values() if not line.is_complete]
    shared = [at for at in minutes if all(values[at] is not None for values in gaps)]
    seconds = len(shared) * (whole.period_s or 0)
    if seconds < _MIN_SECONDS:
        why = f"all hosts worked together for {seconds / 60:.0f} minutes"
        return api.Missing(
            "hosts_apart", f"{why}, and {_MIN_SECONDS // 60} are needed to compare them"
        )
    used = select_points(lines, shared)
    means = _by_mean(used)
    idle = hosts_without_part(whole, ends)
    no_part = tuple(host for host in used if host in idle)
    return HostLoad(metric, used, seconds, no_part, means[-1], means[0])


def _by_mean(used: Mapping[str, Series]) -> list[tuple[str, float]]:
    return sorted(((host, line.mean) for host, line in used.items()), key=lambda one: one[1])


def _idle_percent(usage: api.Measurements, hosts: Collection[str]) -> float | None:
    """How much of the time these hosts were known to be idle, 0..100; None without a point."""
    states = [
        at for host, works in activity_by_host(usage).items() if host in hosts for at in works
    ]
    return 100 * sum(at is False for at in states) / len(states) if states else None


def _tenths(values: Sequence[float]) -> list[float]:
    """The share (0..1) of values in each tenth of 0..100."""
    counts = [0] * 10
    for value in values:
        counts[min(int(value // 10), 9)] += 1
    return [count / len(values) for count in counts]
