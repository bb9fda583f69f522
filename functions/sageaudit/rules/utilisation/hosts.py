"""The hosts of a run: what each of them did, how many the work needs, and what the family's runs on
other numbers of them cost.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from statistics import median

from msgspec import Struct

from sageaudit.domain.audit.family_runs import like_runs, same_settings
from sageaudit.domain.resize.resize import HEADROOM_PERCENT
from sageaudit.domain.usage.demand import PEAK_PERCENTILE, gpu_idle
from sageaudit.domain.usage.edges import at_work, host_ends, work_metric
from sageaudit.domain.usage.series import ONE_PROCESS_TO_CORES, Series, gpu_works, pick_all
from sageaudit.rules import api
from sageaudit.rules.api import Measurements, Metric, Missing, mean
from sageaudit.structs import replace

NEED_NOTHING = "Assumes that the other hosts need nothing from them, such as data in their memory."
"""Of hosts that took no part."""
MIN_SECONDS = 900
"""Fewer minutes that all hosts share are an accident."""


class HostLoad(Struct, frozen=True):
    """Use of each host (0..100) in the same minutes; `no_part`: hosts idle after their start,
    or without GPU work and with no more than a waiting process.

    `busiest` and `laziest` are hosts with their means, in percent.
    """

    metric: Metric
    used: Mapping[str, Series]
    seconds: int
    no_part: tuple[str, ...]
    busiest: tuple[str, float]
    laziest: tuple[str, float]

    @property
    def distance(self) -> float:
        """Between the histograms of the two, in tenths: 0 the same, 1 nothing in common."""
        busy, lazy = (_tenths(self.used[host].present) for host, _ in (self.busiest, self.laziest))
        return sum(abs(a - b) for a, b in zip(busy, lazy, strict=True)) / 2

    @property
    def spare(self) -> float:
        """The share (0..1) of the time that an even load would save at most."""
        average = mean([line.mean for line in self.used.values()])
        return 1 - average / self.busiest[1] if self.busiest[1] else 0.0

    def without(self, host: str | None) -> HostLoad:
        """The same of the other hosts: one, such as a driver, is not compared with them."""
        used = {name: line for name, line in self.used.items() if name != host}
        means = _by_mean(used)
        return replace(self, used=used, busiest=means[-1], laziest=means[0])

    def without_part(self, vcpu: int | None) -> tuple[str, ...]:
        """The hosts of `no_part`, while another one does real work: a core, or 5% of its GPUs."""
        least = 100 / (vcpu or 1) if self.metric is Metric.CPU else 5.0
        return self.no_part if self.busiest[1] >= least else ()

    def short_of_busiest(self, percent: float) -> set[str]:
        """The hosts whose mean is at least this many percent under that of the busiest host."""
        limit = (1 - percent / 100) * self.busiest[1]
        return {host for host, line in self.used.items() if line.mean <= limit}


def host_load(whole: Measurements, metric: Metric) -> HostLoad | Missing | None:
    """Of hosts of one type; None where none took part after its first minutes.

    From the minute in which all that took part have begun to the last busy minute of the host that
    ends first.
    """
    if missing := whole.without_hosts(metric):
        return missing
    lines = whole.series[metric]
    ends = host_ends(whole)
    stops = [whole.points - end.idle_tail for end in ends if end.took_part]
    if not stops:
        return None
    minutes = range(max(end.begins for end in ends if end.took_part), min(stops))
    gaps = [line.values for line in lines.values() if not line.whole]
    shared = [at for at in minutes if all(values[at] is not None for values in gaps)]
    seconds = len(shared) * (whole.period_s or 0)
    if seconds < MIN_SECONDS:
        why = f"all hosts worked together for {seconds / 60:.0f} minutes"
        return Missing("hosts_apart", f"{why}, and {MIN_SECONDS // 60} are needed to compare them")
    used = pick_all(lines, shared)
    means = _by_mean(used)
    idle = {end.host for end in ends if not end.took_part} | set(without_gpu_work(whole, used))
    no_part = tuple(host for host in used if host in idle)
    return HostLoad(metric, used, seconds, no_part, means[-1], means[0])


def _by_mean(used: Mapping[str, Series]) -> list[tuple[str, float]]:
    return sorted(((host, line.mean) for host, line in used.items()), key=lambda one: one[1])


def without_gpu_work(whole: Measurements, used: Collection[str]) -> Iterator[str]:
    """Hosts whose GPUs did nothing, with no more than a core busy: a process that only waits."""
    cpu, vcpu = whole.series.get(Metric.CPU, {}), whole.vcpu or 0
    for host in used if whole.gpus and vcpu else ():
        gpu, line = whole.series[Metric.GPU].get(host), cpu.get(host)
        if gpu is None or line is None or True in gpu_works(gpu.present, whole.gpus):
            continue
        if line.mean * vcpu / 100 <= ONE_PROCESS_TO_CORES:
            yield host


def idle_percent(usage: Measurements, hosts: Collection[str]) -> float | None:
    """How much of the time these hosts were known to be idle, 0..100; None without a point."""
    states = [at for host, works in at_work(usage).items() if host in hosts for at in works]
    return 100 * sum(at is False for at in states) / len(states) if states else None


def _tenths(values: Sequence[float]) -> list[float]:
    """The share (0..1) of values in each tenth of 0..100."""
    counts = [0] * 10
    for value in values:
        counts[min(int(value // 10), 9)] += 1
    return [count / len(values) for count in counts]


class UseOfHosts(Struct, frozen=True):
    """Each host's mean over the active minutes, in percent of its GPUs, without GPU of its CPUs."""

    metric: api.Metric
    hosts: int
    means: list[float]

    @property
    def busiest(self) -> float:
        """The highest of the means."""
        return max(self.means)

    def hosts_needed(self, target_percent: float, usage: api.Measurements) -> int:
        """As few as hold all the work at the target, and all the memory where it is known."""
        together = sum(self.means) / target_percent
        return max(math.ceil(together), _hosts_by_memory(usage, self.hosts), 1)


def use_of_hosts(usage: api.Measurements, count: int) -> UseOfHosts | api.Missing:
    """Of `count` hosts of one type."""
    metric = work_metric(usage)
    if isinstance(metric, api.Missing):
        return metric
    if missing := usage.without_hosts(metric):
        return missing
    means = [api.mean(line.present) for line in usage.series[metric].values()]
    return UseOfHosts(metric, count, means)


def did_work(usage: api.Measurements, metric: api.Metric) -> bool:
    """False for idle GPUs and idle runs, which other rules find."""
    if metric is api.Metric.CPU:
        return any(usage.worked(minute) for minute in range(usage.points))
    return not gpu_idle(usage)


def _hosts_by_memory(usage: api.Measurements, count: int) -> int:
    """How many hosts hold P99.5 of all the memory in use with headroom; 0: not known.

    A host whose memory is not known is taken to use as much as the others.
    """
    lines = usage.series.get(api.Metric.MEMORY, {}).values()
    peaks = [api.percentile(line.present, PEAK_PERCENTILE) for line in lines]
    used = count * api.mean(peaks) / 100 if peaks else 0.0
    return math.ceil(used * (1 + float(HEADROOM_PERCENT) / 100))


class OnCount(Struct, frozen=True):
    """The runs on one number of instances: medians, and the slowest of them."""

    count: int
    runs: int
    usd: Decimal
    seconds: Decimal
    slowest_s: Decimal


class CheaperCount(Struct, frozen=True):
    """The runs on today's number of instances, and on the cheapest smaller one.

    `same_data`: all of them are known to have read the same data.
    """

    today: OnCount
    fewer: OnCount
    same_data: bool

    @property
    def dearer_percent(self) -> Decimal:
        """How much more the median run costs today."""
        return 100 * (self.today.usd / self.fewer.usd - 1)


def cheaper_count(case: api.FamilyCase, least_runs: float) -> CheaperCount | None:
    """Among the family's runs of the same work; None without `least_runs` on both counts."""
    job, count = case.job, case.job.groups[0].count
    if job.status != "Completed" or not job.elapsed_s:
        return None
    like = same_settings(job, like_runs(job, case.runs, but="instance_count"))
    samples = [(run.instance_count, run.total_usd, run.elapsed_s) for run in like]
    samples.append((count, case.bill.total_usd, job.elapsed_s))
    counts = _by_count([(n, usd, s) for n, usd, s in samples if n and usd and s], least_runs)
    today = next((runs for runs in counts if runs.count == count), None)
    fewer = next((runs for runs in counts if runs.count < count), None)
    if today is None or fewer is None:
        return None
    same_data = all([job.data_pinned is True, *(run.data_pinned is True for run in like)])
    return CheaperCount(today, fewer, same_data)


def _by_count(samples: Iterable[tuple[int, Decimal, Decimal]], least_runs: float) -> list[OnCount]:
    """Groups runs (count, dollars, seconds); only counts with enough runs, the cheapest first."""
    runs = defaultdict[int, list[tuple[Decimal, Decimal]]](list)
    for count, usd, seconds in samples:
        runs[count].append((usd, seconds))
    counts = []
    for count, sample in runs.items():
        if len(sample) >= least_runs:
            dollars, took = [usd for usd, _ in sample], [seconds for _, seconds in sample]
            counts.append(OnCount(count, len(sample), median(dollars), median(took), max(took)))
    return sorted(counts, key=lambda on_count: (on_count.usd, on_count.count))
