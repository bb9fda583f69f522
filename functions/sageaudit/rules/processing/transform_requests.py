"""How a transform job sends its requests, and how busy its CPUs are meanwhile."""

from __future__ import annotations

from sageaudit.domain.usage.edges import gpu_unrecorded
from sageaudit.rules import api

CONCURRENT, PAYLOAD = "MaxConcurrentTransforms", "MaxPayloadInMB"
MOST_MB, DEFAULT_MB = 100, 6
"""Of all payloads at a time, and of one where the request does not say (API reference)."""
CPU_BELOW = api.Threshold("cpu_mean_below", 40, "percent of all vCPUs", "under-used", "Flexera")


def cpu_mean(case: api.JobCase) -> float | api.Unknown:
    """Of all vCPUs over the active minutes, 0..100; Unknown if a GPU may have worked."""
    if missing := gpu_unrecorded(case.usage):
        return api.unknown(missing)
    return case.usage.mean(api.Metric.CPU)


def most_requests(payload_mb: int | None) -> int:
    """How many requests at a time the limit on all payloads allows; chunked ones have no size."""
    return MOST_MB // max(DEFAULT_MB if payload_mb is None else payload_mb, 1)
