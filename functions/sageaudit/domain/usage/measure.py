"""Makes measurements from raw series.

CPU, GPU and GPU-memory figures of CloudWatch are sums over cores or GPUs (0..100 x count). They are
divided by the count here, so that 100 always means all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from sageaudit.domain.job.course import work_windows
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.measurements import (
    HOSTS_UNMAPPED,
    TYPES_MIXED,
    Curve,
    Measurements,
    Metric,
    MissingMetrics,
    RawSeries,
    hosts_by_type,
)
from sageaudit.domain.usage.series import Series, mean
from sageaudit.structs import replace
from sageaudit.token_shapes import is_name

_MAX_OVERSHOOT = 1.05
"""A utilisation above this share of 100% shows a wrong number of cores. A busy core reads up to
100.8% in real recordings."""
_MAX_VALUE = 2.0**360
"""The largest value that CloudWatch accepts; sums of larger values would overflow."""
_LARGE_GB = 60
"""Volumes are large from this many GB on. 66 GB cost a quarter as much as ml.t3.medium ($0.05 an
hour), the cheapest type. So the cost of a smaller volume is less than a fifth of any bill."""
NOT_REQUESTED = MissingMetrics("not_asked", "no rule judges it of this job")
_MAX_POINTS = 100_000
"""The most points of a series: 69 days of minutes. Jobs end after 28 days, so only broken
timestamps exceed it."""
Points = tuple[float | None, ...]


def measure(
    job: Job,
    raw_series: Iterable[RawSeries],
    types: Mapping[str, InstanceType],
    *,
    missing_reason: MissingMetrics,
    notes: tuple[str, ...] = (),
) -> Measurements:
    """Returns measurements, clipped to the time in which the job's own code ran.

    `missing_reason`: why a metric has no series. `notes`: what else was not read. If CPU and GPU
    have different periods, the longer one is used. Series with shorter periods are averaged, and
    series with longer periods count as missing.
    """
    raw_series = list(raw_series)
    series, note = _own_series(job, raw_series)
    vcpu, gpus, unmapped = devices_per_host(job, types)
    by_type: dict[str, Measurements] = {}
    if unmapped is HOSTS_UNMAPPED and len({group.instance_type for group in job.groups}) > 1:
        by_type, unmapped = _by_type(job, series, types, missing_reason)
    periods = {item.metric: item.period_s for item in sorted(series, key=lambda x: x.period_s)}
    main_periods = [
        periods[main_metric.value]
        for main_metric in (Metric.CPU, Metric.GPU)
        if main_metric.value in periods
    ]
    period_s = max(main_periods or periods.values(), default=None)
    grid = _grid(job, period_s) if period_s else range(0)
    lines: dict[Metric, dict[str, Series]] = {}
    missing: dict[Metric, MissingMetrics] = {}
    for metric in Metric:
        divisor = _divisor(metric, vcpu, gpus)
        if metric in {Metric.GPU, Metric.GPU_MEMORY} and gpus == 0:
            missing[metric] = MissingMetrics("no_gpu", "the instances have no GPU")
        elif divisor is None:
            missing[metric] = unmapped
        else:
            hosts: dict[str, Series] = {}
            for item in series:
                if item.metric == metric.value and item.period_s <= (period_s or 0):
                    line = _resample(item, grid, period_s or item.period_s, divisor)
                    hosts[item.host] = line.merged_where_equal(hosts.get(item.host))
            lines[metric] = {host: line for host, line in hosts.items() if line.present}
            if not lines[metric]:
                items = [item for item in series if item.metric == metric.value]
                requested = items or metric is not Metric.DISK or is_disk_judged(job, types)
                missing[metric] = (
                    _missing_reason(missing_reason, items, period_s) if requested else NOT_REQUESTED
                )
                del lines[metric]
    if not job.kind.spec.has_transitions:
        start = _first_point(lines, len(grid))
        grid = grid[start:]
        lines = {metric: _cut_before(start, hosts) for metric, hosts in lines.items()}
    return Measurements(
        period_s=period_s,
        points=len(grid),
        hosts_expected=job.instance_count,
        vcpu=vcpu,
        gpus=gpus,
        series=lines,
        missing=missing,
        notes=(*notes, note) if note else notes,
        begins_at=datetime.fromtimestamp(grid[0], UTC) if grid else None,
        curves=dict(_curves(job, raw_series)),
        by_type=by_type,
    )


def _by_type(
    job: Job,
    series: Sequence[RawSeries],
    types: Mapping[str, InstanceType],
    missing_reason: MissingMetrics,
) -> tuple[dict[str, Measurements], MissingMetrics]:
    """Returns the measurements of each type's hosts, and why all hosts together have none."""
    mapping = hosts_by_type(job, series, types, missing_reason)
    if isinstance(mapping, MissingMetrics):
        return {}, mapping
    usages = {}
    for name, hosts in mapping.items():
        groups = tuple(group for group in job.groups if group.instance_type == name)
        items = (item for item in series if item.host in hosts)
        usages[name] = measure(
            replace(job, groups=groups), items, types, missing_reason=missing_reason
        )
    return usages, TYPES_MIXED


def is_disk_judged(job: Job, types: Mapping[str, InstanceType]) -> bool:
    """Returns whether a rule may ask how full the disks were.

    True for a type with its own disk, a volume without copied data, or a large volume. True for all
    processing and transform jobs, because the rules of later runs compare the figure.
    """
    instance_types = (types.get(group.instance_type) for group in job.groups)
    own_disks = any(
        instance_type is None or instance_type.local_gb for instance_type in instance_types
    )
    is_large = bool(job.channels) and (job.volume_gb or 0) >= _LARGE_GB
    return own_disks or job.is_streaming_data or is_large or job.kind is not JobKind.TRAINING


def _first_point(series_by_metric: Mapping[Metric, Mapping[str, Series]], points: int) -> int:
    """Returns the index of the first point; 0 if it is in the second half of the run.

    Without transitions, a download before the first point is not a phase of its own.
    """
    hosts = (series_by_metric.get(metric, {}) for metric in (Metric.CPU, Metric.GPU))
    lines = [line.values for series_by_host in hosts for line in series_by_host.values()]
    first = min(
        (
            next(index for index, value in enumerate(values) if value is not None)
            for values in lines
        ),
        default=0,
    )
    return first if 2 * first <= points else 0


def _cut_before(first: int, hosts: Mapping[str, Series]) -> dict[str, Series]:
    remaining = {host: line.slice(first, len(line.values)) for host, line in hosts.items()}
    return {host: line for host, line in remaining.items() if line.present}


def _own_series(job: Job, raw: Iterable[RawSeries]) -> tuple[list[RawSeries], str | None]:
    names = {metric.value for metric in Metric}
    items = [item for item in raw if item.metric in names and item.host != job.name]
    own_series = [
        item for item in items if item.host.startswith(f"{job.name}/") and is_name(item.host)
    ]
    other_count = len(items) - len(own_series)
    return own_series, f"{other_count} series are not of this job's hosts" if other_count else None


def _curves(job: Job, raw: Iterable[RawSeries]) -> Iterator[tuple[str, Curve]]:
    """Yields name and curve of each algorithm metric, without points outside the job's work.

    A point has the time of its period's start, or of the work's start if that is later.
    """
    windows = [(start, start.timestamp(), end.timestamp()) for start, end in work_windows(job)]
    for item in raw:
        if item.host != job.name:
            continue
        first_s = item.start.timestamp()
        points: list[tuple[datetime, float]] = []
        for number, value in enumerate(item.values):
            if value is None or not abs(value) <= _MAX_VALUE:
                continue
            point_s = first_s + number * item.period_s
            for start, start_s, end_s in windows:
                if point_s < end_s and start_s < point_s + item.period_s:
                    delay_s = max(point_s - start_s, 0)
                    points.append((start + timedelta(seconds=delay_s), value))
                    break
        if points:
            yield item.metric, Curve(tuple(points))


def _missing_reason(
    no_series_reason: MissingMetrics, metric_series: Iterable[RawSeries], period_s: int | None
) -> MissingMetrics:
    if not (own_series := list(metric_series)):
        return no_series_reason
    if all(value is None for item in own_series for value in item.values):
        return MissingMetrics("metric_missing", "all its points are null")
    if min(item.period_s for item in own_series) > (period_s or 0):
        return MissingMetrics(
            "period_too_coarse", "its points are coarser than those of CPU and GPU"
        )
    return MissingMetrics("metric_missing", "no points inside the Training phase")


def devices_per_host(
    job: Job, types: Mapping[str, InstanceType]
) -> tuple[int | None, int | None, MissingMetrics]:
    """Returns the numbers of vCPUs and GPUs of each host, and a reason.

    A number is None if it is unknown, or if the hosts differ. Only then does the reason apply.
    """
    names = {group.instance_type for group in job.groups}
    if job.groups_unknown:
        return None, None, MissingMetrics("type_unknown", job.groups_unknown[0])
    if not names:
        return None, None, MissingMetrics("type_unknown", "the instance type is not known")
    if unknown := sorted(names - set(types)):
        return None, None, MissingMetrics("type_unknown", f"{unknown[0]} is not in the catalogue")
    vcpu, gpus = {types[name].vcpu for name in names}, {types[name].gpus for name in names}
    accelerator_types = [
        name for name in sorted(names) if types[name].accelerator and not types[name].gpus
    ]
    if accelerator_types and len(vcpu) == 1:
        reason = f"CloudWatch records no use of the accelerators of {accelerator_types[0]}"
        remedy = "Measure it inside the container, such as with neuron-monitor."
        return vcpu.pop(), None, MissingMetrics("accelerator_unseen", reason, remedy)
    same_vcpu, same_gpus = (counts.pop() if len(counts) == 1 else None for counts in (vcpu, gpus))
    return same_vcpu, same_gpus, HOSTS_UNMAPPED


def _divisor(metric: Metric, vcpu: int | None, gpus: int | None) -> int | None:
    if metric is Metric.CPU:
        return vcpu
    return gpus if metric in {Metric.GPU, Metric.GPU_MEMORY} else 1


def _grid(job: Job, period_s: int) -> Sequence[int]:
    """Returns the epoch seconds of the periods that are wholly inside a work window."""
    grid: list[int] = []
    for start, end in work_windows(job):
        first = math.ceil(start.timestamp() / period_s) * period_s
        grid += range(first, math.floor(end.timestamp()) - period_s + 1, period_s)[:_MAX_POINTS]
    grid = grid[:_MAX_POINTS]
    even_grid = range(grid[0], grid[-1] + period_s, period_s) if grid else range(0)
    return even_grid if grid == [*even_grid] else grid


def _resample(item: RawSeries, grid: Sequence[int], period_s: int, divisor: int) -> Series:
    """Returns a series with one value from 0 to 100 for each period of the grid.

    The value is the mean of the item's points in that period; None if more than half of them are
    missing. `grid`: the start of each period in epoch seconds. `period_s`: the length of a period.
    `divisor`: the number of cores or GPUs that CloudWatch sums up.
    """
    first = math.floor(item.start.timestamp() / item.period_s)
    if item.period_s == period_s and isinstance(grid, range):
        stretch = _stretch(item.values, grid[0] // period_s - first, len(grid)) if grid else ()
        return _normalise_all(stretch, divisor)
    size = max(period_s // item.period_s, 1)
    normal = _normalise_all(item.values, divisor).values
    values: list[float | None] = []
    for moment in grid:
        position = moment // item.period_s - first
        points = normal[max(position, 0) : max(position + size, 0)]
        present = [point for point in points if point is not None]
        values.append(mean(present) if present and 2 * len(present) >= size else None)
    return Series(tuple(values))


def _stretch(values: Points, first: int, count: int) -> Points:
    before = (None,) * min(max(-first, 0), count)
    points = values[max(first, 0) : max(first + count, 0)]
    return before + points + (None,) * (count - len(before) - len(points))


def _normalise_all(raw: Points, divisor: int) -> Series:
    """Returns the points divided by `divisor`, in percent. None is a missing or impossible point.

    All points are divided at once if all results are from 0 to 100, as in most series.
    """
    line = Series(raw)
    is_finite = line.present and math.isfinite(sum(line.present))
    if is_finite and line.lowest >= 0 and line.highest <= 100 * divisor:
        return line.divide_by(divisor)
    return Series(tuple(_normalise(value, divisor) for value in raw))


def _normalise(raw: float | None, divisor: int) -> float | None:
    """Returns the value divided by `divisor`, at most 100; None if it is not a utilisation."""
    if raw is None or not math.isfinite(raw) or raw < 0:
        return None
    value = raw / divisor
    return None if value > 100 * _MAX_OVERSHOOT else min(value, 100.0)
