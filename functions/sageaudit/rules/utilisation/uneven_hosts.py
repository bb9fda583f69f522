"""Some hosts do far less work than others.

What it checks: The rule compares at least 15 minutes in which all hosts have begun their work and
    none has ended it. In a processing job the first host may be a driver, as in Spark. Then it is
    not compared. One of these is true:
    - The mean utilisation (GPU, otherwise CPU) of the busiest and the least busy host differs by at
      least 20 percentage points, and by at least 30% of the higher mean. The distance between their
      histograms is over 0.5.
    - After its first 6 minutes a host does no work: it is idle, or has idle GPUs and at most one
      busy core. Meanwhile another host keeps a core or 5% of its GPUs busy.
Why it costs: All hosts are billed for as long as the busiest one works.
Saving: Between 0 and the time that a balanced load would save; 0 is counted. Hosts that did no work
    are counted (derived), because the others did all the work in the same time.
When it is wrong: A leader that also evaluates or writes checkpoints works more than the others.
    Parameter servers, and hosts that only keep data in memory, are meant to compute little.
What to do: Spread the data evenly in one of these ways. If hosts do no work, use fewer instances.
    - S3DataDistributionType ShardedByS3Key, with more objects than hosts, all of similar size.
    - A distributed sampler.
    - Tasks that are handed out one by one.
Sources: SageMaker Debugger, LoadBalancing: distance between utilisation histograms over 0.5; here
    between hosts, on one-minute means, in steps of 10%.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.job.addresses import cluster_framework
from sageaudit.domain.job.course import work_phase_name
from sageaudit.domain.usage.edges import activity_by_host, host_activities, work_metric
from sageaudit.domain.usage.series import IDLE, Series, select_points, shared_periods
from sageaudit.rules import api
from sageaudit.rules.utilisation.standing_still import (
    IDLE_HOSTS_UNNEEDED_CAUTION,
    hosts_without_work,
)
from sageaudit.structs import replace

MIN_DISTANCE = api.Threshold(
    "min_distance", 0.5, "share of minutes (0..1)", "far apart", "Debugger LoadBalancing"
)
MIN_GAP = api.Threshold("min_gap_points", 20, "percentage points", "two steps of the histogram")
MIN_SHORTFALL = api.Threshold(
    "min_shortfall_percent",
    30,
    "percent of the busiest host's mean",
    "more than a leader's additional work",
)
_MIN_OTHER_HOSTS = 2
"""With more hosts, the first host of a processing job may be a driver."""
_MIN_SECONDS = 900
"""All hosts must work together for this long. Less time may not be typical. Our choice."""


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
    not_applicable=(api.one_instance_reason,),
)
def check(case: api.JobCase) -> api.Outcome:
    """Compares hosts in the minutes in which all of them have a point."""
    metric = work_metric(case.whole_run)
    if isinstance(metric, api.MissingMetrics):
        return api.unknown_from_missing(metric)
    load = _host_load(case.whole_run, metric)
    if isinstance(load, api.MissingMetrics):
        return api.unknown_from_missing(load)
    if load is None:
        return api.Clear()
    driver = _driver(case.job, load)
    excluded_count = len({*load.idle_while_others_work(case.whole_run.vcpu)} - {driver})
    if not excluded_count:
        load = load.without_host(driver)
        if not _is_uneven(case, load):
            return api.Clear()
    lazy_hosts = load.hosts_below_busiest(case.threshold(MIN_SHORTFALL))
    idle_percent = _idle_percent(case.active_usage, lazy_hosts)
    return api.derived_saving(
        _summary(case, load, excluded_count),
        {
            "busiest_mean_percent": round(load.busiest[1], 1),
            "laziest_mean_percent": round(load.least_busy[1], 1),
            "histogram_distance": round(load.histogram_distance, 2),
            "minutes": round(load.seconds / 60),
            "hosts": len(load.use_by_host),
            "lazy_hosts": len(lazy_hosts),
            "lazy_hosts_idle_percent": None if idle_percent is None else round(idle_percent, 1),
            "hosts_without_part": excluded_count,
        },
        **(
            _fewer_hosts_fix(case.job, excluded_count)
            if excluded_count
            else _balancing_fix(case.job, load)
        ),
    )


def _driver(job: api.Job, load: HostLoad) -> str | None:
    """Returns the first host of a processing job if it may be a driver, else None.

    It may be one if a framework such as Spark splits the work, or if there are more than
    `_MIN_OTHER_HOSTS` hosts.
    """
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


def _summary(case: api.JobCase, load: HostLoad, excluded_count: int) -> str:
    (busiest, busiest_percent), (least_busy, least_busy_percent) = load.busiest, load.least_busy
    busy_text = (
        f"the {load.metric.name} of {busiest.rpartition('/')[2]} averaged {busiest_percent:.0f}%"
    )
    minutes_text = f"over {api.minutes_text(load.seconds / 60)} on {case.job.instances}"
    if excluded_count:
        return (
            f"{excluded_count} of {len(load.use_by_host)} hosts did no work, while {busy_text} "
            f"{minutes_text}."
        )
    low_text = f"that of {least_busy.rpartition('/')[2]} {least_busy_percent:.0f}%"
    return f"While all hosts worked, {busy_text} and {low_text}, {minutes_text}."


def _fewer_hosts_fix(job: api.Job, excluded_count: int) -> api.DetectionDetails:
    count, sharding = (job.instance_count or 0) - excluded_count, api.sharding_fix(job)
    return {
        "fix": (api.Parameter(api.COUNT_PATHS[job.kind], job.groups[0].count, count),),
        "alternatives": (sharding,) if sharding else (),
        "change": api.SetCount(count, Decimal(1), redistributes_work=False),
        "caution": IDLE_HOSTS_UNNEEDED_CAUTION,
    }


def _balancing_fix(job: api.Job, load: HostLoad) -> api.DetectionDetails:
    phase, max_saving_s = (
        work_phase_name(job),
        Decimal(round(load.seconds * load.balancing_gain_share)),
    )
    return {
        "fix": api.sharding_fix(job),
        "change": api.CutPhase(phase, Decimal(0)),
        "best": api.CutPhase(phase, max_saving_s),
        "caution": "An even load saves at most this, and perhaps nothing, so nothing is counted.",
    }


class HostLoad(Struct, frozen=True):
    """The use of each host in the same minutes, in percent.

    `idle_hosts`: the hosts that did no work. `busiest` and `least_busy`: a host with its mean.
    """

    metric: api.Metric
    use_by_host: Mapping[str, Series]
    seconds: int
    idle_hosts: tuple[str, ...]
    busiest: tuple[str, float]
    least_busy: tuple[str, float]

    @property
    def histogram_distance(self) -> float:
        """The distance between the use of `busiest` and `least_busy`.

        0 means equal, 1 means nothing in common. The use is compared in histograms with steps of
        10%.
        """
        busiest, least_busy = (
            _tenths(self.use_by_host[host].present) for host, _ in (self.busiest, self.least_busy)
        )
        return (
            sum(
                abs(busiest_share - least_busy_share)
                for busiest_share, least_busy_share in zip(busiest, least_busy, strict=True)
            )
            / 2
        )

    @property
    def balancing_gain_share(self) -> float:
        """The largest share (0..1) of the time that an even load could save."""
        average = api.mean([line.mean for line in self.use_by_host.values()])
        return 1 - average / self.busiest[1] if self.busiest[1] else 0.0

    def without_host(self, host: str | None) -> HostLoad:
        """Returns the load without `host`. None leaves out no host."""
        use_by_host = {name: line for name, line in self.use_by_host.items() if name != host}
        means = _by_mean(use_by_host)
        return replace(self, use_by_host=use_by_host, busiest=means[-1], least_busy=means[0])

    def idle_while_others_work(self, vcpu: int | None) -> tuple[str, ...]:
        """Returns the idle hosts if the busiest host works, else none.

        A host works if it uses at least one core, or 5% of its GPUs. `vcpu`: the vCPUs of a host.
        """
        min_percent = 100 / (vcpu or 1) if self.metric is api.Metric.CPU else 5.0
        return self.idle_hosts if self.busiest[1] >= min_percent else ()

    def hosts_below_busiest(self, percent: float) -> set[str]:
        """Returns the hosts whose mean is at least `percent` percent under that of the busiest
        host.
        """
        limit = (1 - percent / 100) * self.busiest[1]
        return {host for host, line in self.use_by_host.items() if line.mean <= limit}


def _host_load(usage: api.Measurements, metric: api.Metric) -> HostLoad | api.MissingMetrics | None:
    """Returns the use of each host while all working hosts were between their first and last work.

    None if no host worked. MissingMetrics if a host has no points, or if this time is too short.
    """
    if missing := usage.missing_hosts(metric):
        return missing
    lines = usage.series[metric]
    ends = host_activities(usage)
    stops = [usage.points - end.idle_tail_periods for end in ends if end.has_worked]
    if not stops:
        return None
    periods = range(max(end.first_work_period for end in ends if end.has_worked), min(stops))
    shared = shared_periods(lines.values(), periods)
    seconds = sum(map(len, shared)) * (usage.period_s or 0)
    if seconds < _MIN_SECONDS:
        minutes_text = f"all hosts worked together for {seconds / 60:.0f} minutes"
        return api.MissingMetrics(
            "hosts_apart", f"{minutes_text}, and {_MIN_SECONDS // 60} are needed to compare them"
        )
    use_by_host = select_points(lines, shared)
    means = _by_mean(use_by_host)
    idle = hosts_without_work(usage, ends)
    idle_hosts = tuple(host for host in use_by_host if host in idle)
    return HostLoad(metric, use_by_host, seconds, idle_hosts, means[-1], means[0])


def _by_mean(use_by_host: Mapping[str, Series]) -> list[tuple[str, float]]:
    return sorted(
        ((host, line.mean) for host, line in use_by_host.items()),
        key=lambda host_mean: host_mean[1],
    )


def _idle_percent(usage: api.Measurements, hosts: Collection[str]) -> float | None:
    states = b"".join(
        activity for host, activity in activity_by_host(usage).items() if host in hosts
    )
    return 100 * states.count(IDLE) / len(states) if states else None


def _tenths(values: Sequence[float]) -> list[float]:
    """Returns for each tenth of 0..100 the share (0..1) of the values in it."""
    counts = [0] * 10
    for value in values:
        counts[min(int(value // 10), 9)] += 1
    return [count / len(values) for count in counts]
