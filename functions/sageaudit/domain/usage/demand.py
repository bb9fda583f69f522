"""The demand of a run on each resource, from its recorded use.

For memory, the peak counts: P99.5 of the busiest host, as Compute Optimizer sizes EC2 instances.
For vCPUs and GPUs, the total work counts, because a run with fewer of them only takes longer. The
demand is unknown if points are more than 5 minutes apart or missing, or if fewer than 15 minutes
were active.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_UP, Decimal
from functools import cached_property, reduce
from operator import add

from msgspec import Struct

from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.measurements import MIN_ACTIVE_MINUTES, MIN_POINTS, Measurements, Metric
from sageaudit.domain.usage.series import (
    IDLE_MAX_GPU_PERCENT,
    ONE_PROCESS_MAX_CORES,
    Series,
    percentile,
)

PEAK_PERCENTILE = 99.5
_COARSEST_PERIOD_S = 300
_PLACES = Decimal("0.0001")
_ROUNDING_MARGIN = 1 - 1e-9
"""A factor that lowers a threshold slightly, so that no rounding error decides."""
_CPU_LIMIT_SHARE = 0.9
"""vCPUs are at their limit from this busy share on, as in Debugger's CPUBottleneck and sageaudit's
rule of that name."""
_ONE_GPU_CEILING_MIN = 90.0
"""If one GPU did all the work, the P95 of a host's summed GPU utilisation is at least this (100:
one busy GPU)."""
_ONE_GPU_CEILING_MAX = 101.0
"""If one GPU did all the work, a host's summed GPU utilisation is never above this: 100% of one
GPU, and 1% that idle GPUs report."""


class ResourceNeed(Struct, frozen=True):
    """What a run needs of one resource of a host, and what is `available` there.

    `needed`: None if the need is unknown; `unknown_because` says why.
    """

    needed: float | None
    available: float
    unknown_because: str | None = None

    def is_met_by(self, offered: float) -> bool | None:
        """Returns whether `offered` is enough; None if the need is unknown.

        An offer of at least what the current instance has is always enough.
        """
        if offered >= self.available:
            return True
        return None if self.needed is None else self.needed <= offered


class HostGpus(Struct, frozen=True):
    """How busy the GPUs of one host were.

    `mean_busy_share`: the mean over the GPUs (0..1), rounded up to four decimals.
    `has_one_busy_gpu`: the sum of the GPUs shows that one GPU did all the work.
    """

    mean_busy_share: Decimal
    has_one_busy_gpu: bool


class BusyCores(Struct, frozen=True):
    """The CPU utilisation of one host with `vcpu` vCPUs."""

    series: Series
    vcpu: int

    def runtime_factor(self, vcpu: float) -> float:
        """Returns how many times as long the host takes on this number of vCPUs.

        It is the mean over all periods of max(1, busy cores / vCPUs).
        """
        points = self.series.present
        over = [cores for cores in self._busy_at_least(vcpu) if cores > vcpu]
        more = reduce(add, sorted(over, reverse=True), 0.0)
        return (len(points) - len(over) + more / vcpu) / len(points)

    def is_at_limit(self, vcpu: float) -> bool:
        """Returns whether `vcpu` vCPUs would be at their limit in at least half of the periods."""
        limit, points = _CPU_LIMIT_SHARE * vcpu, len(self.series.present)
        return (
            len([1 for cores in self._busy_at_least(limit) if cores >= limit])
            >= points - points // 2
        )

    def _busy_at_least(self, cores: float) -> list[float]:
        percent = 100 * cores / self.vcpu * _ROUNDING_MARGIN
        if self.series.highest < percent:
            return []
        return [value * self.vcpu / 100 for value in self.series.present if value >= percent]


class Demand(Struct, frozen=True, dict=True):
    """The demand of a run: what the busiest host needs.

    `vcpu` and `memory_gib`: P99.5 plus headroom. `gpus`: the mean GPU work of a host, as a number
    of busy GPUs. `gpu_memory_gib`: P99.5 of the memory of a host's GPUs, without headroom.
    `disk_gb`: P99.5 plus headroom of the instance's own disk.

    `hosts`: the GPUs of each host. If their use was not recorded, it has one host with GPUs that
    were always busy. `cores`: the busy cores of each host; empty if unknown.
    """

    vcpu: ResourceNeed
    memory_gib: ResourceNeed
    gpus: ResourceNeed
    gpu_memory_gib: ResourceNeed
    hosts: tuple[HostGpus, ...]
    cores: tuple[BusyCores, ...] = ()
    disk_gb: ResourceNeed = ResourceNeed(None, 0.0)

    @cached_property
    def _factor_by_vcpu(self) -> dict[float, Decimal]:
        return {}

    def vcpu_factor(self, vcpu: float) -> Decimal:
        """Returns how many times as long the slowest host takes on this number of vCPUs."""
        if vcpu not in self._factor_by_vcpu:
            factor = max(host.runtime_factor(vcpu) for host in self.cores)
            self._factor_by_vcpu[vcpu] = Decimal(str(factor)).quantize(_PLACES, ROUND_UP)
        return self._factor_by_vcpu[vcpu]

    @property
    def is_gpu_idle(self) -> bool:
        """Whether it is known that no GPU ever worked."""
        return self.gpus.needed == 0

    @property
    def busiest_gpu_share(self) -> Decimal | None:
        """The mean busy share (0..1) of the busiest host's GPUs; None if it was not recorded."""
        return (
            None
            if self.gpus.unknown_because
            else max((host.mean_busy_share for host in self.hosts), default=None)
        )


def demand(
    whole_run: Measurements,
    current_type: InstanceType,
    headroom_percent: Decimal,
    other_usage: tuple[Measurements, ...] = (),
) -> Demand:
    """Returns the demand of a run on `current_type`, in the active minutes of `whole_run`.

    `headroom_percent`: is added to the peaks of vCPUs, memory and disk. `other_usage`: more active
    minutes whose demand must be met, if `whole_run` is a pool of runs.
    """
    usages = (whole_run.active_part(), *other_usage)
    factor = 1 + float(headroom_percent) / 100
    gpu_memory = float(current_type.gpu_memory_gib or 0) * current_type.gpus
    no_need = ResourceNeed(0.0, 0.0)
    is_gpu_unknown = bool(current_type.gpus and _mean_unknown_reason(whole_run, Metric.GPU))
    is_idle = not current_type.gpus or (not is_gpu_unknown and is_gpu_idle(whole_run))
    vcpu = _peak(usages, Metric.CPU, current_type.vcpu, factor)
    lines = [] if vcpu.unknown_because else _series_of_hosts(usages, Metric.CPU)
    if is_gpu_unknown:
        lines = [_without_quiet_edges(line, current_type.vcpu) for line in lines]
    hosts = () if is_idle else _host_gpus(usages, current_type.gpus)
    return Demand(
        vcpu=vcpu,
        memory_gib=_peak(usages, Metric.MEMORY, float(current_type.memory_gib), factor),
        gpus=no_need if is_idle else _gpu_need(usages, current_type.gpus, hosts),
        gpu_memory_gib=no_need if is_idle else _peak(usages, Metric.GPU_MEMORY, gpu_memory, 1.0),
        hosts=hosts,
        cores=tuple(BusyCores(line, current_type.vcpu) for line in lines),
        disk_gb=_peak(usages, Metric.DISK, float(current_type.local_gb or 0), factor),
    )


def _series_of_hosts(usages: Sequence[Measurements], metric: Metric) -> list[Series]:
    return [line for usage in usages for line in usage.series[metric].values()]


def _without_quiet_edges(line: Series, vcpu: int) -> Series:
    """Returns the series without its first and last minutes of at most one busy process.

    These minutes may be idle. If the use of the GPUs is unknown, idle minutes would make fewer
    vCPUs look sufficient.
    """
    percent = 100 * ONE_PROCESS_MAX_CORES / vcpu
    busy = [minute for minute, value in enumerate(line.values) if (value or 0) > percent]
    return line.slice(busy[0], busy[-1] + 1) if busy else line


def _peak(
    usages: Sequence[Measurements], metric: Metric, current_amount: float, factor: float
) -> ResourceNeed:
    unknown = _peak_unknown_reason(usages[0], metric)
    if unknown is not None:
        return ResourceNeed(None, current_amount, unknown)
    peak = max(usage.busiest_percentile(metric, PEAK_PERCENTILE) for usage in usages)
    return ResourceNeed(peak / 100 * current_amount * factor, current_amount)


def _gpu_need(
    usages: Sequence[Measurements], gpus: int, hosts: tuple[HostGpus, ...]
) -> ResourceNeed:
    if unknown := _mean_unknown_reason(usages[0], Metric.GPU):
        return ResourceNeed(None, gpus, unknown)
    busy_gpus = (line.mean / 100 * gpus for line in _series_of_hosts(usages, Metric.GPU))
    busiest = [
        min(busy, 1.0) if host.has_one_busy_gpu else busy
        for host, busy in zip(hosts, busy_gpus, strict=True)
    ]
    return ResourceNeed(max(busiest), gpus)


def _host_gpus(usages: Sequence[Measurements], gpus: int) -> tuple[HostGpus, ...]:
    if _mean_unknown_reason(usages[0], Metric.GPU) is not None:
        return (HostGpus(Decimal(1), has_one_busy_gpu=False),)
    return tuple(_host(line, gpus) for line in _series_of_hosts(usages, Metric.GPU))


def _host(line: Series, gpus: int) -> HostGpus:
    is_at_ceiling = _ONE_GPU_CEILING_MIN <= line.highest * gpus <= _ONE_GPU_CEILING_MAX and (
        percentile([value * gpus for value in line.present], 95) >= _ONE_GPU_CEILING_MIN
    )
    busy_share = Decimal(str(line.mean)) / 100
    return HostGpus(busy_share.quantize(_PLACES, ROUND_UP), has_one_busy_gpu=is_at_ceiling)


def _peak_unknown_reason(usage: Measurements, metric: Metric) -> str | None:
    if metric in usage.series and (usage.period_s or 0) > _COARSEST_PERIOD_S:
        return f"a point every {usage.period_s} s hides peaks"
    return _mean_unknown_reason(usage, metric)


def _mean_unknown_reason(usage: Measurements, metric: Metric) -> str | None:
    if missing := usage.missing.get(metric):
        return missing.reason
    if metric not in usage.series:
        return "no points"
    if usage.points < MIN_POINTS:
        return f"{usage.points} points, {MIN_POINTS} needed"
    if usage.minutes < MIN_ACTIVE_MINUTES:
        return f"{usage.minutes:.0f} active minutes, {MIN_ACTIVE_MINUTES} needed"
    gap = usage.find_gap(metric)
    return gap.reason if gap else None


def is_gpu_idle(usage: Measurements) -> bool:
    """Returns whether no point shows GPU work. False without points.

    A point shows no work if all GPUs of the host together show at most 1% of one GPU. A point of
    more than 5 minutes must be 0, because its mean may hide minutes of work.
    """
    gpus, is_coarse = usage.gpus or 0, (usage.period_s or 0) > _COARSEST_PERIOD_S
    highest = [line.highest for line in usage.series.get(Metric.GPU, {}).values() if line.present]
    return bool(highest) and max(highest) * gpus <= (0 if is_coarse else IDLE_MAX_GPU_PERCENT)
