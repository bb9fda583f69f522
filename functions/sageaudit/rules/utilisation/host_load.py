"""How much each host of a run did while all of them still worked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sageaudit.domain.usage.activity import ONE_PROCESS_TO_CORES, gpu_works
from sageaudit.domain.usage.edges import at_work, host_ends
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from sageaudit.domain.usage.series import mean

MIN_SECONDS = 900
"""Fewer minutes that all hosts share are an accident."""


@dataclass(frozen=True, slots=True)
class HostLoad:
    """Use of each host (0..100) in the same minutes; `no_part`: hosts idle after their start,
    or without GPU work and with no more than a waiting process.

    `busiest` and `laziest` are hosts with their means, in percent.
    """

    metric: Metric
    used: Mapping[str, list[float]]
    seconds: int
    no_part: tuple[str, ...]
    busiest: tuple[str, float]
    laziest: tuple[str, float]

    @property
    def distance(self) -> float:
        """Between the histograms of the two, in tenths: 0 the same, 1 nothing in common."""
        busy, lazy = (_tenths(self.used[host]) for host, _ in (self.busiest, self.laziest))
        return sum(abs(a - b) for a, b in zip(busy, lazy, strict=True)) / 2

    @property
    def spare(self) -> float:
        """The share (0..1) of the time that an even load would save at most."""
        average = mean([mean(values) for values in self.used.values()])
        return 1 - average / self.busiest[1] if self.busiest[1] else 0.0

    def without_part(self, vcpu: int | None) -> tuple[str, ...]:
        """The hosts of `no_part`, while another one does real work: a core, or 5% of its GPUs."""
        least = 100 / (vcpu or 1) if self.metric is Metric.CPU else 5.0
        return self.no_part if self.busiest[1] >= least else ()

    def short_of_busiest(self, percent: float) -> set[str]:
        """The hosts whose mean is at least this many percent under that of the busiest host."""
        limit = (1 - percent / 100) * self.busiest[1]
        return {host for host, values in self.used.items() if mean(values) <= limit}


def host_load(whole: Measurements, metric: Metric) -> HostLoad | Missing | None:
    """Of hosts of one type; None where none took part after its first minutes.

    From the first work of the run to the last busy minute of the host that ends first.
    """
    if missing := whole.without_hosts(metric):
        return missing
    lines = whole.series[metric]
    ends = host_ends(whole)
    stops = [whole.points - end.idle_tail for end in ends if end.took_part]
    if not stops:
        return None
    begin = next(minute for minute in range(whole.points) if not whole.idle(minute))
    shared = [
        minute
        for minute in range(begin, min(stops))
        if all(line.values[minute] is not None for line in lines.values())
    ]
    seconds = len(shared) * (whole.period_s or 0)
    if seconds < MIN_SECONDS:
        why = f"all hosts worked, with points, for {seconds / 60:.0f} minutes"
        return Missing("too_short", f"{why}, {MIN_SECONDS // 60} needed")
    used = {host: [line.values[minute] or 0.0 for minute in shared] for host, line in lines.items()}
    means = sorted(
        ((host, mean(values)) for host, values in used.items()), key=lambda host: host[1]
    )
    idle = {end.host for end in ends if not end.took_part} | set(_without_gpu_work(whole, used))
    no_part = tuple(host for host in used if host in idle)
    return HostLoad(metric, used, seconds, no_part, means[-1], means[0])


def _without_gpu_work(whole: Measurements, used: Mapping[str, list[float]]) -> Iterator[str]:
    """Hosts whose GPUs did nothing, with no more than a core busy: a process that only waits."""
    cpu, vcpu = whole.series.get(Metric.CPU, {}), whole.vcpu or 0
    for host in used if whole.gpus and vcpu else ():
        gpu, line = whole.series[Metric.GPU].get(host), cpu.get(host)
        if (
            gpu is None
            or line is None
            or any(gpu_works(value, whole.gpus) for value in gpu.present)
        ):
            continue
        if mean(line.present) * vcpu / 100 <= ONE_PROCESS_TO_CORES:
            yield host


def idle_percent(usage: Measurements, hosts: Collection[str]) -> float | None:
    """How much of the time these hosts were known to be idle, 0..100; None without a point."""
    states = [at for host, works in at_work(usage).items() if host in hosts for at in works]
    return 100 * sum(at is False for at in states) / len(states) if states else None


def _tenths(values: list[float]) -> list[float]:
    """The share (0..1) of values in each tenth of 0..100."""
    counts = [0] * 10
    for value in values:
        counts[min(int(value // 10), 9)] += 1
    return [count / len(values) for count in counts]
