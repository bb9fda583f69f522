"""GPU memory grows steadily and will run out: it looks like a leak.

What it checks: A host's GPU memory rises evenly until the end, by more than 5 points in all. The
    run is cut into at most twelve windows of at least 4 minutes; the median rises in most of them.
    At this rate the memory is full before MaxRuntimeInSeconds and within twice the run time, or the
    run did fail for lack of GPU memory. The first 8 active minutes are left out.
Why it costs: Nothing yet. A leak ends a long run with "CUDA out of memory", and then all is lost.
Saving: None: what does not fail costs the same. A run that did fail is left to failed-spend.
When it is wrong: A plan that makes sequences or batches longer at every step grows like a leak.
    With several GPUs CloudWatch has only their sum: a leak on one of them is a smaller share, and
    that GPU is full sooner than is said here. A leak in three or four big steps is not seen: it
    looks like longer batches.
What to do: Keep `loss.item()`, not `loss`, in PyTorch; detach what is stored over steps; evaluate
    under `torch.no_grad()`; `torch.cuda.memory_summary()` shows what holds the memory. TensorFlow:
    no new graph in each step.
Sources: SageMaker Debugger, GPUMemoryIncrease: increase 5 points (its guide: 10), patience
    1,000 samples of 500 ms, about 8 minutes, and window 500 (its guide; 10 in its code), about 4.
    It fires at a single rise, as each start and each evaluation has; here the slope and
    the distance to the limit decide. PyTorch, CUDA semantics: the caching allocator keeps freed
    memory, so a plateau, however high, is no leak.
"""

from __future__ import annotations

from sageaudit.domain.job.failure import reason_class
from sageaudit.domain.job.failure_words import GPU_MEMORY
from sageaudit.domain.usage.growth import Growth, steady_growth
from sageaudit.rules import api

_DEBUGGER = "Debugger GPUMemoryIncrease"
INCREASE_OVER = api.Threshold("increase_over", 5, "points of GPU memory", "a rise", _DEBUGGER)
WINDOW = api.Threshold("window_minutes", 4, "minutes", "500 samples of 500 ms", _DEBUGGER)
PATIENCE = api.Threshold("patience_minutes", 8, "minutes", "1,000 samples of 500 ms", _DEBUGGER)
SOON = api.Threshold("full_within_runs", 2, "times the run", "a run three times as long would fail")
_MIN_MINUTES = 24
"""The patience and four windows: fewer have no slope."""
_HOURS_FROM = 2.0


@api.rule(
    id="SA208",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(INCREASE_OVER, WINDOW, PATIENCE, SOON),
    needs=(api.Metric.GPU_MEMORY,),
    sees_gaps=True,
    coarsest_period_s=300,
    min_active_minutes=_MIN_MINUTES,
)
def check(case: api.JobCase) -> api.Outcome:
    """Reports the host whose memory is full first."""
    usage, ran_out = case.usage, reason_class(case.job) == GPU_MEMORY
    lines = usage.series[api.Metric.GPU_MEMORY]
    grown = {
        host: growth
        for host, line in lines.items()
        if (growth := _growth(case, line, ran_out=ran_out)) and _leaks(case, growth, ran_out)
    }
    if not grown:
        return api.Clear()
    host, first = min(grown.items(), key=lambda pair: (pair[1].hours_left, pair[0]))
    where = f" of {host.rpartition('/')[2]}" if len(lines) > 1 else ""
    then = (
        "then the run failed for lack of it"
        if ran_out
        else f"at this pace it is full after another {_about_hours(first.hours_left)}"
    )
    return api.advice(
        f"GPU memory{where} grew steadily from {first.first:.0f}% to {first.last:.0f}% over "
        f"{api.duration_min(usage.minutes)} on {case.job.instances}, {_points_an_hour(first)}; "
        f"{then}. It looks like a leak.",
        {
            "gpu_memory_first_percent": round(first.first, 1),
            "gpu_memory_last_percent": round(first.last, 1),
            "points_per_hour": round(first.per_hour, 1),
            **({} if ran_out else {"hours_until_full": round(first.hours_left, 1)}),
            "max_runtime_s": case.job.max_runtime_s,
            "hosts": len(lines),
            "hosts_that_grew": len(grown),
            "active_minutes": round(usage.minutes),
            "period_s": usage.period_s,
        },
        caution="A leak costs nothing until the run fails when memory runs out.",
    )


def _growth(case: api.JobCase, line: api.Series, *, ran_out: bool) -> Growth | None:
    return steady_growth(
        line,
        period_s=case.usage.period_s,
        skipped_min=case.limit(PATIENCE),
        window_min=case.limit(WINDOW),
        ran_out=ran_out,
    )


def _leaks(case: api.JobCase, growth: Growth, ran_out: bool) -> bool:
    """Whether it is much, and whether it reaches the limit in time to matter."""
    if growth.last - growth.first <= case.limit(INCREASE_OVER):
        return False
    if ran_out:
        return True
    job, ran_hours = case.job, case.usage.minutes / 60
    within = case.limit(SOON) * ran_hours
    if job.max_runtime_s is not None and job.elapsed_s is not None:
        within = min(within, (job.max_runtime_s - float(job.elapsed_s)) / 3600)
    return growth.hours_left <= within


def _points_an_hour(growth: Growth) -> str:
    """`about 36 points an hour`: two digits."""
    return f"about {float(f'{growth.per_hour:.2g}'):g} points an hour"


def _about_hours(hours: float) -> str:
    """`40 min`, `3 h`: to ten minutes, and to whole hours from two on."""
    if hours >= _HOURS_FROM:
        return f"{hours:.0f} h"
    return f"{max(10 * round(hours * 6), 10)} min"
