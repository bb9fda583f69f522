"""What a job used: series per host and metric, normalised once, clipped to when its code ran.

CloudWatch's CPU, GPU and GPU-memory figures are sums over cores or GPUs (0..100 x count); here each
is divided by the count, so that 100 always means all of it. Absent data is Missing, never 0.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice

from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.activity import LATE_S, cpu_works, gpu_works, state_at
from sageaudit.domain.usage.series import Series, cut_all, mean
from sageaudit.domain.usage.work_windows import work_windows

MIN_COVERAGE = 0.7
"""Share of the expected points that must be present before a rule judges. The first GPU point comes
3 to 6 minutes late in real recordings; less than half of the points is never enough."""
MIN_ACTIVE_MINUTES = 15
"""Three times the 5 minutes below which Jobstats judges nothing: one-minute means are few."""
MIN_POINTS = 3
"""The least points of each metric and host, however long their period."""
GAP_LONG = "gap_long"
"""The code of a metric with enough points but a long gap between them."""
_OVERSHOOT = 1.05
"""A busy core reads up to 100.8% in real recordings; more than 105% means a wrong core count."""
_LARGEST = 2.0**360
"""The largest value that CloudWatch accepts; sums of larger ones would overflow."""
_MAX_POINTS = 100_000
"""69 days of minutes. Jobs end after 28 days: only broken timestamps reach this."""


class Metric(enum.Enum):
    """What SageMaker publishes for a job's hosts, by its CloudWatch name."""

    CPU = "CPUUtilization"
    MEMORY = "MemoryUtilization"
    GPU = "GPUUtilization"
    GPU_MEMORY = "GPUMemoryUtilization"
    DISK = "DiskUtilization"


@dataclass(frozen=True, slots=True)
class RawSeries:
    """Points as CloudWatch returns them: sums over cores or GPUs, one each period from `start`."""

    host: str
    metric: str
    start: datetime
    period_s: int
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """An algorithm metric over the run: times in order, each with its value."""

    points: tuple[tuple[datetime, float], ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a metric cannot be judged: a stable code, a sentence, and what to do about it, if any."""

    code: str
    reason: str
    advice: str | None = None


HOSTS_UNMAPPED = Missing(
    "hosts_unmapped", "CloudWatch does not say which host has which of the job's instance types"
)


@dataclass(frozen=True, slots=True)
class Measurements:
    """Series by metric and host on one grid of `points` periods of `period_s` seconds.

    `vcpu` and `gpus` are those of each host; None where hosts differ or the type is not known.
    """

    period_s: int | None
    points: int
    hosts_expected: int | None
    vcpu: int | None
    gpus: int | None
    series: Mapping[Metric, Mapping[str, Series]]
    missing: Mapping[Metric, Missing]
    notes: tuple[str, ...] = ()
    begins_at: datetime | None = None
    """Start of the first period; None without a grid."""
    curves: Mapping[str, Curve] = field(default_factory=dict)
    """Algorithm metrics, such as a validation loss, by their own names; never cut."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts with any series, in order."""
        names = dict.fromkeys(host for hosts in self.series.values() for host in hosts)
        return tuple(sorted(names, key=lambda name: (len(name), name)))

    def share(self, metric: Metric) -> float | None:
        """Points present of points expected over all expected hosts; None where missing."""
        hosts = self.series.get(metric)
        if not hosts:
            return None
        expected = max(self.hosts_expected or 0, len(hosts))
        return sum(series.share for series in hosts.values()) / expected

    def gap(self, metric: Metric, min_share: float = MIN_COVERAGE) -> Missing | None:
        """Why the points of a recorded metric are too few to speak for the run, or None.

        Every host needs its points: the one without may be the busiest. So does every stretch of
        the run: what a longer gap hides would take a judgement back.
        """
        hosts = self.series.get(metric, {})
        expected = max(self.hosts_expected or 0, len(hosts))
        if len(hosts) < expected:
            return Missing("hosts_missing", f"{len(hosts)} of {expected} hosts have {metric.value}")
        share = self.share(metric) or 0.0
        if share < min_share:
            why = f"{metric.value}: {share:.0%} of the points, {min_share:.0%} needed"
            return Missing("coverage_low", why)
        longest_s = max(line.longest_gap for line in hosts.values()) * (self.period_s or 0)
        if longest_s > max(LATE_S, 2 * (self.period_s or 0)):
            return Missing(GAP_LONG, f"{metric.value}: no points for {longest_s // 60} minutes")
        return None

    def active(self) -> Measurements:
        """The same without the idle head and tail of the run; unchanged where no minute was active.

        A minute is idle when every host is known to use less than 0.2 cores and at most 1% of its
        GPUs. A minute without data counts as active, except the late first points before an idle
        head.
        """
        busy = [minute for minute in range(self.points) if not self.idle(minute)]
        if not any(self.worked(minute) for minute in busy):
            return self
        known = next(m for m in range(self.points) if self.idle(m) or self.worked(m))
        if self.idle(known) and known * (self.period_s or 0) <= LATE_S:
            busy = [minute for minute in busy if minute > known]
        start, stop = busy[0], busy[-1] + 1
        cut = {metric: cut_all(hosts, start, stop) for metric, hosts in self.series.items()}
        none = Missing("metric_missing", "no points in the active minutes")
        gone = {metric: none for metric, hosts in cut.items() if not hosts}
        skipped = timedelta(seconds=start * (self.period_s or 0))
        begins_at = self.begins_at and self.begins_at + skipped
        return replace(
            self,
            points=stop - start,
            series={metric: hosts for metric, hosts in cut.items() if hosts},
            missing={**self.missing, **gone},
            begins_at=begins_at,
        )

    def idle(self, minute: int) -> bool:
        """Whether every host is known to be idle in the period at this index."""
        cpu = self.series.get(Metric.CPU, {})
        gpu = self.series.get(Metric.GPU, {})
        if not cpu or self.vcpu is None or (self.gpus != 0 and not gpu):
            return False
        return all(busy is False for busy in self._busy(minute))

    def worked(self, minute: int) -> bool:
        """Whether any host is known to be active in the period at this index."""
        return any(self._busy(minute))

    def _busy(self, minute: int) -> Iterator[bool | None]:
        works = partial(cpu_works, vcpu=self.vcpu)
        for line in self.series.get(Metric.CPU, {}).values():
            yield state_at(line.values, minute, works, self.period_s)
        for line in self.series.get(Metric.GPU, {}).values():
            yield state_at(line.values, minute, gpu_works, self.period_s)

    @property
    def minutes(self) -> float:
        """Length of the grid in minutes."""
        return self.points * (self.period_s or 0) / 60


def measure(
    job: Job,
    raw: Iterable[RawSeries],
    types: Mapping[str, InstanceType],
    *,
    absent: Missing,
    notes: tuple[str, ...] = (),
) -> Measurements:
    """Normalises and clips raw series; `absent` says why a metric without any series has none.

    The grid uses the coarser period of CPU and GPU: finer series are averaged, coarser ones count
    as missing. Series of other jobs' hosts are left out with a note. Where no series carries the
    job's name (a recording renamed by hand), all of them are taken as the job's own.
    """
    raw = list(raw)
    series, note = _own_series(job, raw)
    vcpu, gpus, unmapped = per_host(job, types)
    periods = {item.metric: item.period_s for item in sorted(series, key=lambda x: x.period_s)}
    leading = [periods[m.value] for m in (Metric.CPU, Metric.GPU) if m.value in periods]
    period_s = max(leading or periods.values(), default=None)
    grid = list(islice(_grid(job, period_s), _MAX_POINTS)) if period_s else []
    found: dict[Metric, dict[str, Series]] = {}
    missing: dict[Metric, Missing] = {}
    for metric in Metric:
        divisor = _divisor(metric, vcpu, gpus)
        if metric in {Metric.GPU, Metric.GPU_MEMORY} and gpus == 0:
            missing[metric] = Missing("no_gpu", "the instances have no GPU")
        elif divisor is None:
            missing[metric] = unmapped
        else:
            hosts = {
                item.host: _on_grid(item, grid, period_s or item.period_s, divisor)
                for item in series
                if item.metric == metric.value and item.period_s <= (period_s or 0)
            }
            found[metric] = {host: line for host, line in hosts.items() if line.present}
            if not found[metric]:
                own = [item for item in series if item.metric == metric.value]
                missing[metric] = _why_missing(absent, own, period_s)
                del found[metric]
    return Measurements(
        period_s=period_s,
        points=len(grid),
        hosts_expected=job.instance_count,
        vcpu=vcpu,
        gpus=gpus,
        series=found,
        missing=missing,
        notes=(*notes, note) if note else notes,
        begins_at=datetime.fromtimestamp(grid[0], UTC) if grid else None,
        curves=dict(_curves(job, raw)),
    )


def _own_series(job: Job, raw: Iterable[RawSeries]) -> tuple[list[RawSeries], str | None]:
    """The series of the job's own hosts, and a note where others were among them."""
    names = {metric.value for metric in Metric}
    known = [item for item in raw if item.metric in names and item.host != job.name]
    own = [item for item in known if item.host.startswith(f"{job.name}/")]
    others = len(known) - len(own)
    return own, f"{others} series are not of this job's hosts" if others else None


def _curves(job: Job, raw: Iterable[RawSeries]) -> Iterator[tuple[str, Curve]]:
    """Algorithm metrics, whose host is the job itself, without points from outside its work.

    The code reports a metric when it likes, so gaps are not missing data. A point carries the start
    of its period: one that starts less than a period before the work is moved to the work's start.
    """
    windows = [(start, start.timestamp(), end.timestamp()) for start, end in work_windows(job)]
    for item in raw:
        if item.host != job.name:
            continue
        first = item.start.timestamp()
        points: list[tuple[datetime, float]] = []
        for number, value in enumerate(item.values):
            if value is None or not abs(value) <= _LARGEST:
                continue
            begun = first + number * item.period_s
            for start, start_s, end_s in windows:
                if begun < end_s and start_s < begun + item.period_s:
                    late = max(begun - start_s, 0)
                    points.append((start + timedelta(seconds=late), value))
                    break
        if points:
            yield item.metric, Curve(tuple(points))


def _why_missing(absent: Missing, own: Iterable[RawSeries], period_s: int | None) -> Missing:
    """Why a metric has no point on the grid: `own` are its series, as they were read."""
    if not (read := list(own)):
        return absent
    if all(value is None for item in read for value in item.values):
        return Missing("metric_missing", "all its points are null")
    if min(item.period_s for item in read) > (period_s or 0):
        return Missing("period_too_coarse", "its points are coarser than those of CPU and GPU")
    return Missing("metric_missing", "no points inside the Training phase")


def per_host(job: Job, types: Mapping[str, InstanceType]) -> tuple[int | None, int | None, Missing]:
    """vCPUs and GPUs of each host, and why they are not known where they are None."""
    names = {group.instance_type for group in job.groups}
    if job.groups_unknown:
        return None, None, Missing("type_unknown", job.groups_unknown[0])
    if not names:
        return None, None, Missing("type_unknown", "the instance type is not known")
    if unknown := sorted(names - set(types)):
        return None, None, Missing("type_unknown", f"{unknown[0]} is not in the catalogue")
    vcpu, gpus = {types[name].vcpu for name in names}, {types[name].gpus for name in names}
    unseen = [name for name in sorted(names) if types[name].accelerator and not types[name].gpus]
    if unseen and len(vcpu) == 1:
        why = f"CloudWatch records no use of the accelerators of {unseen[0]}"
        inside = "Measure it inside the container, such as with neuron-monitor."
        return vcpu.pop(), None, Missing("accelerator_unseen", why, inside)
    same_vcpu, same_gpus = (counts.pop() if len(counts) == 1 else None for counts in (vcpu, gpus))
    return same_vcpu, same_gpus, HOSTS_UNMAPPED


def _divisor(metric: Metric, vcpu: int | None, gpus: int | None) -> int | None:
    if metric is Metric.CPU:
        return vcpu
    return gpus if metric in {Metric.GPU, Metric.GPU_MEMORY} else 1


def _grid(job: Job, period_s: int) -> Iterator[int]:
    """Epoch seconds of the periods that lie wholly inside a work window."""
    for start, end in work_windows(job):
        first = math.ceil(start.timestamp() / period_s) * period_s
        yield from range(first, math.floor(end.timestamp()) - period_s + 1, period_s)


def _on_grid(item: RawSeries, grid: list[int], period_s: int, divisor: int) -> Series:
    """Averages a finer series onto the grid; a grid point needs at least half of its own points."""
    first = math.floor(item.start.timestamp() / item.period_s)
    wanted = max(period_s // item.period_s, 1)
    normal = [_normal(raw, divisor) for raw in item.values]
    values: list[float | None] = []
    for moment in grid:
        position = moment // item.period_s - first
        points = normal[max(position, 0) : max(position + wanted, 0)]
        known = [point for point in points if point is not None]
        values.append(mean(known) if known and 2 * len(known) >= wanted else None)
    return Series(tuple(values))


def _normal(raw: float | None, divisor: int) -> float | None:
    """A share of 0..100, or None for a value that is no utilisation."""
    if raw is None or not math.isfinite(raw) or raw < 0:
        return None
    value = raw / divisor
    return None if value > 100 * _OVERSHOOT else min(value, 100.0)
