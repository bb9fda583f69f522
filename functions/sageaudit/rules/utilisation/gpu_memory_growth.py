"""GPU memory grows and grows: it looks like a leak.

What it checks: The moving average of a host's GPU memory over 4 minutes (a tenth of the run where
    that is longer) rises by more than 5 points from one window to the next, at least 3 times, the
    last time in the last third of the run, and ends within 5 points of its highest. The first 8
    active minutes are left out.
Why it costs: Nothing yet: a leak ends a long run with "CUDA out of memory", and all of it is lost
    then.
Saving: None: what does not fail costs the same. A run that did fail is left to failed-spend.
When it is wrong: Sequences or batches that grow by plan, and caches that fill up and then stay,
    look the same while they grow. On an instance with several GPUs a leak on one shows as a smaller
    share of all.
What to do: PyTorch: keep `loss.item()`, not `loss`; detach what is stored over steps;
    `torch.no_grad()` in evaluation; `torch.cuda.memory_summary()` says what holds it. TensorFlow:
    no new graph in each step.
Sources: SageMaker Debugger, GPUMemoryIncrease: increase 5 points (its guide: 10), patience 1,000
    samples of 500 ms, about 8 minutes, and window 500 (its guide; 10 in its code), about 4. It
    fires at a single rise, as each start and each evaluation has: here 3 are needed, and growth
    that goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from sageaudit.rules import api

_DEBUGGER = "Debugger GPUMemoryIncrease"
INCREASE_OVER = api.Threshold("increase_over", 5, "points of GPU memory", "a rise", _DEBUGGER)
WINDOW = api.Threshold("window_minutes", 4, "minutes", "500 samples of 500 ms", _DEBUGGER)
PATIENCE = api.Threshold("patience_minutes", 8, "minutes", "1,000 samples of 500 ms", _DEBUGGER)
RISES_FROM = api.Threshold("rises_from", 3, "rises", "one or two are a start", "our choice")
_SHARE_OF_RUN = 10
"""Windows of a long run are a tenth of it: a slow leak shows over hours."""
_STILL_GROWING_FROM = 2 / 3
"""Of the run: what stopped growing before is a cache that is full."""
_DIGITS = 6
"""Sums of many points are right to more than that."""
_MIN_MINUTES = 24
"""The patience and four windows: three rises take no less."""


@dataclass(frozen=True, slots=True)
class _Growth:
    """How often the moving average of a host rose, and from where to where, in percent.

    `last_rise`: how far into the run (0..1) the last rise ended; 0 without one. `apart_min`: the
    minutes between the first window and the last.
    """

    rises: int
    last_rise: float
    first: float
    last: float
    highest: float
    apart_min: float


@api.rule(
    id="SA208",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(INCREASE_OVER, WINDOW, PATIENCE, RISES_FROM),
    needs=(api.Metric.GPU_MEMORY,),
    coarsest_period_s=300,
    min_active_minutes=_MIN_MINUTES,
)
def check(case: api.JobCase) -> api.Outcome:
    """Reports the host that grew most often."""
    grown = [growth for growth in _hosts(case) if _leaks(case, growth)]
    if not grown:
        return api.Clear()
    most = max(grown, key=lambda growth: (growth.rises, growth.last - growth.first))
    minutes = case.usage.minutes
    per_hour = 60 * (most.last - most.first) / most.apart_min
    return api.advice(
        f"GPU memory grew from {most.first:.0f}% to {most.last:.0f}% over {minutes:.0f} "
        f"active minutes on {case.job.instances}, in {most.rises} rises: it looks like a leak.",
        {
            "gpu_memory_first_percent": round(most.first, 1),
            "gpu_memory_last_percent": round(most.last, 1),
            "rises": most.rises,
            "points_per_hour": round(per_hour, 1),
            "hosts": len(case.usage.series[api.Metric.GPU_MEMORY]),
            "hosts_that_grew": len(grown),
            "active_minutes": round(minutes),
            "period_s": case.usage.period_s,
        },
        caution="No figure: a leak costs nothing until the run fails when memory runs out.",
    )


def _leaks(case: api.JobCase, growth: _Growth) -> bool:
    kept = growth.highest - growth.last <= case.limit(INCREASE_OVER)
    lasting = growth.last_rise > _STILL_GROWING_FROM
    return kept and lasting and growth.rises >= case.limit(RISES_FROM)


def _hosts(case: api.JobCase) -> list[_Growth]:
    usage, period_min = case.usage, (case.usage.period_s or 60) / 60
    skipped = round(case.limit(PATIENCE) / period_min)
    asked = round(case.limit(WINDOW) / period_min)
    window = max(asked, (usage.points - skipped) // _SHARE_OF_RUN, 1)
    found = []
    for line in usage.series[api.Metric.GPU_MEMORY].values():
        averages = _moving(line.cut(skipped, usage.points).values, window)
        known = [(start, value) for start, value in enumerate(averages) if value is not None]
        if known:
            ends = _rises(averages, window, case.limit(INCREASE_OVER))
            (begin, first), (end, last) = known[0], known[-1]
            growth = _Growth(
                rises=len(ends),
                last_rise=(skipped + ends[-1]) / usage.points if ends else 0.0,
                first=first,
                last=last,
                highest=max(value for _, value in known),
                apart_min=(end - begin) * period_min,
            )
            found.append(growth)
    return found


def _moving(values: Sequence[float | None], window: int) -> list[float | None]:
    """The mean of each `window` points on end; None where fewer than half are there."""
    sums = list(accumulate((value or 0.0 for value in values), initial=0.0))
    counts = list(accumulate((value is not None for value in values), initial=0))
    means: list[float | None] = []
    for start in range(len(values) - window + 1):
        count = counts[start + window] - counts[start]
        total = sums[start + window] - sums[start]
        means.append(total / count if 2 * count >= window else None)
    return means


def _rises(averages: Sequence[float | None], window: int, over: float) -> list[int]:
    """Where each rise from a window to the next ends. One step up is one rise."""
    grown = [
        0.0 if before is None or after is None else round(after - before, _DIGITS)
        for before, after in zip(averages, averages[window:], strict=False)
    ]
    ends, start = [], 0
    while start < len(grown):
        if grown[start] <= over:
            start += 1
            continue
        while start + 1 < len(grown) and grown[start + 1] > grown[start]:
            start += 1
        ends.append(start + 2 * window)
        start += window
    return ends
