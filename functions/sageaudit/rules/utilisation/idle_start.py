"""The instances wait before work begins.

What it checks: Before the first work, all hosts are known to be idle (under 0.2 cores and 1% of the
    GPUs) for at least 10 minutes and 2% of the run. On GPU jobs also: the first GPU work comes that
    late, and until then each host keeps at most 1.25 cores busy on average, as one process that
    downloads does. Where more cores work before the first GPU work, for half an hour or more and 2%
    of the run, that is shown without dollars.
Why it costs: Every instance is billed from its first second, with all its GPUs.
Saving: Measured: the idle minutes, which were billed and produced nothing. Of the minutes with CPU
    work but no GPU work, between 0 and all can be saved: what they prepare must be done somewhere.
    0 is counted. Where more than a core works: none, since no other host is sure to be as fast.
When it is wrong: A start that waits for something else (a queue, a licence, another job) looks idle
    too. The first points come 3 to 6 minutes late: minutes without a point are idle only between
    idle ones.
What to do: Data fetched by the code belongs in a channel (FastFile), or comes faster with s5cmd or
    as WebDataset shards. Load models and data lazily, prepare data in a processing job on a CPU
    type, and start what several hosts wait for first.
Sources: SageMaker Debugger, MaxInitializationTime: 20 minutes, until 2023. Recorded jobs: first GPU
    work in minute 0 to 6. A busy core reads up to 100.8%, an idle host up to 19% of a core.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.job.phases import work_phase
from sageaudit.domain.usage.activity import FROM_S
from sageaudit.domain.usage.edges import before_gpu, cores_busy, gpu_unrecorded, idle_head
from sageaudit.rules import api
from sageaudit.rules.utilisation.standing_still import gpu_hours, on_cpu_alone, run_evidence

FROM = api.Threshold("from_s", 600, "seconds", "imports, late points: up to 6 min", "recorded jobs")
SHARE_FROM = api.Threshold(
    "share_from_percent", 2, "percent of the run", "less is small beside the work"
)
CORES_AT_MOST = api.Threshold(
    "cores_at_most", 1.25, "cores of a host", "one busy process and its system", "recorded jobs"
)


@api.rule(
    id="SA210",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(FROM, SHARE_FROM, CORES_AT_MOST),
    needs=(api.Metric.CPU,),
    sees_gaps=True,
    finds_waste=True,
    coarsest_period_s=300,
    whole_run=True,
)
def check(case: api.JobCase) -> api.Outcome:
    """Looks at the first minutes of the whole run."""
    whole = case.whole
    if missing := gpu_unrecorded(whole):
        return api.unknown(missing)
    head, wait = idle_head(whole), before_gpu(whole)
    cores = cores_busy(whole, wait)
    idle_s = _seconds(case, head)
    wait_s = _seconds(case, wait) if cores <= case.limit(CORES_AT_MOST) else Decimal(0)
    if not idle_s and not wait_s:
        return _shown(case, wait, cores)
    evidence: dict[str, api.Evidence] = {
        "idle_s": idle_s,
        "without_gpu_s": wait_s,
        "cores_before_gpu": round(cores, 2),
        **run_evidence(whole),
    }
    summary, phase = _summary(case, idle_s, wait_s, cores), work_phase(case.job)
    fix, change = api.first_channel(case.job), api.CutPhase(phase, idle_s)
    if wait_s <= idle_s:
        waits = "A start that waits for another job or for a queue looks the same."
        on_cpu_s = _seconds(case, wait)
        if not wait_s and on_cpu_s - idle_s >= FROM_S:
            first = api.duration(on_cpu_s)
            waits += f" No GPU worked in the first {first}; minutes of CPU work are not counted."
        return api.measured(summary, evidence, fix=fix, change=change, caution=waits)
    prepares = "What the CPU did before the GPU's first work must be done somewhere"
    caution, best = f"{prepares}: only idle minutes are counted.", api.CutPhase(phase, wait_s)
    return api.derived(summary, evidence, fix=fix, change=change, best=best, caution=caution)


def _shown(case: api.JobCase, wait: range, cores: float) -> api.Outcome:
    """Half an hour and more of CPU work before the GPU's: hours without dollars."""
    whole, wait_s = case.whole, _seconds(case, wait)
    if wait_s < FROM_S:
        return api.Clear()
    hours = gpu_hours(whole, float(wait_s))
    return api.fact(
        f"No GPU work came for the first {api.duration(wait_s)} of "
        f"{on_cpu_alone(case, hours, cores)}",
        {
            "without_gpu_s": wait_s,
            "gpu_hours_not_counted": round(hours, 1),
            "cores_before_gpu": round(cores, 2),
            **run_evidence(whole),
        },
        caution=(
            "No dollars are counted, because the CPU worked. Prepare the data once in a processing "
            "job on a CPU type, whose output later runs read."
        ),
    )


def _seconds(case: api.JobCase, periods: range) -> Decimal:
    """The length of these periods; 0 when it is under a threshold."""
    seconds = len(periods) * (case.whole.period_s or 0)
    percent = 100 * len(periods) / case.whole.points
    few = seconds < case.limit(FROM) or percent < case.limit(SHARE_FROM)
    return Decimal(0 if few else seconds)


def _summary(case: api.JobCase, idle_s: Decimal, wait_s: Decimal, cores: float) -> str:
    run = f"of {api.duration_min(case.whole.minutes)} on {case.job.instances}"
    idle = f"All hosts were idle for {api.duration(idle_s)}"
    gpu = f"no GPU work came for the first {api.duration(wait_s)}"
    little = f"{cores:.1f} of {case.whole.vcpu} cores busy on average"
    if wait_s <= idle_s:
        return f"{idle} {run}, before work began."
    if not idle_s:
        return f"N{gpu[1:]} {run}, with {little}."
    return f"{idle} {run} before work began; {gpu}, with {little}."
