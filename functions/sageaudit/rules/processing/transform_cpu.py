"""How busy the CPUs of a transform job are, for the rules about how it sends its requests."""

from __future__ import annotations

from sageaudit.domain.usage.edges import gpu_unrecorded
from sageaudit.rules import api

CPU_BELOW = api.Threshold("cpu_mean_below", 40, "percent of all vCPUs", "under-used", "Flexera")
BATCH_UNKNOWN = api.Unknown("batch_unknown", "how the job sends its requests is not recorded")


def cpu_mean(case: api.JobCase) -> float | api.Unknown:
    """Of all vCPUs over the active minutes, 0..100; Unknown if a GPU may have worked."""
    if missing := gpu_unrecorded(case.usage):
        return api.unknown(missing)
    return api.mean_of_hosts(case.usage.series[api.Metric.CPU].values())
