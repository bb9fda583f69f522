"""The GPU works in bursts and waits between them.

What it checks: Over the active minutes, all of these are true for a host:
    - Its GPU use has a P95 over 70% and a P5 under 10%, and is under 10% in at least a tenth of the
      minutes.
    - At least 3 times it falls from above 70% to under 10% and comes back.
    - In the low minutes the CPU is under 90% on average, so the GPU does not wait for the CPU.
Why it costs: A waiting GPU is billed like a busy one.
Saving: None: only a run shows what the GPU waits for, and how much of the wait can overlap with
    work.
When it is wrong: Evaluation, checkpoints and code on one core between epochs look the same, because
    CloudWatch does not show I/O waits. A wait of less than a minute is hidden in the mean of its
    minute.
What to do: Let the GPU wait less:
    - Read data ahead: prefetch, more data-loader workers, larger shards (WebDataset, RecordIO).
    - Use FastFile for few large files. For many small ones, use FSx for Lustre, which adds its own
      cost.
    - Write checkpoints and evaluate in parallel with the training loop.
Sources: The second check of SageMaker Debugger's rule LowGPUUtilization: the use fluctuates if its
    P95 is above 70% (threshold_p95) and its P5 is below 10% (threshold_p5). ICSE 2024
    (10.1145/3597503.3639232): 46% of the causes of low GPU use are in operations on data.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from sageaudit.domain.usage.series import Series, mean, percentile
from sageaudit.rules import api
from sageaudit.rules.utilisation.gpus import CPU_LIMIT, loader_fix

_DEBUGGER = "Debugger LowGPUUtilization"
MIN_P95 = api.Threshold(
    "min_p95_percent", 70, "percent of all GPUs", "the GPU can be busy", _DEBUGGER
)
P5_BELOW = api.Threshold("max_p5_percent", 10, "percent of all GPUs", "almost no work", _DEBUGGER)
MIN_WAITING_SHARE = api.Threshold(
    "min_share_percent", 10, "percent of active minutes", "less is not worth a finding"
)
MIN_WAITS = api.Threshold("min_waits", 3, "times", "one may be a start or an end")


@api.rule(
    id="SA212",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MIN_P95, P5_BELOW, MIN_WAITING_SHARE, MIN_WAITS, CPU_LIMIT),
    required_metrics=(api.Metric.GPU, api.Metric.CPU),
    max_period_s=300,
)
def check(case: api.JobCase) -> api.Outcome:
    """Reports the host with the largest share of waiting minutes."""
    hosts = case.active_usage.series[api.Metric.GPU]
    waits = [wait for host in hosts if (wait := _host_waits(case, host))]
    if not waits:
        return api.Clear()
    longest = max(waits, key=lambda wait: wait.waiting_percent)
    return api.recommendation(
        f"The GPU fell under {case.threshold(P5_BELOW):g}% {longest.count} times and waited there "
        f"for {longest.waiting_percent:.0f}% of {api.minutes_text(case.active_usage.minutes)} on "
        f"{case.job.instances}; its P95 is {longest.p95:.0f}%.",
        {
            "gpu_p95_percent": round(longest.p95, 1),
            "waiting_percent": round(longest.waiting_percent, 1),
            "times": longest.count,
            "cpu_while_waiting_percent": round(longest.cpu_percent, 1),
            "hosts_that_wait": len(waits),
            "loader_workers": case.job.hints.loader_workers,
            "active_minutes": round(case.active_usage.minutes),
            "period_s": case.active_usage.period_s,
        },
        fix=loader_fix(case),
        caution=(
            "Evaluation and checkpoints between epochs look the same, and only a run "
            "shows how much of the wait can overlap with training."
        ),
    )


def _host_waits(case: api.JobCase, host: str) -> GpuWaits | None:
    """Returns the waits of a host's GPU; None if they are rare, or if the CPU may cause them."""
    gpu = case.active_usage.series[api.Metric.GPU][host]
    cpu = case.active_usage.series[api.Metric.CPU].get(host)
    waits = _gpu_waits(gpu, cpu, low=case.threshold(P5_BELOW), high=case.threshold(MIN_P95))
    if waits is None or waits.cpu_percent >= case.threshold(CPU_LIMIT):
        return None
    is_rare = waits.waiting_percent < case.threshold(
        MIN_WAITING_SHARE
    ) or waits.count < case.threshold(MIN_WAITS)
    return None if is_rare else waits


class GpuWaits(Struct, frozen=True):
    """The waits of one host's GPU.

    `p95`: the P95 of the GPU's use in percent. `waiting_percent`: the percent of points in a wait.
    `count`: how often the GPU fell into a wait and worked again. `cpu_percent`: the mean CPU in
    waiting points.
    """

    p95: float
    waiting_percent: float
    count: int
    cpu_percent: float


def _gpu_waits(gpu: Series, cpu: Series | None, *, low: float, high: float) -> GpuWaits | None:
    """Returns the waits of one host's GPU, which are minutes under `low` percent.

    The GPU works above `high` percent. None if its use is steadily low or high, or if no CPU point
    was recorded in a wait.
    """
    points = gpu.present
    if gpu.highest <= high:
        return None
    p95 = percentile(points, 95)
    if p95 <= high or percentile(points, 5) >= low:
        return None
    waiting = [
        minute for minute, value in enumerate(gpu.values) if value is not None and value < low
    ]
    cpu_values = [cpu.values[minute] for minute in waiting] if cpu else []
    cpu_points = [value for value in cpu_values if value is not None]
    if not cpu_points:
        return None
    share = 100 * len(waiting) / len(points)
    return GpuWaits(p95, share, _count_waits(points, low, high), mean(cpu_points))


def _count_waits(points: Sequence[float], low: float, high: float) -> int:
    count, was_high, has_fallen = 0, False, False
    for value in points:
        if value > high:
            count += has_fallen
            was_high, has_fallen = True, False
        elif value < low:
            has_fallen = was_high
    return count
