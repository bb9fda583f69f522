"""How a transform job sends its requests, and how busy its CPUs are meanwhile."""

from __future__ import annotations

from sageaudit.domain.usage.edges import gpu_recording_gap
from sageaudit.rules import api

CONCURRENT = "MaxConcurrentTransforms"
PAYLOAD = "MaxPayloadInMB"
MAX_PAYLOAD_MB = 100
"""The maximum of all concurrent payloads together (API reference)."""
DEFAULT_PAYLOAD_MB = 6
"""AWS's default of MaxPayloadInMB (API reference)."""
CPU_BELOW = api.Threshold(
    "max_cpu_mean_percent", 40, "percent of all vCPUs", "underused", "Flexera"
)


def cpu_mean(case: api.JobCase) -> float | api.Unknown:
    """Returns the mean percent of all vCPUs in the active minutes, or Unknown if a GPU may have
    worked.
    """
    if missing := gpu_recording_gap(case.active_usage):
        return api.unknown_from_missing(missing)
    return case.active_usage.mean(api.Metric.CPU)
