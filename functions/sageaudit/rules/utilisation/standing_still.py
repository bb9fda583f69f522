"""Words, hours and confidence that the rules on idle starts, middles and tails share."""

from __future__ import annotations

from collections.abc import Iterable

from sageaudit.rules import api

WAITS = "A run that waits for a query or for another job looks the same."
NEEDS_NO_GPU = "Assumes that what one core did meanwhile, if anything, needs none of these GPUs."
ON_CPU = (
    "No dollars are counted, because something worked meanwhile. Long work without the GPU costs "
    "less in a processing job on a CPU type."
)


def gpu_hours(whole: api.Measurements, seconds: float) -> float:
    """What the GPUs of all hosts are paid for in so many seconds."""
    return seconds * len(whole.series[api.Metric.GPU]) * (whole.gpus or 0) / 3600


def on_cpu_alone(case: api.JobCase, hours: float, cores: float) -> str:
    """How a sentence about time without the GPU ends: of which run, and what worked meanwhile."""
    whole = case.whole
    return (
        f"{api.duration_min(whole.minutes)} on {case.job.instances} ({hours:.1f} GPU-hours), "
        f"while {cores:.1f} of {whole.vcpu} cores worked."
    )


def asleep(whole: api.Measurements, stretches: Iterable[range]) -> bool:
    """Whether every host is known to be idle in all these periods: none kept even a core busy."""
    return all(whole.idle(minute) for stretch in stretches for minute in stretch)
