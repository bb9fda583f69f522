"""What a job used: series by metric and host.

100 always means all of a host's vCPUs, GPUs or memory. Absent data is MissingMetrics, never 0.

CloudWatch and SageMaker's log streams name hosts, but not instance groups. Only a host with GPUs
has points of GPUUtilization. So the type of each host is known if the job has one type with GPUs
and one without, and no host's points are missing.

Source: SageMaker guide, heterogeneous clusters: "log streams … are not grouped by instance groups".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property, partial

from msgspec import Struct, field

from sageaudit.domain.job.job import Job, duration_text
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.series import (
    ACTIVE,
    COARSEST_PERIOD_S,
    IDLE,
    MAX_FIRST_POINT_DELAY_S,
    UNKNOWN,
    Series,
    States,
    combine_states,
    cpu_states,
    gpu_states,
    leading_periods,
    mean_of_hosts,
    percentile_of_busiest,
    select_points,
    standstills,
    state_ranges,
    states,
)
from sageaudit.structs import replace

MIN_COVERAGE = 0.7
"""The share of the expected points that a judgement needs. In real recordings the first GPU point
comes 3 to 6 minutes late."""
METRIC_ARRIVAL_TIMEOUT = timedelta(hours=24)
"""Metrics that are missing this long after a job's end are not expected any more: our choice."""
MIN_ACTIVE_MINUTES = 15
"""A run is judged alone only if it has this many active minutes. Our choice: three times the 5
minutes of Jobstats, because a short run has few one-minute means."""
MIN_POINTS = 3
"""A metric of a host can be judged from this many points on, whatever their period."""
GAP_LONG_CODE = "gap_long"
"""The code of a metric with enough points but a long gap between them."""


class Metric(enum.Enum):
    """The metrics that SageMaker publishes for a job's hosts, by their CloudWatch names."""

    __hash__ = object.__hash__  # faster: metrics are the keys of most look-ups

    CPU = "CPUUtilization"
    MEMORY = "MemoryUtilization"
    GPU = "GPUUtilization"
    GPU_MEMORY = "GPUMemoryUtilization"
    DISK = "DiskUtilization"


class RawSeries(Struct, frozen=True):
    """One metric of one host as CloudWatch returns it: a point for each period from `start` on.

    Points of CPUs and GPUs are sums over cores or GPUs.
    """

    host: str
    metric: str
    start: datetime
    period_s: int
    values: tuple[float | None, ...]


class Curve(Struct, frozen=True):
    """An algorithm metric over the run: pairs of time and value, in order of time."""

    points: tuple[tuple[datetime, float], ...]


class MissingMetrics(Struct, frozen=True):
    """Why a metric cannot be judged.

    `code`: a stable word. `reason`: part of a sentence. `remedy`: what to do, if anything.
    """

    code: str
    reason: str
    remedy: str | None = None


class RawUsage(Struct, frozen=True):
    """All series of a job as they were read; `measure` makes measurements from them.

    `missing_reason`: why a metric has no series. `notes`: what else was not read.
    """

    series: tuple[RawSeries, ...]
    missing_reason: MissingMetrics
    notes: tuple[str, ...] = ()


METRIC_DENIED_CODE = "metric_denied"
"""The code of a metric for which a permission is missing."""
HOSTS_UNMAPPED = MissingMetrics(
    "hosts_unmapped", "CloudWatch does not say which host is in which of the job's instance groups"
)

TYPES_MIXED = MissingMetrics(
    "types_mixed", "its hosts are of several types, and only whether each took part is judged"
)
"""Why most rules do not judge a cluster of several types: they judge hosts of one type."""


class Measurements(Struct, frozen=True, dict=True):
    """Series by metric and host on one grid of `points` periods of `period_s` seconds.

    `vcpu` and `gpus`: the number in each host; None if hosts differ or the type is unknown. The
    class has no slots, so that results are cached for several rules.
    """

    period_s: int | None
    points: int
    hosts_expected: int | None
    vcpu: int | None
    gpus: int | None
    series: Mapping[Metric, Mapping[str, Series]]
    missing: Mapping[Metric, MissingMetrics]
    notes: tuple[str, ...] = ()
    begins_at: datetime | None = None
    """The start of the first period; None without a grid."""
    curves: Mapping[str, Curve] = field(default_factory=dict)
    """Algorithm metrics, such as a validation loss, by their own names. They are never cut."""
    by_type: Mapping[str, Measurements] = field(default_factory=dict)
    """The whole run's measurements by type, for a cluster of several types whose hosts are known.
    Empty for other jobs."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts with any series, in order of their numbers."""
        names = dict.fromkeys(host for hosts in self.series.values() for host in hosts)
        return tuple(sorted(names, key=lambda name: (len(name), name)))

    def share(self, metric: Metric) -> float | None:
        """Returns the share (0..1) of all hosts' expected points that are present.

        None for a missing metric.
        """
        hosts = self.series.get(metric)
        if not hosts:
            return None
        expected_hosts = max(self.hosts_expected or 0, len(hosts))
        return sum(series.share for series in hosts.values()) / expected_hosts

    def mean(self, metric: Metric) -> float:
        """Returns the mean of all points of all hosts for a metric that is not missing."""
        if metric not in self._means:
            self._means[metric] = mean_of_hosts(self.series[metric].values())
        return self._means[metric]

    @cached_property
    def _means(self) -> dict[Metric, float]:
        return {}

    def busiest_percentile(self, metric: Metric, percent: float) -> float:
        """Returns a percentile (0..100) of the busiest host. The metric must not be missing."""
        key = (metric, percent)
        if key not in self._busiest:
            hosts = self.series[metric].values()
            self._busiest[key] = percentile_of_busiest(hosts, percent)
        return self._busiest[key]

    @cached_property
    def _busiest(self) -> dict[tuple[Metric, float], float]:
        return {}

    def find_gap(self, metric: Metric, min_share: float = MIN_COVERAGE) -> MissingMetrics | None:
        """Returns why a recorded metric has too few points to judge the run, or None.

        `min_share`: the share (0..1) of the expected points that is needed. Every host needs
        points, because a host without points may be the busiest. A long gap could hide something
        that reverses the judgement.
        """
        key = (metric, min_share)
        if key not in self._gaps:
            self._gaps[key] = self._gap(metric, min_share)
        return self._gaps[key]

    @cached_property
    def _gaps(self) -> dict[tuple[Metric, float], MissingMetrics | None]:
        return {}

    def _gap(self, metric: Metric, min_share: float) -> MissingMetrics | None:
        if missing := self.missing_hosts(metric) or self.sparse_points(metric, min_share):
            return missing
        hosts, period_s = self.series.get(metric, {}), self.period_s or 0
        longest_s = max(line.longest_gap for line in hosts.values()) * period_s
        if longest_s > max(MAX_FIRST_POINT_DELAY_S, 2 * period_s):
            reason = f"{metric.value}: no points for {duration_text(Decimal(longest_s))}"
            return MissingMetrics(GAP_LONG_CODE, reason)
        return None

    def missing_hosts(self, metric: Metric) -> MissingMetrics | None:
        """Returns a reason if some of the expected hosts have no points of a metric, else None."""
        recorded, expected = len(self.series.get(metric, {})), self.hosts_expected or 0
        if recorded >= expected:
            return None
        return MissingMetrics(
            "hosts_missing", f"{recorded} of {expected} hosts have points of {metric.value}"
        )

    def sparse_points(
        self, metric: Metric, min_share: float = MIN_COVERAGE
    ) -> MissingMetrics | None:
        """Returns a reason if all hosts together have too few points of a metric, else None."""
        share = self.share(metric) or 0.0
        if share >= min_share:
            return None
        reason = f"{metric.value}: {share:.0%} of the points, {min_share:.0%} needed"
        return MissingMetrics("coverage_low", reason)

    def active_part(self) -> Measurements:
        """Returns the measurements without the idle head, the idle tail and the standstills.

        Unchanged if no minute was active. A minute is idle if every host is known to use less than
        0.2 cores and at most 1% of one GPU. A minute without data counts as active. But if the
        first points are idle, the few minutes before them are left out, too.
        """
        return self._active

    @cached_property
    def _active(self) -> Measurements:
        kept, between_pauses = bytearray(self.states), bytearray([1]) * self.points
        for pause in self.standstills():
            kept[pause.start : pause.stop] = bytes([IDLE]) * len(pause)
            between_pauses[pause.start : pause.stop] = bytes(len(pause))
        if ACTIVE not in kept:
            return self
        origin = leading_periods(self.states, UNKNOWN)
        if self.is_idle(origin) and origin * (self.period_s or 0) <= MAX_FIRST_POINT_DELAY_S:
            kept[:origin] = bytes([IDLE]) * origin
        start = leading_periods(kept, IDLE)
        stop = len(kept.rstrip(bytes([IDLE])))
        periods = list(state_ranges(between_pauses, 1, range(start, stop)))
        points = sum(map(len, periods))
        if points == self.points:
            return self
        series = {metric: select_points(hosts, periods) for metric, hosts in self.series.items()}
        no_points = MissingMetrics("metric_missing", "no points in the active minutes")
        missing = {metric: no_points for metric, hosts in series.items() if not hosts}
        skipped = timedelta(seconds=start * (self.period_s or 0))
        begins_at = self.begins_at and self.begins_at + skipped
        return replace(
            self,
            points=points,
            series={metric: hosts for metric, hosts in series.items() if hosts},
            missing={**self.missing, **missing},
            begins_at=begins_at,
        )

    def standstills(self) -> tuple[range, ...]:
        """Returns the standstills: stretches of half an hour or more without GPU work.

        They come after the first GPU work, and no host keeps more than one core busy in them. Empty
        without GPUs, or if a host has no points.
        """
        return self._standstills

    @cached_property
    def _standstills(self) -> tuple[range, ...]:
        period_s, vcpu = self.period_s or 0, self.vcpu or 0
        can_judge = period_s and self.gpus and vcpu and period_s <= COARSEST_PERIOD_S
        if not can_judge or self.missing_hosts(Metric.CPU) or self.missing_hosts(Metric.GPU):
            return ()
        cpus = list(self.series.get(Metric.CPU, {}).values())
        return standstills(list(self.gpu_states.values()), cpus, vcpu, period_s)

    @cached_property
    def cpu_states(self) -> Mapping[str, States]:
        """Returns for each recorded host whether the CPU is busy, by period."""
        return self._states_by_host(Metric.CPU, partial(cpu_states, vcpu=self.vcpu))

    @cached_property
    def gpu_states(self) -> Mapping[str, States]:
        """Returns for each recorded host whether a GPU is busy, by period."""
        return self._states_by_host(Metric.GPU, partial(gpu_states, gpus=self.gpus))

    def _states_by_host(
        self, metric: Metric, find_states: Callable[[Sequence[float]], States]
    ) -> Mapping[str, States]:
        lines = self.series.get(metric, {})
        return {host: states(line, find_states, self.period_s) for host, line in lines.items()}

    @cached_property
    def states(self) -> States:
        """The state of all hosts together, by period: idle only if CPUs and GPUs are known."""
        hosts = (*self.cpu_states.values(), *self.gpu_states.values())
        joined = combine_states(hosts) or bytes([UNKNOWN]) * self.points
        if self.cpu_states and (self.gpus == 0 or self.gpu_states):
            return joined
        return joined.replace(bytes([IDLE]), bytes([UNKNOWN]))

    def is_idle(self, period: int) -> bool:
        """Returns whether every host is known to be idle in the period at this index."""
        return self.states[period] == IDLE

    @property
    def seconds(self) -> int:
        """The length of the measurements in seconds."""
        return self.points * (self.period_s or 0)

    @property
    def minutes(self) -> float:
        """The length of the measurements in minutes."""
        return self.seconds / 60


_GPU_METRICS = frozenset({Metric.GPU.value, Metric.GPU_MEMORY.value})


def hosts_by_type(
    job: Job,
    series: Iterable[RawSeries],
    types: Mapping[str, InstanceType],
    missing_reason: MissingMetrics,
) -> Mapping[str, frozenset[str]] | MissingMetrics:
    """Returns the hosts of each type, for a job on several known types, or why they are unknown.

    `missing_reason`: the result if there is no series at all.
    """
    recorded = [item for item in series if any(value is not None for value in item.values)]
    hosts = frozenset(item.host for item in recorded)
    gpu_hosts = frozenset(item.host for item in recorded if item.metric in _GPU_METRICS)
    if not hosts:
        return missing_reason
    names = dict.fromkeys(group.instance_type for group in job.groups)
    with_gpus = [name for name in names if types[name].gpus]
    others = [name for name in names if not types[name].gpus]
    ambiguity = _ambiguity(with_gpus, "all with GPUs") or _ambiguity(others, "all without GPUs")
    if ambiguity is not None:
        return ambiguity
    mapping = {with_gpus[0]: gpu_hosts, others[0]: hosts - gpu_hosts}
    for name, members in mapping.items():
        count = sum(group.count for group in job.groups if group.instance_type == name)
        if len(members) != count:
            points = "points" if name in with_gpus else "other points and none"
            reason = f"{len(members)} hosts have {points} of GPUUtilization, and {count} are {name}"
            return MissingMetrics(HOSTS_UNMAPPED.code, f"{HOSTS_UNMAPPED.reason}: {reason}")
    return mapping


def _ambiguity(names: Collection[str], kind: str) -> MissingMetrics | None:
    if len(names) <= 1:
        return None
    reason = f"{' and '.join(names)} are {kind}"
    return MissingMetrics(HOSTS_UNMAPPED.code, f"{HOSTS_UNMAPPED.reason}: {reason}")
