"""GPU memory grows and grows: it looks like a leak.

What it checks: A host's GPU memory, averaged over 4 minutes (a tenth of the run where that is
    longer), rises by more than 5 points from one window to the next, at least 3 times, the last
    time in the last third of the run, and ends within 5 points of its highest. The first 8 active
    minutes are left out.
Why it costs: Nothing yet. A leak ends a long run with "CUDA out of memory", and then all is lost.
Saving: None: what does not fail costs the same. A run that did fail is left to failed-spend.
When it is wrong: Sequences or batches that grow by plan, and caches that fill up and then stay,
    look the same while they grow. With several GPUs, a leak on one is a smaller share of all.
What to do: PyTorch: keep `loss.item()`, not `loss`; detach what is stored over steps; evaluate
    under `torch.no_grad()`; `torch.cuda.memory_summary()` shows what holds the memory. TensorFlow:
    no new graph in each step.
Sources: SageMaker Debugger, GPUMemoryIncrease: increase 5 points (its guide: 10), patience 1,000
    samples of 500 ms, about 8 minutes, and window 500 (its guide; 10 in its code), about 4. It
    fires at a single rise, as each start and each evaluation has; here 3 are needed.
"""

from __future__ import annotations

from sageaudit.domain.usage.growth import Growth, growth
from sageaudit.domain.usage.series import Series
from sageaudit.rules import api

_DEBUGGER = "Debugger GPUMemoryIncrease"
INCREASE_OVER = api.Threshold("increase_over", 5, "points of GPU memory", "a rise", _DEBUGGER)
WINDOW = api.Threshold("window_minutes", 4, "minutes", "500 samples of 500 ms", _DEBUGGER)
PATIENCE = api.Threshold("patience_minutes", 8, "minutes", "1,000 samples of 500 ms", _DEBUGGER)
RISES_FROM = api.Threshold("rises_from", 3, "rises", "one or two are a start", "our choice")
_MIN_MINUTES = 24
"""The patience and four windows: three rises take no less."""


@api.rule(
    id="SA208",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(INCREASE_OVER, WINDOW, PATIENCE, RISES_FROM),
    needs=(api.Metric.GPU_MEMORY,),
    sees_gaps=True,
    coarsest_period_s=300,
    min_active_minutes=_MIN_MINUTES,
)
def check(case: api.JobCase) -> api.Outcome:
    """Reports the host that grew most often."""
    usage, period_min = case.usage, (case.usage.period_s or 60) / 60
    lines = usage.series[api.Metric.GPU_MEMORY].values()
    grown = [found for line in lines if (found := _growth(case, line)) and _leaks(case, found)]
    if not grown:
        return api.Clear()
    most = max(grown, key=lambda host: (host.rises, host.last - host.first))
    per_hour = 60 * (most.last - most.first) / (most.periods * period_min)
    return api.advice(
        f"GPU memory grew from {most.first:.0f}% to {most.last:.0f}% over "
        f"{api.duration_min(usage.minutes)} on {case.job.instances}, in {most.rises} rises: "
        "it looks like a leak.",
        {
            "gpu_memory_first_percent": round(most.first, 1),
            "gpu_memory_last_percent": round(most.last, 1),
            "rises": most.rises,
            "points_per_hour": round(per_hour, 1),
            "hosts": len(lines),
            "hosts_that_grew": len(grown),
            "active_minutes": round(usage.minutes),
            "period_s": usage.period_s,
        },
        caution="A leak costs nothing until the run fails when memory runs out.",
    )


def _growth(case: api.JobCase, line: Series) -> Growth | None:
    """Windows of a long run are a tenth of it: a slow leak shows over hours."""
    period_min = (case.usage.period_s or 60) / 60
    skipped = round(case.limit(PATIENCE) / period_min)
    window = max(round(case.limit(WINDOW) / period_min), (case.usage.points - skipped) // 10, 1)
    return growth(line, skipped=skipped, window=window, over=case.limit(INCREASE_OVER))


def _leaks(case: api.JobCase, host: Growth) -> bool:
    """What stopped growing before the last third of the run is a cache that is full."""
    kept = host.highest - host.last <= case.limit(INCREASE_OVER)
    return kept and host.last_rise > 2 / 3 and host.rises >= case.limit(RISES_FROM)
