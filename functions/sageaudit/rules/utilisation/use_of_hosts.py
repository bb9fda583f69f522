"""How much each host of a run was used on average, and how many hosts that work needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sageaudit.domain.bill.resize import HEADROOM_PERCENT
from sageaudit.domain.usage.demand import PEAK_PERCENTILE, gpu_idle
from sageaudit.domain.usage.edges import work_metric
from sageaudit.rules import api


@dataclass(frozen=True, slots=True)
class UseOfHosts:
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
