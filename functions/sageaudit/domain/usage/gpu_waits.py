"""How often, and for how long, a GPU that can be busy waits for something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sageaudit.domain.usage.series import Series, mean, percentile


@dataclass(frozen=True, slots=True)
class GpuWaits:
    """One host's waits: the share of points (0..100), how often, and the mean CPU meanwhile."""

    p95: float
    percent: float
    times: int
    cpu: float


def gpu_waits(gpu: Series, cpu: Series | None, *, low: float, high: float) -> GpuWaits | None:
    """A wait is under `low`, and is over when the GPU is above `high` again.

    None where the GPU is steadily low or high, or no CPU was recorded while it waited.
    """
    points = gpu.present
    p95 = percentile(points, 95)
    if p95 <= high or percentile(points, 5) >= low:
        return None
    waiting = [
        minute for minute, value in enumerate(gpu.values) if value is not None and value < low
    ]
    cpus = [cpu.values[minute] for minute in waiting] if cpu else []
    beside = [value for value in cpus if value is not None]
    if not beside:
        return None
    share = 100 * len(waiting) / len(points)
    return GpuWaits(p95, share, _times(points, low, high), mean(beside))


def _times(points: Sequence[float], low: float, high: float) -> int:
    """How often it went from high to low and back."""
    times, worked, fell = 0, False, False
    for value in points:
        if value > high:
            times += fell
            worked, fell = True, False
        elif value < low:
            fell = worked
    return times
